"""From which registers to which an instruction passes values on, as its text has it."""

from __future__ import annotations

from typing import NamedTuple

from .pending_loads import register_slots
from .program import Program

LANES, SHUFFLE, WARP, LOAD, STORE, NOWHERE = "lanes shuffle warp load store nowhere".split()

_OF_A_LANE = frozenset(
    """abs add addc and bfe bfi bfind brev clz cnot copysign cos cvt cvta div dp2a dp4a ex2 fma fns
    isspacep lg2 lop3 mad mad24 madc mapa max min mov mul mul24 neg not or popc prmt rcp rem rsqrt
    sad selp set setp shf shl shr sin slct sqrt sub subc szext tanh testp xor""".split()
)
_OF_A_WARP = frozenset(("mma", "movmatrix"))
_LOADS = ("ld.", "ldmatrix.", "tcgen05.ld.")
_STORES = ("st.shared.", "st.shared::cta.", "stmatrix.")


class Flow(NamedTuple):
    """How values flow: each lane's on its own, from lane to lane, those of the warp together, from
    memory, to the shared memory of the CTA, or nowhere that is known. results: registers that are
    only written; sources: that are read, by operand; guard: -1 for none."""

    kind: str
    opcode: str
    results: tuple[int, ...]
    sources: tuple[tuple[int, ...], ...]
    guard: int


def flow_of(program: Program, pc: int) -> Flow:
    """The flow of an instruction, found once a program."""
    found = program.flows.get(pc)
    if found is None:
        found = program.flows[pc] = _flow(program, pc)
    return found


def _flow(program: Program, pc: int) -> Flow:
    source, scope = program.source[pc], program.scope_of(pc)
    kind = _kind(source.opcode, source.opcode.split(".")[0])
    reads, writes = program.registers[pc]
    guard = tuple(register_slots(scope, source.guard))
    if kind in (STORE, LANES, SHUFFLE):
        first = 0 if kind == STORE else 1
        operands = source.operands[first:]
        sources = tuple(register_slots(scope, each) & reads for each in operands)
    else:
        sources = (reads,)
    return Flow(
        kind,
        source.opcode,
        tuple(writes),
        tuple(tuple(each) for each in sources),
        guard[0] if guard else -1,
    )


def _kind(opcode: str, name: str) -> str:
    if opcode.startswith(_LOADS):
        return LOAD
    if opcode.startswith(_STORES):
        return STORE
    if name in _OF_A_LANE:
        return LANES
    if name == "shfl":
        return SHUFFLE
    return WARP if name in _OF_A_WARP else NOWHERE
