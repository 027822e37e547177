"""Accumulators of two tiles that share columns of tensor memory, beside block scales."""

import pytest

from tilewright.compiler.spec import MatmulSpec

pytestmark = pytest.mark.pairwise

LOOPS = ("persistence{ctas=1}", "persistence{scheduler=clc}", "persistence{ctas=1 order=n}")
SHARED = {"mxfp8": 24, "mxfp4": 48, "nvfp4": 96}


@pytest.fixture
def check_shared(check_matmul):
    """check_shared(spec, staging, loop=, pair=) runs tiles of 256 columns; what persistence did."""

    def check(spec, staging, loop=LOOPS[0], pair=False):
        cluster = "clustering{shape=2x1 pair=true}" if pair else "clustering{shape=1x1}"
        depth, said = 128 if spec.a_dtype == "mxfp8" else 256, {}
        text = (
            f"tiling{{tile=128x256x{depth}}},tma-insertion,swizzle-selection,"
            f"epilogue-staging{{{staging}}},{cluster},pipelining{{stages=2}},"
            f"warp-specialization,{loop}"
        )

        def keep(event):
            said[event.name] = event.summary

        _, report = check_matmul(spec, pipeline=text, seed=spec.n, observer=keep)
        assert not report.warnings
        return said["persistence"]

    return check


@pytest.mark.array(1, format_=tuple(SHARED), columns=(32, 64), loop=LOOPS, pair=(False, True))
def test_tiles_in_both_places(check_shared, format_, columns, loop, pair):
    """A CTA, or a pair, has each place twice; the last tile hangs over C."""
    spec = MatmulSpec(200 if pair else 100, 1000, 192, format_, format_)
    did = check_shared(spec, f"columns={columns}", loop, pair)
    assert f"2 accumulators that share {SHARED[format_]} columns" in did


@pytest.mark.parametrize(
    "c_dtype, further, columns",
    [("f32", ("bf16",), 16), ("f16", (), 32), ("mxfp8", (), 64)],
)
def test_outputs_of_every_size(check_shared, c_dtype, further, columns):
    """Also two outputs of a tile, whose pieces are stored together, and one with scales."""
    spec = MatmulSpec(100, 544, 64, "nvfp4", "nvfp4", c_dtype, further=further)
    assert "share 96 columns" in check_shared(spec, f"columns={columns}")
