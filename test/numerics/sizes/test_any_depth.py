"""One kernel for any K: how many steps its loops take is a number of the launch."""

from itertools import pairwise

import numpy as np
import pytest
import torch

from tilewright import matmul
from tilewright.compiler.bundle_writer import as_bundle
from tilewright.compiler.driver import compile_matmul
from tilewright.compiler.spec import MatmulSpec
from tilewright.compiler.spec.epilogue import Epilogue, EpilogueOperand
from tilewright.dialects.errors import CompileError, OptionError
from tilewright.runtime import LaunchError
from tilewright.runtime.bundles.bundle import Bundle
from tilewright.runtime.bundles.sizes import DEPTH_MOST, most_rows
from tilewright.runtime.launch.devices import open_device
from tilewright.runtime.launch.loading import open_kernel
from tilewright.tools.runs.inputs import make_tensors

M, N = 72, 40
HOPPER = (
    "tiling{tile=64x32x64},tma-insertion,swizzle-selection,epilogue-staging,clustering{shape=2x1},"
    "pipelining{stages=3},warp-specialization,persistence{ctas=2},ping-pong"
)
BLACKWELL = (
    "tiling{tile=128x32x64},tma-insertion,swizzle-selection,epilogue-staging,clustering,"
    "pipelining{stages=4},warp-specialization,persistence{scheduler=clc}"
)
PERMUTED = (
    "tiling{tile=64x16x64 swap=true},tma-insertion,swizzle-selection,epilogue-staging,"
    "clustering{shape=1x2},pipelining,warp-specialization,persistence{order=n ctas=4}"
)
PAIRED = (
    "tiling{tile=128x32x64},tma-insertion,swizzle-selection,epilogue-staging,"
    "clustering{shape=2x1 pair=true},pipelining,warp-specialization,persistence"
)
PREFIXES = [
    (target, ",".join(full.split(",")[:count]))
    for target, full in (
        ("sm_90a", HOPPER),
        ("sm_100a", BLACKWELL),
        ("sm_90a", PERMUTED),
        ("sm_100a", PAIRED),
    )
    for count in range(1, full.count(",") + 2)
]
OTHERS = [
    ("sm_80", "tiling{tile=64x32x32},copy-insertion,swizzle-selection,epilogue-staging,pipelining"),
    ("sm_120a", "tiling{tile=64x32x32},tma-insertion,swizzle-selection,pipelining"),
    ("sm_90a", "tiling{tile=64x24x64 order=n},copy-insertion,pipelining,warp-specialization"),
]
DEPTHS = (1, 64, 200)
EPILOGUE = Epilogue(
    "%x",
    (EpilogueOperand("%row", "f32", "n", (N,)),),
    ("%y = arith.addf %x, %row : f32", "%z = arith.truncf %y : f32 to bf16"),
    "%z",
)


def compiled(target: str, pipeline: str | None, m: int = M, n: int = N, **more) -> Bundle:
    spec = MatmulSpec(m, n, 256, a_major="m", b_major="n", dynamic_k=True, **more)
    return as_bundle(compile_matmul(spec, target=target, pipeline=pipeline))


def is_right(bundle: Bundle, depth: int) -> bool:
    """Whether the kernel gives the product of so many columns along K, on poisoned outputs."""
    of_size = bundle.at(depth)
    tensors = make_tensors(of_size.manifest, depth)
    assert tensors["a"].shape[1] == tensors["b"].shape[1] == depth
    open_device("emulator").launch(of_size, tensors, depth, check="full")
    a, b = tensors["a"].double(), tensors["b"].double()
    bound = 2**-8 * (a @ b.mT).abs() + 2**-16 * (a.abs() @ b.abs().mT)
    return bool(((tensors["c"].double() - a @ b.mT).abs() <= bound).all())


@pytest.mark.sweep(36)
@pytest.mark.parametrize(("target", "pipeline"), PREFIXES + OTHERS)
def test_every_prefix_runs_for_any_depth(target, pipeline):
    bundle = compiled(target, pipeline)
    assert all(is_right(bundle, depth) for depth in DEPTHS)


@pytest.mark.sweep(6)
@pytest.mark.parametrize(("target", "pipeline"), [e for e in PREFIXES if "swap" not in e[1]])
def test_every_prefix_runs_for_groups_of_any_depth(target, pipeline):
    """Of which some have nothing, and one ends behind the last row."""
    kernel = open_kernel(compiled(target, pipeline, groups=4, group_axis="k", c_dtype="f32"))
    for depth, ends in ((70, [0, 5, 5, 70]), (200, [150, 160, 160, 999]), (0, [0, 0, 0, 0])):
        a, b = (torch.randn(depth, size, dtype=torch.bfloat16) for size in (M, N))
        got = kernel(a.T, b.T, torch.tensor(ends, dtype=torch.int32))
        for group, (begin, end) in enumerate(pairwise([0, *ends])):
            wanted = a[begin:end].double().T @ b[begin:end].double()
            torch.testing.assert_close(got[group].double(), wanted, rtol=1e-5, atol=1e-4)


@pytest.mark.sweep(2)
@pytest.mark.parametrize("target", ["sm_90a", "sm_100a"])
@pytest.mark.parametrize("sizes", [(77, 33), (136, 200), (1, 40)])
def test_the_chosen_schedule_is_right_where_rows_are_no_whole_units(target, sizes):
    """Whose rows TMA cannot address, and of one row."""
    bundle = compiled(target, None, *sizes)
    assert all(is_right(bundle, depth) for depth in (1, 7, 130))


@pytest.mark.parametrize("gaps", [{"lda": 80}, {"ldb": 56}])
def test_rows_may_have_gaps(gaps):
    assert is_right(compiled("sm_90a", None, **gaps), 70)


@pytest.mark.parametrize("target", ["sm_90a", "sm_100a"])
def test_no_depth_gives_zeros_through_the_epilogue(target):
    spec = MatmulSpec(M, N, 256, a_major="m", b_major="n", dynamic_k=True, c_dtype="f32")
    kernel = open_kernel(as_bundle(compile_matmul(spec, target=target)))
    out = torch.full((M, N), torch.nan)
    none = torch.empty(0, M, dtype=torch.bfloat16), torch.empty(0, N, dtype=torch.bfloat16)
    assert kernel(none[0].T, none[1].T, out=out) is out
    assert not out.any()


@pytest.mark.parametrize(
    ("a", "b", "rule"),
    [
        ((0, M), (5, N), r"tensor 'b': shape must be \[40, 0\], got \[40, 5\]"),
        ((5, M), (0, N), r"tensor 'b': shape must be \[40, 5\], got \[40, 0\]"),
        ((0, M), (0, N + 1), r"tensor 'b': shape must be \[40, 0\], got \[41, 0\]"),
        ((0, M), (0, N, 1), r"tensor 'b': shape must be \[40, 0\], got \[0, 40, 1\]"),
    ],
)
def test_operands_of_another_k_are_refused_where_one_has_none(a, b, rule):
    kernel = open_kernel(compiled("sm_90a", None))
    given = [torch.ones(each, dtype=torch.bfloat16) for each in (a, b)]
    with pytest.raises(LaunchError, match=rule):
        kernel(given[0].T, given[1].T if given[1].dim() == 2 else given[1])


def test_operands_of_another_type_are_refused_where_they_have_no_k():
    kernel = open_kernel(compiled("sm_90a", None))
    a, b = torch.ones(0, M, dtype=torch.bfloat16), torch.ones(0, N, dtype=torch.float16)
    with pytest.raises(LaunchError, match=r"tensor 'b': must be torch\.bfloat16"):
        kernel(a.T, b.T)


def test_an_epilogue_comes_with_any_depth():
    spec = MatmulSpec(M, N, 256, a_major="m", b_major="n", dynamic_k=True)
    made = compile_matmul(from_text(spec.mlir_text(EPILOGUE)), target="sm_90a")
    kernel = open_kernel(as_bundle(made))
    row = torch.rand(N) + 0.5
    for depth in (0, 3, 90):
        a, b = (torch.randn(depth, size, dtype=torch.bfloat16) for size in (M, N))
        wanted = (a.double().T @ b.double() + row).float()
        torch.testing.assert_close(kernel(a, b, row).float(), wanted, rtol=2e-2, atol=2e-2)


def test_slots_are_reused_after_steps_that_the_kernel_knows_alone():
    residual = Epilogue(
        "%x",
        (EpilogueOperand("%r", "f32", "mn", (M, N)),),
        ("%y = arith.addf %x, %r : f32", "%z = arith.truncf %y : f32 to bf16"),
        "%z",
    )
    text = MatmulSpec(M, N, 256, a_major="m", b_major="n", dynamic_k=True).mlir_text(residual)
    staged = "epilogue-staging{columns=16 buffers=2 ahead=2}"
    pipeline = f"tiling{{tile=64x32x64}},tma-insertion,swizzle-selection,{staged},"
    pipeline += "pipelining{stages=3},warp-specialization,slot-reuse"
    with pytest.raises(CompileError, match="fills as often as the kernel says, got others"):
        compile_matmul(from_text(text), target="sm_90a", pipeline=pipeline)


def from_text(text: str):
    from tilewright.compiler.importers.linalg_text import LinalgText

    return LinalgText(text, "any depth")


def test_numpy_calls_it_too():
    kernel = open_kernel(compiled("sm_90a", None, c_dtype="f32", a_dtype="f16", b_dtype="f16"))
    for depth in (0, 9):
        a, b = (np.random.rand(depth, size).astype(np.float16) for size in (M, N))
        got = kernel(a.T, b.T)
        assert np.allclose(got, a.astype(float).T @ b.astype(float), atol=1e-3)


@pytest.mark.parametrize(
    ("change", "rule"),
    [
        ({"a_major": "k"}, "a dynamic k must come with a_major = 'm', got 'k'; give k a number"),
        ({"b_major": "k"}, "a dynamic k must come with b_major = 'n', got 'k'; give k a number"),
        ({"batch": 2}, "a dynamic k must come with batch = 0, got 2; give k a number"),
        ({"products": 2}, "a dynamic k must come with products = 1, got 2; give k a number"),
        (
            {"a_dtype": "f64", "b_dtype": "f64", "c_dtype": "f64", "acc_dtype": "f64"},
            "a dynamic k must come with plain sums of what tensor cores multiply, got f64; "
            "give k a number",
        ),
    ],
)
def test_other_products_of_any_depth_are_refused(change, rule):
    given = {"a_major": "m", "b_major": "n", "dynamic_k": True} | change
    with pytest.raises(OptionError) as refused:
        MatmulSpec(M, N, 256, **given)
    assert str(refused.value) == f"error: spec: {rule}"


def test_threads_that_read_views_refuse_any_depth():
    rule = "tiling: operands must be tiles where K is dynamic, got global; leave it out"
    with pytest.raises(CompileError, match=rule):
        compiled("sm_90a", "tiling{tile=64x32x64 mma=fma operands=global}")


def test_a_launch_of_more_than_can_be_counted_is_refused():
    bundle = compiled("sm_90a", None)
    assert most_rows(bundle.manifest) == DEPTH_MOST
    rule = f"K must be 1 to {DEPTH_MOST}, got {DEPTH_MOST + 1}; multiply in parts"
    with pytest.raises(LaunchError, match=rule):
        bundle.at(DEPTH_MOST + 1)


HALF, WHOLE, BYTES = torch.bfloat16, torch.float32, torch.float8_e4m3fn


@pytest.mark.parametrize(
    ("dtype", "how", "rule"),
    [
        (WHOLE, {}, "of a type that sm_100a multiplies with rows along K .*, got torch.float32"),
        (BYTES, {"target": "sm_90a"}, "a type that sm_90a multiplies with rows along K .*e4m3fn"),
        (HALF, {"k": 64}, "k must be 'dynamic', got 64; leave it out"),
        (HALF, {"m": "dynamic"}, "k must be dynamic alone, got m or batch too"),
        ("turned", {}, r"a must be a matrix with m contiguous where k is dynamic"),
    ],
    ids=["f32", "8 bits", "a number", "rows too", "K contiguous"],
)
def test_a_call_that_no_kernel_of_any_depth_serves_is_refused(dtype, how, rule):
    made = HALF if dtype == "turned" else dtype
    a, b = torch.ones(64, 72).to(made).T, torch.ones(64, 40).to(made).T
    a = a.contiguous() if dtype == "turned" else a
    with pytest.raises(OptionError, match=rule):
        matmul(a, b, **({"k": "dynamic"} | how))
