"""Tensor maps that the kernel builds and changes: tensormap.replace, cp_fenceproxy, fences."""

from __future__ import annotations

import numpy as np
import pytest

from tilewright.runtime.emulator import TensorMap, TensorMapArray, Trap, launch

HEADER = """.version 8.8
.target sm_100a
.address_size 64
.visible .entry k(.param .u64 out, .param .u64 tensor, .param .u64 maps)
{
  .reg .b32 %r<24>; .reg .b64 %rd<16>; .reg .pred %p<8>;
  .shared .align 1024 .b8 tile[4096]; .shared .align 128 .b8 made[128];
  .shared .align 8 .b8 bar[8];
  ld.param.u64 %rd0, [out]; ld.param.u64 %rd1, [tensor]; ld.param.u64 %rd2, [maps];
  mov.u32 %r0, %tid.x; mov.u32 %r1, bar; mov.u32 %r2, tile; mov.u32 %r3, made;
  setp.eq.u32 %p0, %r0, 0;
  @%p0 mbarrier.init.shared::cta.b64 [%r1], 1;
  @%p0 fence.mbarrier_init.release.cluster;
  shl.b32 %r6, %r0, 2; add.u32 %r7, %r3, %r6; st.shared.u32 [%r7], 0;
  bar.sync 0;
"""
BUILD = """
  @!%p0 bra BUILT;
  tensormap.replace.tile.global_address.shared::cta.b1024.b64 [%r3], %rd1;
  tensormap.replace.tile.rank.shared::cta.b1024.b32 [%r3], 1;
  tensormap.replace.tile.box_dim.shared::cta.b1024.b32 [%r3], 0, 32;
  tensormap.replace.tile.box_dim.shared::cta.b1024.b32 [%r3], 1, 16;
  tensormap.replace.tile.global_dim.shared::cta.b1024.b32 [%r3], 0, 40;
  tensormap.replace.tile.global_dim.shared::cta.b1024.b32 [%r3], 1, 24;
  tensormap.replace.tile.global_stride.shared::cta.b1024.b64 [%r3], 0, 96;
  tensormap.replace.tile.element_stride.shared::cta.b1024.b32 [%r3], 0, 1;
  tensormap.replace.tile.element_stride.shared::cta.b1024.b32 [%r3], 1, 1;
  tensormap.replace.tile.elemtype.shared::cta.b1024.b32 [%r3], 10;
  tensormap.replace.tile.interleave_layout.shared::cta.b1024.b32 [%r3], 0;
  tensormap.replace.tile.swizzle_mode.shared::cta.b1024.b32 [%r3], 2;
  tensormap.replace.tile.fill_mode.shared::cta.b1024.b32 [%r3], 1;
BUILT:
  bar.warp.sync 0xffffffff;
"""
PUBLISH = """
  tensormap.cp_fenceproxy.global.shared::cta.tensormap::generic.release.gpu.sync.aligned
    [%rd2], [%r3], 128;
"""
ACQUIRE = "  fence.proxy.tensormap::generic.acquire.gpu [%rd2], 128;\n"
USE = """
  @%p0 mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r1], 1024;
  mov.s32 %r10, 24; mov.s32 %r11, 12;
  @%p0 cp.async.bulk.tensor.2d.shared::cta.global.tile.mbarrier::complete_tx::bytes
    [%r2], [%rd2, {%r10, %r11}], [%r1];
WAIT:
  mbarrier.try_wait.parity.shared::cta.b64 %p7, [%r1], 0;
  @!%p7 bra WAIT;
  mov.u32 %r4, 0;
OUT:
  add.u32 %r7, %r6, %r4; add.u32 %r8, %r2, %r7; ld.shared.u32 %r9, [%r8];
  cvt.u64.u32 %rd8, %r7; add.s64 %rd8, %rd0, %rd8; st.global.u32 [%rd8], %r9;
  add.u32 %r4, %r4, 128; setp.lt.u32 %p3, %r4, 1024; @%p3 bra OUT;
"""


def run(body: str, *params):
    return launch(HEADER + body + "ret; }", "k", grid=1, block=32, params=list(params))


def trap_of(body: str, *params) -> Trap:
    with pytest.raises(Trap) as caught:
        run(body, *params)
    return caught.value


def tensor(seed: int = 1) -> np.ndarray:
    return np.random.default_rng(seed).integers(1, 1 << 15, (24, 48)).astype(np.uint16)


def expected(source: np.ndarray, x=24, y=12) -> np.ndarray:
    """The box of 16 rows of 32 as it lies in shared memory with 64-byte swizzle, NaN outside."""
    box = np.full((16, 32), 0x7FF7, np.uint16)
    inside = source[y : y + 16, x : min(x + 32, 40)]
    box[: len(inside), : inside.shape[1]] = inside
    rows = box.reshape(16, 4, 8)
    return np.stack([row[np.arange(4) ^ number // 2 % 4] for number, row in enumerate(rows)])


def test_a_map_built_from_zeros_in_shared_memory_is_used_from_global_memory():
    source, out, space = tensor(), np.zeros((16, 4, 8), np.uint16), np.zeros(128, np.uint8)
    run(BUILD + PUBLISH + ACQUIRE + USE, out, source, space)
    assert np.array_equal(out, expected(source))


MEETS = "  bar.warp.sync 0xffffffff;\n"


def test_a_map_is_published_behind_a_meeting_with_the_lane_that_built_it():
    body = BUILD.replace(MEETS, "") + PUBLISH + ACQUIRE + USE
    trap = trap_of(body, np.zeros((16, 4, 8), np.uint16), tensor(), np.zeros(128, np.uint8))
    assert trap.category == "race" and "lanes of a warp need bar.warp.sync" in trap.message


def test_lanes_that_all_build_a_map_alike_need_no_meeting():
    source, out, space = tensor(), np.zeros((16, 4, 8), np.uint16), np.zeros(128, np.uint8)
    build = BUILD.replace(MEETS, "").replace("  @!%p0 bra BUILT;\n", "")
    run(build + PUBLISH + ACQUIRE + USE, out, source, space)
    assert np.array_equal(out, expected(source))


def test_the_second_half_of_an_object_counts_for_nothing():
    """Grouped kernels of the CuTe DSL copy the first 64 bytes of a map alone"""
    source, out, space = tensor(), np.zeros((16, 4, 8), np.uint16), np.zeros(128, np.uint8)
    half = HEADER.replace("st.shared", "setp.lt.u32 %p1, %r0, 16; @%p1 st.shared")
    body = half + BUILD + PUBLISH + ACQUIRE + USE + "ret; }"
    launch(body, "k", grid=1, block=32, params=[out, source, space])
    assert np.array_equal(out, expected(source))


def a_map(source: np.ndarray) -> TensorMap:
    return TensorMap(source, "bf16", (40, 24), (96,), (32, 16), swizzle="64B", oob_fill="nan")


def test_maps_that_the_host_put_into_global_memory_need_no_fence():
    source, out = tensor(2), np.zeros((16, 4, 8), np.uint16)
    second = "add.u64 %rd2, %rd2, 128;"
    run(second + USE, out, source, TensorMapArray([a_map(tensor(3)), a_map(source)]))
    assert np.array_equal(out, expected(source))


def test_an_acquire_of_a_null_pointer_is_an_error_and_does_nothing_on_gpus():
    source, out, space = tensor(), np.zeros((16, 4, 8), np.uint16), np.zeros(128, np.uint8)
    null = "  mov.b64 %rd9, 0; fence.proxy.tensormap::generic.acquire.gpu [%rd9], 128;\n"
    body = BUILD + PUBLISH + null + ACQUIRE + USE
    trap = trap_of(body, out, source, space)
    assert trap.category == "address-space" and "got a null pointer" in trap.message
    report = launch(HEADER + body + "ret; }", "k", grid=1, block=32, params=[out, source, space],
                    check="shipped")  # fmt: skip
    assert np.array_equal(out, expected(source))
    assert [warning.category for warning in report.warnings] == ["null-fence"]


IN_PLACE = "  @%p0 tensormap.replace.tile.global_address.global.b1024.b64 [%rd2], %rd1;\n"
RELEASE = "  fence.proxy.tensormap::generic.release.gpu; bar.sync 0;\n"


def test_a_map_is_pointed_to_another_tensor_in_place():
    source, out = tensor(4), np.zeros((16, 4, 8), np.uint16)
    maps = TensorMapArray([a_map(tensor(5))])
    run(IN_PLACE + RELEASE + ACQUIRE + USE, out, source, maps)
    assert np.array_equal(out, expected(source))


@pytest.mark.parametrize(
    "body, message",
    [
        (IN_PLACE + ACQUIRE + USE, "without fence.proxy.tensormap::generic.release afterwards"),
        (IN_PLACE + RELEASE + USE, "fence.proxy.tensormap::generic.acquire on it first"),
        (BUILD + PUBLISH + USE, "fence.proxy.tensormap::generic.acquire on it first"),
        (ACQUIRE + BUILD + PUBLISH + USE, "generic.acquire on it first"),
    ],
)
def test_a_modified_map_needs_its_fences(body, message):
    out = np.zeros((16, 4, 8), np.uint16)
    trap = trap_of(body, out, tensor(), TensorMapArray([a_map(tensor(6))]))
    assert trap.category == "proxy-fence" and message in trap.message


OF_ANOTHER = """
  mov.u32 %r20, %ctaid.x; setp.ne.u32 %p4, %r20, 0; @%p4 bra OTHER;
  BUILD bar.warp.sync -1; @%p0 st.release.gpu.global.u32 [%rd0+1024], %r21; ret;
OTHER: ld.acquire.gpu.global.u32 %r20, [%rd0+1024]; setp.eq.u32 %p4, %r20, 0; @%p4 bra OTHER;
"""


@pytest.mark.pairwise
@pytest.mark.parametrize("cluster", [1, 2])
@pytest.mark.parametrize("released, acquired", [("gpu", "sys"), ("cluster", "gpu"), ("gpu", "cta")])
@pytest.mark.parametrize("made", [True, False], ids=["copied", "in place"])
def test_the_fences_of_a_map_reach_the_other_cta(made, released, acquired, cluster):
    source, out = tensor(7), np.zeros(520, np.uint16)
    build = BUILD + PUBLISH if made else IN_PLACE + RELEASE
    build = "mov.u32 %r21, 1;" + build.replace("release.gpu", f"release.{released}")
    use = ACQUIRE.replace("gpu", acquired) + USE
    body = OF_ANOTHER.replace("BUILD", build) + use
    params = [out, source, TensorMapArray([a_map(tensor(5))])]
    narrow = {"cta": 2, "cluster": 3 - cluster}
    left_out = [each for each in (released, acquired) if narrow.get(each) == 2]

    def go():
        launch(HEADER + body + "ret; }", "k", grid=2, block=32, cluster=cluster, params=params)

    if left_out:
        with pytest.raises(Trap) as caught:
            go()
        assert caught.value.category == "proxy-fence"
        assert f"the scope .{left_out[0]} of the" in caught.value.message
    else:
        go()
        assert np.array_equal(out[:512].reshape(16, 4, 8), expected(source))


@pytest.mark.parametrize("twice", ["release", "acquire"])
@pytest.mark.parametrize("first, second", [("cta", "gpu"), ("gpu", "cta")])
def test_of_two_fences_the_wider_counts(twice, first, second):
    source, out = tensor(7), np.zeros(520, np.uint16)
    fences = {"release": RELEASE, "acquire": ACQUIRE}
    one = fences[twice]
    fences[twice] = one.replace("gpu", first) + one.replace("gpu", second)
    build = "mov.u32 %r21, 1;" + IN_PLACE + fences["release"]
    body = OF_ANOTHER.replace("BUILD", build) + fences["acquire"] + USE
    params = [out, source, TensorMapArray([a_map(tensor(5))])]
    launch(HEADER + body + "ret; }", "k", grid=2, block=32, params=params)
    assert np.array_equal(out[:512].reshape(16, 4, 8), expected(source))


def test_a_copy_by_plain_stores_needs_an_acquire_too():
    copy = """
      ld.shared.u32 %r9, [%r7]; cvt.u64.u32 %rd8, %r6; add.u64 %rd8, %rd2, %rd8;
      st.global.u32 [%rd8], %r9; fence.proxy.tensormap::generic.release.gpu; bar.sync 0;
    """
    source, out, space = tensor(), np.zeros((16, 4, 8), np.uint16), np.zeros(128, np.uint8)
    trap = trap_of(BUILD + copy + USE, out, source, space)
    assert trap.category == "proxy-fence" and "acquire on it first" in trap.message
    run(BUILD + copy + ACQUIRE + USE, out, source, space)
    assert np.array_equal(out, expected(source))


def replaced(old: str, new: str) -> str:
    assert old in BUILD
    return BUILD.replace(old, new) + PUBLISH + ACQUIRE + USE


BAD_MAPS = [
    ("[%r3], 1, 16;", "[%r3], 1, 0;", "boxDim[1] must be 1..256, got 0"),
    ("[%r3], 0, 96;", "[%r3], 0, 100;", "globalStrides[0] must be a multiple of 16 bytes, got 100"),
    ("b32 [%r3], 2;", "b32 [%r3], 4;", "swizzle mode 4 with atomicity 0 is not modelled"),
    ("rank.shared::cta.b1024.b32 [%r3], 1;", "rank.shared::cta.b1024.b32 [%r3], 7;",
     "tensormap.replace .rank must be below 5, got 7 (PTX ISA section 9.7.9.26.1)"),
]  # fmt: skip


@pytest.mark.parametrize("old, new, message", BAD_MAPS)
def test_a_map_that_breaks_a_rule_is_an_error_at_the_latest_when_used(old, new, message):
    out, space = np.zeros((16, 4, 8), np.uint16), np.zeros(128, np.uint8)
    trap = trap_of(replaced(old, new), out, tensor(), space)
    assert (trap.category, trap.message) == ("tensor-map", message)


@pytest.mark.parametrize("constant", ["16", "-1"])
def test_a_constant_beyond_the_field_is_refused_before_the_kernel_starts(constant):
    text = replaced("b32 [%r3], 10;", f"b32 [%r3], {constant};")
    trap = trap_of(text, np.zeros((16, 4, 8), np.uint16), tensor(), np.zeros(128, np.uint8))
    said = f"a constant from 0 to 15 is expected, got {constant}"
    assert (trap.category, trap.message) == ("operand", said)


def test_a_map_over_memory_outside_every_array_is_out_of_bounds():
    moved = "add.u64 %rd1, %rd1, 16;"
    out, space = np.zeros((16, 4, 8), np.uint16), np.zeros(128, np.uint8)
    trap = trap_of(moved + BUILD + PUBLISH + ACQUIRE + USE, out, tensor()[:, :40].copy(), space)
    assert trap.category == "out-of-bounds"


def test_bytes_that_are_neither_zero_nor_a_map_are_not_edited():
    body = "st.shared.u32 [%r3+16], 77;" + BUILD
    trap = trap_of(body, np.zeros(16, np.uint8), tensor(), np.zeros(128, np.uint8))
    assert trap.category == "tensor-map" and "are no map" in trap.message


@pytest.mark.parametrize(
    "text, category",
    [
        ("tensormap.replace.tile.box_dim.shared::cta.b1024.b32 [%r3], 5, 1;", "operand"),
        ("tensormap.replace.tile.fill_mode.shared::cta.b1024.b32 [%r3], %r0;", "unmodelled"),
        ("tensormap.replace.tile.rank.shared::cta.b1024.b32 [%r3+4], 1;", "misaligned"),
        ("fence.proxy.tensormap::generic.acquire.gpu [%rd2], 64;", "operand"),
    ],
)
def test_illegal_operands_are_refused(text, category):
    space = np.zeros(128, np.uint8)
    assert trap_of(text, np.zeros(16, np.uint8), tensor(), space).category == category


def retyped(old: str, new: int):
    """What comes of a map of an element type that is replaced by another in place."""
    source = np.zeros((4, 4), np.float32)
    maps = TensorMapArray([TensorMap(source, old, dims=(4, 4), strides=(16,), box=(4, 4))])
    edit = f"@%p0 tensormap.replace.tile.elemtype.global.b1024.b32 [%rd2], {new};\n"
    return run(edit + RELEASE + ACQUIRE, np.zeros(1, np.uint32), source, maps)


@pytest.mark.parametrize(
    ("old", "new", "name"), [("tf32", 2, "u32"), ("tfloat32_ftz", 3, "s32"), ("tf32", 3, "s32")]
)
def test_a_map_of_tf32_becomes_none_of_integers(old, new, name):
    """An H200 stops at copies through it; others may take each other's place."""
    with pytest.raises(Trap, match=f"of a map of tf32 by {name}: GPUs stop") as caught:
        retyped(old, new)
    assert caught.value.category == "tensor-map"
    for before, after in (("f32", new), ("u32", 7), ("tf32", 7)):
        retyped(before, after)


LOADED = """mov.b32 %r9, 0;
@%p0 mbarrier.arrive.expect_tx.shared::cta.b64 _, [bar], 64;
@%p0 cp.async.bulk.tensor.2d.shared::cta.global.tile.mbarrier::complete_tx::bytes
  [tile], [%rd2, {%r9, %r9}], [bar];
bar.sync 0;
AGAIN: mbarrier.try_wait.parity.shared::cta.b64 %p1, [bar], 0;
@!%p1 bra AGAIN;
@%p0 ld.shared.u32 %r9, [tile]; @%p0 st.global.u32 [%rd0], %r9;
"""


@pytest.mark.parametrize(
    ("old", "new", "word"),
    [("tf32", 7, 0x3922E000), ("tfloat32_ftz", 8, 0x3922E000), ("f32", 7, 0x3922E4FF),
     ("f32", 11, 0x3922E000)],
)  # fmt: skip
def test_a_map_of_tf32_goes_on_rounding_as_one_of_f32(old, new, word):
    """So on an H200, which gave these words."""
    source, out = np.full((4, 4), 0x3922E4FF, np.uint32), np.zeros(1, np.uint32)
    maps = TensorMapArray([TensorMap(source, old, dims=(4, 4), strides=(16,), box=(4, 4))])
    edit = f"@%p0 tensormap.replace.tile.elemtype.global.b1024.b32 [%rd2], {new};\n"
    run(edit + RELEASE + ACQUIRE + LOADED, out, source, maps)
    assert out[0] == word
