"""Tensor copies in im2col mode (PTX ISA §5.5.4, §9.7.9.27.1), held to a walk over all pixels."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

from tilewright.runtime import run_launch_file
from tilewright.runtime.emulator import Im2colMap, LaunchError, TensorMap, Trap, launch
from tilewright.runtime.emulator.copies.tensor_map_object import decode, encode

TEXT = """.version 8.8
.target sm_90a
.address_size 64
.visible .entry k(.param .align 64 .b8 map[128], .param .u64 column, .param .u32 bytes)
{ .reg .b32 %r<8>; .reg .b64 %rd<4>; .reg .b16 %h<4>; .reg .pred %p<4>; .reg .b32 %c<5>;
  .shared .align 1024 .b8 tile[16384]; .shared .align 8 .b64 full;
  mov.b64 %rd0, map; cvta.param.u64 %rd0, %rd0; ld.param.u64 %rd1, [column];
  ld.param.u32 %r1, [bytes]; mov.u32 %r2, tile; mov.u32 %r3, full; mov.u32 %r4, %tid.x;
  setp.eq.u32 %p0, %r4, 0;
  @%p0 mbarrier.init.shared::cta.b64 [%r3], 1; bar.warp.sync -1; COORDINATES
  BODY
  ret; }
"""
LOAD = """@%p0 mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r3], %r1;
  PREFETCH
  @%p0 cp.async.bulk.tensor.RANKd.shared::cta.global.im2col.mbarrier::complete_tx::bytes
    [%r2], [%rd0, {PLACES}], [%r3], {OFFSETS};
W: mbarrier.try_wait.parity.shared::cta.b64 %p1, [%r3], 0; @!%p1 bra W;
  shl.b32 %r4, %r4, 2;
O: setp.ge.u32 %p2, %r4, %r1; @%p2 bra END; add.u32 %r5, %r2, %r4; ld.shared.b32 %r6, [%r5];
  cvt.u64.u32 %rd2, %r4; add.s64 %rd2, %rd1, %rd2; st.global.b32 [%rd2], %r6;
  add.u32 %r4, %r4, 128; bra O;
END: """
PREFETCH = "cp.async.bulk.prefetch.tensor.RANKd.L2.global.im2col [%rd0, {PLACES}], {OFFSETS};"
STORE = """shl.b32 %r4, %r4, 2;
I: setp.ge.u32 %p2, %r4, %r1; @%p2 bra DONE; add.u32 %r5, %r2, %r4;
  cvt.u64.u32 %rd2, %r4; add.s64 %rd2, %rd1, %rd2; ld.global.b32 %r6, [%rd2];
  st.shared.b32 [%r5], %r6; add.u32 %r4, %r4, 128; bra I;
DONE: fence.proxy.async.shared::cta; bar.warp.sync -1; @!%p0 bra END;
  INSTRUCTION.RANKd.global.shared::cta.OPim2col_no_offs.bulk_group [%rd0, {PLACES}], [%r2];
  cp.async.bulk.commit_group; cp.async.bulk.wait_group 0;
END: """


def text(body: str, places: tuple[int, ...], offsets: tuple[int, ...] = ()) -> str:
    numbers = [f"mov.s32 %c{axis}, {place};" for axis, place in enumerate(places)]
    numbers += [f"mov.u16 %h{axis}, {offset};" for axis, offset in enumerate(offsets)]
    return (
        TEXT.replace("COORDINATES", " ".join(numbers))
        .replace("BODY", body)
        .replace("RANK", str(len(places)))
        .replace("PLACES", ", ".join(f"%c{axis}" for axis in range(len(places))))
        .replace("OFFSETS", ", ".join(f"%h{axis}" for axis in range(len(offsets))))
    )


def column(tensor, lower, upper, steps, start, offsets, pixels, fill=0):
    """Rows of the column: all filter bases of the batch in their order, from the start on.

    tensor: [N, …, C]; the others are in the order W, H, D. Entries outside are the fill value.
    """
    channel, *at, image = start
    images, *space, _ = tensor.shape
    ranges = [
        range(low, size + high, step)
        for low, high, size, step in zip(lower, upper, space[::-1], steps, strict=True)
    ]
    bases = [place[::-1] for place in product(range(image, images), *ranges[::-1])]
    first = bases.index((*at, image))
    rows = np.full((pixels, 8), fill, tensor.dtype)
    for row, (*base, n) in zip(rows, bases[first : first + pixels], strict=False):
        place = [b + o for b, o in zip(base, offsets, strict=True)]
        if all(0 <= p < size for p, size in zip(place, space[::-1], strict=True)):
            found = tensor[(n, *place[::-1])][channel : channel + 8]
            row[: len(found)] = found
    return rows


CASES = {
    # the three examples of the ISA, with fewer channels
    "examples 1": ((16, 9, 14, 3), (-1, -1), (-1, -1), (1, 1), (8, 7, 4, 0), (0, 0), 64),
    "examples 2": ((16, 9, 14, 3), (0, 0), (-2, -2), (1, 1), (8, 6, 4, 0), (2, 2), 64),
    "examples 3": ((16, 8, 14, 3), (-1, -1), (-1, -1), (2, 2), (8, 5, 5, 0), (1, 1), 32),
    "into the next image": ((8, 5, 4, 3), (-1, 0), (0, -1), (1, 1), (0, 3, 2, 0), (1, 1), 20),
    "past the batch": ((8, 5, 4, 2), (0, 0), (0, 0), (1, 1), (0, 3, 2, 1), (0, 0), 40),
    "past the channels": ((12, 5, 4, 2), (0, 0), (0, 0), (1, 1), (8, 0, 0, 0), (0, 0), 16),
    "a line": ((8, 30, 2), (-2,), (0,), (3,), (0, -2, 0), (2,), 24),
    "a volume": ((8, 4, 3, 5, 2), (-1, 0, -1), (-1, -1, 0), (1, 1, 2), (0, 2, 1, -1, 0),
                 (1, 0, 1), 48),
}  # fmt: skip


def mapped(tensor, case, **options) -> Im2colMap:
    dims, lower, upper, steps, _, _, pixels = case
    strides = [tensor.strides[-2 - axis] for axis in range(len(dims) - 1)]
    return Im2colMap(tensor, "bf16", dims, strides, lower, upper, 8, pixels,
                     element_strides=(1, *steps, 1), **options)  # fmt: skip


def drawn(dims) -> np.ndarray:
    """[N, …, C] of 16-bit numbers, the rows of channels padded to a multiple of 16 bytes."""
    numbers = np.random.default_rng(1).integers(1, 30000, (*dims[:0:-1], -dims[0] % 8 + dims[0]))
    return numbers.astype(np.uint16)[..., : dims[0]]


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("fill", ["zero", "nan"])
def test_a_column_of_pixels_is_loaded(name, fill):
    dims, lower, upper, steps, start, offsets, pixels = case = CASES[name]
    tensor, out = drawn(dims), np.zeros((pixels, 8), np.uint16)
    body = LOAD.replace("PREFETCH", PREFETCH)
    params = [mapped(tensor, case, oob_fill=fill), out, out.nbytes]
    launch(text(body, start, offsets), "k", grid=1, block=32, params=params)
    value = {"zero": 0, "nan": 0x7FF7}[fill]
    assert np.array_equal(out, column(tensor, lower, upper, steps, start, offsets, pixels, value))


def test_a_launch_file_has_maps_of_pixels(tmp_path):
    dims, lower, upper, steps, start, offsets, pixels = case = CASES["examples 2"]
    tensor, ptx = drawn(dims), tmp_path / "k.ptx"
    ptx.write_text(text(LOAD.replace("PREFETCH", ""), start, offsets))
    strides = mapped(tensor, case).strides
    x = {"name": "x", "role": "input", "dtype": "u16", "shape": tensor.shape, "contents": tensor}
    out = {"name": "out", "role": "output", "dtype": "u16", "shape": [pixels, 8]}
    columns = {"lower": lower, "upper": upper, "channels": 8, "pixels": pixels}
    pixel_map = {"name": "m", "tensor": "x", "dtype": "bf16", "dims": dims, "im2col": columns,
                 "strides_bytes": strides, "element_strides": (1, *steps, 1)}  # fmt: skip
    size = {"scalar": 16 * pixels, "type": "u32"}
    said = {"entry": "k", "grid": [1], "block": [32], "tensors": [x, out],
            "tensor_maps": [pixel_map],
            "parameters": [{"tensor_map": "m"}, {"pointer": "out"}, size]}  # fmt: skip
    found = run_launch_file(ptx, said).outputs["out"]
    assert np.array_equal(found, column(tensor, lower, upper, steps, start, offsets, pixels))


def test_pixels_are_rows_of_a_swizzled_box():
    dims, lower, upper, steps, start, offsets, pixels = case = CASES["examples 1"]
    tensor, out = drawn(dims), np.zeros((pixels, 2, 8), np.uint16)
    params = [mapped(tensor, case, swizzle="32B"), out, 16 * pixels]
    read = LOAD.replace("PREFETCH", "").replace("setp.ge.u32 %p2, %r4, %r1;",
                                                f"setp.ge.u32 %p2, %r4, {out.nbytes};")  # fmt: skip
    zeros = """@%p0 bra Z; bra Y; Z: mov.b32 %r6, 0; mov.b32 %r5, %r2; mov.b32 %r7, 0;
      L: st.shared.b32 [%r5], %r6; add.u32 %r5, %r5, 4; add.u32 %r7, %r7, 1;
      setp.lt.u32 %p1, %r7, 512; @%p1 bra L; fence.proxy.async.shared::cta; Y: bar.warp.sync -1;"""
    launch(text(zeros + read, start, offsets), "k", grid=1, block=32, params=params)
    rows = column(tensor, lower, upper, steps, start, offsets, pixels)
    flips = np.arange(pixels) // 4 % 2
    assert np.array_equal(out[np.arange(pixels), flips], rows)
    assert not out[np.arange(pixels), 1 - flips].any()


INSIDE = {
    "every second pixel": ((16, 8, 14, 3), (0, 1), (-1, 0), (2, 2), (8, 4, 5, 0), (0, 0), 32),
    "past the batch": CASES["past the batch"],
    "a volume": ((8, 4, 3, 5, 2), (1, 0, 0), (0, -1, 0), (1, 1, 2), (0, 2, 1, 2, 0), (0, 0, 0), 30),
}


@pytest.mark.parametrize("add", [False, True])
@pytest.mark.parametrize("name", INSIDE)
def test_a_column_of_pixels_is_stored(name, add):
    dims, lower, upper, steps, start, _, pixels = case = INSIDE[name]
    none = (0,) * (len(dims) - 2)
    tensor = np.arange(np.prod(dims), dtype=np.uint16).reshape(dims[::-1])
    rows = np.random.default_rng(2).integers(0, 99, (pixels, 8)).astype(np.uint16)
    numbers = np.arange(tensor.size, dtype=np.int64).reshape(tensor.shape)
    places = column(numbers, lower, upper, steps, start, none, pixels, -1)
    expected, inside = tensor.copy().reshape(-1), places >= 0
    expected[places[inside]] = rows[inside] | (expected[places[inside]] if add else 0)
    names = ("cp.reduce.async.bulk.tensor", "or.") if add else ("cp.async.bulk.tensor", "")
    body = STORE.replace("INSTRUCTION", names[0]).replace("OP", names[1])
    params = [mapped(tensor, case), rows, rows.nbytes]
    launch(text(body, start), "k", grid=1, block=32, params=params)
    assert np.array_equal(tensor.reshape(-1), expected)


@pytest.mark.parametrize(("lower", "upper"), [((-1, 0), (0, 0)), ((0, 0), (0, 1))])
def test_a_store_through_a_bounding_box_that_reaches_outside_is_stopped(lower, upper):
    """As by a GPU, also where the column of this store has no pixel outside"""
    case = ((8, 5, 4, 2), lower, upper, (1, 1), (0, 1, 1, 0), (0, 0), 1)
    rows = np.zeros((1, 8), np.uint16)
    body = STORE.replace("INSTRUCTION", "cp.async.bulk.tensor").replace("OP", "")
    with pytest.raises(Trap, match="needs a bounding box within the tensor") as caught:
        launch(text(body, case[4]), "k", grid=1, block=32,
               params=[mapped(drawn(case[0]), case), rows, rows.nbytes])  # fmt: skip
    assert caught.value.category == "tma"


def refused(start, offsets, made) -> str:
    with pytest.raises(Trap) as caught:
        params = [made, np.zeros(512, np.uint16), 1024]
        body = LOAD.replace("PREFETCH", "")
        launch(text(body, start, offsets), "k", grid=1, block=32, params=params)
    return caught.value.message


def test_what_does_not_fit_the_map_is_named():
    case = CASES["examples 1"]
    made = mapped(drawn(case[0]), case)
    assert refused((8, 8, 4, 0), (0, 0), made) == (
        "coordinate W must lie within the bounding box, -1..7, got 8 (PTX ISA section 5.5.4.1)"
    )
    assert refused((8, 7, 4, 0), (0, 256), made) == (
        "the im2col offset of H must be below 256, got 256 (PTX ISA section 5.5.4.1)"
    )
    tiled = TensorMap(drawn(case[0]), "bf16", case[0], made.strides, (8, 1, 1, 1))
    assert refused((8, 7, 4, 0), (0, 0), tiled) == "the tensor map is tiled, the instruction im2col"


@pytest.mark.parametrize(
    ("change", "rule"),
    [
        ({"pixels": 1025}, "pixelsPerColumn must be 1..1024, got 1025"),
        ({"lower": (0,)}, "pixelBoxLowerCorner must have 2 entries, got 1"),
        ({"upper": (0, 128)}, "pixelBoxUpperCorner[1] of rank 4 must be -128..127, got 128"),
        ({"channels": 12}, "boxDim[0] must span a multiple of 16 bytes, got 24"),
        ({"dims": (8, 4), "strides": (16,)}, "tensorRank of im2col must be 3..5, got 2"),
    ],
)
def test_what_the_driver_refuses_is_refused(change, rule):
    given = {"dims": (8, 4, 3, 2), "strides": (16, 64, 192), "lower": (0, 0), "upper": (0, 0),
             "channels": 8, "pixels": 16, **change}  # fmt: skip
    with pytest.raises(LaunchError) as caught:
        Im2colMap(np.zeros((2, 3, 4, 8), np.uint16), "bf16", **given)
    assert str(caught.value) == f"tensor map: {rule}"


def test_a_map_of_pixels_is_not_edited_as_a_tiled_one():
    case = CASES["a line"]
    body = """@%p0 tensormap.replace.tile.global_address.global.b1024.b64 [%rd1], %rd0;"""
    data = np.zeros(128, np.uint8)
    copy = """mov.b32 %r5, 0; C: cvt.u64.u32 %rd2, %r5; add.s64 %rd3, %rd0, %rd2;
      ld.b64 %rd3, [%rd3]; add.s64 %rd2, %rd1, %rd2; @%p0 st.global.b64 [%rd2], %rd3;
      add.u32 %r5, %r5, 8; setp.lt.u32 %p1, %r5, 128; @%p1 bra C;"""
    with pytest.raises(Trap, match="the map is in im2col mode"):
        launch(text(copy + body, case[4]), "k", grid=1, block=32,
               params=[mapped(drawn(case[0]), case), data, 0])  # fmt: skip


def test_a_column_is_multicast_behind_its_offsets():
    """The operands' order: offsets, mask of CTAs, cache policy (PTX ISA §9.7.9.27.1.2)."""
    dims, lower, upper, steps, start, offsets, pixels = case = CASES["examples 2"]
    tensor, out = drawn(dims), np.zeros((2, pixels, 8), np.uint16)
    body = LOAD.replace("PREFETCH", MEET).replace(
        "@%p0 cp.async.bulk.tensor.RANKd.shared::cta.global.im2col.mbarrier::complete_tx::bytes\n"
        "    [%r2], [%rd0, {PLACES}], [%r3], {OFFSETS};",
        "@%p2 cp.async.bulk.tensor.RANKd.shared::cluster.global.im2col"
        ".mbarrier::complete_tx::bytes.multicast::cluster.L2::cache_hint\n"
        "    [%r2], [%rd0, {PLACES}], [%r3], {OFFSETS}, %h3, %rd3;",
    )
    assert body != LOAD.replace("PREFETCH", MEET)
    launch(text(body, start, offsets), "k", grid=2, block=32, cluster=2,
           params=[mapped(tensor, case), out, out[0].nbytes])  # fmt: skip
    expected = column(tensor, lower, upper, steps, start, offsets, pixels)
    assert np.array_equal(out, [expected, expected])


MEET = """barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned; mov.u16 %h3, 3;
  mov.u32 %r7, %cluster_ctarank; setp.eq.and.u32 %p2, %r7, 1, %p0; mul.wide.u32 %rd3, %r7, %r1;
  add.s64 %rd1, %rd1, %rd3; mov.b64 %rd3, 0;"""


def test_dims_that_are_no_list_are_refused():
    with pytest.raises(LaunchError, match="globalDim must be a sequence of integers, got 5"):
        Im2colMap(np.zeros(4, np.uint32), "u32", 5, (), (), (), 4, 4)  # type: ignore[arg-type]


def test_bytes_of_which_a_kernel_has_copied_a_part_are_no_map():
    """The first field says that the map is in im2col mode, and no other has come"""
    whole = encode(Im2colMap(np.zeros((2, 2, 32), np.uint32), "u32", (32, 2, 2), (128, 256), (0,),
                             (0,), 32, 2), 1 << 20)  # fmt: skip
    with pytest.raises(Trap, match="the 128 bytes at the tensor map address are no map"):
        decode(whole[:8].ljust(len(whole), b"\0"))
