"""Slots that the lane which loads fills before all threads of its CTA meet: right, and no more than
there are."""

import re

import pytest
import torch

from tilewright.compiler.bundle_writer import as_bundle
from tilewright.compiler.driver import compile_matmul
from tilewright.compiler.spec import MatmulSpec
from tilewright.runtime.launch.devices import open_device
from tilewright.runtime.launch.dynamic_kernel import DynamicKernel
from tilewright.tools.runs.inputs import make_tensors

TMA = "tma-insertion,swizzle-selection"
ROLES = "pipelining{stages=2},warp-specialization"
TILE = f"tiling{{tile=64x64x64}},{TMA}"
STAGED = "epilogue-staging{columns=32 buffers=2}"
KERNELS = {
    "one step": (MatmulSpec(136, 72, 40), f"{TILE},{ROLES}", 1),
    "as many as slots": (MatmulSpec(136, 72, 128), f"{TILE},{STAGED},{ROLES}", 2),
    "more": (MatmulSpec(136, 72, 328), f"{TILE},{STAGED},{ROLES}", 2),
    "five slots": (
        MatmulSpec(64, 64, 328),
        f"{TILE},pipelining{{stages=5}},warp-specialization",
        5,
    ),
    "wide boxes": (
        MatmulSpec(136, 72, 328),
        f"tiling{{tile=64x64x128}},tma-insertion{{box=3d}},swizzle-selection,{ROLES}",
        2,
    ),
    "a grid along N": (
        MatmulSpec(136, 200, 200),
        f"{TILE.replace('64}', '64 order=n}')},{ROLES}",
        2,
    ),
    "exchanged": (MatmulSpec(20, 200, 200), f"tiling{{tile=64x16x64 swap=true}},{TMA},{ROLES}", 2),
    "two warpgroups": (
        MatmulSpec(136, 264, 200),
        f"tiling{{tile=128x256x64}},{TMA},{STAGED},{ROLES}",
        2,
    ),
    "a stack": (MatmulSpec(72, 72, 200, batch=3), f"{TILE},{ROLES}", 2),
    "zeros left out": (MatmulSpec(72, 72, 208), f"{TILE},{ROLES},skip-zeros", 2),
    "8 bits": (
        MatmulSpec.of_type(72, 72, 400, "e4m3"),
        f"tiling{{tile=64x64x128}},{TMA},{ROLES}",
        2,
    ),
    "scales of 128": (
        MatmulSpec(72, 136, 400, "e4m3", "e4m3", "bf16", a_scales="1x128", b_scales="128x128"),
        f"tiling{{tile=64x128x128}},{TMA},{ROLES}",
        2,
    ),
}
LATE = {
    "asked not to": f"{TILE},{ROLES},pipes-to-barriers{{first=false}}",
    "a cluster": f"{TILE},clustering{{shape=2x1 pair=false}},{ROLES}",
    "tiles in a loop": f"{TILE},{ROLES},persistence{{ctas=3}}",
    "parts of K": f"{TILE},split-k{{parts=2}},{ROLES}",
    "marks": f"{TILE},{ROLES},instrument",
    "tiles asked for early": f"{TILE},{ROLES},expand-loops{{early=1}}",
    "threads that load and multiply": f"{TILE},pipelining{{stages=2}}",
}


def first_loads(ptx):
    """How many loops of loads, and of loads without one, stand before the first meeting."""
    meeting = min(at for at in (ptx.find("bar.sync"), ptx.find("barrier.cluster")) if at > 0)
    return ptx[:meeting].count("expect_tx")


def first_steps(spec, pipeline):
    """The steps of the loop before the meeting."""
    wanted = {"stop_after": "pipes-to-barriers", "until": "mlir"}
    text = compile_matmul(spec, target="sm_90a", pipeline=pipeline, **wanted).mlir
    early = text[text.index('"sm.early"') : text.index('"sm.cta_barrier"')]
    bounds = re.search(r"scf.for %\w+ = (%\w+) to (%\w+) step", early)
    first, end = (
        re.search(rf"{bound} = arith.constant (\d+)", early)[1] for bound in bounds.groups()
    )
    return int(end) - int(first)


@pytest.mark.sweep(6)
@pytest.mark.parametrize("name", KERNELS)
def test_kernels_are_right_and_fill_their_slots_first(check_matmul, name, seed=1):
    spec, pipeline, filled = KERNELS[name]
    compiled, _ = check_matmul(spec, target="sm_90a", pipeline=pipeline, seed=seed)
    assert first_loads(compiled.ptx) > 0
    assert first_steps(spec, pipeline) == filled


@pytest.mark.parametrize("name", LATE)
def test_others_load_behind_the_meeting(name):
    spec = MatmulSpec(136, 72, 328)
    compiled = compile_matmul(spec, target="sm_90a", pipeline=LATE[name], until="ptx")
    assert first_loads(compiled.ptx) == 0


@pytest.mark.parametrize(
    ("shape", "c_dtype"), [((2048, 2048, 4096), "bf16"), ((1024, 3584, 1024), "f32")]
)
def test_threads_that_keep_the_fewest_registers_load_behind_the_meeting(shape, c_dtype):
    """Else ptxas spills in kernels that are chosen for scales of 1x128, which are then given up."""
    spec = MatmulSpec(*shape, "e4m3", "e4m3", c_dtype, a_scales="1x128", b_scales="1x128")
    compiled = compile_matmul(spec, target="sm_90a")
    assert not compiled.given_up
    assert "persistence" not in compiled.pipeline
    assert "setmaxnreg.dec.sync.aligned.u32 \t24" in compiled.ptx
    assert first_loads(compiled.ptx) == 0


def test_rows_that_a_call_says_are_loaded_first():
    spec = MatmulSpec(136, 72, 328, c_dtype="f32", dynamic_m=True)
    compiled = compile_matmul(spec, target="sm_90a", pipeline=f"{TILE},{STAGED},{ROLES}")
    assert first_loads(compiled.ptx) > 0
    kernel, b = DynamicKernel(as_bundle(compiled)), torch.randn(72, 328).bfloat16()
    for rows in (1, 64, 150):
        a = torch.randn(rows, 328).bfloat16()
        torch.testing.assert_close(kernel(a, b), a.float() @ b.float().T, rtol=1e-4, atol=1e-3)


def test_only_steps_that_k_has_are_loaded_first():
    """Else a CTA of a launch with a short K may end before loads that nobody awaits."""
    spec = MatmulSpec(72, 40, 256, a_major="m", b_major="n", dynamic_k=True)
    pipeline = f"{TILE},pipelining{{stages=4}},warp-specialization"
    wanted = {"stop_after": "pipes-to-barriers", "until": "mlir"}
    text = compile_matmul(spec, target="sm_90a", pipeline=pipeline, **wanted).mlir
    early = text[text.index('"sm.early"') : text.index('"sm.cta_barrier"')]
    end = re.search(r"scf.for %\w+ = %\w+ to (%\w+) step", early)[1]
    assert re.search(rf'{end} = "tile.group_steps"\(.*most = 4 ', early)
    bundle = as_bundle(compile_matmul(spec, target="sm_90a", pipeline=pipeline))
    for depth, seed in ((7, 0), (130, 1), (400, 2)):
        of_depth = bundle.at(depth)
        tensors = make_tensors(of_depth.manifest, depth)
        open_device("emulator").launch(of_depth, tensors, seed, check="full")
        wanted = tensors["a"].double() @ tensors["b"].double().mT
        torch.testing.assert_close(tensors["c"].double(), wanted, rtol=2**-7, atol=2**-7)
