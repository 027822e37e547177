"""K split over the grid: the CTA that comes last adds up all parts, in their order."""

import itertools
from contextlib import nullcontext

import pytest
import torch

from tilewright.compiler.bundle_writer import as_bundle
from tilewright.compiler.driver import compile_matmul
from tilewright.compiler.spec import MatmulSpec
from tilewright.passes.expand import reduction
from tilewright.runtime.errors import DeviceError
from tilewright.runtime.launch.devices import open_device
from tilewright.runtime.launch.dynamic_kernel import DynamicKernel
from tilewright.runtime.launch.emulator_device import Workspace
from tilewright.tools.runs.inputs import make_tensors

TARGETS = ("sm_90a", "sm_100a")
HEAD = "tiling{{tile={tile}}},tma-insertion,swizzle-selection,split-k{{parts={parts} over=grid}}"
ROLES = "pipelining{stages=2},warp-specialization"
ENDS = {
    "synchronous": "",
    "roles": f",{ROLES}",
    "2x1": f",clustering{{shape=2x1 pair=false}},{ROLES}",
    "1x2": f",clustering{{shape=1x2 pair=false}},{ROLES}",
}


def pipeline(tile, parts, end="roles"):
    return HEAD.format(tile=tile, parts=parts) + ENDS[end]


@pytest.mark.sweep(8)
@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("end", ENDS)
@pytest.mark.parametrize(("tile", "shape"), [
    ("64x32x64", (72, 40, 320)), ("128x64x32", (130, 72, 184)), ("64x64x64", (33, 65, 704)),
])  # fmt: skip
def test_every_part_reaches_every_element(check_matmul, target, end, tile, shape):
    compiled, _ = check_matmul(MatmulSpec(*shape), pipeline=pipeline(tile, 3, end), target=target)
    assert compiled.manifest["schedule"]["split_k_over"] == "grid"
    assert (compiled.manifest["grid"][2], compiled.manifest["cluster"][2]) == (3, 1)


@pytest.mark.parametrize("target", TARGETS)
def test_ctas_that_fill_up_a_cluster_add_nothing_up(check_matmul, target):
    """Nobody has written sums of the tile behind the last row."""
    text = pipeline("64x32x64", 2, "2x1")
    compiled, _ = check_matmul(MatmulSpec(40, 40, 184), pipeline=text, target=target)
    assert compiled.manifest["grid"] == [2, 2, 2]


def test_shares_that_ctas_gave_up_are_the_last_ones(check_matmul, monkeypatch):
    """Nobody looks whether the others are there."""
    monkeypatch.setattr(reduction, "POLLS", 0)
    check_matmul(MatmulSpec(77, 40, 328), pipeline=pipeline("64x32x64", 3), target="sm_90a")


@pytest.mark.parametrize(("tiles", "waits"), [(66, True), (67, False)])
def test_ctas_of_a_grid_larger_than_the_gpu_do_not_wait(tiles, waits):
    spec = MatmulSpec(64 * tiles, 32, 512)
    compiled = compile_matmul(spec, target="sm_90a", pipeline=pipeline("64x32x64", 2))
    assert ("global.add.u32" in compiled.ptx) == waits
    assert ("global.inc.u32" in compiled.ptx) != waits


@pytest.mark.parametrize("tile", ["64x32x64", "128x64x64"])
def test_pairs_of_ctas_have_parts_of_k(check_matmul, tile):
    end = f",clustering{{shape=2x1 pair=true}},{ROLES}"
    text = HEAD.format(tile=tile, parts=2) + end
    check_matmul(MatmulSpec(200, 72, 264), pipeline=text, target="sm_100a")


def test_warps_that_multiply_by_themselves_have_parts_of_k(check_matmul):
    text = "tiling{tile=64x64x32},copy-insertion,swizzle-selection,split-k{parts=3 over=grid}"
    check_matmul(MatmulSpec(70, 72, 264), pipeline=f"{text},pipelining{{stages=3}}", target="sm_80")


def test_rows_of_any_number_have_parts_of_k():
    spec = MatmulSpec(96, 64, 328, c_dtype="f32", dynamic_m=True)
    bundle = as_bundle(compile_matmul(spec, target="sm_90a", pipeline=pipeline("64x64x64", 3)))
    tile_bytes = 3 * 64 * 64 * 4 + 4
    assert bundle.manifest["workspace_bytes"] == tile_bytes
    assert bundle.at(200).manifest["workspace_bytes"] == 4 * tile_bytes
    a, b = torch.randn(70, 328).bfloat16(), torch.randn(64, 328).bfloat16()
    found = DynamicKernel(bundle)(a, b)
    torch.testing.assert_close(found, a.float() @ b.float().T, rtol=1e-4, atol=1e-3)


@pytest.fixture(scope="module", params=TARGETS)
def program(request):
    spec = MatmulSpec(64, 40, 248, c_dtype="f32")
    compiled = compile_matmul(spec, target=request.param, pipeline=pipeline("64x32x64", 4))
    return open_device("emulator").open(as_bundle(compiled))


def test_sums_are_the_same_whoever_comes_last(program):
    """Launches follow each other with one workspace, each with another order of events. In one of
    them who comes last was held after it had given up, while the others did all of their work."""
    manifest, found = program.bundle.manifest, set()
    for seed in (0, 5):
        tensors = make_tensors(manifest, 3)
        program.run(list(tensors.values()), seed=seed, check="full")
        found.add(tensors["c"].numpy().tobytes())
    assert len(found) == 1


ARRIVALS = [(0, 1, 2, 3), (3, 1, 0, 2), (2, 3, 1, 0)]


def test_sums_are_the_same_in_every_order_of_arrival(program):
    """One part after the other, each in a launch of its own that finds what those before left."""
    manifest, found = program.bundle.manifest, set()
    places = list(itertools.product(*map(range, manifest["grid"][:2])))
    for order in ARRIVALS:
        tensors = make_tensors(manifest, 3)
        for part in order[:-1]:
            with pytest.raises(DeviceError, match="must leave zeros in its workspace"):
                program.run(list(tensors.values()), only=[(*place, part) for place in places])
            assert tensors["c"].isnan().all()
        program.run(list(tensors.values()), only=[(*place, order[-1]) for place in places])
        found.add(tensors["c"].numpy().tobytes())
    assert len(found) == 1
    for resident in (1, 2, 3):
        tensors = make_tensors(manifest, 3)
        program.run(list(tensors.values()), resident=resident)
        assert tensors["c"].numpy().tobytes() in found, "nobody waits for a CTA that has no room"


def test_the_last_one_has_all_shares_though_it_gave_up(program):
    """As if all had looked before one of them was there."""
    manifest, tensors = program.bundle.manifest, make_tensors(program.bundle.manifest, 3)
    places = list(itertools.product(*map(range, manifest["grid"][:2])))
    for part in range(4):
        with pytest.raises(DeviceError) if part < 3 else nullcontext():
            program.run(list(tensors.values()), only=[(*place, part) for place in places])
        if part == 2:
            program.workspaces[-1].words[:] -= 1
    expected = tensors["a"].double() @ tensors["b"].double().T
    torch.testing.assert_close(tensors["c"].double(), expected, rtol=1e-4, atol=1e-3)


def test_a_launch_that_ends_midway_leaves_nothing_to_the_next_one(program):
    tensors, wanted = (make_tensors(program.bundle.manifest, 3) for _ in range(2))
    steps = sum(program.run(list(wanted.values())).instructions.values())
    left = set()
    for part in (8, 9):
        with pytest.raises(DeviceError):
            program.run(list(tensors.values()), max_steps=steps * part // 10)
        left.add(bool(program.workspaces[-1].words.any()))
        program.run(list(tensors.values()))
        assert tensors["c"].equal(wanted["c"])
    assert True in left


def test_the_workspace_is_what_the_manifest_says(program):
    manifest = program.bundle.manifest
    told = [each for each in manifest["parameters"] if each["kind"] == "workspace"]
    assert told == [
        {"kind": "workspace", "tile_bytes": 4 * 64 * 32 * 4, "start": "any"},
        {"kind": "workspace", "tile_bytes": 4, "start": "zero"},
    ]
    assert manifest["workspace_bytes"] == 2 * (4 * 64 * 32 * 4 + 4)
    assert manifest["schema"] == 3


def test_words_that_a_run_leaves_behind_are_refused():
    workspace = Workspace.of(8, is_zero=True)
    workspace.words[1] = 2
    with pytest.raises(DeviceError) as refused:
        workspace.check("kernel f")
    assert str(refused.value) == (
        "kernel f: must leave zeros in its workspace, got 2 in word 1; reset what it counts"
    )
