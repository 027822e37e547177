"""What the parts of a running launch are to one another, on one page.

`host/launch.py` and the files of `machine/` that bear the names below make these objects. All other
files take them by these interfaces, so that none is imported for a type alone.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Hashable
from typing import Any, Protocol

import numpy as np

Triple = tuple[int, int, int]


class EngineOp(Protocol):
    """An asynchronous operation, as `machine.engine.EngineOp` describes it. origin: who issued it,
    keywords of `Trap.locate`."""

    agent: str
    after: tuple[EngineOp, ...]
    commits: bool
    done: bool
    generic: bool
    joins: bool
    line: int
    marks: Any
    moves: Any
    signal: Any
    signals: tuple[Any, int] | None
    stream: tuple[str, int | None] | None
    successors: list[Any]
    waits_for: int

    @property
    def name(self) -> str: ...
    @property
    def origin(self) -> dict[str, Any]: ...


class Engines(Protocol):
    """The operations under way; current: the one that ran last."""

    ready: list[Any]
    outstanding: dict[Any, None]

    @property
    def current(self) -> EngineOp | None: ...
    def submit(self, op: Any) -> Any: ...
    def run_one(self, rng: random.Random) -> None: ...
    def check_exit(self, cta: Any) -> None: ...


class Scheduler(Protocol):
    """Who runs next. steps: warp instructions so far; ctas: the resident ones."""

    steps: int
    ctas: list[Any]

    def wake(self, warps: list[Any]) -> None: ...
    def cta_exited(self, cta: Any) -> None: ...
    def take_unlaunched(self) -> Triple | None: ...


class Launch(Protocol):
    """A running grid. current_warp: whose instruction runs now, else None; code: by pc
    (step, guard slot or None, guard negated); stretches, recalls, traces: by pc the
    `ptx.lanewise.Stretch`, `ptx.recall.Recall` and `ptx.lane_trace.Trace` that start there, or
    None; begun: by pc how often a trace was; events: `machine.events.Events`; strong:
    the strong access under way; mask: the lanes of the load under way; incoherent: whether that is
    ld.global.nc; tracks_writing: whether
    memories keep which of their bytes were written; fp8_sums: how wgmma sums 8-bit floats
    (`tensor.short_sums`); counts: by pc how often it was executed alone;
    edges: by pc how many runs of instructions, executed as one, start there less those that end."""

    entry: str
    program: Any
    grid: Triple
    block: Triple
    cluster: Triple
    preferred: Triple
    explicit_cluster: bool
    shared_bytes: int
    dynamic_bytes: int
    grid_workspace: int
    global_memory: Any
    param_memory: Any
    own_parameters: Any
    const_memory: Any
    no_local: Any
    arrays: Any
    report: Any
    engine_counts: Any
    names: Any
    seed: int
    rng: random.Random
    current_warp: Any
    events: Any
    strong: Any
    mask: np.ndarray | None
    incoherent: bool
    tracks_writing: bool
    code: list[tuple]
    stretches: list[Any]
    recalls: list[Any]
    traces: list[Any]
    begun: dict[int, int]
    fp8_sums: str
    counts: list[int]
    edges: list[int]
    clock_reads: int
    barrier_changes: int
    observers: list[Any]

    @property
    def engines(self) -> Engines: ...
    @property
    def scheduler(self) -> Scheduler: ...
    def observe(self, observer: Any) -> None: ...
    def state(self, key: str, factory: Callable[[], Any]) -> Any: ...
    def warn(self, category: str, message: str) -> None: ...
    def poison_bytes(self, size: int) -> np.ndarray: ...
    def make_registers(self, warp: Any) -> list[np.ndarray]: ...
    def is_unwritten(self, slot: int, register: Any) -> bool: ...
    def make_local(self) -> Any: ...
    def barrier_name(self, offset: int) -> str | None: ...
    def executed(self) -> list[int]: ...
    def start_cluster(self, planned: Any) -> list[Any]: ...


class Cluster(Protocol):
    """CTAs by %cluster_ctarank, `shape` of them along x, y and z."""

    index: Triple
    shape: Triple
    ctas: list[Any]
    generation: int

    def cta(self, rank: int) -> Cta: ...
    def withdraw(self, warp: Any, lanes: int) -> None: ...
    def try_complete(self) -> None: ...


class Cta(Protocol):
    """A CTA. index: %ctaid; rank: %cluster_ctarank; shared: the bytes of its window; events: how
    often a waiting thread had reason to look again; mbarriers: the live ones, by offset; tensor:
    what its tensor core keeps, None while nothing has used it."""

    index: Triple
    rank: int
    shared: Any
    shared_base: int
    shared_space: Any
    cluster_space: Any
    generic: Any
    barriers: list[Any]
    mbarriers: dict[int, Any]
    tensor: Any
    warps: list[Any]
    live_threads: int
    events: int
    exited: bool

    @property
    def launch(self) -> Launch: ...
    @property
    def cluster(self) -> Cluster: ...
    def add_peers(self) -> None: ...
    def warn_of_rank(self, address: int) -> None: ...
    def state(self, key: str, factory: Callable[[], Any]) -> Any: ...
    def notify(self) -> None: ...
    def park(self, warp: Any, split: Any) -> None: ...
    def wake(self, key: Hashable) -> None: ...
    def at_exit(self, check: Callable[[], None]) -> None: ...
    def threads_exited(self, lanes: int) -> None: ...


class Split(Protocol):
    """Lanes of a warp at one pc. reason: why they are parked; token: what the instruction there
    remembers between retries."""

    pc: int
    mask: np.ndarray
    stack: tuple
    parked_at: int | None
    reason: Any
    token: Any

    @property
    def polls(self) -> bool: ...


class Warp(Protocol):
    """A warp. regs: arrays of 32 lanes by register slot, never changed in place; split: the lanes
    that run now; live: those that have not exited, as bits."""

    index: int
    program: Any
    regs: list[Any]
    local: Any
    generic: Any
    live: int
    split: Any
    splits: list[Any]
    parked: bool
    ran: bool

    @property
    def launch(self) -> Launch: ...
    @property
    def cta(self) -> Cta: ...
    def describe(self) -> list[str]: ...
    def line_of(self, split: Any) -> int: ...
    def state(self, key: str, factory: Callable[[], Any]) -> Any: ...
    def run(self, budget: int) -> int: ...
    def can_run(self) -> bool: ...
    def missing(self, mask: np.ndarray) -> int: ...
    def place(self) -> dict[str, Any]: ...
    def place_at(self, pc: int, mask: np.ndarray) -> dict[str, Any]: ...
    def place_of(self, split: Any, pc: int | None = None) -> dict[str, Any]: ...
    def stands_at(self, split: Any) -> int: ...
    def branch(self, mask: np.ndarray, target: int) -> None: ...
    def scatter(self, mask: np.ndarray, targets: list[tuple[int, np.ndarray]]) -> None: ...
    def call(self, mask: np.ndarray, target: int, on_return: tuple) -> None: ...
    def call_several(self, mask: np.ndarray, targets: list[tuple]) -> None: ...
    def leave(self, mask: np.ndarray) -> None: ...
    def exit_lanes(self, mask: np.ndarray) -> None: ...
