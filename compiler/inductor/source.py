"""A region as compiler input: a spec, the epilogue in linalg, and the kernel's inputs.

Every value has the frame's sizes. Rounding is eager torch's: the sums are rounded to the product's
type, after a row that is added to them, and each conversion of the graph is made, although
Inductor leaves out those between operators that it fuses. So a region gives what eager torch gives,
but for the order of the sums.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

import torch
from torch import fx

from ...dialects.dtypes import DTYPES, SCALED_FORMATS, blocked_scale_shape, blocks_refusal
from ...dialects.epilogue import EXACT, FAST
from ...dialects.errors import CompileError
from ...dialects.target import find_target
from ...runtime.bundles.bundle import Bundle
from ..calls.kernels.kernel_cache import describe_request, digest
from ..calls.kernels.lookup import How, pipeline_of
from ..calls.operands.operands import Operand, operand_of, result_type, spec_of
from ..calls.operands.placement import why_copied
from ..calls.operands.precision import with_precision
from ..importers.epilogue_function import Argument, Frame, import_epilogue
from ..importers.linalg_text import LinalgText, adds_two_levels, short_sums_rule, sums_are_short
from ..importers.traced_function import TensorLike
from ..spec import TWO_LEVEL, MatmulSpec
from ..spec.epilogue import Epilogue
from .ahead import Job
from .frames import framed, is_one_matrix, like, viewed
from .products import dtype_of, has_short_sums, is_truth, sizes_of
from .region import Region, is_same
from .region_function import function_of

TRUTH = torch.bfloat16
"""The type in which a kernel reads a bool."""


class Input(NamedTuple):
    """One argument of the kernel: which of `region.reads`, these columns of it, then permuted, then
    viewed so; `is_truth` of a bool, which is converted to a number first; `is_first` of a stack of
    one matrix again and again, of which the kernel reads the first."""

    number: int
    order: tuple[int, ...] = ()
    sizes: tuple[int, ...] | None = None
    columns: tuple[int, int] | None = None
    is_truth: bool = False
    is_first: bool = False


class Prepared(NamedTuple):
    """What is compiled for a region, for which chip or GPU, and what its kernel reads.

    key: the name of the kernel in the cache.
    """

    source: MatmulSpec | LinalgText
    spec: MatmulSpec
    target: str
    pipeline: str
    math: str
    inputs: list[Input]

    @property
    def key(self) -> str:
        request = describe_request(self.source, self.target, self.pipeline, self.math)
        return digest(request)

    @property
    def jobs(self) -> dict[str, Job]:
        """What is compiled, by its key."""
        return {self.key: (self.source, self.target, self.pipeline, self.math)}

    @property
    def viewed(self) -> list[Input]:
        """What the kernel reads, as a graph has it."""
        return self.inputs

    def bundle_of(self, made: Mapping[str, Bundle | CompileError]) -> Bundle | CompileError:
        """The kernel, of those that were compiled."""
        return made[self.key]


class Parts(NamedTuple):
    """A product of matrices with what follows it: the spec, its epilogue, and what it reads.

    epilogue: None where the kernel is the product alone. arguments, lies: its operands, and how
    they lie. names, turned: those of the text's arguments, and which of them are column-major.
    """

    spec: MatmulSpec
    inputs: list[Input]
    epilogue: Epilogue | None = None
    arguments: Sequence[Argument] = ()
    lies: Sequence[torch.Tensor] = ()
    names: tuple[str, ...] = ()
    transposed: frozenset[int] = frozenset()


def prepare(region: Region, target: str, math: str = "") -> Prepared:
    """The source of a region's kernel; CompileError for what no kernel computes."""
    first = region.products[0]
    _sums_two_levels(region, target)
    if first.blocks:
        return _of_blocks(region, target, math)
    found = parts_of(region, target)
    source: MatmulSpec | LinalgText = found.spec
    if found.epilogue is not None:
        text = found.spec.mlir_text(found.epilogue)
        source = LinalgText(text, "region", found.names, column_major=found.transposed)
    pipeline = pipeline_of(found.spec, target, How(target=target, math=math))
    policy = policy_of(region, math, found.epilogue)
    return Prepared(source, found.spec, target, pipeline, policy, found.inputs)


def policy_of(region: Region, math: str, epilogue: Epilogue | None) -> str:
    """How exact the functions of a region are: as the calls say that it is of, or `math`, for all
    regions; exact where any of them says so, "" where there is no function."""
    if epilogue is None or not epilogue.has_functions:
        return ""
    asked = [math, *(each.math for each in region.products)]
    return max(asked, key=("", FAST, EXACT).index)


def parts_of(region: Region, target: str) -> Parts:
    """What the kernel of a region of matrices, of stacks of them, or of groups of rows is made
    of."""
    if region.products[0].offsets is not None:
        return _parts_of_groups(region)
    a, *bs = _matrices(region, target)
    spec = spec_of(a, bs[0], result_type(dtype_of(region.outputs[0])))
    sums = TWO_LEVEL if _sums_two_levels(region, target) else ""
    spec = with_precision(spec, region.products[0].precision)
    spec = replace(spec, products=len(region.products), sums=sums)
    if _is_plain(region):
        return Parts(spec, _inputs(region, spec, False))
    spec, made, beside, arguments, lies = _with_epilogue(region, spec)
    before = 1 + len(region.products)
    transposed = frozenset(n for n, each in enumerate(lies, start=before) if _is_column_major(each))
    names = ("a", *(f"b{n or ''}" for n in range(len(bs))), *(f"e{n}" for n in range(len(beside))))
    inputs = [*_inputs(region, spec, True), *beside]
    return Parts(spec, inputs, made, arguments, lies, names, transposed)


def _sums_two_levels(region: Region, target: str) -> bool:
    """Whether sums that a chip makes too short must be added up in f32; refused where none can."""
    first = region.products[0]
    exact = dtype_of(first.a).itemsize == 1 and not has_short_sums(first.multiplies)
    if not exact or not sums_are_short(target) or first.blocks:
        return False
    if not adds_two_levels(target):
        raise CompileError(f"_scaled_mm: {short_sums_rule(target)}")
    return True


def _with_epilogue(
    region: Region, spec: MatmulSpec
) -> tuple[MatmulSpec, Epilogue, list[Input], list[Argument], list[torch.Tensor]]:
    """The spec with what follows the product, its operands as inputs and as the function takes
    them, and how these lie."""
    frame = Frame.of(region.frame, spec.batch)
    frames = [framed_sizes(region, operand) for operand in region.operands]
    types = [TRUTH if is_truth(each) else dtype_of(each) for each in region.operands]
    likes = [TensorLike(*each) for each in zip(frames, types, strict=True)]
    spec, made, arguments, _ = import_epilogue(spec, frame, function_of(region), likes)
    before = len(region.reads) - len(region.operands)
    beside = [
        Input(
            before + each.number,
            sizes=tuple(each.shape),
            is_truth=is_truth(region.operands[each.number]),
        )
        for each in arguments
    ]
    lies = [_lies(region, *each) for each in zip(beside, arguments, strict=True)]
    return spec, made, beside, arguments, lies


def _inputs(region: Region, spec: MatmulSpec, of_text: bool) -> list[Input]:
    """A and each B; a text takes them as they are stored."""
    first = region.products[0]
    ranks = [3 if stacked and spec.batch else 2 for stacked in (spec.a_stacked, spec.b_stacked)]
    of_a, of_b = ((*range(rank - 2), rank - 1, rank - 2) for rank in ranks)
    one_a, one_b = (rank == 2 and spec.batch > 0 for rank in ranks)
    a = Input(0, of_a if of_text and spec.a_major == "m" else (), is_first=one_a)
    keeps = of_text and spec.b_major == "n"
    order = () if keeps != first.b_is_nk else of_b
    bs = [
        Input(1 + n, order, None, each.part, is_first=one_b)
        for n, each in enumerate(region.products)
    ]
    return [a, *bs]


def _matrices(region: Region, target: str) -> list[Operand]:
    """A [.., m, k] and each B as [.., n, k], which the chip's kernels read as they lie; a matrix
    that is expanded to a stack as the one that it is."""
    a = like(region.products[0].a.meta["val"])
    bs = [each.b_like().swapaxes(-1, -2) for each in region.products]
    if is_one_matrix(bs[0]):
        bs = [each[0] for each in bs]
    elif is_one_matrix(a):
        a = a[0]
    named = [("a", a), *(("b", each) for each in bs)]
    for name, value in named:
        reason = why_copied(value, target)
        if reason:
            raise CompileError(f"{name}: must be read in place, got a need to copy it: {reason}")
    return [operand_of(name, value) for name, value in named]


def _is_plain(region: Region) -> bool:
    """Whether the region's kernel is the product alone, rounded once."""
    (first, *others) = region.products
    if others or first.beside or first.alpha != 1:
        return False
    return all(is_same(node) for node in region.nodes[1:])


def framed_sizes(region: Region, operand: fx.Node) -> tuple[int, ...]:
    """The sizes of an operand in the frame, which all that read it agree on."""
    found = {
        framed(sizes_of(operand), sizes_of(user), region.frame)
        for user in operand.users
        if user in region.nodes
    }
    if len(found) != 1 or None in found:
        raise CompileError(f"region: {operand.name} must be broadcast in one way, got {len(found)}")
    return found.pop()  # type: ignore[return-value]


def _lies(region: Region, given: Input, argument: Argument) -> torch.Tensor:
    """How an operand lies with the sizes that the kernel has; CompileError where it is no view."""
    node = region.reads[given.number]
    if argument.order != tuple(sorted(argument.order)):
        raise CompileError(f"region: {node.name} must be read untransposed, got another order")
    value = like(node.meta["val"])
    found = viewed(value.to(TRUTH) if given.is_truth else value, argument.shape)
    if found is None:
        strides = list(node.meta["val"].stride())
        raise CompileError(f"region: {node.name} must be a view, got strides {strides}")
    return found


def _is_column_major(value: torch.Tensor) -> bool:
    strides = value.stride()
    return len(strides) >= 2 and 0 < strides[-2] < strides[-1]


def _parts_of_groups(region: Region) -> Parts:
    """Groups of rows, each with a matrix of the stack."""
    product = region.products[0]
    a, b = (like(each.meta["val"]) for each in (product.a, product.b))
    if b.dim() == 2:
        return _parts_of_depth(region, a, b)
    if not a.is_contiguous():
        raise CompileError(f"a: must be contiguous for groups, got strides {list(a.stride())}")
    if not (b.is_contiguous() or b.mT.is_contiguous()):
        raise CompileError(f"b: must be without gaps for groups, got strides {list(b.stride())}")
    left, right = operand_of("a", a), operand_of("b", b.mT)
    major = "n" if b.is_contiguous() else "k"
    result = result_type(dtype_of(region.outputs[0]))
    names = left.dtype, right.dtype, result, DTYPES[left.dtype].accumulator
    (m, k), (groups, n, _) = left.shape, right.shape
    spec = MatmulSpec(m, n, k, *names, b_major=major, groups=groups)
    plain = Input(0), Input(1, (0, 2, 1)), Input(2)
    if _is_plain(region):
        return Parts(spec, [*plain])
    spec, made, beside, arguments, lies = _with_epilogue(region, spec)
    if any(_is_column_major(each) for each in lies):
        raise CompileError("region: operands of groups must have their columns contiguous")
    a_and_b = plain[0], Input(1) if major == "n" else plain[1]  # a text takes b as it is stored
    return Parts(spec, [*a_and_b, plain[2], *beside], made, arguments, lies)


def _parts_of_depth(region: Region, a: torch.Tensor, b: torch.Tensor) -> Parts:
    """Groups of K of two matrices, which have K as rows in memory, each with a product."""
    if not _is_plain(region):
        raise CompileError("region: groups of K must be a product alone, got operators after it")
    for name, rows in (("a", a.mT), ("b", b)):
        if not rows.is_contiguous():
            rule = "must have K as rows without gaps for groups of K"
            raise CompileError(f"{name}: {rule}, got strides {list(rows.stride())}")
    left, right = operand_of("a", a), operand_of("b", b.mT)
    result = result_type(dtype_of(region.outputs[0]))
    names = left.dtype, right.dtype, result, DTYPES[left.dtype].accumulator
    (groups, m, n), k = region.frame, right.shape[1]
    spec = MatmulSpec(m, n, k, *names, a_major="m", b_major="n", groups=groups, group_axis="k")
    return Parts(spec, [Input(0), Input(1, (1, 0)), Input(2)])


def _of_blocks(region: Region, target: str, math: str) -> Prepared:
    """Operands with scales of blocks, which the MMA takes."""
    product = region.products[0]
    if not find_target(target).mma.scaled_kinds:
        rule = "scales of blocks are for chips whose MMAs take them, as sm_100a"
        raise CompileError(f"region: {rule}, got {target}")
    a, b = (like(each.meta["val"]) for each in (product.a, product.b))
    if not (a.is_contiguous() and b.mT.is_contiguous()):
        strides = f"{list(a.stride())} and {list(b.stride())}"
        raise CompileError(f"region: operands with scales of blocks must be K-major, got {strides}")
    form = SCALED_FORMATS[product.formats[0]]
    (m, stored), columns = a.shape, b.shape[1]
    depth = stored * (2 if form.element == "e2m1" else 1)
    a_format, b_format = product.formats
    result = result_type(dtype_of(region.outputs[0]))
    spec = MatmulSpec(m, columns, depth, a_format, b_format, result)
    sides = zip("ab", product.blocks, (m, columns), (2, 3), strict=True)
    scales = [_scales(spec, *each) for each in sides]
    source: MatmulSpec | LinalgText = spec
    beside: list[Input] = []
    made = None
    if not _is_plain(region):
        spec, made, beside, _, lies = _with_epilogue(region, spec)
        if any(_is_column_major(each) for each in lies):
            raise CompileError("region: operands beside scales of blocks must be row-major")
        source = LinalgText(spec.mlir_text(made), "region")
    pipeline = pipeline_of(spec, target, How(target=target, math=math))
    policy = policy_of(region, math, made)
    inputs = [Input(0), Input(1, (1, 0)), *scales, *beside]
    return Prepared(source, spec, target, pipeline, policy, inputs)


def _scales(spec: MatmulSpec, name: str, node: fx.Node, rows: int, number: int) -> Input:
    """The scales of an operand's blocks as the kernel takes them, of `region.reads` by number."""
    form = SCALED_FORMATS[spec.a_dtype if name == "a" else spec.b_dtype]
    blocks = -(-spec.k // form.block)
    broken = blocks_refusal(name, list(sizes_of(node)), rows, blocks, True)
    if broken or not like(node.meta["val"]).is_contiguous():
        raise CompileError(f"region: {broken or f'scale_{name} must be contiguous, got gaps'}")
    return Input(number, sizes=blocked_scale_shape(rows, blocks))
