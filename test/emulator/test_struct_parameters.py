"""Structs as parameters by the offsets of their fields, and the names that tensor maps take."""

import re
from pathlib import Path

import numpy as np
import pytest

from tilewright.runtime.emulator import (
    GlobalArray,
    LaunchError,
    PointerArray,
    TensorMap,
    TensorMapArray,
    launch,
)
from tilewright.runtime.emulator.copies import tensor_map_types as tensor_types
from tilewright.runtime.emulator.machine import swizzle

SCALE = """
.version 8.8
.target sm_100a
.address_size 64

.visible .entry scale(.param .align 8 .b8 args[32])
{
  .reg .b32 %lane;
  .reg .b64 %from, %to, %place;
  .reg .f32 %value, %factor;
  ld.param.u64 %from, [args];
  ld.param.u64 %to, [args+8];
  ld.param.f32 %factor, [args+20];
  mov.u32 %lane, %tid.x;
  mul.wide.u32 %place, %lane, 4;
  add.u64 %from, %from, %place;
  add.u64 %to, %to, %place;
  ld.global.f32 %value, [%from];
  mul.f32 %value, %value, %factor;
  st.global.f32 [%to], %value;
  ret;
}
"""


def run(fields):
    launch(SCALE, "scale", grid=1, block=32, params=[fields])


def test_pointers_and_numbers_are_found_at_their_offsets():
    given, made = np.arange(32, dtype=np.float32), np.full(32, np.nan, np.float32)
    run({8: GlobalArray(made), 0: given, 20: np.float32(1.5), 24: b"\xff" * 8})
    np.testing.assert_array_equal(made, 1.5 * np.arange(32))


def test_one_array_in_two_fields_is_one_memory():
    values = np.arange(32, dtype=np.float32)
    run({0: values, 8: values, 20: np.float32(-2)})
    np.testing.assert_array_equal(values, -2.0 * np.arange(32))


ADD_UP = """
.version 8.8
.target sm_90a
.address_size 64

.visible .entry add_up(.param .u64 pointers, .param .u32 count)
{
  .reg .pred %null, %more;
  .reg .b32 %lane, %count;
  .reg .b64 %pointers, %place, %own;
  .reg .f32 %value, %sum;
  ld.param.u64 %pointers, [pointers];
  ld.param.u32 %count, [count];
  mov.u32 %lane, %tid.x;
  mul.wide.u32 %own, %lane, 4;
  mov.f32 %sum, 0f00000000;
NEXT:
  ld.global.u64 %place, [%pointers];
  setp.eq.u64 %null, %place, 0;
  @%null bra SKIP;
  add.u64 %place, %place, %own;
  ld.global.f32 %value, [%place];
  add.f32 %sum, %sum, %value;
  st.global.f32 [%place], %sum;
SKIP:
  add.u64 %pointers, %pointers, 8;
  sub.u32 %count, %count, 1;
  setp.ne.u32 %more, %count, 0;
  @%more bra NEXT;
  ret;
}
"""


def test_a_kernel_reads_pointers_from_global_memory():
    first, second = np.arange(32, dtype=np.float32), np.full(32, 2, np.float32)
    pointers = PointerArray([first, None, GlobalArray(second, offset=4), first])
    launch(ADD_UP, "add_up", grid=1, block=32, params=[pointers, 4])
    np.testing.assert_array_equal(second, np.arange(32) + 2)
    np.testing.assert_array_equal(first, 2 * np.arange(32) + 2)


def test_what_is_no_pointer_is_named():
    with pytest.raises(LaunchError) as caught:
        launch(ADD_UP, "add_up", grid=1, block=32, params=[PointerArray([3]), 1])
    rule = "must be a numpy array, a GlobalArray or None, got int"
    assert str(caught.value) == f"parameter 0 (pointers), pointer 0: {rule}"


@pytest.mark.parametrize("kind", [PointerArray, TensorMapArray])
def test_what_is_no_list_of_pointers_or_maps_is_named(kind):
    with pytest.raises(LaunchError) as caught:
        launch(ADD_UP, "add_up", grid=1, block=32, params=[kind(3), 1])
    rule = f"{kind.__name__} must be of a list, got int"
    assert str(caught.value) == f"parameter 0 (pointers): {rule}"


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({0: 3}, "a number of numpy's, which has a width, got int; as np.int32(3)"),
        ({-1: b""}, "a field's offset must be an integer from 0, got -1"),
        ({"a": b""}, "a field's offset must be an integer from 0, got 'a'"),
        ({True: b""}, "a field's offset must be an integer from 0, got True"),
        ({0: b"12345", 4: b"6"}, "a field of 1 bytes must lie in 5..32, got one at 4"),
        ({28: np.zeros(2)}, "a field of 8 bytes must lie in 0..32, got one at 28"),
        ({0: None}, "got NoneType"),
    ],
)
def test_fields_that_do_not_fit_are_named(fields, message):
    with pytest.raises(LaunchError) as caught:
        run(fields)
    assert str(caught.value).startswith("parameter 0 (args)") and message in str(caught.value)


def test_tensor_maps_in_a_struct_lie_where_the_hardware_reads_them():
    text = SCALE.replace("args[32]", "args[192]").replace(".align 8", ".align 64")
    made = TensorMap(np.zeros((16, 16), np.float32), "f32", [16, 16], [64], [16, 16])
    values = np.ones(32, np.float32)
    fields = {0: values, 8: values, 20: np.float32(1), 24: TensorMapArray([made])}
    launch(text, "scale", grid=1, block=32, params=[{**fields, 64: made}])
    with pytest.raises(
        LaunchError, match="a TensorMap must lie at a multiple of 64, got offset 32"
    ):
        launch(text, "scale", grid=1, block=32, params=[{**fields, 32: made}])


def test_the_page_has_every_name_and_number_of_a_tensor_map():
    text = (Path(__file__).parent.parent.parent / "docs/emulator-reference.md").read_text()
    (types,) = re.findall(r"^\| `dtype` \(CUtensorMapDataType\) \| (.*) \|$", text, re.MULTILINE)
    expected = [(kind.name, str(kind.number)) for kind in tensor_types._TYPES]
    assert re.findall(r"`(\w+)` (\d+)", types) == expected
    (aliases,) = re.findall(r"^\| also as \| (.*) \|$", text, re.MULTILINE)
    assert dict(re.findall(r"`(\w+)` = `(\w+)`", aliases)) == tensor_types._ALIASES
    (modes,) = re.findall(r"^\| `swizzle` \| (`none` 0.*) \|$", text, re.MULTILINE)
    assert re.findall(r"`(\w+)` (\d)", modes) == [
        (mode.name, str(number)) for number, mode in enumerate(swizzle.MODES)
    ]
