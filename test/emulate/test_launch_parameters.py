"""Parameters as the kernel reads them: pointers, tensor maps, numbers, bytes, structs."""

import struct

import numpy as np
import pytest

from tilewright.runtime.emulator import Trap

DUMP = """.visible .entry dump(.param .u64 out, .param .align {align} .b8 p[{size}]) {{
  .reg .b16 %h; .reg .b64 %rd0; ld.param.u64 %rd0, [out];
  {moves}
  ret; }}"""
SCALAR = """.visible .entry k(.param .u64 out, .param .{kind} p) {{
  .reg .b{bits} %v; .reg .b64 %rd0; ld.param.u64 %rd0, [out];
  ld.param.b{bits} %v, [p]; st.global.b{bits} [%rd0], %v; ret; }}"""
LOAD_BOX = """.shared .align 128 .b8 tile[128];
.shared .align 8 .b64 full;
.visible .entry load_box(.param .align 64 .b8 map[128], .param .u64 out) .reqntid 32 {
  .reg .pred %p, %q; .reg .b32 %r<6>; .reg .b64 %rd<4>;
  mov.b32 %r0, full; mov.b32 %r1, tile; mov.b64 %rd0, map; cvta.param.u64 %rd0, %rd0;
  ld.param.u64 %rd1, [out]; mov.u32 %r2, %tid.x; setp.eq.u32 %p, %r2, 0;
  @%p mbarrier.init.shared::cta.b64 [%r0], 1;
  @%p fence.proxy.async.shared::cta;
  bar.sync 0;
  @%p mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r0], 128;
  @%p cp.async.bulk.tensor.2d.shared::cta.global.mbarrier::complete_tx::bytes
        [%r1], [%rd0, {0, 1}], [%r0];
wait:
  mbarrier.try_wait.parity.shared::cta.b64 %q, [%r0], 0;
  @!%q bra wait;
  shl.b32 %r3, %r2, 2; add.u32 %r4, %r1, %r3; ld.shared.b32 %r5, [%r4];
  cvt.u64.u32 %rd2, %r3; add.u64 %rd1, %rd1, %rd2; st.global.b32 [%rd1], %r5;
  ret; }"""


def output(shape, dtype="u8", **fields):
    return {"name": "out", "role": "output", "dtype": dtype, "shape": list(shape), **fields}


@pytest.fixture
def dump(run, header):
    """dump(parameter, bytes, tensors, align, maps): the parameter's bytes."""

    def read(parameter, size, tensors=(), align=8, maps=()) -> bytes:
        moves = "\n".join(
            f"ld.param.u8 %h, [p+{i}]; st.global.u8 [%rd0+{i}], %h;" for i in range(size)
        )
        launch = {
            "entry": "dump",
            "grid": [1],
            "block": [1],
            "tensors": [output([size]), *tensors],
            "tensor_maps": list(maps),
            "parameters": [{"pointer": "out"}, parameter],
        }
        ptx = header + DUMP.format(size=size, moves=moves, align=align)
        return run(ptx, launch).outputs["out"].tobytes()

    return read


@pytest.mark.parametrize(
    ("kind", "value", "wanted"),
    [
        ("u8", 200, "c8"),
        ("s16", -2, "feff"),
        ("u32", 4_000_000_000, "00286bee"),
        ("s64", -1, "ffffffffffffffff"),
        ("f32", 0.5, "0000003f"),
        ("f32", "-inf", "000080ff"),
        ("f64", 3, "0000000000000840"),
        ("f16", 1, "003c"),
        ("bf16", 1, "803f"),
        ("e4m3", 1, "38"),
    ],
)
def test_a_scalar_has_the_bytes_of_its_type(kind, value, wanted, run, header):
    bits = len(wanted) * 4
    launch = {
        "entry": "k",
        "grid": [1],
        "block": [1],
        "tensors": [output([bits // 8])],
        "parameters": [{"pointer": "out"}, {"scalar": value, "type": kind}],
    }
    declared = f"b{bits}" if kind in ("bf16", "e4m3") else kind
    result = run(header + SCALAR.format(kind=declared, bits=bits), launch)
    assert result.outputs["out"].tobytes().hex() == wanted


def test_hexadecimal_digits_are_the_bytes_in_order(dump):
    assert dump({"hex": "00fF10a5"}, 4).hex() == "00ff10a5"


def test_a_struct_puts_fields_at_their_offsets_and_zeros_between(dump):
    fields = [
        {"at": 9, "hex": "abcd"},
        {"at": 0, "scalar": -2, "type": "s32"},
        {"at": 12, "scalar": 1.5, "type": "f16"},
    ]
    raw = dump({"struct": fields, "size_bytes": 16}, 16)
    assert raw.hex() == "feffffff" + "00" * 5 + "abcd" + "00" + "003e" + "0000"


def test_pointers_to_one_tensor_differ_by_their_offsets(dump):
    tensor = {
        "name": "a",
        "role": "input",
        "dtype": "f32",
        "shape": [64],
        "contents": {"constant": 0},
        "align": 4096,
        "offset_bytes": 48,
    }
    fields = [{"at": 0, "pointer": "a"}, {"at": 8, "pointer": "a", "offset_bytes": 20}]
    raw = dump({"struct": fields, "size_bytes": 16}, 16, [tensor])
    first, second = struct.unpack("<2Q", raw)
    assert first % 4096 == 48 and second - first == 20


def box_launch(tensor, tensor_map):
    return {
        "entry": "load_box",
        "grid": [1],
        "block": [32],
        "tensors": [output([8, 8], "f16"), tensor],
        "tensor_maps": [tensor_map],
        "parameters": [{"tensor_map": "m"}, {"pointer": "out"}],
    }


@pytest.mark.parametrize("dtype", [None, "bf16"])
def test_a_tensor_map_loads_its_box_and_fills_outside(dtype, run, header):
    tensor = {
        "name": "a",
        "role": "input",
        "dtype": "f16",
        "shape": [6, 8],
        "strides": [16, 1],
        "align": 512,
        "offset_bytes": 16,
        "contents": {"ramp": 1},
    }
    tensor_map = {
        "name": "m",
        "tensor": "a",
        "dims": [8, 5],
        "strides_bytes": [32],
        "box": [8, 8],
        "element_strides": [1, 1],
        "interleave": "none",
        "swizzle": "none",
        "l2_promotion": "128B",
        "oob_fill": "nan",
        "offset_bytes": 32,
    }
    if dtype:
        tensor_map["dtype"] = dtype
    result = run(header + LOAD_BOX, box_launch(tensor, tensor_map), seed=3)
    # The map begins at row 1 of the tensor, the box at row 1 of the map: rows 2 to 5, then fill.
    wanted = 1 + np.arange(16, 48).reshape(4, 8)
    out = result.outputs["out"]
    assert out.dtype == np.float16 and (out[:4] == wanted).all()
    assert np.isnan(out[4:]).all() and (out[4:].view(np.uint16) == 0x7FF7).all()


@pytest.mark.parametrize(("offset_bytes", "first"), [(0, 1), (-32, 0), (-64, None), (32, None)])
def test_a_map_may_describe_more_than_its_tensor_and_start_outside(
    offset_bytes, first, run, header
):
    """What a ragged map needs; the box takes eight rows from row 1 of the map on"""
    tensor = {"name": "a", "role": "input", "dtype": "f16", "shape": [9, 8], "strides": [16, 1],
              "contents": {"ramp": 1}}  # fmt: skip
    tensor_map = {"name": "m", "tensor": "a", "dims": [8, 2**32], "strides_bytes": [32],
                  "box": [8, 8], "offset_bytes": offset_bytes}  # fmt: skip
    if first is None:  # the copy itself leaves the tensor
        with pytest.raises(Trap, match="out-of-bounds"):
            run(header + LOAD_BOX, box_launch(tensor, tensor_map))
        return
    out = run(header + LOAD_BOX, box_launch(tensor, tensor_map)).outputs["out"]
    assert (out == 1 + np.arange(8 * first, 8 * first + 64).reshape(8, 8)).all()


def test_maps_in_global_memory_are_passed_by_their_address(run, header):
    tensors = [
        {"name": name, "role": "input", "dtype": "f16", "shape": [8, 8], "contents": {"ramp": at}}
        for name, at in (("a", 0), ("b", 100))
    ]
    maps = [
        {"name": f"map_{name}", "tensor": name, "dims": [8, 8], "strides_bytes": [16],
         "box": [8, 8]}
        for name in "ab"
    ]  # fmt: skip
    launch = box_launch(tensors[0], maps[0])
    launch["tensors"].append(tensors[1])
    launch["tensor_maps"] = maps
    launch["parameters"][0] = {"tensor_map_array": ["map_a", "map_b"]}
    ptx = LOAD_BOX.replace(".param .align 64 .b8 map[128]", ".param .u64 map").replace(
        "mov.b64 %rd0, map; cvta.param.u64 %rd0, %rd0;",
        "ld.param.u64 %rd0, [map]; add.u64 %rd0, %rd0, 128;",
    )
    out = run(header + ptx, launch).outputs["out"]
    assert (out[:7] == 108 + np.arange(56).reshape(7, 8)).all() and (out[7] == 0).all()


def test_pointers_in_global_memory_are_passed_by_their_address(run, header):
    tensors = [
        {"name": name, "role": "input", "dtype": "u32", "shape": [1], "contents": {"ramp": at}}
        for name, at in (("a", 3), ("b", 100))
    ]
    out = {"name": "out", "role": "output", "dtype": "u32", "shape": [1]}
    launch = {
        "entry": "second", "grid": [1], "block": [1], "tensors": [*tensors, out],
        "parameters": [{"pointer_array": ["a", "b"]}, {"pointer": "out"}],
    }  # fmt: skip
    ptx = """
.visible .entry second(.param .u64 pointers, .param .u64 out)
{
  .reg .b32 %r0;
  .reg .b64 %rd0, %rd1;
  ld.param.u64 %rd0, [pointers];
  ld.global.u64 %rd0, [%rd0+8];
  ld.param.u64 %rd1, [out];
  ld.global.u32 %r0, [%rd0];
  st.global.u32 [%rd1], %r0;
  ret;
}
"""
    assert run(header + ptx, launch).outputs["out"] == [100]


def test_a_tensor_map_travels_in_a_struct(dump):
    tensor = {
        "name": "a",
        "role": "input",
        "dtype": "f16",
        "shape": [8, 8],
        "contents": {"ramp": 0},
    }
    tensor_map = {"name": "m", "tensor": "a", "dims": [8], "strides_bytes": [], "box": [8]}
    fields = [{"at": 64, "tensor_map": "m"}, {"at": 0, "scalar": 7, "type": "u32"}]
    raw = dump({"struct": fields, "size_bytes": 192}, 192, [tensor], 64, [tensor_map])
    assert raw[:64] == bytes([7]) + bytes(63) and any(raw[64:])


def test_an_inout_is_read_and_written(run, header):
    ptx = """.visible .entry k(.param .u64 p) {
      .reg .b32 %v; .reg .b64 %rd0; ld.param.u64 %rd0, [p];
      ld.global.b32 %v, [%rd0+4]; add.u32 %v, %v, 5; st.global.b32 [%rd0+4], %v; ret; }"""
    tensor = {
        "name": "x",
        "role": "inout",
        "dtype": "u32",
        "shape": [3],
        "contents": {"ramp": 10},
    }
    launch = {
        "entry": "k",
        "grid": [1],
        "block": [1],
        "tensors": [tensor],
        "parameters": [{"pointer": "x"}],
    }
    assert run(header + ptx, launch).outputs["x"].tolist() == [10, 16, 12]


@pytest.mark.parametrize(
    ("dtype", "isolated"),
    [
        ("bf16", True),
        ("f16", False),
        ("f32", False),
        ("f64", False),
        ("e4m3", False),
        ("e5m2", True),
        ("e2m1", True),
        ("u8", False),
        ("u64", True),
        ("s16", False),
    ],
)
def test_what_nobody_writes_stays_poison(dtype, isolated, run, header):
    ptx = ".visible .entry k(.param .u64 out) { ret; }"
    launch = {
        "entry": "k",
        "grid": [1],
        "block": [1],
        "tensors": [output([2, 3], dtype, strides=[1, 2])],
        "parameters": [{"pointer": "out"}],
    }
    out = run(header + ptx, launch, max_seconds=60 if isolated else None).outputs["out"]
    assert out.shape == (2, 3)
    values = out.astype(np.float64)
    poison = {"e2m1": -6, "u8": 255, "u64": 2.0**64, "s16": -1}.get(dtype)
    assert np.isnan(values).all() if poison is None else (values == poison).all()
