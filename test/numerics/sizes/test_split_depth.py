"""A K that a launch says, split among CTAs: parts are counted from it, and some may have none."""

import pytest
import torch

from tilewright import load, matmul
from tilewright.compiler.buckets import buckets_for, compile_buckets
from tilewright.compiler.bundle_writer import as_bundle, write_several
from tilewright.compiler.driver import compile_matmul
from tilewright.compiler.importers.linalg_text import LinalgText
from tilewright.compiler.pipeline import check_program, parse_module
from tilewright.compiler.schedule.any_size.buckets import DEPTH_KERNELS
from tilewright.compiler.spec import MatmulSpec
from tilewright.compiler.spec.epilogue import Epilogue, EpilogueOperand
from tilewright.dialects.context import lent_context
from tilewright.dialects.errors import CompileError
from tilewright.dialects.mlir import ir
from tilewright.runtime.bundles.bundle import Bundle
from tilewright.runtime.launch.devices import open_device
from tilewright.runtime.launch.dynamic_kernel import DynamicKernel
from tilewright.runtime.launch.loading import open_kernel
from tilewright.tools.runs.inputs import make_tensors

M, N = 72, 40
BY_TMA = "tiling{tile=64x32x64},tma-insertion,swizzle-selection"
BY_WARPS = "tiling{tile=64x32x32},copy-insertion,swizzle-selection"
ROLES = "pipelining{stages=3},warp-specialization"
FULL = [
    ("sm_90a", f"{BY_TMA},split-k{{parts=3 over=grid}},clustering{{shape=2x1}},{ROLES}"),
    ("sm_90a", f"{BY_TMA},split-k{{parts=4 over=cluster}},{ROLES}"),
    (
        "sm_90a",
        "tiling{tile=64x16x64 swap=true},tma-insertion,swizzle-selection,split-k{parts=2},"
        "pipelining,warp-specialization",
    ),
    ("sm_90a", f"tiling{{tile=64x24x64}},copy-insertion,split-k{{parts=3 over=grid}},{ROLES}"),
    (
        "sm_100a",
        "tiling{tile=128x32x64},tma-insertion,swizzle-selection,split-k{parts=3 over=grid},"
        f"clustering{{shape=2x1 pair=true}},{ROLES}",
    ),
    ("sm_100a", f"{BY_TMA},split-k{{parts=4 over=cluster}},{ROLES}"),
    ("sm_80", f"{BY_WARPS},split-k{{parts=3 over=grid}},pipelining"),
    ("sm_120a", f"{BY_WARPS},split-k{{parts=3 over=grid}},pipelining"),
]
PREFIXES = [
    (target, ",".join(each.split(",")[:count]))
    for target, each in FULL
    for count in range(each.split("split-k")[0].count(",") + 1, each.count(",") + 2)
]
DEPTHS = (1, 64, 130, 600)
"""One element, one step of many parts, three parts of one step, and several steps of each."""
ROW = Epilogue(
    "%x",
    (EpilogueOperand("%row", "f32", "n", (N,)),),
    ("%y = arith.addf %x, %row : f32", "%z = arith.truncf %y : f32 to bf16"),
    "%z",
)


def spec_of(m: int = M, n: int = N, **more) -> MatmulSpec:
    return MatmulSpec(m, n, 256, a_major="m", b_major="n", dynamic_k=True, **more)


def is_right(bundle: Bundle, depth: int) -> bool:
    """Whether the kernel gives the product of so many columns along K, on poisoned outputs."""
    of_size = bundle.at(depth)
    tensors = make_tensors(of_size.manifest, depth)
    open_device("emulator").launch(of_size, tensors, depth, check="full")
    a, b = tensors["a"].double(), tensors["b"].double()
    bound = 2**-8 * (a @ b.mT).abs() + 2**-16 * (a.abs() @ b.abs().mT)
    return bool(((tensors["c"].double() - a @ b.mT).abs() <= bound).all())


@pytest.mark.sweep(24)
@pytest.mark.parametrize(("target", "pipeline"), PREFIXES)
def test_parts_add_up_to_any_depth_behind_every_pass(target, pipeline):
    bundle = as_bundle(compile_matmul(spec_of(), target=target, pipeline=pipeline))
    assert all(is_right(bundle, depth) for depth in DEPTHS)


@pytest.mark.sweep(2)
@pytest.mark.parametrize("over", ["grid", "cluster"])
@pytest.mark.parametrize("target", ["sm_90a", "sm_100a"])
def test_parts_of_no_depth_give_zeros_through_the_epilogue(target, over):
    source = LinalgText(spec_of().mlir_text(ROW), "any depth")
    pipeline = f"{BY_TMA},split-k{{parts=3 over={over}}},{ROLES}"
    kernel = open_kernel(as_bundle(compile_matmul(source, target=target, pipeline=pipeline)))
    row = torch.rand(N) + 0.5
    for depth in (0, 3, 200):
        a, b = (torch.randn(depth, size, dtype=torch.bfloat16) for size in (M, N))
        wanted = (a.double().T @ b.double() + row).float()
        torch.testing.assert_close(kernel(a, b, row).float(), wanted, rtol=2e-2, atol=2e-2)


def test_launches_that_follow_each_other_share_a_workspace():
    pipeline = f"{BY_TMA},split-k{{parts=3 over=grid}},{ROLES}"
    bundle = as_bundle(compile_matmul(spec_of(c_dtype="f32"), target="sm_90a", pipeline=pipeline))
    tile_bytes = 3 * 64 * 32 * 4 + 4
    assert bundle.at(5).manifest["workspace_bytes"] == 4 * tile_bytes
    kernel = DynamicKernel(bundle)
    for depth in (500, 1, 130):
        a, b = (torch.randn(depth, size, dtype=torch.bfloat16) for size in (M, N))
        wanted = a.double().T @ b.double()
        torch.testing.assert_close(kernel(a.T, b.T).double(), wanted, rtol=1e-5, atol=1e-4)


@pytest.mark.parametrize("target", ["sm_90a", "sm_100a"])
def test_long_depths_have_parts_and_short_ones_do_not(target):
    short, *_, long = buckets_for(spec_of(768, 768), target)
    assert "split-k" not in short.pipeline and "split-k" in long.pipeline
    assert len(buckets_for(spec_of(48, 32), target)) <= DEPTH_KERNELS


@pytest.mark.sweep(2)
@pytest.mark.parametrize("target", ["sm_90a", "sm_100a"])
def test_kernels_share_depths_in_one_bundle(tmp_path, target):
    write_several(tmp_path / "any.zip", compile_buckets(spec_of(c_dtype="f32"), target=target))
    kernel = load(tmp_path / "any.zip")
    assert kernel.manifest["tensors"][0]["shape"] == [M, "k"]
    pipelines = {kernel.bundle.at(depth).manifest["pipeline"] for depth in (1, 3000)}
    assert len(pipelines) == 2
    for depth in (0, 1, 700, 3000):
        a, b = (torch.randn(depth, size, dtype=torch.bfloat16) for size in (M, N))
        wanted = a.double().T @ b.double()
        torch.testing.assert_close(kernel(a.T, b.T).double(), wanted, rtol=1e-5, atol=1e-3)


@pytest.mark.parametrize("target", ["sm_90a", "sm_100a"])
def test_a_call_takes_the_kernel_of_its_depth(target):
    for depth in (0, 9, 3000):
        a, b = (torch.randn(depth, size, dtype=torch.bfloat16) for size in (M, N))
        got = matmul(a.T, b.T, k="dynamic", target=target)
        wanted = (a.double().T @ b.double()).bfloat16()
        torch.testing.assert_close(got, wanted, rtol=2e-2, atol=2e-2)


def test_more_parts_than_a_grid_has_are_refused():
    pipeline = f"{BY_TMA},split-k{{parts=65536 over=grid}}"
    rule = "split-k: parts over the grid must be up to 65535, got 65536; take fewer parts"
    with pytest.raises(CompileError, match=rule):
        compile_matmul(spec_of(), target="sm_90a", pipeline=pipeline)


def test_steps_that_a_loop_leaves_out_are_not_split(tmp_path):
    text = compile_matmul(spec_of(), pipeline="tiling", stop_after="tiling", until="mlir").mlir
    path = tmp_path / "edited.mlir"
    path.write_text(text.replace("less = 0 :", "less = 2 :"))
    rule = "split-k: must take all steps along K, got an end 2 before; let less be 0"
    with pytest.raises(CompileError, match=rule):
        compile_matmul(path, pipeline="split-k{over=grid}", until="mlir")


@pytest.mark.parametrize(
    ("written", "instead", "rule"),
    [
        ("depth = 192 : i64, least = 4", "depth = 192 : i64, least = 3", "apart by the 4 steps"),
        ("depth = 192", "depth = 64", "steps of 192 must cover"),
        ("addi %first, %k", "addi %part, %k", "must begin with the first step of their part"),
        ('"tile.split_start"(%part', '"tile.split_start"(%i', "must begin by a tile.split_rank"),
    ],
)
def test_parts_must_begin_where_those_before_them_end(written, instead, rule):
    """Loops without roles run steps ahead, which would be those of the next part."""
    pipeline = f"{BY_TMA},split-k{{parts=3 over=grid}},pipelining{{stages=3}}"
    how = {"target": "sm_90a", "pipeline": pipeline, "stop_after": "pipelining", "until": "mlir"}
    text = compile_matmul(spec_of(), **how).mlir
    assert written in text
    changed = text.replace(written, instead)
    with lent_context(), ir.Location.unknown(), pytest.raises(CompileError, match=rule):
        check_program(parse_module(changed, "kernel.mlir"))
