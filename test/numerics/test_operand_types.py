"""Operands of 32 and 8 bits: every prefix and preset of both targets, every mix, every layout."""

import itertools
from pathlib import Path

import pytest

from tilewright.compiler.pipeline import DEFAULT_PIPELINE, parse_pipeline, presets_of
from tilewright.compiler.spec import MatmulSpec
from tilewright.dialects.errors import CompileError

pytestmark = pytest.mark.pairwise

PREFIXES = tuple(call.name for call in parse_pipeline(DEFAULT_PIPELINE))
TARGETS = ("sm_90a", "sm_100a")
# A, B, C and the sums.
TYPES = {
    "tf32": ("tf32", "tf32", "f32", "f32"),
    "e4m3": ("e4m3", "e4m3", "bf16", "f32"),
    "e5m2-e4m3": ("e5m2", "e4m3", "f16", "f32"),
    "s8": ("s8", "s8", "s32", "s32"),
    "u8-s8": ("u8", "s8", "s32", "s32"),
}
TWO_TYPES = ("tf32", "u8-s8")
INSTRUCTIONS = {
    ("sm_90a", "tf32"): "k8.f32.tf32.tf32",
    ("sm_90a", "e4m3"): "k32.f32.e4m3.e4m3",
    ("sm_90a", "e5m2-e4m3"): "k32.f32.e5m2.e4m3",
    ("sm_90a", "s8"): "k32.s32.s8.s8",
    ("sm_90a", "u8-s8"): "k32.s32.u8.s8",
    ("sm_100a", "tf32"): "kind::tf32",
    ("sm_100a", "e4m3"): "kind::f8f6f4",
    ("sm_100a", "e5m2-e4m3"): "kind::f8f6f4",
    ("sm_100a", "s8"): "kind::i8",
    ("sm_100a", "u8-s8"): "kind::i8",
}
INPUTS = Path(__file__).parent / "inputs"


def spec_of(types, *sizes, **majors):
    return MatmulSpec(*sizes, *TYPES[types], **majors)


def with_tile(tile, text=DEFAULT_PIPELINE):
    """The pipeline with another tile."""
    return text.replace("tiling", f"tiling{{tile={tile}}}", 1)


@pytest.mark.sweep(8)
@pytest.mark.array(1, place=[*itertools.product(TARGETS, PREFIXES)], types=TYPES)
def test_every_prefix(check_matmul, place, types):
    target, prefix = place
    spec = spec_of(types, 136, 144, 144)
    compiled, _ = check_matmul(
        spec, target=target, pipeline=DEFAULT_PIPELINE, stop_after=prefix, seed=2
    )
    assert INSTRUCTIONS[target, types] in compiled.ptx


@pytest.mark.array(
    1,
    types=TYPES,
    target=TARGETS,
    shape=[(1, 1, 1), (77, 33, 51), (65, 130, 100)],
    pipeline=[DEFAULT_PIPELINE, "tiling"],
)
def test_shapes_that_tma_cannot_address(check_matmul, target, types, shape, pipeline):
    check_matmul(spec_of(types, *shape), target=target, pipeline=pipeline)


@pytest.mark.sweep(4)
@pytest.mark.array(
    1,
    place=[
        ("sm_90a", "64x24x32"),
        ("sm_90a", "64x96x128"),
        ("sm_90a", "128x144x32"),
        ("sm_90a", "256x64x32"),
        ("sm_100a", "64x32x32"),
        ("sm_100a", "128x256x64"),
        ("sm_100a", "64x128x128"),
    ],
    types=TYPES,
)
def test_tiles_of_every_kind(check_matmul, place, types):
    target, tile = place
    spec = spec_of(types, 136, 80, 144)
    check_matmul(spec, target=target, pipeline=with_tile(tile), seed=4)


@pytest.mark.sweep(8)
@pytest.mark.array(
    force=["none", "32B", "64B", "128B"], types=TWO_TYPES, target=TARGETS, box=["2d", "3d"]
)
def test_every_swizzle_in_both_box_ranks(check_matmul, target, types, force, box):
    text = f"tiling{{tile=64x64x128}},tma-insertion{{box={box}}},swizzle-selection{{force={force}}}"
    check_matmul(spec_of(types, 72, 72, 144), target=target, pipeline=text)


@pytest.mark.sweep(4)
@pytest.mark.array(
    1,
    majors=["mn", "kk", "mk", "kn"],
    prefix=["tiling", "swizzle-selection", "persistence"],
    types=["e5m2-e4m3", "u8-s8"],
)
def test_bytes_in_every_layout(check_matmul, types, majors, prefix):
    spec = spec_of(types, 144, 144, 144, a_major=majors[0], b_major=majors[1])
    check_matmul(spec, target="sm_100a", pipeline=DEFAULT_PIPELINE, stop_after=prefix, seed=3)


@pytest.mark.parametrize(
    ("target", "types", "majors", "rule"),
    [
        ("sm_90a", "e4m3", "mk", "A must have K contiguous for e4m3 on sm_90a, got M"),
        ("sm_90a", "s8", "kn", "B must have K contiguous for s8 on sm_90a, got N"),
        ("sm_90a", "tf32", "mn", "A must have K contiguous for tf32 on sm_90a, got M"),
        ("sm_100a", "tf32", "kn", "B must have K contiguous for tf32 on sm_100a, got N"),
    ],
)
def test_layouts_that_no_mma_reads_are_refused(check_matmul, target, types, majors, rule):
    spec = spec_of(types, 64, 64, 64, a_major=majors[0], b_major=majors[1])
    with pytest.raises(CompileError) as caught:
        check_matmul(spec, target=target)
    expected = f"error: tile.matmul: {rule}; transpose it before the kernel"
    assert str(caught.value) == expected


def test_products_of_integers_have_coarser_tiles(check_matmul):
    with pytest.raises(CompileError) as caught:
        check_matmul(spec_of("s8", 64, 64, 64), target="sm_90a", pipeline="tiling{tile=64x40x64}")
    rule = "tile N must be a multiple of 16 up to 256 for an MMA of 64 rows, got 40"
    assert str(caught.value) == f"error: tile.matmul: {rule}"


@pytest.mark.sweep(32)
@pytest.mark.parametrize("types", TYPES)
@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("shape", [(96, 80, 112), (136, 136, 176)])
def test_the_chosen_schedule(check_matmul, target, types, shape):
    check_matmul(spec_of(types, *shape), target=target, seed=5)


@pytest.mark.sweep(4)
@pytest.mark.array(types=TWO_TYPES, target=TARGETS, parts=[2, 3])
def test_split_k(check_matmul, target, types, parts):
    text = (
        "tiling{tile=64x64x32},tma-insertion,swizzle-selection,"
        f"split-k{{parts={parts}}},pipelining{{stages=3}},warp-specialization"
    )
    check_matmul(spec_of(types, 72, 72, 208), target=target, pipeline=text)


@pytest.mark.sweep(4)
@pytest.mark.array(1, c_dtype=["bf16", "f16", "f32"], target=TARGETS)
def test_sums_of_bytes_are_rounded_to_floats(check_matmul, target, c_dtype):
    check_matmul(MatmulSpec(70, 104, 80, "s8", "u8", c_dtype, "s32"), target=target)


@pytest.mark.sweep(4)
@pytest.mark.parametrize("target", TARGETS)
def test_the_chosen_schedule_of_a_file_with_bytes(check_matmul, target):
    compiled, _ = check_matmul(INPUTS / "dequantised.mlir", target=target)
    assert [each["dtype"] for each in compiled.manifest["tensors"]] == [
        "s8", "s8", "s32", "f32", "f16"
    ]  # fmt: skip


@pytest.mark.sweep(8)
@pytest.mark.parametrize("prefix", ["tiling", "epilogue-staging", "persistence"])
@pytest.mark.parametrize("target", TARGETS)
def test_sums_of_bytes_become_floats_in_an_epilogue(check_matmul, target, prefix):
    source = INPUTS / "dequantised.mlir"
    check_matmul(source, target=target, pipeline=DEFAULT_PIPELINE, stop_after=prefix, seed=6)


def preset_cases():
    """Every preset with one type of 8 bits, the types going round."""
    types = itertools.cycle([name for name in TYPES if name != "tf32"])
    return [(target, preset, next(types)) for target in TARGETS for preset in presets_of(target)]


@pytest.mark.sweep
@pytest.mark.parametrize(("target", "preset", "types"), preset_cases())
def test_every_preset_with_bytes(check_matmul, target, preset, types):
    check_matmul(spec_of(types, 264, 144, 144), target=target, preset=preset, seed=1)


@pytest.mark.sweep(32)
@pytest.mark.parametrize(("target", "preset"), [case[:2] for case in preset_cases()])
def test_every_preset_with_half_its_k_for_twice_the_bytes(check_matmul, target, preset):
    text = presets_of(target)[preset].replace("x64}", "x32}", 1).replace("x128}", "x64}", 1)
    check_matmul(spec_of("tf32", 264, 136, 72), target=target, pipeline=text, seed=1)
