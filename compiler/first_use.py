"""`matmul`: a kernel for these very arrays, compiled when they first come.

    arrays → spec (sizes, dtypes, majors) → schedule → bundle (memory, disk, or compiled) → launch

Imports neither MLIR nor torch before they are needed.
"""

from __future__ import annotations

import functools
import sys
import threading
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from ..dialects.dtypes import DTYPES, OPERAND_DTYPES, OUTPUT_DTYPES
from ..dialects.errors import OptionError
from ..dialects.target import find_target
from ..runtime.element_types import NUMPY_NAMES, TORCH_NAMES, is_torch
from ..runtime.gpu.operands import Recognizer, recognizer
from ..runtime.launch.devices import open_device
from ..runtime.operands.dlpack import gpu_of, is_foreign, read_array
from ..runtime.tracing import is_traced, is_watched

if TYPE_CHECKING:
    from ..runtime.launch.kernel import Kernel
    from .spec import MatmulSpec

DEFAULT_TARGET = "sm_100a"  # where there is no GPU
ALIGNMENT_BYTES = 16
PLAIN_TENSORS = ("torch.Tensor", "torch.nn.parameter.Parameter")


def _named(dtypes: Sequence[str]) -> dict[str, str]:
    """Each of the types by what torch, numpy and DLPack call it."""
    names = ((name, dtype) for dtype in dtypes for name in NUMPY_NAMES[dtype])
    return {TORCH_NAMES[dtype]: dtype for dtype in dtypes} | dict(names)


OPERANDS, RESULTS = _named(OPERAND_DTYPES), _named(OUTPUT_DTYPES)


class How(NamedTuple):
    """What the caller asked of the compilation; empty texts leave the choice to it."""

    out_dtype: str = ""
    target: str = ""
    pipeline: str = ""
    preset: str = ""


class Form(NamedTuple):
    """An operand: sizes and strides in elements."""

    shape: tuple[int, ...]
    strides: tuple[int, ...]
    dtype: str


class Seen(NamedTuple):
    """Torch tensors that came before, and their kernel."""

    recognizes: Recognizer
    requires_gradients: bool
    kernel: Kernel


_kernels: dict[Any, Kernel] = {}
_seen: dict[Any, Seen] = {}
_finding = threading.Lock()


def matmul(
    a: Any,
    b: Any,
    *,
    out: Any = None,
    out_dtype: Any = None,
    target: str | None = None,
    pipeline: str | None = None,
    preset: str | None = None,
) -> Any:
    """a [m, k] · b [n, k]ᵀ, as torch.nn.functional.linear(a, b): b's rows are the output's columns.

    Torch tensors, numpy arrays, or anything with DLPack: of bf16 or f16, of f32 (multiplied as
    tf32), of float8_e4m3fn or float8_e5m2, of int8 or uint8. Either major order of each is taken as
    it lies (pass `w.T` for a `w` stored k × n) where the target's MMA reads its type so; others,
    other strides and addresses that aren't multiples of 16 bytes are copied. Runs on the GPU that
    holds `a`, or on the emulator. `out` is [m, n], row-major; `out_dtype` ("bf16", "f16", "f32",
    "s32" or torch's) is a's unless told, bf16 for floats of 8 bits and s32 for integers. The kernel
    is compiled for `target` (the GPU's own; sm_100a on the emulator) by `pipeline` text, by
    `preset`, or by the schedule that the compiler chooses, and kept in memory and on disk. torch
    records gradients, and torch.compile keeps the call as one operator. Raises CompileError for
    what can't be compiled, DeviceError for what can't be launched.
    """
    asked = out_dtype, target, pipeline, preset
    kernel = None if is_traced() else _recognize(a, b, asked)
    if kernel is not None:
        return kernel(a, b, out=out)
    how = How(_dtype_name(out_dtype), target or "", pipeline or "", preset or "")
    if is_traced() or is_watched(a, b):
        from .torch_op import matmul_operator

        return _into(out, matmul_operator(a, b, *how))
    if records_gradients(a, b):
        from .torch_op import Product

        return _into(out, Product.apply(a, b, *how))
    result = call_kernel(a, b, out, how)
    _remember(a, b, asked, how)
    return result


def call_kernel(a: Any, b: Any, out: Any, how: How) -> Any:
    """The product itself, without gradients."""
    kernel = _kernels.get(_key(a, b, how))
    if kernel is None:
        target = how.target or default_target(gpu_of(a))
        a, b = (_readable(_dense(each), target) for each in (a, b))
        key = _key(a, b, how)
        with _finding:  # so that threads that ask for the same kernel get it from the first one
            kernel = _kernels[key] = _kernels.get(key) or _find_kernel(a, b, how, target)
    return kernel(_aligned(a), _aligned(b), out=out)


def _recognize(a: Any, b: Any, asked: tuple[Any, ...]) -> Kernel | None:
    """The kernel that took tensors like these before, in a microsecond.

    None where it must be looked for, an operand copied, or a gradient recorded.
    """
    if not (_is_plain(type(a)) and _is_plain(type(b))):
        return None
    known = _seen.get((a.shape, b.shape, asked))
    if known is None or not known.recognizes(a, b):
        return None
    if _differentiates(known.requires_gradients):
        return None
    return None if (a.data_ptr() | b.data_ptr()) % ALIGNMENT_BYTES else known.kernel


def _remember(a: Any, b: Any, asked: tuple[Any, ...], how: How) -> None:
    """Let `_recognize` know operands that a kernel takes as they are."""
    if not (_is_plain(type(a)) and _is_plain(type(b))):
        return
    kernel = _kernels.get(_key(a, b, how))
    if kernel is not None:
        known = Seen(recognizer((a, b)), a.requires_grad or b.requires_grad, kernel)
        _seen[a.shape, b.shape, asked] = known


def spec_of(a: Form, b: Form, out_dtype: str = "") -> MatmulSpec:
    """The matmul of two operands; OptionError when their sizes or types don't go together."""
    from .spec import MatmulSpec

    check_shapes(a.shape, b.shape)
    (m, k), n = a.shape, b.shape[0]
    majors = {"a_major": _major(a, "m"), "b_major": _major(b, "n")}
    dtype = DTYPES[a.dtype]
    c_dtype = out_dtype or dtype.result
    return MatmulSpec(m, n, k, a.dtype, b.dtype, c_dtype, dtype.accumulator, **majors)


def check_shapes(a: Sequence[Any], b: Sequence[Any]) -> None:
    """Raise OptionError unless the shapes are [m, k] and [n, k]."""
    if len(a) != 2 or len(b) != 2 or a[1] != b[1]:
        shapes = f"{list(a)} and {list(b)}"
        raise OptionError(
            f"matmul: a and b must be [m, k] and [n, k], got {shapes}; pass b.T for a b of [k, n]"
        )


def _find_kernel(a: Any, b: Any, how: How, target: str) -> Kernel:
    from ..runtime.launch.kernel import Kernel
    from .kernel_cache import cached_bundle

    spec = spec_of(_form("a", a), _form("b", b), how.out_dtype)
    return Kernel(cached_bundle(spec, target, _pipeline(spec, target, how)))


def _pipeline(spec: MatmulSpec, target: str, how: How) -> str:
    """The complete text of the pipeline that is asked for, or chosen."""
    from .driver import choose_pipeline
    from .pipeline import complete_pipeline

    chosen = None if how.pipeline or how.preset else choose_pipeline(spec, target)
    calls = complete_pipeline(how.pipeline or chosen, how.preset or None, None, True)
    return ",".join(str(call) for call in calls)


def default_target(gpu: int | None) -> str:
    if gpu is None:
        return DEFAULT_TARGET
    device: Any = open_device("cuda")
    return device.gpu(gpu).target


def records_gradients(a: Any, b: Any) -> bool:
    """Whether torch wants to differentiate the product of these."""
    return is_torch(a) and is_torch(b) and _differentiates(a.requires_grad or b.requires_grad)


def _differentiates(requires_gradients: bool) -> bool:
    """Backward from tensors that require it, or forward, which `Product` refuses for torch."""
    torch = sys.modules["torch"]
    backward = requires_gradients and torch.is_grad_enabled()
    return backward or torch.autograd.forward_ad._current_level >= 0


@functools.cache
def _is_plain(kind: type) -> bool:
    """Whether torch itself makes tensors of this type, which have memory and plain sizes."""
    return f"{kind.__module__}.{kind.__qualname__}" in PLAIN_TENSORS


def _into(out: Any, result: Any) -> Any:
    """What torch made, in `out` if that is given."""
    if out is None:
        return result
    if out.requires_grad:
        raise OptionError("matmul: out must not require gradients, got one that does; drop out=")
    return out.copy_(result)


def _key(a: Any, b: Any, how: How) -> tuple[Any, ...]:
    return _quick_form(a), _quick_form(b), gpu_of(a), how


def _quick_form(array: Any) -> Any:
    """What tells operands apart, as cheap as the library has it."""
    if is_torch(array):
        return array.shape, array.stride(), array.dtype
    return _form("operand", array)


def _form(name: str, array: Any) -> Form:
    if is_torch(array):
        shape, strides, dtype = tuple(array.shape), array.stride(), str(array.dtype)
    elif type(array).__module__ == "numpy":
        strides = tuple(stride // array.itemsize for stride in array.strides)
        shape, dtype = array.shape, array.dtype.name if array.dtype.isnative else str(array.dtype)
    elif is_foreign(array):
        found = read_array(name, array)
        shape, strides, dtype = found.shape, found.strides, found.dtype
    else:
        got = type(array).__name__
        raise OptionError(f"matmul: {name} must be an array of torch, numpy or DLPack, got {got}")
    return Form(shape, strides, operand_type(name, dtype))


def operand_type(name: str, dtype: str) -> str:
    """The type of an operand that torch, numpy or DLPack calls `dtype`; OptionError if no kernel
    takes it."""
    if dtype not in OPERANDS:
        known = ", ".join(OPERAND_DTYPES)
        raise OptionError(f"matmul: {name} must be one of {known}, got {dtype}; convert it")
    return OPERANDS[dtype]


def _major(operand: Form, outer: str) -> str:
    """ "k" if K is contiguous, else the other axis; sizes of one element have no say."""
    return "k" if _lies_as(operand, (operand.shape[1], 1)) else outer


def _lies_as(operand: Form, strides: tuple[int, int]) -> bool:
    extents = zip(operand.shape, operand.strides, strides, strict=True)
    return all(extent == 1 or got == wanted for extent, got, wanted in extents)


def _dense(array: Any) -> Any:
    """The array, or a copy where neither order of its axes is without gaps."""
    if is_torch(array):
        if array.layout is not sys.modules["torch"].strided:
            raise OptionError(f"matmul: operands must be dense, got {array.layout}; convert it")
        dense = array.dim() != 2 or array.is_contiguous() or array.t().is_contiguous()
        return array if dense else _copied(array)
    if type(array).__module__ != "numpy":
        return array
    dense = array.flags.c_contiguous or array.flags.f_contiguous
    return array if dense else array.copy()


def _readable(array: Any, target: str) -> Any:
    """The array, or a copy with K contiguous where the target's MMA reads its type only so."""
    if not is_torch(array) and type(array).__module__ != "numpy":
        return array
    if array.itemsize in find_target(target).mn_major_bytes:
        return array
    return array.contiguous() if is_torch(array) else sys.modules["numpy"].ascontiguousarray(array)


def _aligned(array: Any) -> Any:
    """The array, or a copy where TMA can't take its address."""
    if is_torch(array) and array.data_ptr() % ALIGNMENT_BYTES:
        return _copied(array)
    return array


def _copied(array: Any) -> Any:
    """A torch tensor's values at a new address, its axes in the order they lie in."""
    if not array.is_contiguous() and array.t().is_contiguous():
        return _copied(array.t()).t()
    return array.detach().clone(memory_format=sys.modules["torch"].contiguous_format)


def _dtype_name(dtype: Any) -> str:
    """A dtype as a manifest names it; "" for None."""
    text = "" if dtype is None else str(dtype)
    if text and text not in RESULTS and text not in OUTPUT_DTYPES:
        known = ", ".join(OUTPUT_DTYPES)
        raise OptionError(f"matmul: out_dtype must be one of {known}, got {text}")
    return RESULTS.get(text, text)
