"""The judge of numbers: right values pass, values a little outside the bound do not."""

import math

import ml_dtypes
import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from tilewright.runtime import DeviceError
from tilewright.runtime.judge.double_sums import double_sums
from tilewright.runtime.judge.epilogue import OPERATIONS, evaluate, round_to
from tilewright.runtime.judge.intervals import Interval, rounded
from tilewright.runtime.judge.reference import compare, expected_output, half_ulp, to_float64
from tilewright.runtime.judge.sums import accumulator_interval

M, N, K = 6, 4, 16


def test_sums_of_doubles_keep_what_each_step_rounds_away():
    a = np.array([[2.0**53, 1.0, -(2.0**53), 2.0**-30, 3.0]])
    assert double_sums(a, np.ones((1, 5))).middle == 4 + 2.0**-30


@pytest.fixture
def inputs():
    generator = np.random.default_rng(7)
    a = generator.standard_normal((M, K)).astype(ml_dtypes.bfloat16)
    b = generator.standard_normal((K, N)).astype(ml_dtypes.bfloat16).T
    return {"a": a, "b": b}


def by_hand(inputs) -> np.ndarray:
    """The product element by element, in Python integers of 2^-40."""
    a, b = (inputs[name].astype(np.float64) for name in ("a", "b"))
    return np.array(
        [[sum(float(x) * float(y) for x, y in zip(r, s, strict=True)) for s in b] for r in a]
    )


def program(*operations, arguments=(), result=None):
    every = [{"tensor": None, "axes": ["m", "n"]}, *arguments]
    steps = [
        {"name": name, "operands": list(operands), "attributes": attributes}
        for name, operands, attributes in operations
    ]
    last = len(every) + len(steps) - 1 if result is None else result
    return {"arguments": every, "operations": steps, "result": last}


def exact(values):
    return Interval.exactly(np.array(values, np.float64))


def test_expected_is_the_product_of_a_and_b_transposed(manifest, inputs):
    expected = expected_output(manifest, inputs)
    assert np.allclose(expected.middle, by_hand(inputs), rtol=1e-14, atol=0)
    assert (expected.low < expected.middle).all()
    assert (expected.middle < expected.high).all()


def test_the_bound_is_k_half_ulps_of_the_absolute_product(inputs):
    a, b = (inputs[name].astype(np.float64) for name in ("a", "b"))
    interval = accumulator_interval(a, b)
    bound = K * 2.0**-24 * (np.abs(a) @ np.abs(b).T)
    assert np.allclose(interval.high - interval.middle, bound, rtol=1e-5)


@pytest.mark.parametrize("order", ["forward", "backward", "pairs"])
def test_float32_sums_in_any_order_pass(order, manifest, inputs):
    a, b = (inputs[name].astype(np.float32) for name in ("a", "b"))
    products = a[:, None, :] * b[None, :, :]
    if order == "backward":
        products = products[..., ::-1]
    if order == "pairs":
        products = products[..., 0::2] + products[..., 1::2]
    total = np.zeros((M, N), np.float32)
    for k in range(products.shape[-1]):
        total += products[..., k]
    assert compare(expected_output(manifest, inputs), total.astype(np.float64)).passed


def test_one_element_just_outside_its_limits_fails_and_is_named(manifest, inputs):
    expected = expected_output(manifest, inputs)
    actual = expected.middle.copy()
    actual[4, 1] = np.nextafter(np.float32(expected.high[4, 1]), np.float32(np.inf))
    comparison = compare(expected, actual)
    assert not comparison.passed
    assert (comparison.mismatches, comparison.index) == (1, (4, 1))
    assert comparison.largest_error > comparison.bound > 0
    assert comparison.actual == actual[4, 1]


def test_a_missing_k_step_fails(manifest, inputs):
    short = {name: value.astype(np.float64) for name, value in inputs.items()}
    actual = short["a"][:, :15] @ short["b"][:, :15].T
    assert compare(expected_output(manifest, inputs), actual).mismatches == M * N


def test_poison_left_in_the_output_fails(manifest, inputs):
    expected = expected_output(manifest, inputs)
    actual = expected.middle.copy()
    actual[2, 3] = np.nan
    comparison = compare(expected, actual)
    assert (comparison.mismatches, comparison.index) == (1, (2, 3))
    assert comparison.largest_error == np.inf


@pytest.mark.parametrize(("dtype", "steps"), [("bf16", 2**-8), ("f16", 2**-11), ("f32", 2**-24)])
def test_rounding_to_the_output_dtype_is_allowed_and_not_much_more(dtype, steps, manifest, inputs):
    manifest["tensors"][2]["dtype"] = dtype
    expected = expected_output(manifest, inputs)
    right = compare(expected, round_to(expected.middle, dtype), dtype)
    assert right.passed
    assert 0 < right.largest_error <= right.bound
    wrong = round_to(expected.middle * (1 + 4 * steps + 1e-5), dtype)
    assert compare(expected, wrong, dtype).mismatches > M * N // 2


@pytest.mark.parametrize(
    ("value", "dtype", "expected"),
    [
        (1.0, "bf16", 2.0**-8),
        (-3.5, "bf16", 2.0**-7),
        (1.0, "f32", 2.0**-24),
        (65504.0, "f16", 16.0),
        (0.0, "f16", 2.0**-25),
        (2.0**-20, "f16", 2.0**-25),
    ],
)
def test_half_a_unit_in_the_last_place(value, dtype, expected):
    assert half_ulp(np.array(value), dtype) == expected


def test_nan_must_meet_nan_and_infinity_its_sign(manifest, inputs):
    a = inputs["a"].copy()
    a[1, 3], a[2, 0] = np.nan, np.inf
    bent = {**inputs, "a": a}
    expected = expected_output(manifest, bent)
    with np.errstate(invalid="ignore"):
        actual = a.astype(np.float64) @ inputs["b"].astype(np.float64).T
    assert np.isnan(actual[1]).all()
    assert np.isinf(actual[2]).all()
    assert compare(expected, actual).passed
    flipped = actual.copy()
    flipped[2, 1] *= -1
    assert compare(expected, flipped).index == (2, 1)
    assert not compare(expected, np.nan_to_num(actual)).passed


def test_overflow_to_infinity_is_allowed_where_float16_ends(manifest, inputs):
    manifest["tensors"][2]["dtype"] = "f16"
    manifest["epilogue"] = program(
        ("arith.constant", (), {"value": 1e9}), ("arith.mulf", (0, 1), {})
    )
    expected = expected_output(manifest, inputs)
    overflowed = np.copysign(np.inf, by_hand(inputs))
    assert compare(expected, overflowed).passed
    assert not compare(expected, -overflowed).passed


def test_bias_along_n_and_scale_along_m_meet_the_right_axis(manifest, inputs):
    bias = np.array([1.0, -20.0, 300.0, -4000.0], np.float32)
    scale = np.linspace(-2, 3, M).astype(np.float32)
    extra = {"role": "input", "dtype": "f32", "strides": [1]}
    manifest["tensors"] += [
        {"name": "bias", "shape": [N], **extra},
        {"name": "scale", "shape": [M], **extra},
    ]
    arguments = [{"tensor": "bias", "axes": ["n"]}, {"tensor": "scale", "axes": ["m"]}]
    manifest["epilogue"] = program(
        ("arith.addf", (0, 1), {}), ("arith.mulf", (3, 2), {}), arguments=arguments
    )
    expected = expected_output(manifest, {**inputs, "bias": bias, "scale": scale})
    by_loops = (by_hand(inputs) + bias[None, :]) * scale[:, None]
    assert np.allclose(expected.middle, by_loops, rtol=1e-12)
    assert compare(expected, by_loops).passed


def test_relu_written_as_compare_and_select_widens_only_around_zero():
    relu = program(
        ("arith.constant", (), {"value": 0.0}),
        ("arith.cmpf", (0, 1), {"predicate": "ogt"}),
        ("arith.select", (2, 0, 1), {}),
    )
    around = Interval(
        np.array([-3.0, -1.0, 1.0]), np.array([-2.0, 0.5, 2.0]), np.array([-1.0, 1.0, 3.0])
    )
    result = evaluate(relu, [around], {})
    assert result.low.tolist() == [0.0, -1.0, 1.0]
    assert result.middle.tolist() == [0.0, 0.5, 2.0]
    assert result.high.tolist() == [0.0, 1.0, 3.0]


@pytest.mark.parametrize(
    ("name", "numpy_function"),
    [
        ("arith.negf", np.negative),
        ("math.absf", np.abs),
        ("math.exp", np.exp),
        ("math.exp2", np.exp2),
        ("math.erf", np.vectorize(math.erf)),
        ("math.tanh", np.tanh),
        ("math.sqrt", np.sqrt),
        ("math.rsqrt", lambda x: 1 / np.sqrt(x)),
        ("math.log", np.log),
        ("math.log1p", np.log1p),
        ("math.floor", np.floor),
        ("math.roundeven", np.rint),
    ],
)
def test_unary_operations_contain_every_point(name, numpy_function):
    samples = np.linspace(0.25, 1.5, 101) if name in POSITIVE else np.linspace(-1.5, 1.0, 101)
    ends = Interval(samples.min(), np.median(samples), samples.max())
    result = evaluate(program((name, (0,), {})), [ends], {})
    images = numpy_function(samples)
    assert result.low <= images.min()
    assert images.max() <= result.high
    assert np.isclose(result.middle, numpy_function(np.median(samples)))
    assert result.high - result.low <= (images.max() - images.min()) * 1.01 + 1e-3


POSITIVE = ("math.sqrt", "math.rsqrt", "math.log", "math.log1p")
NUMBERS = st.floats(-1000, 1000, width=32)
TRIPLES = st.lists(NUMBERS, min_size=3, max_size=3).map(sorted)
BINARY = {
    "arith.addf": np.add,
    "arith.subf": np.subtract,
    "arith.mulf": np.multiply,
    "arith.divf": np.divide,
    "arith.maximumf": np.maximum,
    "arith.minnumf": np.fmin,
}


@settings(max_examples=100, deadline=None)
@given(a=TRIPLES, b=TRIPLES, name=st.sampled_from(sorted(BINARY)))
@example(a=[0.0, 0.0, 1.0], b=[0.0, -0.0, 0.0], name="arith.divf")
@example(a=[1.0, 1.0, 1.0], b=[0.0, -0.0, 2.0], name="arith.divf")
def test_binary_operations_contain_float32_results_of_every_pair(a, b, name):
    first, second = (Interval(*(np.array(x) for x in triple)) for triple in (a, b))
    with np.errstate(all="ignore"):
        result = rounded(name, OPERATIONS[name](first, second), first, second)
        pairs = np.float32(a)[:, None], np.float32(b)[None, :]
        points = BINARY[name](*pairs).astype(np.float64)
    outside = (points < result.low) | (points > result.high)
    assert not outside.any(), (points, result)


@pytest.mark.parametrize("predicate", ["oeq", "one", "olt", "ole", "ogt", "oge", "ueq", "ult"])
def test_comparisons_of_points_are_those_of_python(predicate):
    pairs = np.array([[1.0, 2.0], [2.0, 2.0], [3.0, 2.0], [np.nan, 2.0]])
    arguments = [{"tensor": "y", "axes": ["m", "n"]}]
    result = evaluate(
        program(("arith.cmpf", (0, 1), {"predicate": predicate}), arguments=arguments),
        [exact(pairs[:, 0])],
        {"y": pairs[:, 1]},
    )
    operator = {"eq": "==", "ne": "!=", "lt": "<", "le": "<=", "gt": ">", "ge": ">="}[predicate[1:]]
    wanted = [bool(eval(f"{x} {operator} {y}")) for x, y in pairs[:3]] + [predicate[0] == "u"]
    for part in result.parts():
        assert part.astype(bool).tolist() == wanted


def test_truncation_inside_an_epilogue_rounds_to_nearest_even():
    halves = [1 + 2**-8, 1 + 3 * 2**-8, -(1 + 2**-8)]
    result = evaluate(program(("arith.truncf", (0,), {"type": "bf16"})), [exact(halves)], {})
    assert result.low.tolist() == result.high.tolist() == [1.0, 1 + 2**-6, -1.0]
    assert result.middle.tolist() == halves


def test_truncating_before_or_at_the_store_is_the_same(manifest, inputs):
    manifest["tensors"][2]["dtype"] = "bf16"
    plain = expected_output(manifest, inputs)
    manifest["epilogue"] = program(("arith.truncf", (0,), {"type": "bf16"}))
    truncated = expected_output(manifest, inputs)
    for one, other in zip(plain.parts(), truncated.parts(), strict=True):
        assert np.array_equal(one, other)


def test_an_unknown_epilogue_operation_is_refused():
    with pytest.raises(DeviceError, match=r"must be one of .*, got math\.erfc"):
        evaluate(program(("math.erfc", (0,), {})), [exact([1.0])], {})


def test_bf16_bits_become_their_values():
    bits = np.array([0x3FC0, 0xC2F7, 0x0001], np.uint16)
    assert to_float64(bits, "bf16").tolist() == [1.5, -123.5, 2.0**-133]
