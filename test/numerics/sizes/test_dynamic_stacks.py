"""One kernel for any batch: its matrices are counted by a number of the launch."""

import pytest
import torch
from shapes import prefixes_of
from text_kernels import bundle_of_text

from tilewright.compiler.bundle_writer import as_bundle
from tilewright.compiler.driver import compile_matmul
from tilewright.compiler.spec import MatmulSpec
from tilewright.dialects.errors import CompileError, OptionError
from tilewright.runtime import LaunchError
from tilewright.runtime.bundles.bundle import Bundle
from tilewright.runtime.bundles.manifest import outputs
from tilewright.runtime.bundles.sizes import most_rows
from tilewright.runtime.judge.gaps import refuse_written_gaps
from tilewright.runtime.judge.reference import compare, expected_output, to_float64
from tilewright.runtime.launch.devices import open_device
from tilewright.tools.runs.inputs import make_tensors

M, N, K = 40, 72, 72
STACKS = (True, True)
BESIDE = """
      %one = "tile.element"(%gain) {axes = "b"} : (tensor<?xf32>) -> f32
      %row = "tile.element"(%bias) {axes = "m"} : (tensor<Mxf32>) -> f32
      %here = "tile.element"(%other) {axes = "bmn"} : (tensor<?xMxNxbf16>) -> bf16
      %wide = arith.extf %here : bf16 to f32
      %p = arith.mulf %x, %one : f32
      %s = arith.addf %p, %row : f32
      %t = arith.addf %s, %wide : f32"""
MATMUL = """
module attributes {tile.target = "TARGET"} {
  func.func @matmul(%a: tensor<AMxKxbf16>, %b: tensor<BNxKxbf16>MORE) -> tensor<?xMxNxbf16> {
    %c = "tile.matmul"(%a, %b) ({
    ^bb0(%x: f32):BODY
      %y = arith.truncf SUM : f32 to bf16
      "tile.yield"(%y) : (bf16) -> ()
    }) {a_major = "k", b_major = "k"}
      : (tensor<AMxKxbf16>, tensor<BNxKxbf16>) -> tensor<?xMxNxbf16>
    return %c : tensor<?xMxNxbf16>
  }
}
"""
MORE = ", %gain: tensor<?xf32>, %bias: tensor<Mxf32>, %other: tensor<?xMxNxbf16>"
HOPPER = (
    "tiling{tile=64x64x64},tma-insertion,swizzle-selection,epilogue-staging,clustering{shape=2x1},"
    "pipelining,warp-specialization,persistence{ctas=4},ping-pong"
)
BLACKWELL = (
    "tiling{tile=128x64x64},tma-insertion,swizzle-selection,epilogue-staging,clustering,"
    "pipelining,warp-specialization,persistence{scheduler=clc}"
)
PERMUTED = (
    "tiling{tile=64x16x64 swap=true},tma-insertion,swizzle-selection,epilogue-staging,"
    "clustering{shape=1x2},pipelining,warp-specialization,persistence{order=n ctas=4}"
)
PAIRED = (
    "tiling{tile=128x32x64 swap=true},tma-insertion,swizzle-selection,epilogue-staging,"
    "clustering{shape=2x1 pair=true},pipelining,warp-specialization,persistence{scheduler=clc}"
)
PREFIXES = prefixes_of(
    ("sm_90a", HOPPER), ("sm_100a", BLACKWELL), ("sm_90a", PERMUTED), ("sm_100a", PAIRED)
)
SPLIT = "tiling{tile=64x64x64},tma-insertion,swizzle-selection,split-k{parts=2 over=OVER}"
OTHERS = [
    *(
        (target, SPLIT.replace("OVER", over))
        for target in ("sm_90a", "sm_100a")
        for over in ("cluster", "grid")
    ),
    ("sm_90a", SPLIT.replace("OVER", "grid").replace("64x64x64", "64x16x64 swap=true order=n")),
    ("sm_80", "tiling{tile=64x64x32},copy-insertion,swizzle-selection,epilogue-staging,pipelining"),
    ("sm_90a", "tiling{tile=64x64x64 order=grouped group=2}"),
    ("sm_90a", "tiling{tile=64x24x64 order=n},copy-insertion"),
    ("sm_80", "tiling{tile=32x16x32 mma=fma operands=global}"),
    ("sm_100a", BLACKWELL.replace("scheduler=clc", "order=m ctas=4")),
    ("sm_90a", HOPPER.replace("epilogue-staging", "epilogue-staging{vectors=registers}")),
]
SIZES = (1, 3)


def compile_stack(target, pipeline, beside=False, stacked=STACKS, change=("", "")) -> Bundle:
    text = MATMUL.replace("BODY", BESIDE if beside else "").replace("MORE", MORE if beside else "")
    text = text.replace("SUM", "%t" if beside else "%x").replace("TARGET", target)
    for name, whole in zip("AB", stacked, strict=True):
        text = text.replace(f"tensor<{name}", "tensor<?x" if whole else "tensor<")
    for name, size in zip("MNK", (M, N, K), strict=True):
        text = text.replace(f"x{name}x", f"x{size}x").replace(f"<{name}x", f"<{size}x")
    assert change[0] in text
    text = text.replace(*change) if change[0] else text
    return bundle_of_text(text, target, pipeline)


def is_right(bundle: Bundle, batch: int) -> bool:
    """Whether the kernel gives the products of so many matrices, on poisoned outputs."""
    of_size = bundle.at(batch)
    tensors = make_tensors(of_size.manifest, batch)
    assert tensors["c"].shape[0] == batch
    open_device("emulator").launch(of_size, tensors, batch, check="full")
    a, b = tensors["a"].double(), tensors["b"].double()
    wanted, reach = a @ b.mT, a.abs() @ b.abs().mT
    if "e0" in tensors:
        gain = tensors["e0"].double()[:, None, None]
        wanted, reach = wanted * gain, reach * gain.abs()
        wanted += tensors["e1"].double()[:, None] + tensors["e2"].double()
    bound = 2**-8 * wanted.abs() + 2**-16 * reach
    return bool(((tensors["c"].double() - wanted).abs() <= bound).all())


@pytest.mark.sweep(44)
@pytest.mark.parametrize("beside", [False, True])
@pytest.mark.parametrize(("target", "pipeline"), PREFIXES + OTHERS)
def test_every_prefix_runs_for_any_batch(target, pipeline, beside):
    if not beside and "vectors" in pipeline:
        pytest.skip("vectors are read ahead where there are some")
    bundle = compile_stack(target, pipeline, beside)
    assert all(is_right(bundle, batch) for batch in SIZES)


@pytest.mark.sweep(3)
@pytest.mark.parametrize("shared", [(True, False), (False, True)])
@pytest.mark.parametrize(("target", "pipeline"), [("sm_90a", PERMUTED), ("sm_100a", BLACKWELL)])
def test_all_matrices_may_share_an_operand(target, pipeline, shared):
    bundle = compile_stack(target, pipeline, True, shared)
    assert all(is_right(bundle, batch) for batch in SIZES)


def test_a_launch_has_as_many_clusters_for_each_matrix_or_as_many_as_share_them():
    tiled = compile_stack("sm_90a", HOPPER[: HOPPER.index(",pipelining")])
    assert [tiled.at(b).manifest["grid"] for b in (1, 2, 9)] == [[2, 2, 1], [4, 2, 1], [18, 2, 1]]
    several = compile_stack("sm_90a", "tiling{tile=64x16x64 swap=true}")
    assert [several.at(batch).manifest["grid"] for batch in (1, 3)] == [[2, 3, 1], [6, 3, 1]]
    shared = compile_stack("sm_90a", PERMUTED)
    grids = [shared.at(batch).manifest["grid"] for batch in (1, 2, 10**6)]
    assert grids == [[2, 2, 1], [2, 2, 1], [2, 2, 1]]
    assert most_rows(tiled.manifest) == 2**30 // 4  # tiles, four of each matrix


def test_outputs_of_one_matrix_more_are_not_written():
    bundle = compile_stack("sm_90a", SPLIT.replace("OVER", "cluster")).at(2)
    tensors = make_tensors(bundle.manifest, 0)
    whole = torch.full((3, M, N), 7.0, dtype=torch.bfloat16)
    tensors["c"] = whole[:2]
    open_device("emulator").launch(bundle, tensors, 0)
    assert (whole[2] == 7).all() and not (whole[:2] == 7).all()


def test_a_launch_of_no_matrices_is_refused_where_nothing_stands_for_them():
    bundle = compile_stack("sm_90a", "tiling{tile=64x64x64}")
    with pytest.raises(LaunchError, match=r"the batch must be 1 to \d+, got 0; pass more"):
        bundle.at(0)
    with pytest.raises(LaunchError, match=r"the batch must be 1 to \d+, .*; multiply in parts"):
        bundle.at(2**31)


def test_bounds_of_known_rows_are_refused():
    bounds = "{tile.target", "{tile.rows = [1, 64], tile.target"
    with pytest.raises(CompileError, match="is of a module whose c has any number of rows"):
        compile_stack("sm_90a", "tiling{tile=64x64x64}", change=bounds)


FORMS = [
    {},
    {"b_stacked": False, "lda": 88, "stride_a": 4000},
    {"a_major": "m", "b_major": "n"},
    {"c_dtype": "f32", "products": 2},
    {"further": ("f32", "bf16")},
    {"a_dtype": "e4m3", "b_dtype": "e4m3", "sums": "two-level"},
    {"a_dtype": "s8", "b_dtype": "u8", "acc_dtype": "s32", "c_dtype": "s32"},
    {"a_dtype": "f32", "b_dtype": "f32", "c_dtype": "f32"},
    {"a_dtype": "bf16x9", "b_dtype": "bf16x9", "c_dtype": "f32"},
    {"lda": 88, "ldb": 96, "ldc": 56, "stride_a": 4000, "stride_b": 5056, "stride_c": 3000},
]


@pytest.mark.sweep(10)
@pytest.mark.parametrize("target", ["sm_90a", "sm_100a"])
@pytest.mark.parametrize("form", FORMS, ids=lambda form: "-".join(form) or "plain")
def test_the_chosen_schedule_is_right_for_any_batch(target, form):
    spec = MatmulSpec(M, 48, 80, batch=16, dynamic_batch=True, **form)
    bundle = as_bundle(compile_matmul(spec, target=target))
    for batch in (1, 4):
        of_size = bundle.at(batch)
        tensors = make_tensors(of_size.manifest, batch)
        open_device("emulator").launch(of_size, tensors, batch, check="full")
        for c in outputs(of_size.manifest):
            refuse_written_gaps(c["name"], tensors[c["name"]])
            expected = expected_output(of_size.manifest, tensors, name=c["name"])
            actual = to_float64(tensors[c["name"]], c["dtype"])
            assert compare(expected, actual, c["dtype"], c["name"]).passed


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"batch": 0}, "a dynamic batch must come with a batch of 1 or more, which is a hint, got"),
        (
            {"dynamic_m": True, "stride_a": 99999},
            "a dynamic m must come with stride_a = 0, got 99999",
        ),
        (
            {"a_dtype": "mxfp8", "b_dtype": "mxfp8", "k": 64},
            "a dynamic batch must come with operands without scales of blocks, got mxfp8",
        ),
        (
            {"a_scales": "1x128", "b_scales": "1x128", "a_dtype": "e4m3", "b_dtype": "e4m3"},
            "a dynamic batch must come with operands without scales of blocks, got a_scales",
        ),
        ({"c_dtype": "mxfp8", "n": 64}, "a C of mxfp8 must come with dynamic_batch = False"),
    ],
)
def test_a_dynamic_batch_that_no_kernel_takes_is_refused(fields, said):
    with pytest.raises(OptionError, match=said):
        MatmulSpec(**{"m": 64, "n": N, "k": 128, "batch": 4, "dynamic_batch": True, **fields})
