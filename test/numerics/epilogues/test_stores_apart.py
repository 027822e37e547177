"""Stores of warpgroups that share a tile: each its own rows, by itself."""

from dataclasses import replace

import pytest

from tilewright.compiler.chosen_pipeline import choose_pipeline
from tilewright.compiler.driver import compile_matmul
from tilewright.compiler.importers.linalg_text import LinalgText
from tilewright.compiler.spec import MatmulSpec
from tilewright.compiler.spec.epilogue import Epilogue, EpilogueOperand
from tilewright.dialects.errors import CompileError

pytestmark = pytest.mark.pairwise

TMA = "tma-insertion,swizzle-selection"
RESTS = {
    "roles": "pipelining{stages=2},warp-specialization,persistence{order=m ctas=2}",
    "a cluster": "clustering{shape=2x1 pair=false},pipelining{stages=2},warp-specialization",
    "one program": "pipelining{stages=2}",
    "one tile": "",
}
TILES = {"128x144x32": 2, "256x128x32": 2, "192x128x32": 3}


def pipeline(rest, tile="256x128x32", staging="columns=16 buffers=2"):
    """Passes whose warpgroups store by themselves."""
    staged = f"epilogue-staging{{{staging} by=warpgroup}}"
    return ",".join(filter(None, [f"tiling{{tile={tile}}}", TMA, staged, RESTS[rest]]))


@pytest.mark.sweep(6)
@pytest.mark.array(
    1, rest=RESTS, tile=TILES, dtype=("bf16", "f32", "f16"), buffers=(1, 2, 3), rows=(130, 512)
)
def test_each_warpgroup_stores_its_own_rows(check_matmul, rest, tile, dtype, buffers, rows, seed=1):
    spec = MatmulSpec(rows, 2 * 144, 64, c_dtype=dtype)
    text = pipeline(rest, tile, f"columns=16 buffers={buffers}")
    compiled, _ = check_matmul(spec, target="sm_90a", pipeline=text, seed=seed)
    parts = TILES[tile]
    (c,) = [each for each in compiled.manifest["parameters"] if each.get("tensor") == "c"]
    assert c["box"][1] * parts == int(tile.partition("x")[0])
    assert "bar.sync \t%" in compiled.ptx


@pytest.mark.sweep(2)
@pytest.mark.array(1, rest=RESTS, batch=(1, 3), n=(136, 264))
def test_stacks_and_what_hangs_over_are_stored_right(check_matmul, rest, batch, n, seed=2):
    spec = MatmulSpec(200, n, 40, batch=batch)
    check_matmul(spec, target="sm_90a", pipeline=pipeline(rest), seed=seed)


def test_warpgroups_of_a_chosen_schedule_store_apart():
    compiled = compile_matmul(MatmulSpec(1024, 4096, 4096), target="sm_90a", until="mlir")
    assert "by=warpgroup" in compiled.pipeline


@pytest.mark.parametrize("c_dtype", ["bf16", "f32"])
def test_chosen_kernels_with_scales_of_columns_do_not_spill(c_dtype):
    scales = {"a_scales": "1x128", "b_scales": "1x128"}
    spec = MatmulSpec(8192, 8192, 8192, "e4m3", "e4m3", c_dtype, **scales)
    assert not compile_matmul(spec, target="sm_90a").given_up  # which is what spills


REFUSED = {
    "tiling{tile=128x128x64},%s,epilogue-staging{by=warpgroup}": "two warpgroups must hold a tile",
    "tiling{tile=256x128x64 swap=true},%s,epilogue-staging{by=warpgroup}": "exchanged operands",
}


@pytest.mark.parametrize("text", REFUSED)
def test_warpgroups_that_cannot_are_refused(text):
    spec = MatmulSpec(512, 512, 256)
    with pytest.raises(CompileError, match=REFUSED[text]):
        compile_matmul(spec, target="sm_90a", pipeline=text % TMA)


def test_on_blackwell_one_warpgroup_has_all_sums():
    text = f"tiling{{tile=128x128x64}},{TMA},epilogue-staging{{by=warpgroup}}"
    with pytest.raises(CompileError, match="use by=team"):
        compile_matmul(MatmulSpec(512, 512, 256), target="sm_100a", pipeline=text)


@pytest.mark.parametrize("beside", ["beside_columns", "beside_rows"])
def test_warpgroups_that_share_lanes_of_tensor_memory_store_together(beside):
    """The rows of a warpgroup lie apart there."""
    scales = {"a_scales": "1x128", "b_scales": "128x128"}
    spec = MatmulSpec(4096, 1536, 1536, "e4m3", "e4m3", **scales)
    hints = {"epilogue_instructions": 1, beside: ("f32",)}
    chosen = choose_pipeline(replace(spec, **hints), "sm_100a")
    assert "epilogue-staging" in chosen and "by=warpgroup" not in chosen
    text = f"tiling{{tile=128x128x128}},{TMA},epilogue-staging{{by=warpgroup}}"
    rule = "rows of a warpgroup must lie in line, got those of products from tensor memory"
    with pytest.raises(CompileError, match=rule):
        compile_matmul(spec, target="sm_100a", pipeline=text)


@pytest.mark.parametrize("scales", [("1x128", "128x128"), ("128x128", "1x128")])
def test_products_from_tensor_memory_beside_vectors_are_right_as_large_ones_are_chosen(
    check_matmul, scales
):
    """The schedule chosen for 4096x1536x1536, on a product with the same passes."""

    fields = {"a_scales": scales[0], "b_scales": scales[1]}
    large = MatmulSpec(4096, 1536, 1536, "e4m3", "e4m3", **fields)
    hints = {"epilogue_instructions": 1, "beside_columns": ("f32",)}
    chosen = choose_pipeline(replace(large, **hints), "sm_100a")
    small = replace(large, m=300, n=400, k=256)
    added = ("%y = arith.addf %x, %p : f32", "%c = arith.truncf %y : f32 to bf16")
    bias = Epilogue("%x", (EpilogueOperand("%p", "f32", "n", (small.n,)),), added, "%c")
    source = LinalgText(small.mlir_text(bias), "biased")
    check_matmul(source, target="sm_100a", pipeline=chosen)
