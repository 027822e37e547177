"""Checks of a spec: each rule raises `OptionError`."""

from __future__ import annotations

from dataclasses import replace

from ...dialects.dtypes import (
    ACCUMULATOR_DTYPES,
    BLOCKWISE_FORMS,
    DTYPES,
    FMA,
    OPERAND_FORMATS,
    OUTPUT_DTYPES,
    SCALED_FORMATS,
    mix_refusal,
    output_refusal,
    scaled_mix_refusal,
    size_refusal,
)
from ...dialects.errors import OptionError
from ...dialects.quantized import columns_refusal, rounding_refusal
from .grouped import grouped_refusal
from .problem import (
    B_DTYPES,
    BESIDE,
    BLOCKED,
    EXTENT_MAX,
    FURTHER_MAX,
    LINEAR,
    SPEC_DTYPES,
    TWO_LEVEL,
    Problem,
    element_of,
)
from .weights import check_weights

FLAGS = (
    "a_stacked", "b_stacked", "ordered", "dynamic_m", "dynamic_batch", "dynamic_k", "zero_points",
)  # fmt: skip


def check(spec: Problem) -> None:
    """Refuses what no kernel can be built for with `OptionError`.

    A rule relies on those before it: on fields that are of their own kind, then on types.
    """
    _check_extents(spec)
    _check_flags(spec)
    _check_choice(spec, "a_dtype", SPEC_DTYPES)
    _check_choice(spec, "b_dtype", B_DTYPES)
    _check_beside(spec)
    _check_choice(spec, "c_dtype", (*OUTPUT_DTYPES, *SCALED_FORMATS))
    _check_further(spec)
    _check_choice(spec, "acc_dtype", ACCUMULATOR_DTYPES)
    _check_choice(spec, "a_major", ("k", "m"))
    _check_choice(spec, "b_major", ("k", "n"))
    _check_choice(spec, "scale_layout", (BLOCKED, LINEAR) if spec.is_scaled else (BLOCKED,))
    check_weights(spec)
    _check_types(spec)
    _check_choice(spec, "group_axis", ("m", "k") if spec.groups else ("m",))
    broken = grouped_refusal(spec)
    if broken:
        raise OptionError(f"spec: {broken}")
    _check_bounds(spec)
    _check_multiple(spec)
    if spec.dynamic_m:
        _check_dynamic(spec)
    if spec.dynamic_batch:
        _check_stack(spec)
    if spec.dynamic_k:
        _check_depth(spec)
    _check_products(spec)
    _check_quantized(spec)
    if spec.is_scaled:
        _check_scales(spec)
    _check_blockwise(spec)
    _check_memory(spec)
    _check_bytes(spec)


def _check_extents(spec: Problem) -> None:
    for name, least in (("m", 1), ("n", 1), ("k", 1), ("batch", 0)):
        extent = getattr(spec, name)
        kind = "" if type(extent) is int else "an int, "
        if kind or not least <= extent <= EXTENT_MAX:
            cure = "; multiply in parts" if not kind and extent > EXTENT_MAX else ""
            rule = f"spec: {name} must be {kind}{least} to {EXTENT_MAX}"
            raise OptionError(f"{rule}, got {extent!r}{cure}")


def _check_flags(spec: Problem) -> None:
    for name in FLAGS:
        if type(getattr(spec, name)) is not bool:
            raise OptionError(f"spec: {name} must be True or False, got {getattr(spec, name)!r}")
    for name, kind in (("group_size", int), ("scale_dtype", str), ("scale_rounding", str)):
        if type(value := getattr(spec, name)) is not kind:
            raise OptionError(f"spec: {name} must be of type {kind.__name__}, got {value!r}")
    if not (spec.a_stacked or spec.b_stacked):
        raise OptionError("spec: a or b must be a stack, got none; multiply once")
    for name in ("a_stacked", "b_stacked"):
        if not (spec.batch or spec.dynamic_batch or getattr(spec, name)):
            rule = f"{name} must be True where there is no batch"
            raise OptionError(f"spec: {rule}, got False; leave it out")


def _check_beside(spec: Problem) -> None:
    """What an epilogue has and reads beside the sums, of which a spec only knows how much."""
    if type(spec.epilogue_instructions) is not int or spec.epilogue_instructions < 0:
        got = f"{spec.epilogue_instructions!r}"
        raise OptionError(f"spec: epilogue_instructions must be 0 or more, got {got}")
    for name in BESIDE:
        _check_types_of(spec, name, tuple(DTYPES))


def _check_quantized(spec: Problem) -> None:
    """Check a C with block scales: whole blocks along N, and an accumulator in f32."""
    form = spec.quantized
    if form is None:
        if spec.scale_rounding:
            rule = f"scale_rounding must come with a c_dtype of {', '.join(SCALED_FORMATS)}"
            raise OptionError(f"spec: {rule}, got {spec.c_dtype}; leave it out")
        return
    broken = columns_refusal(form, spec.n)
    broken = broken or (spec.scale_rounding and rounding_refusal(form, spec.scale_rounding))
    if broken:
        raise OptionError(f"spec: {broken}")
    wanted = {"acc_dtype": "f32", "groups": 0, "dynamic_m": False, "dynamic_batch": False}
    wanted |= {"ldc": 0, "stride_c": 0}
    if DTYPES[element_of(spec.a_dtype)].operand_kind == FMA:
        rule = f"a C of {form.name} must be of what tensor cores multiply"
        raise OptionError(f"spec: {rule}, got {spec.a_dtype}; take tf32")
    for name, value in wanted.items():
        if getattr(spec, name) != value:
            rule = f"a C of {form.name} must come with {name} = {value!r}"
            raise OptionError(f"spec: {rule}, got {getattr(spec, name)!r}; store f32 or bf16")


def _check_products(spec: Problem) -> None:
    """Check the types and layouts of two products."""
    if type(spec.products) is not int or spec.products not in (1, 2):
        raise OptionError(f"spec: products must be 1 or 2, got {spec.products!r}")
    wanted = {"is_scaled": False, "acc_dtype": "f32"}
    for name, value in wanted.items():
        if spec.products == 2 and getattr(spec, name) != value:
            rule = f"two products must come with {name.removeprefix('is_')} = {value!r}"
            raise OptionError(f"spec: {rule}, got {getattr(spec, name)!r}; multiply twice")


def _check_bounds(spec: Problem) -> None:
    """The fewest and the most rows of a launch, and M between them as the hint that it is."""
    least, most = spec.least_m, spec.most_m
    known = all(type(each) is int for each in (least, most))
    if (least, most) == (0, 0) and known:
        return
    if not known or not spec.dynamic_m or not 1 <= least <= spec.m <= most <= EXTENT_MAX:
        rule = "least_m and most_m must be around the m of a dynamic m, or both 0"
        raise OptionError(f"spec: {rule}, got {least!r} and {most!r} for {spec.m}; leave them out")


def _check_multiple(spec: Problem) -> None:
    """Of which number the rows of a launch are multiples, as some of those from the fewest to the
    most are."""
    number, most = spec.multiple_m, spec.most_m or EXTENT_MAX
    known = type(number) is int and (spec.dynamic_m or not number) and 0 <= number <= most
    if not known or (number and most // number * number < max(1, spec.least_m)):
        rule = "multiple_m must be a number that rows of a dynamic m are multiples of, or 0"
        raise OptionError(f"spec: {rule}, got {number!r}; leave it out")


def _check_dynamic(spec: Problem) -> None:
    """Of which products a kernel takes any M: matrices, or stacks of any number of them, which lie
    one after the other where they have M rows."""
    wanted = {"group_axis": "m", "gathered": 0, "is_scaled": False}
    wanted |= {"lda": 0} if spec.a_major == "m" else {}
    wanted |= {"stride_a": 0, "stride_c": 0} if spec.dynamic_batch else {"batch": 0}
    for name, value in wanted.items():
        if getattr(spec, name) != value:
            rule = f"a dynamic m must come with {name.removeprefix('is_')} = {value!r}"
            cure = "leave the batch open, too, or give m a number" if name == "batch" else ""
            got = f"got {getattr(spec, name)!r}; {cure or 'give m a number'}"
            raise OptionError(f"spec: {rule}, {got}")


def _check_stack(spec: Problem) -> None:
    """Check a dynamic batch: it needs a batch, which is the hint."""
    if spec.batch < 1:
        rule = "a dynamic batch must come with a batch of 1 or more, which is a hint"
        raise OptionError(f"spec: {rule}, got {spec.batch!r}; say how many matrices are usual")
    for name in ("is_scaled", "is_blockwise"):
        if getattr(spec, name):
            rule = "a dynamic batch must come with operands without scales of blocks"
            got = spec.a_dtype if spec.is_scaled else f"a_scales {spec.a_scales!r}"
            raise OptionError(f"spec: {rule}, got {got}; give the batch a number")
    for name, stored in spec.stored().items():
        *stack, rows, columns = stored.shape
        if stack and not replace(stored, shape=(EXTENT_MAX, rows, columns)).is_non_overlapping:
            rule = (
                f"matrices of {name} must be stored one after the other where the batch is dynamic"
            )
            got = f"{stored.step} elements between them and {stored.leading} between rows"
            raise OptionError(f"spec: {rule}, got {got}; copy it, or give the batch a number")


def _check_depth(spec: Problem) -> None:
    """Of which products a kernel takes any K: of two matrices whose rows in memory are along it,
    which groups may be cut into."""
    wanted = {"a_major": "m", "b_major": "n", "batch": 0, "products": 1}
    wanted |= {"group_axis": "k"} if spec.groups else {}
    wanted |= {"dynamic_m": False, "is_scaled": False, "is_blockwise": False, "has_weights": False}
    for name, value in wanted.items():
        if getattr(spec, name) != value:
            rule = f"a dynamic k must come with {name.removeprefix('is_')} = {value!r}"
            raise OptionError(f"spec: {rule}, got {getattr(spec, name)!r}; give k a number")
    if spec.sums or DTYPES[element_of(spec.a_dtype)].operand_kind == FMA:
        got = f"sums {spec.sums!r}" if spec.sums else spec.a_dtype
        rule = "a dynamic k must come with plain sums of what tensor cores multiply"
        raise OptionError(f"spec: {rule}, got {got}; give k a number")


def _check_scales(spec: Problem) -> None:
    """Whole blocks along K, which is contiguous where several elements share bytes."""
    for dtype in (spec.a_dtype, spec.b_dtype):
        depth = OPERAND_FORMATS[dtype].depth
        if spec.k % depth:
            rule = f"k must be a multiple of the {depth} elements that share a scale"
            raise OptionError(f"spec: {rule} in {dtype}, got {spec.k}; pad K")
    for name, major in (("a", spec.a_major), ("b", spec.b_major)):
        dtype = getattr(spec, f"{name}_dtype")
        bits = DTYPES[element_of(dtype)].bits
        if bits < 8 and major != "k":
            rule = f"{name}_major must be 'k' for {dtype}, whose elements share bytes"
            raise OptionError(f"spec: {rule}, got {major!r}; transpose it before the kernel")
        if spec.k * bits % 8:
            raise OptionError(f"spec: k must be whole bytes of {dtype}, got {spec.k}; pad K")


def _check_blockwise(spec: Problem) -> None:
    """Scales in f32 of 128 elements of K come with both operands of one product."""
    for name in ("a_scales", "b_scales"):
        _check_choice(spec, name, ("", *BLOCKWISE_FORMS))
    _check_choice(spec, "sums", ("", TWO_LEVEL))
    forms = spec.a_scales, spec.b_scales
    if (any(forms) and BLOCKWISE_FORMS[0] not in forms) or bool(forms[0]) != bool(forms[1]):
        rule = "a_scales and b_scales must be 1x128 or 128x128, one of them 1x128, or both left out"
        raise OptionError(f"spec: {rule}, got {forms[0] or 'none'} and {forms[1] or 'none'}")
    what = "scales of 128 elements" if any(forms) else "two-level sums"
    wanted = {"is_scaled": False, "dynamic_m": False, "acc_dtype": "f32"}
    wanted |= {"products": 1} if any(forms) else {}
    for name, value in wanted.items() if spec.adds_products else ():
        if getattr(spec, name) != value:
            rule = f"{what} must come with {name.removeprefix('is_')} = {value!r}"
            raise OptionError(f"spec: {rule}, got {getattr(spec, name)!r}; leave one of them out")
    if spec.adds_products and DTYPES[element_of(spec.a_dtype)].operand_kind == FMA:
        rule = f"{what} must be of what tensor cores multiply"
        raise OptionError(f"spec: {rule}, got {spec.a_dtype}; take tf32")


def _check_memory(spec: Problem) -> None:
    """Rows of at least their elements, and matrices that do not share any."""
    for name, stored in spec.stored().items():
        leading, step = getattr(spec, f"ld{name}"), getattr(spec, f"stride_{name}")
        *stack, rows, columns = stored.shape
        if type(leading) is not int or (leading and leading < columns):
            rule = f"ld{name} must be 0, or at least the {columns} elements of a row"
            raise OptionError(f"spec: {rule}, got {leading!r}")
        if type(step) is not int or (step and not (stack and stored.is_non_overlapping)):
            rule = f"stride_{name} must be 0, or keep {rows}x{columns} matrices apart"
            raise OptionError(f"spec: {rule}, got {step!r}")
        apart = spec.is_scaled or spec.is_blockwise or spec.groups
        if apart and not stored.is_dense:
            what = "groups" if spec.groups else "operands with block scales"
            rule = f"ld{name} and stride_{name} must be 0 for {what}"
            raise OptionError(f"spec: {rule}, got {leading}; copy it before the kernel")


def _check_bytes(spec: Problem) -> None:
    for name, stored in spec.stored().items():
        dtype = element_of(getattr(spec, f"{name}_dtype"))
        extents = stored.shape if stored.is_dense else stored.spanned
        reason = size_refusal(extents, DTYPES[dtype].bytes)
        if reason:
            raise OptionError(f"spec: {name} {reason}; multiply in parts")


def _check_types(spec: Problem) -> None:
    """What an MMA takes together, and what it gives."""
    a, b = (DTYPES[element_of(dtype)] for dtype in (spec.a_dtype, spec.b_dtype))
    if {spec.a_dtype, spec.b_dtype} & OPERAND_FORMATS.keys():
        mixed = scaled_mix_refusal(spec.a_dtype, spec.b_dtype)
    elif spec.has_weights:
        mixed = None  # which threads widen
    else:
        mixed = mix_refusal(a, b)
    if mixed:
        raise OptionError(f"spec: a_dtype and b_dtype {mixed}")
    if spec.acc_dtype != a.accumulator:
        raise OptionError(
            f"spec: acc_dtype must be {a.accumulator} for {a.name}, got {spec.acc_dtype}"
        )
    for name, dtype in (("c_dtype", spec.outputs[0]), *(("further", e) for e in spec.further)):
        result = output_refusal(spec.acc_dtype, dtype)
        if result:
            raise OptionError(f"spec: {name} {result}")


def _check_further(spec: Problem) -> None:
    """Types of C, and how many elements of its row one of theirs is made of."""
    _check_types_of(spec, "further", OUTPUT_DTYPES)
    if type(spec.neighbours) is not int or not 0 <= spec.neighbours <= EXTENT_MAX:
        got = f"{spec.neighbours!r}"
        raise OptionError(f"spec: neighbours must be an int, 0 to {EXTENT_MAX}, got {got}")
    if len(spec.further) > FURTHER_MAX:
        got = len(spec.further)
        raise OptionError(f"spec: further must be at most {FURTHER_MAX} outputs, got {got}")


def _check_types_of(spec: Problem, name: str, known: tuple[str, ...]) -> None:
    """A tuple of types; of a manifest, in whose JSON it is a list, one is made."""
    value = getattr(spec, name)
    if not isinstance(value, tuple | list):
        raise OptionError(f"spec: {name} must be a tuple of types, got {value!r}")
    unknown = [each for each in value if each not in known]
    if unknown:
        raise OptionError(f"spec: {name} must be of {', '.join(known)}, got {unknown[0]!r}")
    object.__setattr__(spec, name, tuple(value))


def _check_choice(spec: Problem, name: str, choices: tuple[str, ...]) -> None:
    value = getattr(spec, name)
    if value in choices:
        return
    known = [each for each in choices if each]
    several = "one of " if len(known) > 1 else ""
    cure = ", or left out" if "" in choices else ""
    raise OptionError(f"spec: {name} must be {several}{', '.join(known)}{cure}, got {value!r}")
