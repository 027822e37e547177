"""`sm.wgmma`, from `sm` to nvvm and llvm: consecutive MMAs become one inline asm.

    sm.wgmma sum, a, b; sm.wgmma …   → llvm.inline_asm "wgmma.mma_async …; wgmma.mma_async …;"

PTX has the same instructions in the same order. But MLIR and LLVM go through the registers of an
asm one by one, at every level: four MMAs along K whose sums have 128 registers are 1,024 operands
by themselves and 256 together. The asm is our own, since nvvm.wgmma.mma_async fixes scale-d.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Any, NamedTuple

from ....dialects import llvm, sm
from ....dialects.dtypes import DTYPES
from ....dialects.mlir import ir, vector
from ..registers.register_accumulator import joined_parts, parts, struct_of
from .named_sums import Named, names_of
from .tensor_core import operand_descriptor, ties

Multiply = sm.WgmmaOp | sm.WgmmaOfRegistersOp
PURE = ("arith.", "vector.", "llvm.extractvalue", "llvm.insertvalue", "sm.advance")


def runs(ops: Sequence[Any]) -> list[list[Any]]:
    """The ops one by one; but MMAs that may all stand where the last one does are together there.

    Found before any op changes: the hash of an op is that of its operands, too.
    """
    multiplies = {op.operation: op for op in ops if isinstance(op, Multiply)}
    blocks = dict.fromkeys(operation.block for operation in multiplies)
    found = [run for block in blocks for run in _runs_of(block, multiplies)]
    ends = {run[-1].operation: run for run in found}
    return [
        ends.get(op.operation, [op])
        for op in ops
        if op.operation in ends or op.operation not in multiplies
    ]


def _runs_of(block: ir.Block, multiplies: dict[ir.Operation, Any]) -> Iterator[list[Any]]:
    run: list[Any] = []
    for each in block.operations:
        op = multiplies.get(each.operation)
        if run and not (_may_wait(run, each) if op is None else _follows(run, op)):
            yield run
            run = []
        if op is not None:
            run.append(op)
    if run:
        yield run


def _may_wait(run: list[Any], other: Any) -> bool:
    """Whether the MMAs may start after an op."""
    given = [op.sum for op in run]
    pure = other.operation.name.startswith(PURE)
    return pure and not any(operand in given for operand in other.operation.operands)


def _follows(run: list[Any], op: Any) -> bool:
    """Whether nobody else reads the sums of the others that an MMA adds to, if it does."""
    if op.d_type.value != run[0].d_type.value:
        return False
    given = [each.sum for each in run]
    return op.d not in given or len(list(op.d.uses)) == 1


class Chain(NamedTuple):
    """MMAs that hand their sums on, the registers of these in the asm, and what it takes them as:
    nothing where they have names."""

    ops: list[Any]
    registers: list[str]
    taken: list[ir.Value]


def lower_run(run: list[Any], named: Named) -> None:
    """One asm, from which those who read the last sums of each chain have them."""
    with ir.InsertionPoint(run[-1]), run[-1].location:
        chains = _chains(run, named)
        given = _multiplied(run, chains)
    for chain, sums in zip(chains, given, strict=True):
        chain.ops[-1].sum.replace_all_uses_with(sums)
    for op in reversed(run):
        op.operation.erase()


def _chains(run: list[Any], named: Named) -> list[Chain]:
    """The MMAs by the registers that they add to; the asm takes those without names in a row."""
    linked: list[list[Any]] = []
    for op in run:
        ops = next((each for each in linked if each[-1].sum == op.d), None)
        if ops is None:
            linked.append([op])
        else:
            ops.append(op)
    chains, first = [], 0
    for ops in linked:
        names = names_of(ops[0].d, named)
        taken = [] if names else parts(ops[0].d)
        chains.append(Chain(ops, names or _named(first, len(taken)), taken))
        first += len(taken)
    return chains


def _multiplied(run: list[Any], chains: list[Chain]) -> list[ir.Value]:
    """The sums of each chain after all MMAs."""
    taken = [value for chain in chains for value in chain.taken]
    sums_of = {op.operation: chain.registers for chain in chains for op in chain.ops}
    operands, letters, lines = [*taken], [ties(taken)] if taken else [], []
    for op in run:
        values, kinds = _read(op)
        lines.append(_text(op, sums_of[op.operation], len(taken) + len(operands)))
        operands += values
        letters.append(kinds)
    text, constraints = llvm.ASM_LINES.join(lines), ",".join([*letters, "~{memory}"])
    if not taken:
        llvm.asm_statement(text, operands, constraints)
        return [chain.ops[0].d for chain in chains]
    without_names = [chain for chain in chains if chain.taken]
    struct = struct_of(taken[0].type, len(taken))
    if len(without_names) == 1:
        struct = without_names[0].ops[0].d.type
    made = llvm.inline_asm(struct, operands, text, constraints, has_side_effects=True)
    return _apart(made, chains, alone=len(without_names) == 1)


def _apart(made: ir.Value, chains: list[Chain], alone: bool) -> list[ir.Value]:
    """The sums of each chain; registers with names stay what they were."""
    rest = iter([] if alone else parts(made))
    given = []
    for chain in chains:
        before = chain.ops[0].d
        if not chain.taken:
            given.append(before)
        elif alone:
            given.append(made)
        else:
            given.append(joined_parts(before.type, list(islice(rest, len(chain.taken)))))
    return given


def _read(op: Any) -> tuple[list[ir.Value], str]:
    """What an MMA reads beside its sums, A, B and scale-d, and the constraints of these."""
    b = operand_descriptor(op, op.b, op.b_offset)
    if isinstance(op, sm.WgmmaOp):
        return [operand_descriptor(op, op.a, op.a_offset), b, op.accumulate], "l,l,b"
    count = op.a.type.shape[0]
    a = [vector.ExtractOp(op.a, [], [index]).result for index in range(count)]
    return [*a, b, op.accumulate], "r," * count + "l,b"


def _text(op: Any, sums: list[str], first: int) -> str:
    """wgmma.mma_async with D in n/2 registers; A, B and scale-d are operands from `first` on.

    Floats have factors for A and B, and those of 16 bits in memory say which are MN-major.
    """
    a, n = DTYPES[op.a_type.value], op.n.value
    held = isinstance(op, sm.WgmmaOfRegistersOp)
    words = _named(first, op.a.type.shape[0] + 2 if held else 3)
    start = 0 if held else op.first.value
    if held:
        words = [_braced(words[:-2]), *words[-2:]]
    factors = [] if a.is_integer else ["1", "1"]
    majors = (op.b_major.value,) if held else (op.a_major.value, op.b_major.value)
    transposed = [str(int(major == "mn")) for major in majors] if a.bytes == 2 else []
    shape, types = f"m{op.m.value}n{n}k{op.k.value}", f"{op.d_type.value}.{a.name}"
    return (
        f"wgmma.mma_async.sync.aligned.{shape}.{types}.{op.b_type.value}"
        f" {_braced(sums[start : start + n // 2])}, {', '.join([*words, *factors, *transposed])};"
    )


def _named(first: int, count: int) -> list[str]:
    """Operands of an asm."""
    return [f"${index}" for index in range(first, first + count)]


def _braced(registers: list[str]) -> str:
    return f"{{{', '.join(registers)}}}"
