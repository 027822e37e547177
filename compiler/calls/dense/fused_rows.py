"""`matmul(m="dynamic")` with an epilogue: a function of the sums in kernels that share all M, or
all batches with `batch="dynamic"`, or any of both with both, or all K with `k="dynamic"`.

    call    what of the function's arguments is not a number of rows → its kernels, kept
    first   the function is traced at the rows that came, and at others: both must say the same

The first trace tells which dims of the operands are rows of the product, or matrices. In the
kernels' text they are "?". No function of the sums depends on K.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from math import prod
from typing import Any, NamedTuple

from ....dialects.errors import CompileError, OptionError
from ....runtime.bundles.bundle import Bundle
from ....runtime.element_types import torch_dtype
from ....runtime.operands.dlpack import gpu_of
from ...importers.epilogue_function import Argument, Frame, Returned, import_epilogue, refuse_spread
from ...importers.linalg_text import LinalgText
from ...importers.open_sizes import depends_on_sizes
from ...importers.traced_function import TensorLike
from ...schedule.any_size.buckets import Bucket
from ...spec import MatmulSpec
from ...spec.epilogue import Epilogue
from ..kernels.found_kernels import FoundKernels
from ..kernels.function_keys import function_key
from ..kernels.kernel_cache import cached_bundle
from ..kernels.lookup import (
    BOTH,
    DEPTH,
    OF_STACKS,
    OPEN,
    ROWS,
    STACKS,
    How,
    buckets_of_rows,
    default_target,
)
from ..kernels.row_kernels import RowKernels
from ..operands.leading_dims import flattened, has_leading_dims, rows_of, stacks_of
from ..operands.operands import (
    check_shapes,
    leading_of_depth,
    operand_of,
    quick_key,
    spec_of,
    spec_of_depth,
)
from ..operands.placement import check_rows_along_k, gaps_of, placement, read_in_place
from ..operands.precision import with_precision
from .fused import as_argument, bs_of, check_math, given_outputs, like_of

OTHER_ROWS = (1009, 1013, 1019, 1021, 1031, 1033)
FURTHER_ROWS = (1039, 1049, 1051, 1061, 1063, 1069)
"""Sizes at which a function is traced again, one for each dim of rows that is not of the first."""
RULES = {
    ROWS: "the function must not depend on the number of rows with m='dynamic'",
    STACKS: "the function must not depend on the number of matrices with batch='dynamic'",
    BOTH: "the function must not depend on the numbers of rows and matrices that are dynamic",
}
AXES = {ROWS: "m", STACKS: "b", BOTH: "bm", DEPTH: ""}
NAMES = {ROWS: "m", STACKS: "batch", BOTH: "batch", DEPTH: "k"}
ANY = "?"
ANY_SIZE, ANY_STACK = -1, -2
"""The size of a dim that a reshape finds, and of the first one where it would have to find two."""


class Found(NamedTuple):
    """The kernels, what they compute and take after a and b, what is left to do of reductions, and
    objects that a key names."""

    kernels: RowKernels
    spec: MatmulSpec
    arguments: list[Argument]
    finish: tuple[Returned, ...]
    kept: list[Any]


class Traced(NamedTuple):
    """A function at some rows: the spec with its outputs, its ops, what it reads, and what is left
    to do of its reductions."""

    spec: MatmulSpec
    epilogue: Epilogue
    arguments: list[Argument]
    finish: tuple[Returned, ...] = ()


_found: FoundKernels[Found] = FoundKernels()


def multiply_fused_rows(
    a: Any, b: Any, out: Any, how: How, epilogue: Callable[..., Any], operands: Sequence[Any]
) -> Any:
    """The function of the product's sums, by the kernel for so many rows.

    Raises CompileError, at the function's line, for what is no epilogue.
    """
    left, rights, shape = _operands(a, bs_of(b), how)
    kept: list[Any] = []
    likes = [like_of(*each) for each in enumerate(operands)]
    place = None if out is None else _gaps(out, _kept_dims(how))
    key = (
        function_key(epilogue, kept),
        _without_rows(shape, [*likes], _own_dims(how)),
        (_quick(left, how, True), *(_quick(each, how, False) for each in rights), gpu_of(a)),
        (how, place),
    )

    def find() -> Found:
        return _find(left, rights, shape, how, epilogue, likes, place)._replace(kept=kept)

    found = _found.of(key, find, kept)
    return _call(found, left, rights, shape, operands, out)


def _own_dims(how: How) -> int:
    """How many of the last dims of the product are known."""
    return 2 if how.m in (STACKS, DEPTH) else 1


def _kept_dims(how: How) -> int:
    """How many of the last dims of outputs are those of matrices, and not counted together."""
    return 2 if how.m in OF_STACKS else 1


def _operands(
    a: Any, rights: tuple[Any, ...], how: How
) -> tuple[Any, tuple[Any, ...], tuple[int, ...]]:
    """The operands as kernels take them, and the shape of the product."""
    if how.m in OF_STACKS:
        batch, left, right = stacks_of(a, rights[0], of_any=True)
        if len(batch) > len(OTHER_ROWS):
            rule = f"stacks must have at most {len(OTHER_ROWS)} dims with batch='dynamic'"
            raise OptionError(f"matmul: {rule}, got {len(batch)}")
        return left, (right,), (*batch, a.shape[-2], right.shape[-2])
    if how.m == DEPTH:
        return _along_k(a, rights, how)
    if any(has_leading_dims(each) for each in rights):
        got = list(rights[0].shape)
        raise OptionError(f"matmul: b must be a matrix with m='dynamic', got {got}; leave m out")
    shape = (*a.shape[:-1], rights[0].shape[0])
    if len(shape) - 1 > len(OTHER_ROWS):
        rule = f"a must have at most {len(OTHER_ROWS)} dims of rows"
        raise OptionError(f"matmul: {rule}, got {len(shape) - 1}")
    return rows_of("a", a) if has_leading_dims(a) else a, rights, shape


def _along_k(
    a: Any, rights: tuple[Any, ...], how: How
) -> tuple[Any, tuple[Any, ...], tuple[int, ...]]:
    """Matrices whose rows in memory are along K."""
    b, *others = rights
    if others:
        raise OptionError("matmul: b must be one matrix with k='dynamic', got a pair; leave k out")
    target = how.target or default_target(gpu_of(a))
    for name, each in (("a", a), ("b", b)):
        check_rows_along_k(f"matmul: {name}", each, target)
    check_shapes(a.shape, b.shape)
    return a, rights, (a.shape[0], b.shape[0])


def _quick(array: Any, how: How, is_a: bool) -> Any:
    """What tells operands apart but for the number of rows, or of matrices, or K."""
    if how.m == DEPTH:
        name = "a" if is_a else "b"
        operand = operand_of(name, array)
        return operand.dtype, array.shape[0], leading_of_depth(name, operand)
    if how.m == STACKS:
        return quick_key(array)[1:], array.shape[-2:], len(array.shape)
    if how.m == BOTH:
        known = array.shape[-1:] if is_a else array.shape[-2:]
        operand = operand_of("a" if is_a else "b", array)
        return placement(operand.shape, operand.strides), operand.dtype, known, len(array.shape)
    if not is_a:
        return quick_key(array)
    operand = operand_of("a", array)
    return placement(operand.shape, operand.strides), operand.dtype, array.shape[1]


def _gaps(out: Any, kept: int) -> tuple[int, int]:
    first = out[0] if isinstance(out, (tuple, list)) else out
    return gaps_of(flattened("out", first, kept) if len(first.shape) > kept + 1 else first)


def _without_rows(shape: Sequence[int], likes: list[TensorLike], known: int) -> tuple[Any, ...]:
    """Sizes and types with names for sizes that are those of rows, where they are not 1; so many of
    the last sizes are known."""
    rows, columns = shape[:-known], shape[-known:]

    def named(size: int) -> Any:
        same = tuple(axis for axis, extent in enumerate(rows) if extent == size)
        return same if same and size != 1 else size

    sizes = tuple((tuple(named(size) for size in each.shape), each.dtype) for each in likes)
    return tuple(extent == 1 for extent in rows), tuple(map(named, columns)), columns, sizes


def _find(
    left: Any,
    rights: tuple[Any, ...],
    shape: Sequence[int],
    how: How,
    epilogue: Callable[..., Any],
    likes: list[TensorLike],
    gaps: tuple[int, int] | None,
) -> Found:
    target = how.target or default_target(gpu_of(left))
    a = read_in_place("matmul: a", left, target, apart=how.m != BOTH, any_rows="m" in OPEN[how.m])
    b = read_in_place("matmul: b", rights[0], target, apart=how.m != BOTH)
    a, b = operand_of("a", a), operand_of("b", b)
    more = {"products": len(rights), "sums": how.sums}
    make_spec = spec_of_depth if how.m == DEPTH else spec_of
    spec = replace(make_spec(a, b, how.out_dtype, gaps or (0, 0)), **more)
    spec = with_precision(spec, how.precision, how.pipeline, how.preset)
    traced = _traced(spec, shape, epilogue, likes, how)
    check_math(traced.epilogue, how)
    names = ("a", *("b", "b2")[: len(rights)], *(f"operands[{e.number}]" for e in traced.arguments))
    make = partial(_bundle, traced.epilogue, names, target, how.math)
    buckets = buckets_of_rows(traced.spec, target, how)
    kernels = RowKernels(buckets, make, copies=True, by_rows=True)
    return Found(kernels, traced.spec, traced.arguments, traced.finish, [])


def _bundle(
    epilogue: Epilogue, names: tuple[str, ...], target: str, math: str, bucket: Bucket
) -> Bundle:
    source = LinalgText(bucket.spec.mlir_text(epilogue), "matmul", names)
    return cached_bundle(source, target, bucket.pipeline, math, named=bucket.named)


def _traced(
    spec: MatmulSpec,
    shape: Sequence[int],
    epilogue: Callable[..., Any],
    likes: list[TensorLike],
    how: How,
) -> Traced:
    """The function with its rows as "?"; refused where other rows make it another."""
    first = _trace(spec, shape, epilogue, likes, how)
    if how.m == DEPTH:
        return first
    rows, columns = shape[: -_own_dims(how)], shape[-_own_dims(how) :]
    others = [*rows]
    long = [axis for axis, extent in enumerate(rows) if extent != 1] or [len(rows) - 1]
    for axis in long:
        others[axis] = (OTHER_ROWS if rows[axis] != OTHER_ROWS[axis] else FURTHER_ROWS)[axis]
    axis = AXES[how.m]
    groups = Frame.of(shape, int(how.m in OF_STACKS)).groups
    opened = {
        letter: [dim for dim in group if shape[dim] != 1]
        for letter, group in zip("bm" if how.m in OF_STACKS else "m", groups, strict=False)
        if letter in axis
    }
    far = [with_rows(each, first, number, opened, others) for number, each in enumerate(likes)]
    second = _trace(spec, (*others, *columns), epilogue, far, how)
    found, other = (any_rows(each.epilogue, each.arguments, axis) for each in (first, second))
    sums = [TensorLike((*others, *columns), torch_dtype(spec.acc_dtype))] * spec.products
    changed = [long] * spec.products + [
        changed_dims(*each) for each in zip(likes, far, strict=True)
    ]
    same = (first.spec, found, first.finish) == (second.spec, other, second.finish)
    if not same or depends_on_sizes(epilogue, [*sums, *far], changed):
        raise CompileError(f"epilogue: {RULES[how.m]}, got one that does; leave it out")
    return Traced(first.spec, *found, first.finish)


def _trace(
    spec: MatmulSpec,
    shape: Sequence[int],
    epilogue: Callable[..., Any],
    likes: list[TensorLike],
    how: How,
) -> Traced:
    frame = Frame.of(shape, int(how.m in OF_STACKS))
    is_open = not how.out_dtype
    made = import_epilogue(spec, frame, epilogue, likes, c_is_open=is_open, prepared=True)
    spec, ops, arguments, returned = made
    refuse_spread(arguments, frame, likes)
    if how.m != ROWS and any(each.kind for each in returned):
        rule, asked = "reductions are of known matrices and K", NAMES[how.m]
        raise OptionError(f"matmul: {rule}, got one with {asked}='dynamic'; reduce outside")
    finish = tuple(each._replace(value=None) for each in returned)  # keeps no graph
    return Traced(spec, ops, arguments, finish)


def with_rows(
    like: TensorLike,
    traced: Traced,
    number: int,
    opened: dict[str, list[int]],
    others: Sequence[int],
) -> TensorLike:
    """An operand, by its number, with other sizes where its dims are those of the product that are
    `opened`, by the letter of what they are."""
    sizes = list(like.shape)
    pairs = zip(traced.epilogue.operands, traced.arguments, strict=True)
    for operand, argument in pairs:
        if argument.number != number:
            continue
        dims = iter(argument.order)
        for letter in operand.axes:
            for axis, dim in zip(opened.get(letter, ()), dims, strict=False):
                sizes[dim] = others[axis]
    return TensorLike(tuple(sizes), like.dtype)


def changed_dims(one: TensorLike, other: TensorLike) -> list[int]:
    """The dims in which two operands differ."""
    pairs = enumerate(zip(one.shape, other.shape, strict=True))
    return [dim for dim, (size, another) in pairs if size != another]


def any_rows(
    epilogue: Epilogue, arguments: Sequence[Argument], axis: str = "m"
) -> tuple[Epilogue, list[Argument]]:
    """With "?" for rows in the text, or for matrices where the axis is "b", or for both, and sizes
    that are not told for those of arguments."""
    read = tuple(
        replace(each, shape=_opened(each.axes, each.shape, axis, (ANY, ANY)))
        for each in epilogue.operands
    )
    marks = ANY_STACK if len(axis) > 1 else ANY_SIZE, ANY_SIZE
    found = [
        argument._replace(shape=_opened(operand.axes, argument.shape, axis, marks))
        for operand, argument in zip(read, arguments, strict=True)
    ]
    return replace(epilogue, operands=read), found


def _opened(axes: str, shape: Sequence[Any], axis: str, marks: tuple[Any, Any]) -> tuple[Any, ...]:
    """A shape with marks for the sizes of matrices and of rows, as far as they are open."""
    of = dict(zip("bm", marks, strict=True))
    pairs = zip(axes, shape, strict=True)
    return tuple(of[letter] if letter in axis else size for letter, size in pairs)


def _call(
    found: Found,
    left: Any,
    rights: tuple[Any, ...],
    shape: Sequence[int],
    operands: Sequence[Any],
    out: Any,
) -> Any:
    spec = found.spec
    if out is not None and any(each.kind for each in found.finish):
        raise OptionError("matmul: out must be None where a result is a reduction, got one")
    given = given_outputs(out, len(spec.outputs))
    for each in given or ():
        if list(each.shape) != list(shape):
            raise OptionError(f"matmul: out must be {list(shape)}, got {list(each.shape)}")
    stored = (
        left if spec.a_major == "k" else left.swapaxes(-1, -2),
        *(each if spec.b_major == "k" else each.swapaxes(-1, -2) for each in rights),
    )
    counts = {ANY_STACK: prod(shape[:-2])}
    known = (
        each._replace(shape=tuple(counts.get(size, size) for size in each.shape))
        for each in found.arguments
    )
    arguments = (as_argument(operands, each) for each in known)
    kept = 2 if spec.batch else 1
    places = [
        flattened("out", each, kept) if len(shape) > kept + 1 else each for each in given or ()
    ]
    several = len(spec.outputs) > 1
    place = None if given is None else places if several else places[0]
    result = found.kernels(*stored, *arguments, out=place)
    if out is not None:
        return out
    if not several:
        made = result.reshape(shape)
        return (made,) if found.finish[0].in_tuple else made
    pairs = zip(found.finish, result, strict=True)
    return tuple(each.finished(made.reshape(*shape[:-1], made.shape[-1])) for each, made in pairs)
