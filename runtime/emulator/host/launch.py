"""One launch: the grid's memories, its CTAs, and the run to the end."""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from itertools import accumulate
from math import prod
from os import PathLike
from typing import Any

import numpy as np

from ...collector import no_full_collections
from ..checks.levels import CHECKS, listeners, seen_in_text
from ..checks.unawaited_grids import unawaited_grids
from ..errors import LaunchError, Trap, short_name
from ..machine.cluster import Cluster
from ..machine.cta import Cta, StateBag
from ..machine.engine import Engines
from ..machine.events import Events, Strong
from ..machine.memory import Region
from ..machine.scheduler import Scheduler
from ..machine.spaces import LocalSpace, Space, WindowSpace
from ..machine.warp import Warp
from ..observe.observer import Observer
from ..observe.profiler import Profiler
from ..observe.report import Report
from ..observe.trace_file import tracing
from ..ptx.addresses import CONST_WINDOW, GLOBAL_BASE, PARAM_WINDOW, SHARED_FIRST_OFFSET
from ..ptx.lanes import LANE_IDS, WARP_SIZE
from ..ptx.layout import MAX_SHARED_BYTES, align_up
from ..ptx.origins import origins_of
from ..ptx.program import Program
from ..ptx.specials import FIXED, GRID_WORKSPACE
from ..ptx.values import RAW
from ..tensor.short_sums import SUMS
from .names import Names
from .params import HostArrays, Parameters
from .planned import Planned, planned_clusters
from .poison import garbage
from .programs import load_program
from .shape import Extent, Shape
from .workers import run_shares

DEFAULT_RESIDENT = 4
POISON_ARRAYS = 61
UNDEFINED = "undefined-query"
"""The warning of a value that is undefined; a wrong verdict later on may come of its use."""


def launch(
    ptx: str,
    entry: str,
    *,
    grid: Extent,
    block: Extent,
    cluster: Extent = (1, 1, 1),
    shared_bytes: int = 0,
    params: Sequence = (),
    seed: int = 0,
    max_steps: int | None = None,
    resident: int = DEFAULT_RESIDENT,
    names: Mapping[str, Any] | None = None,
    trace: str | PathLike[str] | None = None,
    profile: bool = False,
    awaited: Sequence[np.ndarray] = (),
    check: str = "full",
    workers: int = 1,
    only: Sequence[Extent] | None = None,
    fp8_sums: str = SUMS[0],
    outputs: Sequence[np.ndarray] = (),
    inputs: Sequence[np.ndarray] = (),
    scratch: Sequence[np.ndarray] = (),
    preferred: Extent | None = None,
) -> Report:
    """Run kernel `entry` of a module's text `ptx` to its end and return what it did.

    grid, block, cluster: CTAs, threads, and CTAs of a cluster along x, y, z; missing axes are 1.
    shared_bytes: dynamic shared memory.
    params: one value for each parameter of the kernel. A numpy array is passed by address; results
        are written in place, and no byte outside it can be touched. Others are a `TensorMap`, a
        number, or for a struct (`.param .b8 p[n]`) its `bytes`, or a dict from offsets to fields
        (arrays, tensor maps, numpy numbers, bytes).
    seed: fixes scheduling and poison; max_steps: warp instructions after which to give up.
    resident: CTAs that fit on the device at the same time; a cluster always fits.
    names: of barriers and warps, for reports, as in a bundle's manifest (docs/manifest.md).
    trace: a file for a trace (docs/emulator.md), which is also written when the kernel fails.
    profile: fill `report.profile`.
    awaited: arrays that a prerequisite grid works on until griddepcontrol.wait (programmatic
        dependent launch); an earlier access is a Trap.
    check: `full`; `shipped` only warns of what libraries ship; `fast` leaves out races; `off`
        leaves out all rules about order and initialisation.
    workers: processes among which the clusters are divided, where these have nothing to do with
        each other. Otherwise, and with `trace` or `profile`, one process runs them all.
    only: the clusters to run, by their place in the grid of clusters; the others never start.
    fp8_sums: `hopper` forms sums of 8-bit floats of wgmma with 14 bits, `f32` as float32.
    outputs, inputs, scratch: parts of arrays all of which the kernel must write, should read, and
        should read behind its writes.
    preferred: CTAs of a cluster that takes the place of several of `cluster`; the seed says where.

    Raises PtxSyntaxError, LaunchError, and Trap (`unmodelled` if something is not modelled).
    """
    program = load_program(ptx, entry)
    shape = Shape(program, grid, block, cluster, preferred)
    running = Launch(program, shape, shared_bytes, seed, check, fp8_sums)
    running.names = Names.of(names)
    running.arrays.say(awaited, outputs, inputs, scratch)
    running.bind(list(params))
    how = {"trace": trace, "profile": profile, "workers": workers, "only": only}
    return running.run(max_steps, resident, **how)


class Launch(StateBag):
    """The state of a running grid.

    program, grid, block, cluster, preferred (int triples), shared_bytes (bytes behind 0x400),
    global_memory, param_memory, const_memory (`Space`), engines, scheduler, report, rng,
    engine_counts: the report's engine counter,
    current_warp: the warp whose instruction runs now, else None; names: for reports; code: the
    program's, as `observers` have wrapped it; stretches, recalls, traces: the program's, none where
    there are observers; events, strong, mask, incoherent, tracks_writing, fp8_sums: see
    `interface.Launch`.
    """

    def __init__(
        self,
        program: Program,
        shape: Shape,
        dynamic_bytes: int,
        seed: int,
        check: str = "full",
        fp8_sums: str = SUMS[0],
    ):
        super().__init__()
        self.program, self.entry = program, program.entry
        self.grid, self.block, self.cluster = shape.grid, shape.block, shape.cluster
        self.preferred, self.explicit_cluster = shape.preferred, shape.explicit_cluster
        self.dynamic_bytes = dynamic_bytes
        self.shared_bytes = self._shared_size(dynamic_bytes)
        if check not in CHECKS:
            raise self._error(f"check must be one of {', '.join(CHECKS)}, got {check!r}")
        if fp8_sums not in SUMS:
            raise self._error(f"fp8_sums must be one of {', '.join(SUMS)}, got {fp8_sums!r}")
        self.fp8_sums = fp8_sums
        self.events, self.tracks_writing = Events(), check != "off"
        self.strong: Strong | None = None
        self.mask: np.ndarray | None = None
        self.incoherent = False
        self.rng = random.Random(seed)
        self.seed, self._garbage = seed, np.random.default_rng(seed)
        self._poison = np.zeros(0, np.uint8)
        self.report = Report(self.entry)
        self.engine_counts = self.report.engines
        self.counts = [0] * len(program.source)
        self.edges = [0] * (len(program.source) + 1)
        self.engines = Engines(self)
        self.current_warp: Warp | None = None
        self.names = Names()
        self.code = list(program.code)
        self.recalls, self.traces = program.recalls, program.traces
        self.stretches, self.begun = program.stretches, dict[int, int]()
        self.observers: list[Observer] = []
        self.clock_reads, self.barrier_changes, self._even = 0, 0, check == "shipped"
        self._make_memories()
        self.grid_workspace = self._make_grid_workspace()
        self._template = self._register_template()
        for listener in listeners(self, check):
            self.events.add(listener)

    # -- set-up ------------------------------------------------------------------------------

    def _shared_size(self, dynamic: int) -> int:
        if not isinstance(dynamic, int) or dynamic < 0:
            raise self._error(f"shared_bytes must be an integer >= 0, got {dynamic!r}")
        shared = self.program.shared
        lead = shared.dynamic_offset - SHARED_FIRST_OFFSET
        total = lead + dynamic if dynamic else shared.static_bytes
        if total > MAX_SHARED_BYTES:
            raise self._error(
                f"a CTA has at most {MAX_SHARED_BYTES} bytes of shared memory, got"
                f" {shared.static_bytes} static and {dynamic} dynamic"
            )
        return total

    def _error(self, message: str) -> LaunchError:
        return LaunchError(f"kernel {short_name(self.entry)}: {message}")

    def _make_memories(self) -> None:
        self.global_memory, self.no_local = Space("global"), Space("local")
        self.const_memory = WindowSpace("const", CONST_WINDOW)
        self.param_memory = WindowSpace("param", PARAM_WINDOW)
        self.own_parameters = WindowSpace("param", PARAM_WINDOW, own=True)
        variables = self.program.globals
        for variable, address in variables.placed():
            space = self.const_memory if variable.space == "const" else self.global_memory
            space.add(
                Region(
                    f"variable {variable.name}",
                    address,
                    variables.initial_bytes(variable),
                    space=variable.space,
                    writable=variable.space == "global",
                )
            )
        self.arrays = HostArrays(self.global_memory, max(variables.end, GLOBAL_BASE) + (1 << 32))

    def _make_grid_workspace(self) -> int:
        """The address of what threads of a cooperative launch synchronise the grid with, or 0.

        A kernel that reads it (%envreg1, %envreg2: CUDA's cooperative groups) is taken as launched
        cooperatively: all its CTAs are resident. The words are its size and the barrier.
        """
        if not GRID_WORKSPACE & set(self.program.special_slots.values()):
            return 0
        words = np.array([8, *(0,) * 15], np.uint32)
        return self.arrays.address(words, "the grid's workspace")

    def bind(self, params: list) -> None:
        """Encode the kernel's parameters; LaunchError names the one that is wrong."""
        data = Parameters(self).encode(params)
        name = "the kernel's parameters"
        region = Region(name, PARAM_WINDOW, data, space="param", writable=False)
        for space in (self.param_memory, self.own_parameters):
            space.add(region)
        self.events.bound()

    def poison_bytes(self, size: int) -> np.ndarray:
        """Seeded non-zero garbage, uint8[size]: a part of what has been made, from any byte on."""
        if len(self._poison) <= size:
            self._poison = garbage(self.seed, 2 << size.bit_length())
        start = int(self._garbage.integers(len(self._poison) - size))
        return self._poison[start : start + size].copy()

    # -- warps and CTAs ----------------------------------------------------------------------

    def _register_template(self) -> list:
        pool = {bits: self._poison_pool(bits) for bits in set(self.program.poisoned.values())}
        template: list = [None] * self.program.slot_count
        for slot, bits in self.program.poisoned.items():
            template[slot] = pool[bits][slot % POISON_ARRAYS]
        for slot, array in self.program.constants.items():
            template[slot] = array
        return template

    def _poison_pool(self, bits: int) -> list[np.ndarray]:
        if bits == 1:
            return list(self._garbage.integers(0, 2, (POISON_ARRAYS, WARP_SIZE)).astype(bool))
        width = 2 if bits == 128 else 1
        raw = self._garbage.integers(1, 256, (POISON_ARRAYS, WARP_SIZE * bits // 8), np.uint8)
        words = raw.view(RAW[bits])
        return list(words.reshape(POISON_ARRAYS, WARP_SIZE, 2) if width == 2 else words)

    def make_registers(self, warp: Warp) -> list[np.ndarray]:
        """The registers of a new warp: poison, constants, special registers, addresses."""
        registers = list(self._template)
        for slot, name in self.program.special_slots.items():
            registers[slot] = FIXED[name][1](warp)
        for slot, (name, offset) in self.program.shared_slots.items():
            address = warp.cta.shared_base + self.program.shared.offsets[name] + offset
            registers[slot] = np.full(WARP_SIZE, address, self.program.slot_dtype(slot))
        return registers

    def is_unwritten(self, slot: int, register: Any) -> bool:
        """Whether a register still holds what it held at the start."""
        return register is self._template[slot]

    def make_local(self) -> LocalSpace:
        """The local memory of a new warp, poisoned."""
        size = align_up(self.program.frame.size, 32)
        return LocalSpace(self.poison_bytes(size * WARP_SIZE), size)

    def start_cluster(self, planned: Planned) -> list[Cta]:
        """Make the CTAs and warps of one cluster."""
        (index, shape), ctas = planned, []
        cluster, (size_x, size_y, size_z) = Cluster(index, shape), shape
        if shape != self.cluster:
            self.engine_counts["preferred clusters"] += 1
        self.events.cluster_started(cluster)
        for rank in range(size_x * size_y * size_z):
            inside = (rank % size_x, rank // size_x % size_y, rank // (size_x * size_y))
            x, y, z = (i * size + j for i, size, j in zip(index, shape, inside, strict=True))
            where = (x, y, z)
            number = where[0] + self.grid[0] * (where[1] + self.grid[1] * where[2])
            ctas.append(Cta(self, cluster, where, number, rank))
            cluster.ctas.append(ctas[-1])
        for cta in ctas:
            cta.add_peers()
            self._start_warps(cta)
        return ctas

    def _start_warps(self, cta: Cta) -> None:
        cta.live_threads = prod(self.block)
        for number in range(-(-cta.live_threads // WARP_SIZE)):
            mask = LANE_IDS + number * WARP_SIZE < cta.live_threads
            cta.warps.append(Warp(cta, number, mask))

    def executed(self) -> list[int]:
        """How often each instruction has been executed, by pc."""
        inside = accumulate(self.edges[:-1])
        return [alone + runs for alone, runs in zip(self.counts, inside, strict=True)]

    def barrier_name(self, offset: int) -> str | None:
        """The name of the mbarrier at an offset of the shared window."""
        return self.names.barriers.get(offset - self.program.shared.dynamic_offset)

    def observe(self, observer: Observer) -> None:
        """Let `observer` see everything that happens from now on."""
        self.observers.append(observer)
        self.events.add(observer)
        self.stretches = self.recalls = self.traces = [None] * len(self.code)
        self.code = [
            (observer.wrap(pc, step), guard, negated)
            for pc, (step, guard, negated) in enumerate(self.code)
        ]

    # -- running -----------------------------------------------------------------------------

    def run(
        self,
        max_steps: int | None,
        resident: int,
        *,
        trace: str | PathLike[str] | None = None,
        profile: bool = False,
        workers: int = 1,
        only: Sequence[Extent] | None = None,
    ) -> Report:
        """Run every CTA; returns the report. Arguments as in `launch`."""
        if not isinstance(workers, int) or workers < 1:
            raise self._error(f"workers must be an integer >= 1, got {workers!r}")
        profiler = Profiler(self) if profile else None
        if profiler:
            self.observe(profiler)
        with tracing(self, trace), self._explained():
            self._run_clusters(max_steps, resident, workers, only)
            if only is None:
                self.events.finished()
            self.report.warn_of(unawaited_grids(self.report.instructions, self.arrays.awaited))
        self.report.profile = profiler and profiler.finish()
        return self.report

    @contextmanager
    def _explained(self) -> Iterator[None]:
        """A verdict, and the report's warnings, say where the PTX lines that they cite are from.

        A verdict also says which undefined value the kernel had taken before.
        """
        try:
            yield
        except Trap as trap:
            undefined = (each for each in self.report.warnings if each.category == UNDEFINED)
            trap.remarks = tuple(f"before that, {each}" for each in undefined)
            trap.origins = origins_of(self.program.text, str(trap))
            raise
        cited = " ".join(each.message for each in self.report.warnings)
        self.report.origins = list(origins_of(self.program.text, cited))

    def warn(self, category: str, message: str) -> None:
        """Note a suspicion about what runs now: a warp's instruction or an engine's operation."""
        running = self.current_warp.place() if self.current_warp else self._operation_place()
        where = f"ptx:{running['line']}: " if running.get("line") else ""
        self.report.warn(category, message if message.startswith("ptx:") else where + message)

    def _operation_place(self) -> dict[str, Any]:
        operation = self.engines.current
        return operation.origin if operation is not None else {}

    def _run_clusters(
        self,
        max_steps: int | None,
        resident: int,
        workers: int,
        only: Sequence[Extent] | None,
    ) -> None:
        clusters = planned_clusters(self.grid, self.cluster, self.preferred, self.rng)
        if only is not None:
            if self.preferred != self.cluster:
                raise self._error("only: must be left out where clusters have two shapes")
            clusters = [each for each in clusters if each.index in only]
        if self.grid_workspace:
            resident = max(resident, prod(self.grid))
        run = partial(self._run_share, resident, max_steps)
        reports = run_shares(self, clusters, workers, max_steps, run) if workers > 1 else None
        self.report.warn_of(seen_in_text(self.program))
        if reports is None:
            run(clusters)
            return
        self.report.workers = len(reports)
        for report in reports:
            self.report.add(report)

    def _run_share(self, resident: int, max_steps: int | None, clusters: list) -> None:
        self.scheduler = Scheduler(self, clusters, resident, max_steps, self._even)
        with np.errstate(all="ignore"), no_full_collections():
            self.scheduler.run()
        self.report.steps = self.scheduler.steps
        self.report.note_executed(self.program, self.executed())
