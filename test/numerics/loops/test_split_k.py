"""A tile shared by a cluster along K: right for every count of steps, and the same in every run."""

import re
from dataclasses import replace

import pytest

from tilewright.compiler.driver import compile_matmul
from tilewright.compiler.spec import MatmulSpec
from tilewright.runtime.bundles.bundle import Bundle, seal
from tilewright.runtime.errors import DeviceError
from tilewright.runtime.launch.devices import open_device
from tilewright.tools.runs.inputs import make_tensors

pytestmark = pytest.mark.pairwise

TARGETS = ("sm_90a", "sm_100a")
TMA = "tiling{tile=64x64x64},tma-insertion,swizzle-selection"
KINDS = {
    "synchronous": "tiling{tile=64x64x64},split-k{parts=PARTS}",
    "pipelined": f"{TMA},split-k{{parts=PARTS}},pipelining{{stages=3}}",
    "roles": f"{TMA},split-k{{parts=PARTS}},pipelining{{stages=2}},warp-specialization",
}
K = {"1": 56, "S-1": 128, "S": 184, "S+1": 256, "2S+1": 440}  # of 64 a step


def roles(tile, parts, stages=3):
    head = f"tiling{{tile={tile}}},tma-insertion,swizzle-selection,split-k{{parts={parts}}}"
    return f"{head},pipelining{{stages={stages}}},warp-specialization"


@pytest.mark.sweep(20)
@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("steps", K)
def test_counts_of_k_steps_around_the_parts(check_matmul, target, kind, steps):
    spec = MatmulSpec(72, 104, K[steps], c_dtype="f32")
    pipeline = KINDS[kind].replace("PARTS", "3")
    compiled, _ = check_matmul(spec, pipeline=pipeline, target=target)
    assert compiled.manifest["cluster"] == [1, 1, 3]
    assert compiled.manifest["workspace_bytes"] == 0
    assert "atom" not in compiled.ptx


@pytest.mark.sweep(12)
@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("parts", [3, 16])
@pytest.mark.parametrize("tile", ["64x24x32", "128x96x64", "128x128x64", "192x16x64"])
def test_tiles_whose_rows_the_parts_need_not_divide(check_matmul, target, parts, tile):
    m, n, _ = map(int, tile.split("x"))
    check_matmul(MatmulSpec(m + 8, n, 392), pipeline=roles(tile, parts, 2), target=target)


@pytest.mark.sweep(6)
@pytest.mark.parametrize("tile", ["128x64x32", "256x32x64", "192x48x32"])
def test_two_or_three_warpgroups_write_their_rows(check_matmul, tile):
    check_matmul(MatmulSpec(136, 72, 200), pipeline=roles(tile, 3), target="sm_90a", seed=1)


@pytest.mark.sweep(6)
@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("shape", [(1, 1, 1), (16, 66, 332), (129, 33, 51), (64, 66, 384)])
def test_ragged_edges_are_filled_and_dropped(check_matmul, target, shape):
    check_matmul(MatmulSpec(*shape), pipeline=roles("64x64x64", 4), target=target, seed=2)


@pytest.mark.sweep(4)
@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize(("a_major", "b_major"), [("m", "n"), ("m", "k"), ("k", "n")])
@pytest.mark.parametrize("kind", ["synchronous", "roles"])
def test_every_layout_past_the_end_of_k(check_matmul, target, a_major, b_major, kind):
    spec = MatmulSpec(64, 128, 320, a_major=a_major, b_major=b_major)
    check_matmul(spec, pipeline=KINDS[kind].replace("PARTS", "4"), target=target, seed=3)


@pytest.mark.sweep(4)
@pytest.mark.parametrize("target", TARGETS)
def test_operands_that_threads_copy(check_matmul, target):
    compiled, _ = check_matmul(
        MatmulSpec(70, 61, 205), pipeline=roles("64x64x64", 3), target=target
    )
    assert sum("copied by threads" in remark for remark in compiled.remarks) == 2


def test_parts_without_work_are_remarked(check_matmul):
    compiled, _ = check_matmul(MatmulSpec(64, 64, 64 * 9), pipeline=roles("64x64x64", 4))
    (remark,) = compiled.remarks
    assert remark.endswith("split-k: 9 K steps are 3 parts of 3, got parts=4; CTAs without work: 1")


@pytest.mark.sweep(4)
@pytest.mark.parametrize("target", TARGETS)
def test_a_staged_epilogue_is_left_out_with_a_remark(check_matmul, target):
    text = roles("64x64x64", 2).replace("pipelining", "epilogue-staging,pipelining")
    compiled, _ = check_matmul(MatmulSpec(64, 128, 256), pipeline=text, target=target)
    (remark,) = compiled.remarks
    assert remark.endswith("epilogue-staging: c is stored by threads, which sum a split K")


@pytest.mark.sweep(4)
@pytest.mark.parametrize("target", TARGETS)
def test_the_sum_is_the_same_bits_in_any_order_of_events(run_bits, target):
    spec = MatmulSpec(64, 64, 64 * 7, c_dtype="f32")
    compiled = compile_matmul(spec, pipeline=roles("64x64x64", 4), target=target)
    first, *others = [run_bits(compiled, seed) for seed in range(3)]
    assert all(other == first for other in others)


CONVERGE = r"bar\.warp\.sync\s+-1;\s*"
STORES = rf"(st\.shared[^;]*;\s*{CONVERGE})"
AFTER_WORK = rf"((?:st\.shared[^;]*|bar\.warp\.sync\s+-1);\s*{CONVERGE})"
MEETING = r"barrier\.cluster\.arrive\.aligned;\s*barrier\.cluster\.wait\.aligned;"


@pytest.mark.sweep(4)
@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize(
    ("pattern", "instead", "found"),
    [
        (rf"{STORES}barrier\.cluster\.arrive", r"\1barrier.cluster.arrive.relaxed", "race"),
        (rf"{AFTER_WORK}{MEETING}", r"\1", "race|uninitialised-read"),
        (rf"(?s)(.*){MEETING}", r"\1", "exited"),
    ],
    ids=["release", "sums", "end"],
)
def test_the_emulator_sees_a_cluster_that_does_not_meet(run_bits, target, pattern, instead, found):
    spec = MatmulSpec(64, 64, 256, c_dtype="f32")
    compiled = compile_matmul(spec, pipeline=roles("64x64x64", 2), target=target)
    ptx, count = re.subn(pattern, instead, compiled.ptx)
    assert count
    with pytest.raises(DeviceError, match=found):
        for seed in range(8):
            run_bits(replace(compiled, ptx=ptx), seed)


@pytest.fixture
def run_bits():
    """run_bits(compiled, seed): C's bytes after a run on the emulator, the inputs always alike."""

    def run(compiled, seed):
        cubin = compiled.assembled.cubin
        bundle = Bundle(seal(compiled.manifest, compiled.ptx, cubin), compiled.ptx, cubin)
        tensors = make_tensors(bundle.manifest, 0, None)
        open_device("emulator").launch(bundle, tensors, seed, check="full")
        return tensors["c"].numpy().tobytes()

    return run
