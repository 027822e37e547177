"""Tensors of 8 bits, tf32 and s32: bound as they lie, and judged by what their product is."""

import ml_dtypes
import numpy as np
import pytest
import torch

from tilewright.runtime import LaunchError
from tilewright.runtime.judge.reference import compare, expected_output, half_ulp, to_float64
from tilewright.runtime.judge.sums import SMALLEST_NORMALS, accumulator_interval, narrow_sums
from tilewright.runtime.operands.dlpack import read_array
from tilewright.runtime.operands.results import new_output
from tilewright.runtime.operands.tensors import bind_all

FLOATS = {"e4m3": ml_dtypes.float8_e4m3fn, "e5m2": ml_dtypes.float8_e5m2}


class Foreign:
    """An array of no library that is known, read through DLPack."""

    def __init__(self, tensor):
        self.tensor = tensor

    def __dlpack__(self, **keywords):
        return self.tensor.__dlpack__(**keywords)

    def __dlpack_device__(self):
        return self.tensor.__dlpack_device__()


def of(manifest, a, b, c="f32"):
    """The small manifest with other types."""
    for tensor, dtype in zip(manifest["tensors"], (a, b, c), strict=True):
        tensor["dtype"] = dtype
    return manifest


def bind(manifest, a):
    b, c = np.zeros((16, 4), np.int8).T, np.zeros((6, 4), np.float32)
    return bind_all(manifest, {"a": a, "b": b, "c": c})


@pytest.mark.parametrize("dtype", FLOATS)
def test_floats_of_a_byte_are_bound_from_torch_and_numpy_alike(manifest, dtype):
    numbers = np.random.default_rng(1).standard_normal((6, 16)).astype(FLOATS[dtype])
    of_torch = torch.from_numpy(numbers.view(np.uint8)).view(getattr(torch, numbers.dtype.name))
    manifest = of(manifest, dtype, "s8")
    expected = numbers.view(np.uint8).ravel().tolist()
    assert bind(manifest, numbers)["a"].memory.tolist() == expected
    assert bind(manifest, of_torch)["a"].memory.tolist() == expected


@pytest.mark.parametrize("signed", [True, False])
def test_bytes_are_taken_by_their_sign_only(manifest, signed):
    right, wrong = (torch.int8, torch.uint8) if signed else (torch.uint8, torch.int8)
    manifest = of(manifest, "s8" if signed else "u8", "s8")
    assert bind(manifest, torch.ones((6, 16), dtype=right))["a"].memory.dtype == np.uint8
    with pytest.raises(LaunchError) as refused:
        bind(manifest, torch.ones((6, 16), dtype=wrong))
    wanted = f"{right} or numpy {str(right).removeprefix('torch.')}"
    assert str(refused.value) == f"tensor 'a': must be {wanted}, got {wrong}"


def test_bytes_are_read_through_dlpack(manifest):
    numbers = torch.arange(96, dtype=torch.int8).reshape(6, 16)
    bound = bind(of(manifest, "s8", "s8"), Foreign(numbers.numpy()))
    assert bound["a"].memory.tolist() == list(range(96))


@pytest.mark.parametrize("name", ["float8_e4m3fn", "float8_e5m2"])
def test_floats_of_a_byte_have_their_names_in_dlpack(name):
    tensor = torch.zeros((2, 3), dtype=getattr(torch, name))
    try:
        found = read_array("a", Foreign(tensor))
    except LaunchError as error:
        pytest.skip(f"this torch exports no such type: {error}")
    assert found.dtype == name


@pytest.mark.parametrize(("dtype", "type_"), [("s32", np.int32), ("f32", np.float32)])
def test_a_new_output_has_the_declared_type(manifest, dtype, type_):
    declared = of(manifest, "s8", "s8", dtype)["tensors"][2]
    assert new_output(declared, np.zeros((6, 16), np.int8)).dtype == type_
    like = torch.zeros((6, 16), dtype=torch.int8)
    assert new_output(declared, like).numpy().dtype == type_


def test_sums_of_bytes_are_exact_and_wrap(manifest):
    generator = np.random.default_rng(2)
    a = generator.integers(0, 256, (6, 16)).astype(np.uint8)
    b = generator.integers(-128, 128, (16, 4)).astype(np.int8).T
    manifest = of(manifest, "u8", "s8", "s32")
    by_hand = np.array(
        [[sum(int(x) * int(y) for x, y in zip(r, s, strict=True)) for s in b] for r in a], float
    )
    expected = expected_output(manifest, {"a": a, "b": b})
    assert compare(expected, by_hand, "s32").passed
    by_hand[3, 2] += 1
    assert compare(expected, by_hand, "s32").index == (3, 2)
    assert (half_ulp(by_hand, "s32") == 0).all()


def test_integers_of_an_epilogue_wrap_at_32_bits(manifest):
    manifest = of(manifest, "s8", "s8", "s32")
    addend = {"name": "e0", "role": "input", "dtype": "s32", "shape": [4], "strides": [1]}
    manifest["tensors"].insert(2, addend)
    manifest["epilogue"] = {
        "arguments": [{"tensor": None, "axes": ["m", "n"]}, {"tensor": "e0", "axes": ["n"]}],
        "operations": [{"name": "arith.addi", "operands": [0, 1], "attributes": {"type": "s32"}}],
        "result": 2,
    }
    most = np.array([2**31 - 1, -(2**31), 0, 7], np.int32)
    ones = {"a": np.ones((6, 16), np.int8), "b": np.ones((16, 4), np.int8).T, "e0": most}
    expected = expected_output(manifest, ones)
    assert expected.middle[0].tolist() == [-(2**31) + 15, -(2**31) + 16, 16, 23]


def test_products_of_tf32_ignore_the_low_bits_of_operands(manifest):
    generator = np.random.default_rng(3)
    a = generator.standard_normal((6, 16)).astype(np.float32)
    b = generator.standard_normal((16, 4)).astype(np.float32).T
    cut = [(each.copy().view(np.uint32) >> 13 << 13).view(np.float32) for each in (a, b)]
    manifest = of(manifest, "tf32", "tf32")
    expected = expected_output(manifest, {"a": a, "b": b})
    assert compare(expected, cut[0].astype(float) @ cut[1].astype(float).T).passed
    assert not compare(expected, a.astype(float) @ b.astype(float).T).passed
    assert (to_float64(a, "tf32") == cut[0]).all()


def cut(values, unit):
    """Values without what is below a power of two, towards zero."""
    return np.trunc(values / unit) * unit


def exponents(values):
    """floor(log2 |value|) of numbers that aren't 0, far below all for those that are."""
    return np.where(values == 0, -1000, np.frexp(values)[1] - 1)


def hoppers_sum(a, b):
    """One element as Hopper's tensor core is known to sum it, 32 products at a time.

    They and the sum before are cut 13 bits below the largest, whose exponent is the sum of its
    factors', and so is the new sum.
    """
    total = 0.0
    for start in range(0, len(a), 32):
        x, y = a[start : start + 32], b[start : start + 32]
        terms = np.append(x * y, total)
        places = np.append(
            np.where(x * y == 0, -1000, exponents(x) + exponents(y)), exponents(total)
        )
        total = cut(terms, 2.0 ** (places.max() - 13)).sum()
        total = float(cut(total, 2.0 ** (exponents(total) - 13)))
    return total


@pytest.mark.parametrize("k", [1, 32, 100, 1000])
@pytest.mark.parametrize("dtype", FLOATS)
def test_hoppers_sums_of_floats_of_a_byte_lie_within_their_limits(dtype, k):
    generator = np.random.default_rng(k)
    a, b = (generator.standard_normal((8, k)).astype(FLOATS[dtype]).astype(float) for _ in "ab")
    limits = narrow_sums(a, b, *[SMALLEST_NORMALS[dtype]] * 2)
    actual = np.array([[hoppers_sum(x, y) for y in b] for x in a])
    assert compare(limits, actual).passed
    assert compare(limits, a @ b.T).passed


@pytest.mark.parametrize("dtype", FLOATS)
def test_limits_of_hoppers_sums_are_not_much_wider_than_its_errors(dtype):
    generator = np.random.default_rng(9)
    a, b = (generator.standard_normal((8, 100)).astype(FLOATS[dtype]).astype(float) for _ in "ab")
    limits = narrow_sums(a, b, *[SMALLEST_NORMALS[dtype]] * 2)
    actual = np.array([[hoppers_sum(x, y) for y in b] for x in a])
    assert not compare(accumulator_interval(a, b), actual).passed
    assert compare(limits, actual + 1).mismatches == 64


def test_only_a_hopper_gpu_sums_floats_of_a_byte_so(manifest):
    generator = np.random.default_rng(5)
    a = generator.standard_normal((6, 16)).astype(ml_dtypes.float8_e4m3fn)
    b = generator.standard_normal((16, 4)).astype(ml_dtypes.float8_e4m3fn).T
    manifest = of(manifest, "e4m3", "e4m3")
    inputs = {"a": a, "b": b}

    def width(on_gpu, target):
        found = expected_output({**manifest, "target": target}, inputs, on_gpu)
        return (found.high - found.low).max()

    assert width(True, "sm_90a") > 100 * width(False, "sm_90a") > 0
    assert width(True, "sm_100a") == width(False, "sm_100a") == width(False, "sm_90a")
