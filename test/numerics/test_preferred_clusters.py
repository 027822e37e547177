"""Kernels of launches that prefer a cluster and may fall back on a smaller one."""

import pytest

from tilewright.compiler.driver import compile_matmul
from tilewright.compiler.spec import MatmulSpec
from tilewright.dialects.errors import CompileError

STAGES = "pipelining{stages=2}"
ROLES = f"{STAGES},warp-specialization"
STATIC = f"{ROLES},persistence{{ctas=16}}"
NVFP4 = {"a_dtype": "nvfp4", "b_dtype": "nvfp4", "k": 512, "n": 120}
TWO_LEVEL = {"a_dtype": "e4m3", "b_dtype": "e4m3", "sums": "two-level", "k": 256}
PERMUTED = {"a_major": "m", "b_major": "n", "m": 520, "n": 120}
FORMS = {
    "pairs that share B": ({"m": 1000}, "128x32x64", "4x1 pair=true fallback=2x1", ROLES),
    "A and B": ({}, "64x32x64", "4x2 pair=true fallback=2x1", ROLES),
    "one of them alone": ({}, "128x32x64", "2x2 pair=true fallback=2x1", STATIC),
    "no pairs": ({}, "128x32x64", "2x2 pair=false fallback=1x1", ROLES),
    "in line along N": ({}, "128x16x64", "1x4 pair=false fallback=1x2", ROLES),
    "no roles": ({"m": 1000}, "128x32x64", "4x1 pair=true fallback=2x1", STAGES),
    "block scales": (NVFP4, "128x64x256", "2x2 pair=true fallback=2x1", ROLES),
    "sums by threads": (TWO_LEVEL, "128x32x128", "2x2 pair=true fallback=2x1", ROLES),
    "rows along M and N": (PERMUTED, "128x64x64", "4x1 pair=true fallback=2x1", ROLES),
    "a C in pieces": ({"batch": 2}, "128x32x64", "2x2 pair=true fallback=2x1", ROLES),
    "groups": ({"groups": 3}, "128x32x64", "1x2 pair=false fallback=1x1", STATIC),
}


def passes(tile: str, cluster: str, last: str, staged: bool = False) -> str:
    staging = ",epilogue-staging{columns=32 buffers=2}" if staged else ""
    tiles = f"tiling{{tile={tile}}},tma-insertion,swizzle-selection{staging}"
    return f"{tiles},clustering{{shape={cluster}}},{last}"


@pytest.mark.array(1, form=tuple(FORMS), seed=(0, 1, 2))
def test_a_kernel_is_right_in_clusters_of_both_shapes(check_matmul, form, seed):
    """The seed mixes them. Sizes are no multiples of tiles."""
    fields, tile, cluster, last = FORMS[form]
    spec = MatmulSpec(**{"m": 300, "n": 60, "k": 136} | fields)
    pipeline = passes(tile, cluster, last, staged=form == "a C in pieces")
    compiled, report = check_matmul(spec, pipeline=pipeline, seed=seed)
    larger = compiled.manifest["preferred_cluster"]
    assert larger[:2] == compiled.manifest["schedule"]["cluster"] != compiled.manifest["cluster"]
    assert not report.warnings


def test_clusters_of_both_shapes_are_in_one_launch(check_matmul):
    pipeline = passes("128x16x16", "2x1 pair=false fallback=1x1", STAGES)
    _, report = check_matmul(MatmulSpec(512, 64, 32), pipeline=pipeline, seed=1)
    assert 0 < report.engines["preferred clusters"] < 8


@pytest.mark.parametrize(
    ("cluster", "last", "target", "message"),
    [
        ("4x1 pair=true fallback=1x1", ROLES, "sm_100a",
         "clustering: 2-CTA MMAs need an even fallback M, got 1x1; drop fallback"),
        ("2x2 fallback=2x2", ROLES, "sm_100a",
         "clustering: a fallback must be a part of 2x2, got 2x2; drop fallback"),
        ("2x2 fallback=3x1", ROLES, "sm_100a",
         "clustering: a fallback must be a part of 2x2, got 3x1; drop fallback"),
        ("2x1 fallback=1x1", ROLES, "sm_90a",
         "clustering: sm_90a has clusters of one shape a launch, got fallback=1x1; drop fallback"),
        ("4x1 fallback=2x1", f"{ROLES},persistence{{scheduler=clc}}", "sm_100a",
         "persistence: scheduler=clc takes over clusters of one shape, got a fallback; "
         "use scheduler=static"),
        ("2x2 pair=false fallback=1x1", f"{ROLES},edge-boxes", "sm_100a",
         "edge-boxes: the CTAs of a line must all be in a cluster, got a fallback; "
         "leave edge-boxes out"),
    ],
)  # fmt: skip
def test_what_cannot_fall_back_is_refused(cluster, last, target, message):
    spec, pipeline = MatmulSpec(300, 250, 200), passes("128x64x64", cluster, last)
    with pytest.raises(CompileError) as refused:
        compile_matmul(spec, pipeline=pipeline, target=target, until="mlir")
    assert str(refused.value).endswith(message)


def test_the_parts_of_a_split_k_stay_in_one_cluster():
    clusters = "split-k{parts=2},clustering{shape=2x1 pair=false fallback=1x1}"
    pipeline = f"tiling{{tile=128x64x64}},tma-insertion,{clusters}"
    with pytest.raises(CompileError, match="the parts of a split K are in one cluster, got 2"):
        compile_matmul(MatmulSpec(512, 64, 256), pipeline=pipeline, target="sm_100a", until="mlir")
