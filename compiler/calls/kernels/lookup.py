"""Finds the kernel of a call; tensors like those of an earlier call find it at once.

arrays → spec (sizes, dtypes, majors) → schedule → bundle (memory, disk, or compiled) → launch
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple

from ....dialects.tables import changes, keep, when_changed
from ....dialects.target import GPUS, find_target
from ....runtime.bundles.bundle import Bundle
from ....runtime.element_types import is_torch
from ....runtime.gpu.operands import Recognizer, recognizer
from ....runtime.launch.devices import open_device
from ....runtime.launch.kernel import Kernel
from ....runtime.launch.loading import open_kernel
from ....runtime.operands.dlpack import gpu_of
from ....runtime.tracing import is_traced, is_watched
from ...chosen_pipeline import choose_pipeline
from ...importers.linalg_text import LinalgText
from ...pipeline import complete_pipeline
from ...schedule.any_size.buckets import Bucket
from ...spec import MatmulSpec
from ..operands.leading_dims import is_empty, product_of_nothing
from ..operands.operands import (
    leading_of_depth,
    lies_as,
    operand_of,
    quick_key,
    spec_of,
    spec_of_depth,
)
from ..operands.placement import (
    ALIGNMENT_BYTES,
    aligned,
    check_rows_along_k,
    gaps_of,
    placement,
    read_in_place,
)
from ..operands.precision import set_precision, with_precision
from .found_kernels import FoundKernels
from .kernel_cache import cached_bundle
from .row_kernels import RowKernels, row_buckets

DEFAULT_TARGET = "sm_100a"  # where there is no GPU
ROWS, STACKS, BOTH, DEPTH = "dynamic", "stack", "both", "depth"
"""What `How.m` says of the sizes that a launch does."""
OF_STACKS = (STACKS, BOTH)
OPEN = {ROWS: ("m",), STACKS: ("batch",), BOTH: ("m", "batch"), DEPTH: ("k",)}
"""The same as a spec names them."""
SEEN_KEPT = 4096  # sizes, of which many may have one kernel
ALIKE_KEPT = 4  # of the same sizes: as a weight, its transpose, and both with gradients
PLAIN_TENSORS = ("torch.Tensor", "torch.nn.parameter.Parameter")


class How(NamedTuple):
    """What the caller asked of the compilation; empty texts leave the choice to it.

    `m` is "dynamic" where a kernel for any M shall be taken, "stack" where one for any batch shall,
    "both" where one for any of both shall, and "depth" where one for any K, as graphs have it;
    `scale_rounding` is for results with block scales; `sums` is as that of a spec, `precision` as
    `matmul` takes it.
    """

    out_dtype: str = ""
    target: str = ""
    pipeline: str = ""
    preset: str = ""
    m: str = ""
    scale_rounding: str = ""
    math: str = ""
    sums: str = ""
    precision: str = ""

    @property
    def names_passes(self) -> bool:
        """Whether the caller leaves no choice of passes."""
        return bool(self.pipeline or self.preset)


class Seen(NamedTuple):
    """Torch tensors that came before, and their kernel."""

    recognizes: Recognizer
    requires_gradients: bool
    kernel: Kernel | RowKernels


_kernels: FoundKernels[Kernel | RowKernels] = FoundKernels()
_seen: dict[Any, tuple[Seen, ...]] = {}
when_changed(_seen.clear)


def call_kernel(a: Any, b: Any, out: Any, how: How) -> Any:
    """The product itself, without gradients."""
    gaps, how = gaps_of(out), settled(a, how)
    kernel = _kernels.get(_key(a, b, how, gaps))
    if kernel is None:
        if is_empty(a, b):
            check_passes(how)
            return product_of_nothing(a, b, out, how.out_dtype)
        target = how.target or default_target(gpu_of(a))
        if how.m == DEPTH:
            check_rows_along_k("matmul: a", a, target)
            check_rows_along_k("matmul: b", b, target)
        any_rows = "m" in OPEN.get(how.m, ())
        a = read_in_place("matmul: a", a, target, apart=how.m != BOTH, any_rows=any_rows)
        b = read_in_place("matmul: b", b, target)
        key = _key(a, b, how, gaps)
        kernel = _kernels.of(key, lambda: _find_kernel(a, b, how, target, gaps))
    return kernel(aligned("matmul: a", a), aligned("matmul: b", b), out=out)


def kernel_for(a: Any, b: Any, out: Any, how: How) -> Kernel | RowKernels | None:
    """The kernel that `call_kernel` took for these, None where one of them was copied."""
    return _kernels.get(_key(a, b, settled(a, how), gaps_of(out)))


def settled(a: Any, how: How) -> How:
    """With the precision that torch's setting asks for at this moment, where the call has none."""
    precision = how.precision or set_precision(a, how.pipeline, how.preset)
    return how._replace(precision=precision) if precision else how


def multiply(a: Any, b: Any, out: Any, asked: tuple[Any, ...], how: How) -> Any:
    """The product without gradients; `recall` then knows operands like these."""
    result = call_kernel(a, b, out, how)
    remember(a, b, asked, how)
    return result


def recall(a: Any, b: Any, asked: tuple[Any, ...]) -> Kernel | RowKernels | None:
    """The kernel that took tensors like these before, in a microsecond.

    None where it must be looked for, an operand copied, or a gradient recorded.
    """
    known = seen(a, b, asked)
    return None if known is None or differentiates(known.requires_gradients) else known.kernel


def seen(a: Any, b: Any, asked: tuple[Any, ...]) -> Seen | None:
    """Tensors like these that a kernel took before as they are; None where it must be looked for,
    or an operand copied."""
    if not (_is_plain(type(a)) and _is_plain(type(b))):
        return None
    for known in _seen.get((a.shape, b.shape, asked), ()):
        if known.recognizes(a, b):
            return None if (a.data_ptr() | b.data_ptr()) % ALIGNMENT_BYTES else known
    return None


def relaunched(a: Any, b: Any, out: Any, asked: tuple[Any, ...]) -> bool:
    """Whether the last call of a kernel was for tensors like these three, and it is on its way.

    The kernel looks at them itself, so that this takes half of what `recall` and a call do.
    """
    if not (_is_plain(type(a)) and _is_plain(type(b)) and _is_plain(type(out))):
        return False
    alike = _seen.get((a.shape, b.shape, asked), ())
    if not alike or differentiates(a.requires_grad or b.requires_grad or out.requires_grad):
        return False
    return any(known.kernel.relaunched((a, b), out) for known in alike)


def remember(a: Any, b: Any, asked: tuple[Any, ...], how: How) -> None:
    """Let `seen` know operands that a kernel takes as they are.

    Of f32 `asked` has a precision, as a setting that decides it may change.
    """
    if not (_is_plain(type(a)) and _is_plain(type(b))):
        return
    before, kernel = changes(), kernel_for(a, b, None, how)
    if kernel is not None:
        if len(_seen) >= SEEN_KEPT:
            _seen.clear()
        known = Seen(recognizer((a, b)), a.requires_grad or b.requires_grad, kernel)
        key = a.shape, b.shape, asked
        keep(_seen, key, with_others(known, _seen.get(key, ()), (a, b)), before)


def with_others(known: Any, others: tuple[Any, ...], values: Sequence[Any]) -> tuple[Any, ...]:
    """What is known of tensors of these sizes, the latest first, with what is known of these."""
    kept = [each for each in others if not each.recognizes(*values)]
    return known, *kept[: ALIKE_KEPT - 1]


def _find_kernel(
    a: Any, b: Any, how: How, target: str, gaps_of_c: tuple[int, int]
) -> Kernel | RowKernels:
    make = spec_of_depth if how.m == DEPTH else spec_of
    spec = make(operand_of("a", a), operand_of("b", b), how.out_dtype, gaps_of_c)
    spec = with_precision(spec, how.precision, how.pipeline, how.preset)
    if how.sums:
        spec = replace(spec, sums=how.sums)
    if how.m in (ROWS, DEPTH) or (how.m in OF_STACKS and spec.batch):
        return RowKernels(buckets_of_rows(spec, target, how), partial(bundle_of_rows, target))
    return open_kernel(bundle_for(spec, spec, target, how))


def bundle_of_rows(target: str, bucket: Bucket) -> Bundle:
    """One of the kernels that share all M."""
    return cached_bundle(bucket.spec, target, bucket.pipeline, named=bucket.named)


def buckets_of_rows(spec: MatmulSpec, target: str, how: How) -> list[Bucket]:
    """Each kernel that shares all M, or batches, with the complete text of its passes."""
    asked = pipeline_of(spec, target, how) if how.names_passes else ""
    found = row_buckets(spec, target, asked, OPEN[how.m])
    return [replace(each, pipeline=complete_text(each.pipeline)) for each in found]


def bundle_for(
    source: MatmulSpec | LinalgText, spec: MatmulSpec, target: str, how: How, math: str = ""
) -> Bundle:
    """The kernel of a source that is the product of a spec."""
    pipeline = pipeline_of(spec, target, how)
    return cached_bundle(source, target, pipeline, math, named=how.names_passes)


def pipeline_of(spec: MatmulSpec, target: str, how: How) -> str:
    """The complete text of the pipeline that is asked for, or chosen."""
    chosen = None if how.names_passes else choose_pipeline(spec, target)
    return complete_text(how.pipeline or chosen, how.preset or None)


def complete_text(pipeline: str | None, preset: str | None = None) -> str:
    """A pipeline with the passes that go before and after those that it names."""
    calls = complete_pipeline(pipeline, preset, None, True)
    return ",".join(str(call) for call in calls)


def check_passes(how: How) -> None:
    """Refuse a chip and passes that there are none of, where nothing is compiled for them."""
    find_target(how.target or DEFAULT_TARGET)
    if how.names_passes:
        complete_text(how.pipeline or None, how.preset or None)


def default_target(gpu: int | None) -> str:
    """What to compile for: a GPU, by its number, as `find_target` knows it, or the emulator's."""
    if gpu is None:
        return DEFAULT_TARGET
    device: Any = open_device("cuda")
    found = device.gpu(gpu)
    named = (name for name, each in GPUS.items() if each.gpu and each.chip == found.target)
    return next((name for name in named if name in found.name.lower()), found.target)


def is_seen_by_torch(a: Any, b: Any) -> bool:
    """Whether torch must see the call, to trace it, to watch it or to record gradients."""
    return is_traced() or is_watched(a, b) or records_gradients(a, b)


def records_gradients(a: Any, b: Any) -> bool:
    """Whether torch wants to differentiate the product of these."""
    return is_torch(a) and is_torch(b) and differentiates(a.requires_grad or b.requires_grad)


def differentiates(requires_gradients: bool) -> bool:
    """Backward from tensors that require it, or forward."""
    torch = sys.modules["torch"]
    backward = requires_gradients and torch.is_grad_enabled()
    return backward or torch.autograd.forward_ad._current_level >= 0


@functools.cache
def _is_plain(kind: type) -> bool:
    """Whether torch itself makes tensors of this type, which have memory and plain sizes."""
    return f"{kind.__module__}.{kind.__qualname__}" in PLAIN_TENSORS


def _key(a: Any, b: Any, how: How, gaps_of_c: tuple[int, int]) -> tuple[Any, ...]:
    of_a, of_b = quick_key(a, "a"), quick_key(b, "b")
    if how.m:
        of_a, of_b = (_without_open(name, each, how.m) for name, each in (("a", a), ("b", b)))
    return of_a, of_b, gpu_of(a), how, gaps_of_c


def _without_open(name: str, array: Any, m: str) -> tuple[Any, ...]:
    """What tells an operand of any rows, a stack of any number of matrices, or an operand of any K
    from others; of one that no kernel reads as it lies all of it, as it is copied."""
    *stack, rows, columns = array.shape
    operand = operand_of(name, array)
    if m == DEPTH:
        return rows, leading_of_depth(name, operand), operand.dtype
    names = OPEN[m]
    opened = "batch" in names and bool(stack), "m" in names and name == "a"
    if not any(opened) or (stack and m == ROWS):
        return quick_key(array)
    found = placement(operand.shape, operand.strides)
    if found is None or (all(opened) and found.step):
        return quick_key(array)
    known = *(() if opened[0] else stack), *(() if opened[1] else (rows,)), columns
    return known, len(stack), *lies_as(name, operand), operand.dtype
