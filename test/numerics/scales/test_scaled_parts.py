"""K of operands with block scales, split over the grid and over clusters.

What pads the atoms of scales is NaN, so that a part that takes K's end for another's shows.
"""

import pytest

from tilewright.compiler.spec import MatmulSpec

HEAD = ("tiling", "tma-insertion", "swizzle-selection", "split-k")
TAIL = ("clustering", "pipelining", "warp-specialization")
PREFIXES = HEAD + TAIL
DEPTH = {"mxfp8": 128, "mxfp6": 128, "mxfp4": 256, "nvfp4": 256}

pytestmark = pytest.mark.pairwise


def passes(format_, last="warp-specialization", parts="parts=3 over=grid", cluster="shape=1x1"):
    """The passes up to `last`, as the choice writes them."""
    options = {
        "tiling": f"tile=128x32x{DEPTH[format_]}",
        "split-k": parts,
        "clustering": cluster,
        "pipelining": "stages=2",
    }
    named = [f"{each}{{{options[each]}}}" if each in options else each for each in PREFIXES]
    return ",".join(named[: PREFIXES.index(last) + 1])


@pytest.mark.array(1, last=PREFIXES[3:], format_=DEPTH, layout=("blocked", "linear"))
def test_every_prefix_of_parts_over_the_grid(check_matmul, last, format_, layout):
    """Five steps in three parts: the last part has one step, and the end of K within it."""
    k = 4 * DEPTH[format_] + DEPTH[format_] // 2
    spec = MatmulSpec(140, 40, k, format_, format_, scale_layout=layout)
    compiled, _ = check_matmul(spec, pipeline=passes(format_, last), seed=1)
    assert "block_scale" in compiled.ptx


@pytest.mark.sweep(4)
@pytest.mark.array(
    1,
    last=("split-k", "warp-specialization"),
    pair=(("mxfp8", "mxfp4"), ("mxfp8_1x128", "mxfp8_128x128"), ("mxfp4_1x16", "mxfp4_1x16")),
    parts=("parts=2", "parts=2 over=grid"),
    batch=(0, 2),
)
def test_other_formats_and_stacks_in_parts(check_matmul, last, pair, parts, batch):
    form = "mxfp4" if pair[0] == "mxfp4_1x16" else "mxfp8"
    layout = {"scale_layout": "linear"} if form == "mxfp4" else {}
    spec = MatmulSpec(72, 136, 640, *pair, batch=batch, **layout)
    check_matmul(spec, pipeline=passes(form, last, parts))


@pytest.mark.parametrize("format_", ["mxfp8", "nvfp4"])
def test_pairs_in_parts(check_matmul, format_):
    spec = MatmulSpec(300, 72, 5 * DEPTH[format_], format_, format_)
    cluster = "shape=2x1 pair=true"
    compiled, _ = check_matmul(spec, pipeline=passes(format_, cluster=cluster), seed=2)
    assert "cta_group::2" in compiled.ptx


@pytest.mark.parametrize("format_", ["mxfp8", "nvfp4"])
def test_few_tiles_with_a_long_k_are_given_parts(check_matmul, format_):
    compiled, _ = check_matmul(MatmulSpec(16, 24, 8192, format_, format_))
    assert compiled.chosen
    assert "over=grid" in compiled.pipeline
