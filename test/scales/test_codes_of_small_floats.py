"""Every code of every small type, both ways, and the packed streams of them."""

import numpy as np
import pytest
import torch

from tilewright.runtime.scales.codes import decode, encode, pack, unpack
from tilewright.runtime.scales.formats import ELEMENTS, ScaleError

FIELDS = {"e4m3": (4, 3, 7), "e5m2": (5, 2, 15), "e2m3": (2, 3, 1), "e3m2": (3, 2, 3),
          "e2m1": (2, 1, 1)}  # fmt: skip
"""Exponent bits, mantissa bits and bias of each type (OCP 8-bit FP §4, Microscaling §5.3)."""


def value_of(code, name):
    """By the fields of the code."""
    exponents, mantissas, bias = FIELDS[name]
    sign, field = code >> exponents + mantissas & 1, code >> mantissas & (1 << exponents) - 1
    part = code & (1 << mantissas) - 1
    if name == "e5m2" and field == 31:
        return float("nan") if part else (-1) ** sign * float("inf")
    if name == "e4m3" and field == 15 and part == 7:
        return float("nan")
    whole = part / 2**mantissas + (field > 0)
    return (-1.0) ** sign * 2.0 ** (max(field, 1) - bias) * whole


def codes_of(name):
    return np.arange(1 << ELEMENTS[name].bits, dtype=np.uint8)


@pytest.mark.parametrize("name", FIELDS)
def test_every_code_is_the_number_that_its_fields_say(name):
    expected = [value_of(int(code), name) for code in codes_of(name)]
    np.testing.assert_array_equal(decode(codes_of(name), ELEMENTS[name]), expected)


@pytest.mark.parametrize("name", FIELDS)
def test_numbers_go_to_the_nearest_code_and_from_the_middle_to_the_even_one(name):
    codes = [code for code in range(1 << ELEMENTS[name].bits - 1)
             if np.isfinite(value_of(code, name))]  # fmt: skip
    values = np.array([value_of(code, name) for code in codes])
    below, above = values[:-1], values[1:]
    middle = (below + above) / 2
    np.testing.assert_array_equal(encode(values, ELEMENTS[name]), codes)
    np.testing.assert_array_equal(encode(np.nextafter(middle, -1), ELEMENTS[name]), codes[:-1])
    np.testing.assert_array_equal(encode(np.nextafter(middle, 1e9), ELEMENTS[name]), codes[1:])
    even = [low if low % 2 == 0 else low + 1 for low in codes[:-1]]
    np.testing.assert_array_equal(encode(middle, ELEMENTS[name]), even)
    sign = 1 << ELEMENTS[name].bits - 1
    np.testing.assert_array_equal(encode(-middle, ELEMENTS[name]), np.array(even) | sign)


@pytest.mark.parametrize("name", FIELDS)
def test_what_is_too_large_becomes_the_largest_number(name):
    largest = max(value for code in codes_of(name).tolist()
                  if np.isfinite(value := value_of(code, name)))  # fmt: skip
    found = decode(encode(np.array([1e9, -1e9, np.inf]), ELEMENTS[name]), ELEMENTS[name])
    np.testing.assert_array_equal(found, [largest, -largest, largest])


@pytest.mark.parametrize(("name", "code"), [("e4m3", 127), ("e5m2", 127), ("e2m1", 0)])
def test_nan_keeps_its_kind_where_the_type_has_one(name, code):
    assert encode(np.array([np.nan]), ELEMENTS[name]).tolist() == [code]


@pytest.mark.parametrize("name", ["e4m3", "e5m2", "ue8m0"])
def test_torch_reads_every_code_alike(name):
    codes = np.arange(256, dtype=np.uint8)
    theirs = torch.from_numpy(codes).view(getattr(torch, ELEMENTS[name].torch))
    np.testing.assert_array_equal(decode(codes, ELEMENTS[name]), theirs.to(torch.float64).numpy())


@pytest.mark.parametrize("name", ["e4m3", "e5m2"])
def test_torch_rounds_alike(name):
    values = np.random.default_rng(3).standard_normal(5000).astype(np.float32) * 20
    theirs = torch.from_numpy(values).to(getattr(torch, ELEMENTS[name].torch)).view(torch.uint8)
    np.testing.assert_array_equal(encode(values, ELEMENTS[name]), theirs.numpy())


def test_a_scale_of_ue8m0_is_a_power_of_two_and_255_is_nan():
    values = decode(np.arange(256, dtype=np.uint8), ELEMENTS["ue8m0"])
    np.testing.assert_array_equal(values[:255], [2.0 ** (code - 127) for code in range(255)])
    assert np.isnan(values[255])


def test_a_scale_of_ue4m3_has_no_sign():
    codes = np.arange(128, dtype=np.uint8)
    expected = [value_of(int(code), "e4m3") for code in codes]
    np.testing.assert_array_equal(decode(codes, ELEMENTS["ue4m3"]), expected)
    np.testing.assert_array_equal(decode(codes | 128, ELEMENTS["ue4m3"]), expected)


@pytest.mark.parametrize("bits", [4, 6, 8])
def test_packed_codes_are_one_number_of_many_bits_and_come_back(bits):
    codes = np.random.default_rng(bits).integers(0, 1 << bits, (3, 32), np.uint8)
    packed = pack(codes, bits)
    whole = [sum(int(code) << bits * place for place, code in enumerate(row)) for row in codes]
    assert [row.tobytes() for row in packed] == [
        number.to_bytes(32 * bits // 8, "little") for number in whole
    ]
    np.testing.assert_array_equal(unpack(packed, bits), codes)


def test_the_even_element_of_four_bits_is_the_low_half():
    assert pack(np.array([[1, 2, 3, 4]], np.uint8), 4).tolist() == [[0x21, 0x43]]


def test_elements_that_fill_no_whole_bytes_are_refused():
    with pytest.raises(ScaleError) as caught:
        pack(np.zeros((2, 3), np.uint8), 6)
    assert str(caught.value) == (
        "scales: 6-bit elements must fill whole bytes along the last axis, got 3 of them"
    )
    with pytest.raises(ScaleError) as caught:
        unpack(np.zeros((2, 4), np.uint8), 6)
    assert str(caught.value) == (
        "scales: bytes along the last axis must hold whole 6-bit elements, got 4 bytes"
    )
