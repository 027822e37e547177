"""Checks the kernel of a region on the emulator, with fewer rows, against float64.

The kernel has the region's types, K and pipeline. Its M is cut down, wide ones lose most of their
columns, and of stacks and groups a few stay, since the emulator executes every instruction.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, NamedTuple

import torch

from ...dialects.errors import CompileError
from ...runtime.errors import DeviceError
from ...runtime.launch.kernel import Kernel
from ...runtime.scales.blocked import to_blocked
from ...runtime.scales.quantize import dequantize, quantize
from ..calls.kernels.kernel_cache import cached_bundle
from ..calls.kernels.lookup import How, pipeline_of
from ..importers.epilogue_function import Frame, import_epilogue
from ..importers.linalg_text import LinalgText
from ..importers.traced_function import TensorLike
from ..spec import MatmulSpec
from .products import dtype_of, is_truth
from .region import Region
from .region_function import function_of
from .source import TRUTH, Prepared, framed_sizes

STACK_MAX, GROUPS_MAX = 2, 3
COLUMNS_MAX, COLUMNS = 1024, 512
RELATIVE = {torch.bfloat16: 2**-6, torch.float16: 2**-8, torch.float32: 2**-10}
NARROW = 2**-3
SEED = 11


class Checked(NamedTuple):
    """Whether a kernel is right, on which sizes, and what was wrong."""

    right: bool
    sizes: str
    reason: str = ""


def check_region(region: Region, prepared: Prepared, rows: int) -> Checked:
    """Run a smaller kernel of the region on the emulator."""
    spec = _smaller(prepared.spec, rows)
    sizes = "x".join(str(e) for e in ([spec.batch] * bool(spec.batch) + [spec.m, spec.n, spec.k]))
    torch.manual_seed(SEED)
    try:
        given, expected = _problem(region, prepared, spec)
    except CompileError as error:
        return Checked(False, sizes, str(error))
    try:
        kernel = Kernel(_bundle(given.source, spec, prepared), device="emulator", copies=True)
        made = kernel(*given.inputs)
    except (CompileError, DeviceError) as error:
        return Checked(False, sizes, str(error).splitlines()[0])
    results = made if isinstance(made, tuple) else (made,)
    reasons = (_difference(*pair) for pair in zip(results, expected, strict=True))
    reason = next((each for each in reasons if each), "")
    return Checked(not reason, sizes, reason)


class Problem(NamedTuple):
    """A smaller source, and what its kernel is called with."""

    source: MatmulSpec | LinalgText
    inputs: list[torch.Tensor]


def _smaller(spec: MatmulSpec, rows: int) -> MatmulSpec:
    n = spec.n if spec.n <= COLUMNS_MAX else COLUMNS + spec.n % 256
    less = {"m": min(spec.m, rows), "n": n, "batch": min(spec.batch, STACK_MAX)}
    less |= dict.fromkeys(("lda", "ldb", "ldc", "stride_a", "stride_b", "stride_c"), 0)
    return replace(spec, groups=min(spec.groups, GROUPS_MAX), **less)


def _problem(
    region: Region, prepared: Prepared, spec: MatmulSpec
) -> tuple[Problem, list[torch.Tensor]]:
    """The smaller source with its inputs, and what its outputs should be."""
    first = region.products[0]
    offsets = None
    if first.blocks:
        a, bs, scales, sums = _of_blocks(spec)
    else:
        a = _stored("m", spec.a_major, (spec.batch, spec.m, spec.k), dtype_of(first.a))
        of_depth = spec.groups > 0 and spec.group_axis == "k"
        groups = 0 if of_depth else spec.groups
        stack = groups or (spec.batch if spec.b_stacked else 0)
        bs = [
            _stored("n", spec.b_major, (stack, spec.n, spec.k), dtype_of(each.b))
            for each in region.products
        ]
        scales = []
        sums = [(a.double() @ b.double().mT).float() for b in bs if not spec.groups]
    if spec.groups:
        offsets, sums = _of_groups(spec, a, bs[0])
    between = scales if offsets is None else [offsets]
    if isinstance(prepared.source, MatmulSpec):
        return Problem(spec, [a, *bs, *between]), [sums[0].to(dtype_of(region.outputs[0]))]
    frame = (*([spec.batch] if spec.batch else []), spec.m, spec.n)
    values = [_operand(region, operand, frame) for operand in region.operands]
    function = function_of(region)
    expected = function(*sums, *values)
    plain = replace(spec, further=(), neighbours=0, epilogue_instructions=0)
    likes = [TensorLike(tuple(each.shape), each.dtype) for each in values]
    plain, made, arguments, _ = import_epilogue(plain, Frame.of(frame, spec.batch), function, likes)
    names = () if between else tuple(f"{n}" for n in range(1 + len(bs) + len(arguments)))
    source = LinalgText(plain.mlir_text(made), "region", names)
    stored = [a if spec.a_major == "k" else a.mT, *(b if spec.b_major == "k" else b.mT for b in bs)]
    beside = [values[each.number].reshape(each.shape) for each in arguments]
    found = list(expected) if isinstance(expected, tuple) else [expected]
    return Problem(source, [*stored, *between, *beside]), found


def _stored(outer: str, major: str, sizes: tuple[int, int, int], dtype: Any) -> torch.Tensor:
    """A random operand [.., rows, k] that lies as the kernel reads it."""
    stack, rows, k = sizes
    lead = [stack] if stack else []
    if major == outer:
        return _random([*lead, k, rows], dtype).mT
    return _random([*lead, rows, k], dtype)


def _random(sizes: list[int], dtype: torch.dtype) -> torch.Tensor:
    return (torch.randn(sizes) / 2).to(dtype)


def _operand(region: Region, operand: Any, frame: tuple[int, ...]) -> torch.Tensor:
    whole = framed_sizes(region, operand)
    sizes = [
        small if size == large and large > 1 else size
        for size, large, small in zip(whole, region.frame, frame, strict=True)
    ]
    if is_truth(operand):
        return (torch.rand(sizes) < 0.5).to(TRUTH)
    return _random(sizes, dtype_of(operand))


def _of_groups(
    spec: MatmulSpec, a: torch.Tensor, b: torch.Tensor
) -> tuple[torch.Tensor, list[torch.Tensor]]:
    """Where groups of uneven rows, or parts of K, end, and the sums."""
    of_depth = spec.group_axis == "k"
    extent = spec.k if of_depth else spec.m
    ends = [max(extent * (g + 1) // spec.groups - 1, 0) for g in range(spec.groups - 1)] + [extent]
    parts, begin = [], 0
    for group, end in enumerate(ends):
        part = slice(begin, end)
        left, right = (a[:, part], b[:, part]) if of_depth else (a[part], b[group])
        parts.append(left.double() @ right.double().mT)
        begin = end
    sums = torch.stack(parts) if of_depth else torch.cat(parts)
    return torch.tensor(ends, dtype=torch.int32), [sums.float()]


def _of_blocks(
    spec: MatmulSpec,
) -> tuple[torch.Tensor, list[torch.Tensor], list[torch.Tensor], list[torch.Tensor]]:
    """A, B, the scales of both's blocks, and the sums."""
    sides = (spec.m, spec.a_dtype), (spec.n, spec.b_dtype)
    made = [quantize(torch.randn(rows, spec.k), form) for rows, form in sides]
    a, b = (
        dequantize(each.data, each.scales, form)
        for each, (_, form) in zip(made, sides, strict=True)
    )
    scales = [to_blocked(each.scales) for each in made]
    return made[0].data, [made[1].data], scales, [(a @ b.mT).float()]


def _bundle(source: MatmulSpec | LinalgText, spec: MatmulSpec, prepared: Prepared) -> Any:
    """With the region's own pipeline, or where that needs more rows the one for these."""
    try:
        return cached_bundle(source, prepared.target, prepared.pipeline, prepared.math)
    except CompileError:
        pipeline = pipeline_of(spec, prepared.target, How(target=prepared.target))
        return cached_bundle(source, prepared.target, pipeline, prepared.math)


def _difference(made: torch.Tensor, expected: torch.Tensor) -> str:
    """What is wrong with an output; "" if nothing is.

    Sums in another order may round to the next number, and an operator after them may enlarge
    that: the bound is a few steps of the type, at the size of typical elements.
    """
    got, want = made.double(), expected.double()
    relative = RELATIVE.get(made.dtype, NARROW)
    typical = want.square().mean().sqrt()
    beyond = (got - want).abs() > relative * (want.abs() + 2 * typical)
    beyond |= got.isnan() != want.isnan()
    count = int(beyond.sum())
    if not count:
        return ""
    place = tuple(beyond.nonzero()[0].tolist())
    where = f"at {list(place)} {float(want[place]):g}, got {float(got[place]):g}"
    return f"{count} of {got.numel()} elements must be as float64 sums make them, {where}"
