"""`tile.mma` and `tile.blockwise_mma` as tcgen05.mma, accumulated in f32 by threads.

    meet                                   all have read the product before the last one; of a pair
                                           the second CTA tells the first
    tcgen05.mma (accumulate 0) … commit    one lane: the product of this step, in its half of two
    wait for the product before            tcgen05.ld.16x256b, 64 columns at a time
    sums = fma(product, row's scale * column's scale, sums)

So the tensor core multiplies one step while threads add the step before; `tile.finish_sums` adds
the last. Scales are read in the step that they are of, and held until its product is added. Where
threads copied the tiles to a place of their own, or nothing finishes, a step waits for its product.

A warp reads 16 of its 32 lanes, as two warpgroups share an MMA of 128 rows. What a thread then has
is what wgmma gives it: two rows, pairs of every 8 columns (PTX ISA, tcgen05.ld .16x256b).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

from ....dialects import llvm, sm
from ....dialects.mlir import arith, ir
from ....dialects.mma_units import PRODUCT_SLOTS
from ....dialects.sm.memory import BARRIER_BYTES, ProductColumnsOp
from ....dialects.target import WARP_THREADS, WARPGROUP_THREADS
from ....dialects.tile import AccumulatorOp, MmaOp
from ....dialects.tile.blockwise import BLOCKWISE_MMAS
from ....dialects.tile.sums import FinishSumsOp
from ... import build
from ...base import defining_op, walk
from ...clone import constant_of
from ...places import COLUMNS, behind
from ...plan import ready_of
from ...team import Team, team_op
from ..registers.carried_products import is_carried, mma_of
from ..registers.elements import slice_of
from ..registers.register_accumulator import joined_parts, parts, struct_of_type
from ..registers.tensor_memory import LANE, lanes_of, read_matrices
from ..scales.held_factors import HeldFactors, factors_of_step
from ..scope.scope import Scope, lowered, lowered_as, lowered_parts
from .mma import multiply_into

PIECES = (64, 32, 16, 8)
"""Columns that a thread reads at once, the most first."""
Factor = Callable[[int, int], ir.Value]


class Held(NamedTuple):
    """What a thread holds of an accumulator: slots of its sums, of how many products were begun,
    and of the scales of the last one."""

    sums: ir.Value
    begun: ir.Value
    scales: list[ir.Value]

    @staticmethod
    def of(acc: ir.Value) -> Held:
        sums, begun, *scales = lowered_parts(acc)
        return Held(sums, begun, scales)


def hold_separate_sums(scope: Scope, op: AccumulatorOp) -> ir.Value:
    """Stack slots at the start of the kernel; no product was begun."""
    with ir.InsertionPoint.after(team_op(scope.kernel)):
        one, struct = build.constant(1), struct_of_type(op.acc.type)
        slots = [llvm.alloca(build.pointer(), one, each) for each in (struct, build.i32())]
        llvm.store(build.constant(0), slots[1])
        mma = mma_of(op.acc)
        if isinstance(mma, BLOCKWISE_MMAS):
            count = HeldFactors.of(scope, mma).count
            slots += [llvm.alloca(build.pointer(), one, ir.F32Type.get()) for _ in range(count)]
    return lowered_as(slots, op.acc.type)


def lower_added_mma(scope: Scope, op: MmaOp) -> None:
    """Begin the product of this step, and add that of the one before."""
    add_products(scope, op, _begin)


def add_products(scope: Scope, op: MmaOp, begin: Callable[[Scope, MmaOp, Held], ir.Value]) -> None:
    """The same of a product that `begin` begins, which gives its number."""
    held, at_once = Held.of(op.acc), not is_carried(op)
    scales = factors_of_step(scope, op) if isinstance(op, BLOCKWISE_MMAS) else []
    number = begin(scope, op, held)
    adds = constant_of(op.accumulate)
    if adds != 1:
        with build.when(None if adds == 0 else op.accumulate ^ build.true()):
            _clear(op, held)
    if at_once:
        _keep(held, scales)
        _add(scope, op.acc, number)
        return
    if adds != 0:
        with build.when(None if adds else op.accumulate):
            _add(scope, op.acc, number + (-1))
    _keep(held, scales)


def finish_added(scope: Scope, op: FinishSumsOp) -> None:
    """The product of the last step."""
    if is_carried(mma_of(op.acc)):
        _add(scope, op.acc, llvm.load(build.i32(), Held.of(op.acc).begun) + (-1))


def _begin(scope: Scope, op: MmaOp, held: Held) -> ir.Value:
    """Let one lane issue the MMAs of a product; its number."""
    products = products_of(scope)

    def issue(which: ir.Value) -> None:
        base = lowered(products.memory) + which * products.each.value
        multiply_into(scope, op, base, products.first.value, build.constant(0, build.i1()))

    return begin_product(scope, op, held, issue)


def begin_product(
    scope: Scope, op: MmaOp, held: Held, issue: Callable[[ir.Value], None]
) -> ir.Value:
    """All meet; one lane issues the MMAs of a product by its place, and commits; its number."""
    team = Team.of(op)
    build.fence("tcgen05_before")
    team.meet()
    build.fence("tcgen05_after")
    number: ir.Value = llvm.load(build.i32(), held.begun)
    which = number % PRODUCT_SLOTS
    with build.when(team.leader):
        if scope.cluster.pair:
            _multiply_for_both(scope, number, issue)
        else:
            _multiply(scope, which, issue, None)
    sm.ConvergeOp()
    llvm.store(number + 1, held.begun)
    return number


def _multiply(
    scope: Scope, which: ir.Value, issue: Callable[[ir.Value], None], mask: ir.Value | None
) -> None:
    issue(which)
    done = _at(products_of(scope).done, which)
    sm.CommitOp.of(done, cta_group=scope.cta_group, mask=mask)


def _multiply_for_both(scope: Scope, number: ir.Value, issue: Callable[[ir.Value], None]) -> None:
    """The first CTA of a pair issues, once the second has its operands and has read the product
    that lay there; the MMAs tell both when they are done."""
    which, phase = number % PRODUCT_SLOTS, number // PRODUCT_SLOTS
    ready = _at(ready_of(scope.kernel)[0].barriers, which)
    issues, leader = scope.place.issues, build.as_value(scope.place.leader_rank())
    assert issues is not None  # of a pair
    with build.when(issues ^ build.true()):
        build.arrive(build.in_cta(ready, leader), in_cluster=True)
    with build.when(issues):
        build.barrier_wait(ready, phase % 2, in_cluster=True)
        build.fence("tcgen05_after")
        _multiply(scope, which, issue, scope.place.mask(True, []))


def await_product(scope: Scope, number: ir.Value) -> None:
    """Wait until the MMAs of that number are done."""
    place, phase = number % PRODUCT_SLOTS, number // PRODUCT_SLOTS
    build.barrier_wait(_at(products_of(scope).done, place), phase % 2)
    build.fence("tcgen05_after")


def _add(scope: Scope, acc: ir.Value, number: ir.Value) -> None:
    """The product of that number, once it is made, times the scales that are held."""
    held, mma = Held.of(acc), mma_of(acc)
    await_product(scope, number)
    factor: Factor | None = None
    if isinstance(mma, BLOCKWISE_MMAS):
        factor = HeldFactors.of(scope, mma).factor(
            [llvm.load(ir.F32Type.get(), each) for each in held.scales]
        )
    add_product(scope, acc, number % PRODUCT_SLOTS, factor)


def add_product(scope: Scope, acc: ir.Value, which: ir.Value, factor: Factor | None) -> None:
    """`sums += product * factor` of what a thread has of the product at a place."""
    held = Held.of(acc)
    struct = struct_of_type(acc.type)  # pyright: ignore[reportArgumentType]
    made: list[ir.Value] = parts(llvm.load(struct, held.sums))
    for at, value in read_product(scope, acc, which):
        if factor is None:
            made[at] = arith.addf(made[at], value)
        else:
            made[at] = llvm.fma(value, factor(*behind(at)), made[at])
    llvm.store(joined_parts(struct, made), held.sums)


def read_product(
    scope: Scope, acc: ir.Value, which: ir.Value | int
) -> Iterator[tuple[int, ir.Value]]:
    """(register, value) of all that a thread has of the product at a place."""
    products, team = products_of(scope), Team.of(mma_of(acc))
    (m, n) = acc.type.shape  # pyright: ignore[reportAttributeAccessIssue]
    base = lowered(products.memory) + which * products.each.value
    base = base + _lanes(team, m) + products.first.value
    for start, columns in _pieces(n):
        values = read_matrices(columns, acc.type.element, base + start)  # pyright: ignore
        first = start // COLUMNS.shape[1] * COLUMNS.values
        for at in range(columns // COLUMNS.shape[1] * COLUMNS.values):
            yield first + at, slice_of(values, at, 1)


def _lanes(team: Team, m: int) -> ir.Value:
    """The first lane that a warp reads: of 128 rows, warpgroups have halves of a quarter."""
    lanes = lanes_of(team.thread // WARP_THREADS % 4)
    if m == WARPGROUP_THREADS:
        lanes = lanes + team.thread // WARPGROUP_THREADS * (COLUMNS.shape[0] // 4 * LANE)
    return lanes


def _pieces(n: int) -> Iterator[tuple[int, int]]:
    start = 0
    while start < n:
        columns = next(each for each in PIECES if each <= n - start)
        yield start, columns
        start += columns


def _clear(op: MmaOp, held: Held) -> None:
    llvm.store(llvm.zero(struct_of_type(op.acc.type)), held.sums)


def _keep(held: Held, scales: list[ir.Value]) -> None:
    for slot, value in zip(held.scales, scales, strict=True):
        llvm.store(value, slot)


def _at(barriers: ir.Value, which: ir.Value) -> ir.Value:
    """The barrier of a product by its place."""
    return build.shared_at(which * BARRIER_BYTES + defining_op(barriers).offset.value)


def products_of(scope: Scope) -> ProductColumnsOp:
    """Where the kernel's products lie."""
    (products,) = walk(scope.kernel, ProductColumnsOp)
    return products
