"""Every scalar op that the reference evaluates, beside Python's own arithmetic."""

import math

import ml_dtypes
import numpy as np
import pytest

from tilewright.dialects.errors import CompileError
from tilewright.runtime.judge.intervals import FLOAT_OPERATIONS
from tilewright.tools.oracle import rounding
from tilewright.tools.oracle.integers import INTEGER_OPS
from tilewright.tools.oracle.interpreter import Source
from tilewright.tools.oracle.scalars import FLOAT_PREDICATES, OTHER_OPS

INF, NAN = math.inf, math.nan
POINTS = [0.0, -0.0, 1.0, -1.5, 3.25, -300.0, 2.0**-130, 2.0**127, INF, -INF, NAN]


def evaluated(lines, arguments, types, result):
    """`lines` on vectors of one length, whose last value is %r."""
    size = len(arguments[0])
    names = ", ".join(f"%{name}: tensor<{size}x{type_}>" for name, type_ in types.items())
    text = f"func.func @f({names}) -> tensor<{size}x{result}> {{\n"
    text += "\n".join(lines).replace("$", f"tensor<{size}x")
    text += f"\nreturn %r : tensor<{size}x{result}>\n}}"
    given = [np.asarray(a, np.int64 if type_[0] == "i" else float)
             for a, type_ in zip(arguments, types.values(), strict=True)]  # fmt: skip
    return Source(text, "f.mlir").evaluate(given)


def assert_holds(interval, values):
    """The middle is the value to 1e-12, and the limits hold it; NaN is NaN."""
    values = np.array(values, float)
    assert np.array_equal(np.isnan(values), np.isnan(interval.middle))
    assert np.allclose(interval.middle, values, rtol=1e-12, atol=0, equal_nan=True)
    inside = (interval.low <= values) & (values <= interval.high)
    assert (inside | (np.isnan(values) & interval.nan)).all()


def larger(x, y):
    """IEEE 754-2019 maximum: NaN wins, and +0 is above -0."""
    if math.isnan(x) or math.isnan(y):
        return NAN
    return max(x, y, key=lambda v: (v, math.copysign(1, v)))


def quotient(x, y):
    with np.errstate(all="ignore"):
        return float(np.float64(x) / np.float64(y))


def or_other(function):
    """maxnum and minnum: a NaN gives the other operand."""
    return lambda x, y: y if math.isnan(x) else x if math.isnan(y) else function(x, y)


def logarithm(name):
    least = -1 if name == "math.log1p" else 0
    function = getattr(math, name.removeprefix("math."))
    return lambda x: NAN if math.isnan(x) or x < least else -INF if x == least else function(x)


def whole(function):
    return lambda x: x if not math.isfinite(x) else math.copysign(function(x), x)


BINARY = {
    "arith.addf": lambda x, y: x + y,
    "arith.subf": lambda x, y: x - y,
    "arith.mulf": lambda x, y: x * y,
    "arith.divf": quotient,
    "arith.maximumf": larger,
    "arith.minimumf": lambda x, y: -larger(-x, -y),
    "arith.maxnumf": or_other(max),
    "arith.minnumf": or_other(min),
}
UNARY = {
    "arith.negf": lambda x: -x,
    "math.absf": abs,
    "math.erf": math.erf,
    "math.exp": lambda x: float(np.exp(x)),
    "math.exp2": lambda x: float(np.exp2(x)),
    "math.tanh": math.tanh,
    "math.sqrt": lambda x: NAN if x < 0 else math.sqrt(x),
    "math.rsqrt": lambda x: math.copysign(INF, x) if x == 0 else NAN if x < 0 else 1 / math.sqrt(x),
    **{name: logarithm(name) for name in ("math.log", "math.log10", "math.log1p", "math.log2")},
    "math.cos": lambda x: math.cos(x) if math.isfinite(x) else NAN,
    "math.sin": lambda x: math.sin(x) if math.isfinite(x) else NAN,
    "math.ceil": whole(math.ceil),
    "math.floor": whole(math.floor),
    "math.round": whole(lambda x: math.copysign(math.floor(abs(x) + 0.5), x)),
    "math.roundeven": whole(round),
    "math.trunc": whole(math.trunc),
}


def in_float32(value):
    """Infinite from where float32 ends."""
    return math.copysign(INF, value) if abs(value) >= 2.0**128 - 2.0**103 else value


@pytest.mark.parametrize("name", BINARY)
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_binary_float_ops_are_pythons(name):
    pairs = [(x, y) for x in POINTS for y in POINTS]
    found = evaluated([f"%r = {name} %x, %y : $f32>"], list(zip(*pairs, strict=True)),
                      {"x": "f32", "y": "f32"}, "f32")  # fmt: skip
    assert_holds(found, [in_float32(BINARY[name](x, y)) for x, y in pairs])


@pytest.mark.parametrize("name", UNARY)
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_unary_float_ops_are_pythons(name):
    points = [*POINTS, -1.0, -0.5, -(2.0**-130), 0.5]
    found = evaluated([f"%r = {name} %x : $f32>"], [points], {"x": "f32"}, "f32")
    wanted = [in_float32(UNARY[name](x)) for x in points]
    assert_holds(found, wanted)
    assert np.array_equal(found.nan, np.isnan(wanted)), "NaN is allowed where it is right alone"


def test_every_float_op_is_in_a_test():
    assert set(FLOAT_OPERATIONS) == {*BINARY, *UNARY, "math.fma"}
    assert set(INTEGER_OPS) == set(INTEGERS)
    assert set(OTHER_OPS) == {
        *("arith.constant", "arith.truncf", "arith.extf", "arith.cmpf", "arith.cmpi"),
        *("arith.select", "arith.andi", "arith.ori", "arith.xori", "arith.sitofp", "arith.uitofp"),
        *("arith.extsi", "arith.extui", "arith.trunci", "math.fpowi", "math.powf"),
    }


def test_fma_is_a_product_and_a_sum():
    found = evaluated(["%r = math.fma %x, %x, %y : $f32>"], [[2.0, INF, 3.0], [1.0, -INF, NAN]],
                      {"x": "f32", "y": "f32"}, "f32")  # fmt: skip
    assert_holds(found, [5.0, NAN, NAN])


@pytest.mark.parametrize("predicate", FLOAT_PREDICATES)
def test_predicates_select_as_python_would(predicate):
    pairs = [(x, y) for x in (1.0, 2.0, NAN) for y in (1.0, 2.0, NAN)]
    lines = [f"%c = arith.cmpf {predicate}, %x, %y : $f32>",
             "%r = arith.select %c, %x, %y : $i1>, $f32>"]  # fmt: skip
    found = evaluated(lines, list(zip(*pairs, strict=True)), {"x": "f32", "y": "f32"}, "f32")
    relations = {"eq": "==", "gt": ">", "ge": ">=", "lt": "<", "le": "<=", "ne": "!="}

    def holds(x, y):
        unordered = math.isnan(x) or math.isnan(y)
        if predicate in ("true", "false"):
            return predicate == "true"
        if predicate in ("ord", "uno"):
            return unordered == (predicate == "uno")
        if unordered:
            return predicate[0] == "u"
        return eval(f"{x} {relations[predicate[1:]]} {y}")

    assert_holds(found, [x if holds(x, y) else y for x, y in pairs])


def two(function):
    return lambda x, y: function(x % 2**16, y % 2**16)


INTEGERS = {
    "arith.addi": lambda x, y: x + y,
    "arith.subi": lambda x, y: x - y,
    "arith.muli": lambda x, y: x * y,
    "arith.maxsi": max,
    "arith.minsi": min,
    "arith.maxui": two(max),
    "arith.minui": two(min),
    "arith.shli": lambda x, y: x << (y % 16),
    "arith.shrsi": lambda x, y: x >> (y % 16),
    "arith.shrui": lambda x, y: (x % 2**16) >> (y % 16),
    "math.absi": lambda x, y: abs(x),
}
BITWISE = {
    "arith.andi": lambda x, y: x & y,
    "arith.ori": lambda x, y: x | y,
    "arith.xori": lambda x, y: x ^ y,
}


@pytest.mark.parametrize("name", {**INTEGERS, **BITWISE})
def test_integer_ops_wrap_as_16_bits_do(name):
    numbers = [0, 1, -1, 5, 300, -300, 32767, -32768]
    pairs = [(x, y) for x in numbers for y in numbers]
    if name.startswith("arith.sh"):
        pairs = [(x, y % 16) for x, y in pairs]
    operands = "%x" if name == "math.absi" else "%x, %y"
    found = evaluated([f"%r = {name} {operands} : $i16>"], list(zip(*pairs, strict=True)),
                      {"x": "i16", "y": "i16"}, "i16")  # fmt: skip
    formula = {**INTEGERS, **BITWISE}[name]
    assert_holds(found, [(formula(x, y) + 2**15) % 2**16 - 2**15 for x, y in pairs])


@pytest.mark.parametrize(
    ("lines", "formula"),
    [
        (["%r = arith.extui %x : $i8> to $i32>"], lambda x: x % 256),
        (["%r = arith.extsi %x : $i8> to $i32>"], lambda x: x),
        (["%h = arith.extsi %x : $i8> to $i16>", "%r = arith.extui %h : $i16> to $i32>"],
         lambda x: x % 65536),
        (["%h = arith.extui %x : $i8> to $i16>", "%r = arith.extsi %h : $i16> to $i32>"],
         lambda x: x % 256),
        (["%h = arith.extsi %x : $i8> to $i32>", "%s = arith.muli %h, %h : $i32>",
          "%t = arith.trunci %s : $i32> to $i8>", "%r = arith.extsi %t : $i8> to $i32>"],
         lambda x: (x * x + 128) % 256 - 128),
    ],
    ids=["zext", "sext", "sext-zext", "zext-sext", "truncated"],
)  # fmt: skip
def test_casts_of_integers_are_those_of_their_bits(lines, formula):
    numbers = list(range(-128, 128))
    assert_holds(evaluated(lines, [numbers], {"x": "i8"}, "i32"), [formula(x) for x in numbers])


def test_unsigned_comparisons_read_the_bits():
    lines = [
        "%h = arith.extsi %x : $i8> to $i32>",
        "%g = arith.extui %y : $i8> to $i32>",
        "%c = arith.cmpi ult, %x, %y : $i8>",
        "%r = arith.select %c, %h, %g : $i1>, $i32>",
    ]
    numbers = list(range(-128, 128, 7))
    pairs = list(zip(numbers, numbers[::-1], strict=True))
    found = evaluated(lines, [numbers, numbers[::-1]], {"x": "i8", "y": "i8"}, "i32")
    assert_holds(found, [x if x % 256 < y % 256 else y % 256 for x, y in pairs])


def test_truths_are_exclusive_or_where_both_are_known():
    lines = [
        "%c = arith.cmpf ogt, %x, %z : $f32>",
        "%d = arith.cmpf ogt, %y, %z : $f32>",
        "%e = arith.xori %c, %d : $i1>",
        "%r = arith.select %e, %x, %y : $i1>, $f32>",
    ]
    xs, ys, zs = [1.0, 1.0, -1.0, -1.0], [2.0, -2.0, 2.0, -2.0], [0.0] * 4
    found = evaluated(lines, [xs, ys, zs], {"x": "f32", "y": "f32", "z": "f32"}, "f32")
    assert_holds(found, [2.0, 1.0, -1.0, -2.0])
    assert np.array_equal(found.low, found.high)


@pytest.mark.parametrize("by", [-1, 16])
def test_shifts_by_the_width_or_less_than_nothing_have_no_value(by):
    with pytest.raises(CompileError, match="shift beyond the width"):
        evaluated(["%r = arith.shli %x, %y : $i16>"], [[1], [by]], {"x": "i16", "y": "i16"}, "i16")


def test_integers_of_64_bits_are_not_read_without_a_sign():
    lines = ["%r = arith.maxui %x, %y : $i64>"]
    with pytest.raises(CompileError, match="unsigned integer of 64 bits"):
        evaluated(lines, [[1], [2]], {"x": "i64", "y": "i64"}, "i64")


def test_a_sum_of_narrow_floats_may_be_rounded_or_keep_its_digits():
    """Until it is stored. Between 1 and 1.0078125 there is no bf16."""
    each = "affine_map<(i) -> (i)>"
    found = evaluated(
        [
            "%e = tensor.empty() : $f32>",
            f"%r = linalg.generic {{indexing_maps = [{each}, {each}, {each}],",
            '  iterator_types = ["parallel"]} ins(%x, %y : $bf16>, $bf16>) outs(%e : $f32>) {',
            "  ^bb0(%p: bf16, %q: bf16, %o: f32):",
            "    %s = arith.addf %p, %q : bf16",
            "    %w = arith.extf %s : bf16 to f32",
            "    linalg.yield %w : f32 } -> $f32>",
        ],
        [[1.0], [2.0**-9]],
        {"x": "bf16", "y": "bf16"},
        "f32",
    )
    assert found.low[0] == 1.0
    assert 1 + 2.0**-9 <= found.high[0] < 1 + 2.0**-8


@pytest.mark.parametrize(("name", "offset"), [("sitofp", 0), ("uitofp", 2**32)])
def test_integers_become_floats_with_or_without_a_sign(name, offset):
    numbers = [0, 1, -1, 2**24 + 1, -(2**31)]
    found = evaluated([f"%r = arith.{name} %x : $i32> to $f32>"], [numbers], {"x": "i32"}, "f32")
    assert_holds(found, [x + offset if x < 0 else x for x in numbers])


def test_powers_are_products():
    lines = ["%n = arith.constant dense<3> : $i32>", "%r = math.fpowi %x, %n : $f32>, $i32>"]
    numbers = [-2.0, 0.5, 0.0, INF, NAN]
    assert_holds(evaluated(lines, [numbers], {"x": "f32"}, "f32"), [x**3 for x in numbers])


@pytest.mark.parametrize("name", ["f16", "bf16", "f32"])
def test_rounding_to_nearest_is_that_of_ml_dtypes(name):
    generator = np.random.default_rng(0)
    bits = generator.integers(0, 2**32, 20000, dtype=np.uint32).view(np.float32)
    bits = np.nan_to_num(bits, nan=1.0).astype(float)
    exponents = generator.integers(-30, 17, 20000)
    scaled = bits if name == "bf16" else generator.standard_normal(20000) * 2.0**exponents
    values = np.concatenate([scaled, POINTS, [65504.0, 65519.9, 65520.0, 3.4e38, 2.0**-25]])
    dtype = {"f16": np.float16, "bf16": ml_dtypes.bfloat16, "f32": np.float32}[name]
    with np.errstate(all="ignore"):
        wanted = values.astype(dtype).astype(float)
    assert np.array_equal(rounding.round_to(values, name), wanted, equal_nan=True)


@pytest.mark.parametrize(
    ("mode", "wanted"),
    [
        (rounding.NEAREST_EVEN, [1.0, 1 + 2**-6, -1.0, INF, 2.0**-133]),
        (rounding.DOWNWARD, [1.0, 1 + 2**-7, -1 - 2**-7, 2.0**128 - 2.0**120, 2.0**-133]),
        (rounding.UPWARD, [1 + 2**-7, 1 + 2**-6, -1.0, INF, 2.0**-132]),
        (rounding.TOWARD_ZERO, [1.0, 1 + 2**-7, -1.0, 2.0**128 - 2.0**120, 2.0**-133]),
        (rounding.NEAREST_AWAY, [1 + 2**-7, 1 + 2**-6, -1 - 2**-7, INF, 2.0**-133]),
    ],
)
def test_every_rounding_mode_is_that_of_ieee_754(mode, wanted):
    values = [1 + 2**-8, 1 + 3 * 2**-8, -1 - 2**-8, 2.0**128 - 1, 2.0**-133 * 1.25]
    assert rounding.round_to(np.array(values), "bf16", mode).tolist() == wanted
