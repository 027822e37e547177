"""tcgen05.ld and tcgen05.st: tensor memory to and from registers, one warp at a time.

Source: PTX ISA, "Tensor Memory and Register Load/Store Instructions". The data moves at issue;
until tcgen05.wait the access counts as under way and conflicting accesses are refused.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from ...errors import Trap
from ...interface import Warp
from ...ptx.accesses import READ, WRITE, MemoryAccess
from ...ptx.decode import Decoded
from ...ptx.lanes import WARP_SIZE
from ...ptx.registry import Blocked, Step, instruction
from ...tensor.spans import Access, Claim, Span
from ...tensor.tensor_engine import TensorEngine, tensor_engine, track
from ...tensor.tensor_memory import SHAPES, Shape, TensorMemory, register_map, split_address
from ...truth import any_of
from ..threads.convergence import take_aligned

_NUMBERS = tuple(f"x{1 << power}" for power in range(8))
_ENGINES = ("tcgen05.mma", "tcgen05.cp", "tcgen05.shift")
"""Operations under way that neither loads nor stores may meet."""
_LOW_HALF = np.uint32(0xFFFF)
REGISTER_BYTES = 4


@dataclass(frozen=True)
class AccessForm:
    """One access form: shape, registers per thread, half split, and 16-bit packing."""

    name: str
    shape: Shape
    registers: int
    half_split: int
    packed: bool

    @property
    def columns(self) -> int:
        """Columns of one contiguous part of the access."""
        count = self.registers // self.shape.registers * self.shape.columns
        return 2 * count if self.packed else count

    @property
    def warp_bytes(self) -> int:
        """Bytes of the registers of a whole warp."""
        return WARP_SIZE * self.registers * REGISTER_BYTES

    @property
    def parts(self) -> tuple[int, ...]:
        """Column offsets at which contiguous parts start."""
        return (0, self.half_split) if self.shape.name == "16x32bx2" else (0,)


def _take_form(ins: Decoded, packing: str) -> AccessForm:
    shape = SHAPES[ins.required(tuple(SHAPES))]
    number = int(ins.required(_NUMBERS)[1:])
    packed = ins.flag(packing)
    ins.required(("b32",))
    ins.finish_modifiers()
    if number > shape.largest:
        ins.unmodelled(f"modifier .x{number} with .{shape.name}")
    split = shape.name == "16x32bx2"
    ins.expect_operands(3 if split else 2)
    half = ins.immediate(1 if ins.mnemonic == "tcgen05.st" else 2) if split else 0
    return AccessForm(ins.mnemonic, shape, shape.registers * number, half, packed)


@lru_cache(maxsize=1024)
def _indices(form: AccessForm, lane: int, column: int) -> tuple[np.ndarray, np.ndarray]:
    """Absolute (lane, column); for packed forms of the low halves."""
    lanes, columns = register_map(form.shape.name, form.registers, form.half_split)
    if form.packed:
        columns = 2 * columns - (form.half_split * (np.arange(32) >= 16))
    return lanes + lane, columns + column


def _check(engine: TensorEngine, form: AccessForm, warp: Warp, address: int) -> tuple[int, int]:
    """(lane, column) of a legal access; Trap for lanes of other warps or foreign columns."""
    lane, column = split_address(address)
    own = 32 * (warp.index % 4)
    if own and lane < 32:
        lane = _in_own_quarter(form, warp, lane)
    legal = (own,) if form.shape.lanes == 32 else (own, own + 16)
    if lane not in legal:
        raise Trap(
            "tmem",
            f"{form.name}: warp {warp.index} may access tensor memory lanes {own}..{own + 31} "
            f"only, and .{form.shape.name} must start at lane "
            f"{' or '.join(str(start) for start in legal)}, got {lane}",
        )
    for part in form.parts:
        engine.memory.check_columns(column + part, form.columns, form.name)
    return lane, column


def _in_own_quarter(form: AccessForm, warp: Warp, lane: int) -> int:
    """A lane of the first quarter, taken as the same of the warp's own.

    The ISA asks for the warp's own lanes; DeepGEMM and TileLang give the address of the allocation
    in every warp, and say that the hardware leaves the quarter out.
    """
    warp.launch.warn(
        "quarter",
        f"{form.name} names lane {lane} in a warp of another quarter, taken as lane"
        f" {lane} of its own quarter; PTX ISA §9.7.16.8 asks for the warp's own lanes",
    )
    return lane + 32 * (warp.index % 4)


def _spans(form: AccessForm, lane: int, column: int) -> list[Span]:
    lanes = form.shape.lanes
    return [
        Span(lane, lane + lanes, column + part, column + part + form.columns) for part in form.parts
    ]


def _track(form: AccessForm, warp: Warp, lane: int, column: int,
           against: tuple[str, ...]) -> None:  # fmt: skip
    line = warp.program.source[warp.split.pc].line
    reads, events = form.name == "tcgen05.ld", warp.launch.events
    for span in _spans(form, lane, column):
        claim = Claim(span, form.name, against, reads=reads)
        events.columns_claimed(warp.cta, claim)
        access = Access(form.name, span, line, warp.index, reads=reads, rank=warp.cta.rank)
        events.columns_used(warp.cta, warp, claim, True)
        track(warp.cta, access)


@instruction("tcgen05.ld", section="9.7.16.8.1")
def build_ld(ins: Decoded) -> Step:
    converged = take_aligned(ins)
    form = _take_form(ins, "pack::16b")
    _check_distinct(ins)
    write = ins.write_vector(0, form.registers, np.uint32)
    address = _tensor_address(ins, 1)
    ins.note_access(MemoryAccess("tensor", READ, form.warp_bytes))

    def step(warp: Warp, mask: np.ndarray) -> Blocked | None:
        if blocked := converged(warp, mask):
            return blocked
        engine = tensor_engine(warp.cta)
        lane, column = _check(engine, form, warp, address(warp, mask))
        _track(form, warp, lane, column, ("tcgen05.st", *_ENGINES))
        write(warp, mask, _load(engine.memory, form, lane, column))
        return None

    return step


def _check_distinct(ins: Decoded) -> None:
    """The load is asynchronous: no order decides which of two words a register keeps."""
    named = [each for each in ins.elements(0) if not ins.is_sink(each)]
    if len(set(named)) < len(named):
        raise ins.trap("operand", "the registers of tcgen05.ld must differ from each other")


def _tensor_address(ins: Decoded, at: int):
    address = ins.address(at)

    def uniform(warp: Warp, mask: np.ndarray) -> int:
        values = address(warp)[mask]
        if any_of(values != values[0]):
            raise Trap("convergence", f"the address of {ins.mnemonic} differs between lanes")
        return int(values[0])

    return uniform


def _load(memory: TensorMemory, form: AccessForm, lane: int, column: int) -> np.ndarray:
    """``uint32[registers, 32]``."""
    if form.shape.lanes == 32 and not form.packed:
        block = slice(lane, lane + 32), slice(column, column + form.registers)
        memory.require_written(*block, form.name)
        return np.ascontiguousarray(memory.part(*block).T)
    lanes, columns = _indices(form, lane, column)
    if not form.packed:
        return memory.gather(lanes, columns, form.name)
    low, high = memory.gather(lanes, np.stack([columns, columns + 1]), form.name)
    return (low & _LOW_HALF) | (high << np.uint32(16))


@instruction("tcgen05.st", section="9.7.16.8.2")
def build_st(ins: Decoded) -> Step:
    converged = take_aligned(ins)
    form = _take_form(ins, "unpack::16b")
    address = _tensor_address(ins, 0)
    ins.note_access(MemoryAccess("tensor", WRITE, form.warp_bytes))
    read = ins.read_vector(len(ins.operands) - 1, form.registers, np.uint32)

    def step(warp: Warp, mask: np.ndarray) -> Blocked | None:
        if blocked := converged(warp, mask):
            return blocked
        engine = tensor_engine(warp.cta)
        lane, column = _check(engine, form, warp, address(warp, mask))
        _track(form, warp, lane, column, ("tcgen05.ld", *_ENGINES))
        _store(engine.memory, form, lane, column, np.stack(read(warp)))
        return None

    return step


def _store(
    memory: TensorMemory, form: AccessForm, lane: int, column: int, values: np.ndarray
) -> None:
    lanes, columns = _indices(form, lane, column)
    if not form.packed:
        memory.scatter(lanes, columns, values)
        return
    memory.scatter(lanes, columns, values & _LOW_HALF)
    memory.scatter(lanes, columns + 1, values >> np.uint32(16))
