"""Registers that hold what nobody has written: no instruction has, or they come from shared or
tensor memory that was read too early.

Such a value may be anything, and compilers read so ahead of a loop that may have no steps. It is a
fault once the value counts: in an address, a guard, a store, a matrix product. Until then it goes
from register to register, lane by lane, and through the shared memory of its CTA: what is stored
there counts as never written.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from ..errors import Trap, UnwrittenRead
from ..interface import Warp
from ..ptx import syntax
from ..ptx.flows import LOAD, NOWHERE, SHUFFLE, STORE, WARP, Flow, flow_of
from ..ptx.lanes import WARP_SIZE, guarded
from ..ptx.pending_loads import names_in, register_slots
from ..ptx.registry import SWITCH, Step, Yield
from ..ptx.shuffles import shuffle_source
from ..ptx.unwritten import live_registers, never_written
from ..truth import all_of, any_of

_OFFSET = np.uint64(0xFF_FFFF)
"""Of a shared address the place in the CTA's window, without the rank."""
_NO_LANE = np.zeros(WARP_SIZE, bool)
_ALL_LANES = np.ones(WARP_SIZE, bool)


class _NoStretches:
    """Instructions run one by one."""

    def __getitem__(self, pc: int) -> None:
        return None


NO_STRETCHES = _NoStretches()


def of_new_warp(warp: Warp) -> Undefined | None:
    """What a path may read before anything has written it; None if there is no such register."""
    unwritten = never_written(warp.program) if warp.launch.tracks_writing else []
    return Undefined(warp, unwritten) if unwritten else None


class Undefined:
    """Of one warp: by register the lanes in which it is undefined, and the read it comes from, none
    of a register that nothing has written. As a list, the program's steps, which follow the values.
    """

    def __init__(self, warp: Warp, unwritten: list[int]):
        self._program, self._launch, self._regs = warp.program, warp.launch, warp.regs
        self._live = live_registers(warp.program)
        self._lanes = dict.fromkeys(unwritten, _ALL_LANES)
        self._reads: dict[int, Trap] = {}
        self._warp = warp

    def __bool__(self) -> bool:
        return bool(self._lanes)

    def __getitem__(self, pc: int) -> tuple[Step, None, bool]:
        """The step of an instruction that looks at its guard itself."""
        return partial(self._follow, pc), None, False

    def _follow(self, pc: int, warp: Warp, lanes: np.ndarray) -> Any:
        step, guard, negated = self._launch.code[pc]
        mask: np.ndarray | None = lanes
        self._forget_dead(pc)
        if guard is not None:
            self._check_guard(pc, lanes)
            mask = guarded(lanes, self._regs[guard], negated, None)
        if mask is None:
            self._launch.counts[pc] -= 1
            return None
        undefined, read = self._spread(pc, mask)
        try:
            signal = step(warp, mask)
        except UnwrittenRead as trap:
            return self.load(pc, step, mask, trap)
        if signal in (None, SWITCH) or isinstance(signal, Yield):
            self._note(pc, mask, undefined, read)
            if read is not None and flow_of(self._program, pc).kind == STORE:
                self._pass_on(pc, mask)
        return signal

    def _pass_on(self, pc: int, mask: np.ndarray) -> None:
        """What a store has written is as good as never written where its values are undefined."""
        source, scope = self._program.source[pc], self._program.scope_of(pc)
        access, values = self._program.accesses[pc], source.operands[1]
        elements = values.elements if isinstance(values, syntax.Vector) else (values,)
        each = [self._of(tuple(register_slots(scope, (one,)))) & mask for one in elements]
        assert access.address is not None  # stores of threads have one
        offsets = (access.address(self._warp) & _OFFSET).astype(np.int64)
        if access.to_rows is None:
            at = stored_elements(offsets, access.size, each)
        else:
            at = stored_rows(offsets, access.to_rows, each)
        cta = self._warp.cta
        cta.shared.written[at] = 0
        cta.state("undefined stores", dict).update(dict.fromkeys(at.tolist(), source.line))

    def _forget_dead(self, pc: int) -> None:
        """Drop registers that no path reads any more."""
        if len(self._warp.splits) == 1:
            live = self._live[pc]
            self._lanes = {slot: each for slot, each in self._lanes.items() if live >> slot & 1}

    def load(self, pc: int, step: Step, mask: np.ndarray, trap: UnwrittenRead) -> Any:
        """Perform a load again that has met unwritten bytes: its results are undefined. Raises the
        Trap of another instruction."""
        flow, forgiving = flow_of(self._program, pc), []
        if flow.kind != LOAD:
            raise trap
        trap.locate(**self._warp.place_at(pc, mask))
        found = trap
        try:
            while True:
                found.memory.forgiving = True
                forgiving.append(found.memory)
                try:
                    signal = step(self._warp, mask)
                    break
                except UnwrittenRead as another:
                    found = another
        finally:
            for memory in forgiving:
                memory.forgiving = False
        if signal in (None, SWITCH):
            lanes = self._loaded(pc, mask, trap) if found is trap else {}
            for slot in flow.results:
                self._set(slot, mask, lanes.get(slot, mask), trap)
        return signal

    def _loaded(self, pc: int, mask: np.ndarray, trap: UnwrittenRead) -> dict[int, np.ndarray]:
        """By result of a load, the lanes for which some byte of it was never written."""
        source, scope = self._program.source[pc], self._program.scope_of(pc)
        if not source.opcode.startswith(("ld.", "tcgen05.ld.")) or trap.unwritten is None:
            return {}
        if len(trap.unwritten) != mask.sum():
            return {}  # of one memory among several
        target = source.operands[0]
        elements = target.elements if isinstance(target, syntax.Vector) else (target,)
        parts = trap.unwritten.reshape(len(trap.unwritten), len(elements), -1).any(2)
        found = {}
        for number, element in enumerate(elements):
            for slot in register_slots(scope, (element,)):
                found[slot] = np.zeros(WARP_SIZE, bool)
                found[slot][mask] = parts[:, number]
        return found

    def _check_guard(self, pc: int, mask: np.ndarray) -> None:
        """Trap where a guard is undefined in lanes that come to an instruction."""
        guard = flow_of(self._program, pc).guard
        if guard in self._lanes and any_of(self._lanes[guard] & mask):
            raise self._used(guard, pc, mask)

    def _spread(self, pc: int, mask: np.ndarray) -> tuple[np.ndarray, Trap | None]:
        """The lanes in which the results will be undefined; Trap where the values count."""
        flow = flow_of(self._program, pc)
        named = [slot for slots in flow.sources for slot in slots if slot in self._lanes]
        met = [slot for slot in named if any_of(self._lanes[slot] & mask)]
        if not met:
            return _NO_LANE, None
        counts = flow.sources[0] if flow.kind == STORE else named
        if flow.kind in (LOAD, NOWHERE, STORE):
            for slot in met:
                if slot in counts:
                    raise self._used(slot, pc, mask)
        if flow.kind == SHUFFLE:
            lanes = self._shuffled(pc, flow, mask)
        else:
            lanes = mask if flow.kind == WARP else self._of_lanes(flow, self._regs)
        return lanes, self._reads.get(met[0]) or self._unwritten(met[0], pc, mask)

    def _note(self, pc: int, mask: np.ndarray, lanes: np.ndarray, read: Trap | None) -> None:
        """An instruction has written its results in the lanes of the mask."""
        for slot in flow_of(self._program, pc).results:
            if read is not None or slot in self._lanes:
                self._set(slot, mask, lanes, read)

    def _set(self, slot: int, mask: np.ndarray, lanes: np.ndarray, read: Trap | None) -> None:
        now = self._lanes.get(slot, _NO_LANE) & ~mask | lanes & mask
        if not any_of(now):
            self._lanes.pop(slot, None)
            return
        self._lanes[slot] = now
        if read is not None:
            self._reads[slot] = read

    def _used(self, slot: int, pc: int, mask: np.ndarray) -> Trap:
        read, source = self._reads.get(slot), self._program.source[pc]
        if read is None:
            return self._unwritten(slot, pc, mask)
        uses = f"ptx:{source.line} `{source.text}` uses what it read"
        trap = Trap(read.category, f"{read.message}; {uses}", lanes=read.lanes)
        return trap.locate(
            kernel=read.kernel, cta=read.cta, warp=read.warp, line=read.line, text=read.text
        )

    def _unwritten(self, slot: int, pc: int, mask: np.ndarray) -> Trap:
        """An instruction reads a register that nothing has written."""
        source, scope = self._program.source[pc], self._program.scope_of(pc)
        name = next(
            name for name in names_in((source.operands, source.guard))
            if slot in register_slots(scope, name)
        )  # fmt: skip
        trap = Trap("uninitialised-read", f"nothing has written register {name}")
        return trap.locate(**self._warp.place_at(pc, self._lanes[slot] & mask))

    def _of(self, slots: tuple[int, ...]) -> np.ndarray:
        """The lanes in which any of the registers is undefined."""
        found = _NO_LANE
        for slot in slots:
            found = found | self._lanes.get(slot, _NO_LANE)
        return found

    def _shuffled(self, pc: int, flow: Flow, mask: np.ndarray) -> np.ndarray:
        """The lanes of `shfl` that read from an undefined one."""
        value, amounts, bounds, members = flow.sources
        if any_of(self._of(amounts + bounds + members)) or not all_of(mask):
            return mask
        _, _, *operands, _ = self._program.source[pc].operands
        b, c = (
            self._regs[slots[0]].astype(np.int64) if slots else np.int64(operand.value)
            for operand, slots in zip(operands, (amounts, bounds), strict=True)
        )
        source, _ = shuffle_source(flow.opcode.split(".")[2], b, c)
        return self._of(value)[source]

    def _of_lanes(self, flow: Flow, regs: list) -> np.ndarray:
        """Of an instruction that each lane executes for itself. What is put together of parts is
        undefined if every part is: compilers leave out those that nobody reads.
        """
        name = flow.opcode.split(".")[0]
        if name == "selp" and len(flow.sources[2]) == 1:
            one, two, chosen = (self._of(slots) for slots in flow.sources)
            return chosen | np.where(regs[flow.sources[2][0]], one, two)
        if name in ("and", "or") and all(flow.sources):
            (one,), (two,) = flow.sources
            settles = _settled_by(name, flow.opcode)
            open_two = self._of((two,)) | ~settles(regs[two])
            open_one = self._of((one,)) | ~settles(regs[one])
            return self._of((one,)) & open_two | self._of((two,)) & open_one
        named = tuple(slot for slots in flow.sources for slot in slots)
        if name == "prmt" or (name == "mov" and len(named) > 1):
            return np.logical_and.reduce([self._of((slot,)) for slot in named])
        return self._of(named)


def stored_elements(offsets: np.ndarray, size: int, lanes: list[np.ndarray]) -> np.ndarray:
    """The bytes of a store of `size` bytes at an offset by lane, of each element in some lanes."""
    width = size // len(lanes)
    found = [
        (offsets[chosen, None] + width * number + np.arange(width)).reshape(-1)
        for number, chosen in enumerate(lanes)
    ]
    return np.concatenate(found)


def stored_rows(offsets: np.ndarray, to_rows: Callable, lanes: list[np.ndarray]) -> np.ndarray:
    """The bytes of a stmatrix whose rows lie at an offset by lane, of each matrix in some lanes."""
    marks = [to_rows(np.where(chosen, np.uint32(0xFFFF_FFFF), np.uint32(0))) for chosen in lanes]
    written = np.concatenate(marks).view(np.uint8) != 0
    places = offsets[: len(written), None] + np.arange(written.shape[1])
    return places[written]


def _settled_by(name: str, opcode: str) -> Callable[[np.ndarray], np.ndarray]:
    """Which values of one operand settle the result, whatever the other is."""
    if name == "and":
        return lambda values: values == 0
    ones = True if opcode.endswith("pred") else -1
    return lambda values: values == np.asarray(ones).astype(values.dtype)
