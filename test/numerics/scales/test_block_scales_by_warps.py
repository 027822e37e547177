"""Operands with block scales by mma.sync on sm_120a: prefixes, roles, tails, odd tiles.

What pads the atoms of scales is NaN in every test, so that a scale that is read by mistake shows.
"""

import re

import pytest

from tilewright.compiler.backend import assemble
from tilewright.compiler.driver import compile_matmul
from tilewright.compiler.spec import MatmulSpec

INSTRUCTIONS = {
    "mxfp8": "m16n8k32.row.col.kind::mxf8f6f4.block_scale.scale_vec::1X.f32.e4m3.e4m3.f32.ue8m0",
    "mxfp4": "m16n8k64.row.col.kind::mxf4.block_scale.scale_vec::2X.f32.e2m1.e2m1.f32.ue8m0",
    "nvfp4": "m16n8k64.row.col.kind::mxf4nvf4.block_scale.scale_vec::4X.f32.e2m1.e2m1.f32.ue4m3",
}
SPREADS = {4: "b8x16.b4x16_p64", 6: "b8x16.b6x16_p32"}
BY_THREADS = "tiling,copy-insertion,swizzle-selection,pipelining{stages=2}"
BY_TMA = (
    "tiling,tma-insertion,swizzle-selection,clustering{shape=1x1},pipelining,warp-specialization,"
    "persistence"
)


def with_tile(tile, pipeline):
    return pipeline.replace("tiling", f"tiling{{tile={tile}}}", 1)


@pytest.mark.sweep(6)
@pytest.mark.array(
    1,
    format_=INSTRUCTIONS,
    prefix=[(BY_THREADS, "tiling"), (BY_THREADS, "copy-insertion"), (BY_THREADS, "pipelining"),
            (BY_TMA, "tma-insertion"), (BY_TMA, "warp-specialization"), (BY_TMA, "persistence")],
)  # fmt: skip
def test_prefixes(check_matmul, format_, prefix):
    """Two CTAs along M and a part, and K steps and a part."""
    pipeline, last = prefix
    spec = MatmulSpec(140, 40, 192, format_, format_, c_dtype="f32")
    options = {"pipeline": with_tile("128x32x128", pipeline), "stop_after": last}
    compiled, report = check_matmul(spec, target="sm_120a", seed=1, **options)
    assert f"mma.sync.aligned.{INSTRUCTIONS[format_]}" in compiled.ptx and not report.warnings


@pytest.mark.parametrize(("format_", "k"), [("mxfp8", 160), ("mxfp4", 96), ("nvfp4", 192)])
def test_the_end_of_k_reads_no_padding_of_scales(check_matmul, format_, k):
    """The identity shows a scale of another row or block by its value."""
    spec = MatmulSpec(64, 40, k, format_, format_)
    pipeline = with_tile("128x32x128", "tiling,copy-insertion,swizzle-selection")
    check_matmul(spec, target="sm_120a", pipeline=pipeline, identity="b")


def test_tiles_whose_scales_begin_within_an_atom(check_matmul):
    spec = MatmulSpec(64, 136, 128, "mxfp8", "mxfp8_e5m2")
    pipeline = with_tile("128x96x128", "tiling,copy-insertion,swizzle-selection")
    check_matmul(spec, target="sm_120a", pipeline=pipeline, identity="a")


def test_warps_share_a_tile_in_any_grid(check_matmul):
    """The four warps of each grid read other rows and columns, so they have other code."""
    spec = MatmulSpec(130, 88, 160, "mxfp8", "mxfp8", c_dtype="f32")
    found = set()
    for grid in ("1x4", "4x1", "2x2"):
        pipeline = f"tiling{{tile=128x64x128 warps={grid}}},copy-insertion,swizzle-selection"
        found.add(check_matmul(spec, target="sm_120a", pipeline=pipeline)[0].ptx)
    assert len(found) == 3


def test_the_default_schedule(check_matmul):
    compiled, _ = check_matmul(MatmulSpec(64, 40, 192, "nvfp4", "nvfp4"), target="sm_120a")
    assert "cp.async" in compiled.ptx and INSTRUCTIONS["nvfp4"] in compiled.ptx


@pytest.mark.sweep(6)
@pytest.mark.array(
    1,
    pair=(("mxfp6", "mxfp8"), ("mxfp4", "mxfp6_e3m2"), ("mxfp8_e5m2", "mxfp4"), ("mxfp6", "mxfp6")),
    pipeline=[(BY_THREADS, "tiling"), (BY_THREADS, "pipelining"), (BY_TMA, "tma-insertion"),
              (BY_TMA, "persistence")],
    k=(96, 128),
)  # fmt: skip
def test_elements_with_gaps_become_bytes_as_warps_load_them(check_matmul, pair, pipeline, k):
    """TMA spreads rows of whole 128 elements, threads any others."""
    passes, last = pipeline
    spec, options = MatmulSpec(40, 40, k, *pair), {"pipeline": with_tile("128x32x128", passes)}
    compiled, _ = check_matmul(spec, target="sm_120a", seed=k, stop_after=last, **options)
    bits = {"mxfp4": 4, "mxfp6": 6, "mxfp6_e3m2": 6}
    wanted = {SPREADS[bits[each]] for each in pair if each in bits}
    assert set(re.findall(r"ldmatrix\S*\.m8n16\S*\.(b8x16\S*)", compiled.ptx)) == wanted


def test_warps_with_gaps_in_their_tiles_assemble_without_spills():
    spec = MatmulSpec(512, 512, 256, "mxfp6", "mxfp4")
    made = assemble(compile_matmul(spec, target="sm_120a", until="ptx").ptx, chip="sm_120a")
    assert made.cubin and not made.spill_store_bytes
