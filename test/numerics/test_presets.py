"""Every published rung computes the product: whole tiles, odd shapes, any order of events."""

from pathlib import Path

import pytest

from tilewright.compiler.presets import PRESETS
from tilewright.compiler.spec import MatmulSpec
from tilewright.tools.ladder.other_ladders import other_rungs

pytestmark = pytest.mark.pairwise

LATE = [name for name in PRESETS if "warp-specialization" in PRESETS[name]]
ENDS = ("v6", "kernel6", "kernel8")
INPUTS = Path(__file__).parent / "inputs"


@pytest.mark.sweep(32)
@pytest.mark.parametrize("preset", PRESETS)
@pytest.mark.parametrize("shape", [(300, 264, 136), (77, 40, 56), (129, 264, 72)])
def test_odd_shapes(check_matmul, preset, shape):
    check_matmul(MatmulSpec(*shape), preset=preset, seed=1)


@pytest.mark.sweep(32)
@pytest.mark.parametrize("preset", PRESETS)
def test_whole_tiles(check_matmul, preset):
    check_matmul(MatmulSpec(256, 256, 128), preset=preset)


@pytest.mark.sweep(32)
@pytest.mark.parametrize("rung", other_rungs(), ids=lambda rung: f"{rung.ladder.name} {rung.name}")
def test_rungs_of_further_ladders(check_matmul, rung):
    own = "32x32" in rung.choices[0]
    coarse = rung.spec["a_dtype"][:2] in ("nv", "mx", "e4")
    shape = (70, 40, 72) if own else (136, 288, 384 if coarse else 72)
    check_matmul(MatmulSpec(*shape, **rung.spec), pipeline=rung.choices[0], seed=7)


@pytest.mark.sweep(16)
@pytest.mark.array(
    preset=PRESETS,
    shape=[(264, 136, 136), (136, 264, 72)],
    a_major="km",
    b_major="kn",
    c_dtype=("f16", "f32"),
)
def test_every_layout_and_width_of_the_result(
    check_matmul, preset, shape, a_major, b_major, c_dtype
):
    spec = MatmulSpec(*shape, "f16", "f16", c_dtype, a_major=a_major, b_major=b_major)
    check_matmul(spec, preset=preset, seed=2)


@pytest.mark.sweep(4)
@pytest.mark.array(1, preset=ENDS, name=["scale_bias_residual_swish", "bias_relu"])
def test_epilogues_of_mlir_files(check_matmul, preset, name):
    check_matmul(INPUTS / f"{name}.mlir", preset=preset, seed=4)


@pytest.mark.sweep(12)
@pytest.mark.parametrize("name", ["v3", "v4", "v5", "kernel6"])
@pytest.mark.parametrize("steps", ["1", "S-1", "S", "S+1", "2S", "2S+1"])
def test_k_tile_counts(check_matmul, name, steps):
    stages = {"v3": 4, "v4": 4, "v5": 6, "kernel6": 5}[name]
    count = {"1": 1, "S-1": stages - 1, "S": stages, "S+1": stages + 1}.get(steps)
    count = count or 2 * stages + (steps == "2S+1")
    check_matmul(MatmulSpec(136, 136, 64 * count - 8), preset=name, seed=count)


@pytest.mark.sweep(40)
@pytest.mark.parametrize("seed", range(20))
def test_launch_control_hands_clusters_out_in_any_order(check_matmul, seed):
    check_matmul(MatmulSpec(520, 264, 72), preset="kernel8", seed=seed)


@pytest.mark.sweep(6)
@pytest.mark.parametrize("preset", ["v1a", "v3", "v4", "kernel5", "v6", "kernel8"])
@pytest.mark.parametrize("pdl", ["auto", "false"])
def test_dependent_launch_leaves_the_result_as_it_is(check_matmul, preset, pdl):
    text, waits = f"{PRESETS[preset]},lower-to-nvvm{{pdl={pdl}}}", pdl == "auto"
    compiled, _ = check_matmul(MatmulSpec(136, 264, 136), pipeline=text, seed=6)
    assert compiled.manifest["schedule"]["programmatic_dependent_launch"] is waits
    assert ("griddepcontrol.wait" in compiled.ptx) is waits


@pytest.mark.slow
@pytest.mark.sweep(48)
@pytest.mark.parametrize("preset", LATE)
@pytest.mark.parametrize("seed", range(8))
def test_many_orders_of_events(check_matmul, preset, seed):
    check_matmul(MatmulSpec(136, 264, 328), preset=preset, seed=50 + seed)


@pytest.mark.slow
def test_v6_on_more_than_a_few_tiles(check_matmul):
    check_matmul(MatmulSpec(520, 600, 200), preset="v6")
