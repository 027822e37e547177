"""One kernel for any M and any batch: rows and matrices are counted by numbers of the launch."""

import functools

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
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

N, K = 72, 72
STACKS = (True, True)
BESIDE = """
      %one = "tile.element"(%gain) {axes = "b"} : (tensor<?xf32>) -> f32
      %row = "tile.element"(%bias) {axes = "bm"} : (tensor<?x?xf32>) -> f32
      %same = "tile.element"(%rows) {axes = "m"} : (tensor<?xf32>) -> f32
      %column = "tile.element"(%columns) {axes = "bn"} : (tensor<?xNxf32>) -> f32
      %all = "tile.element"(%shared) {axes = "mn"} : (tensor<?xNxbf16>) -> bf16
      %here = "tile.element"(%other) {axes = "bmn"} : (tensor<?x?xNxbf16>) -> bf16
      %wide = arith.extf %here : bf16 to f32
      %both = arith.extf %all : bf16 to f32
      %p = arith.mulf %x, %one : f32
      %q = arith.addf %p, %row : f32
      %r = arith.addf %q, %same : f32
      %s = arith.addf %r, %column : f32
      %u = arith.addf %s, %both : f32
      %t = arith.addf %u, %wide : f32"""
MORE = (
    ", %gain: tensor<?xf32>, %bias: tensor<?x?xf32>, %rows: tensor<?xf32>"
    ", %columns: tensor<?xNxf32>, %shared: tensor<?xNxbf16>, %other: tensor<?x?xNxbf16>"
)
AXES = ("b", "bm", "m", "bn", "mn", "bmn")
MATMUL = """
module attributes {ROWStile.target = "TARGET"} {
  func.func @matmul(%a: tensor<A?xKxbf16>, %b: tensor<BNxKxbf16>MORE) -> tensor<?x?xNxbf16> {
    %c = "tile.matmul"(%a, %b) ({
    ^bb0(%x: f32):BODY
      %y = arith.truncf SUM : f32 to bf16
      "tile.yield"(%y) : (bf16) -> ()
    }) {a_major = "k", b_major = "k"}
      : (tensor<A?xKxbf16>, tensor<BNxKxbf16>) -> tensor<?x?xNxbf16>
    return %c : tensor<?x?xNxbf16>
  }
}
"""
HOPPER = (
    "tiling{tile=64x64x64},tma-insertion,swizzle-selection,epilogue-staging,clustering{shape=2x1},"
    "pipelining,warp-specialization,persistence{ctas=4},ping-pong"
)
BLACKWELL = (
    "tiling{tile=128x64x64},tma-insertion,swizzle-selection,epilogue-staging,clustering,"
    "pipelining,warp-specialization,persistence{scheduler=clc}"
)
PAIRED = (
    "tiling{tile=128x32x64},tma-insertion,swizzle-selection,epilogue-staging,"
    "clustering{shape=2x1 pair=true},pipelining,warp-specialization,persistence{order=n ctas=4}"
)
PERMUTED = (
    "tiling{tile=64x80x64 swap=true},tma-insertion,swizzle-selection,epilogue-staging,"
    "clustering{shape=1x2},pipelining,warp-specialization,persistence{order=n ctas=4}"
)
FULL = (("sm_90a", HOPPER), ("sm_100a", BLACKWELL), ("sm_100a", PAIRED), ("sm_90a", PERMUTED))
PREFIXES = prefixes_of(*FULL)
SPLIT = "tiling{tile=64x64x64},tma-insertion,swizzle-selection,split-k{parts=2 over=OVER}"
OTHERS = [
    *(
        (target, SPLIT.replace("OVER", over))
        for target in ("sm_90a", "sm_100a")
        for over in ("cluster", "grid")
    ),
    ("sm_90a", SPLIT.replace("OVER", "grid").replace("64x64x64", "64x80x64 swap=true order=n")),
    ("sm_80", "tiling{tile=64x64x32},copy-insertion,swizzle-selection,epilogue-staging,pipelining"),
    ("sm_90a", "tiling{tile=64x64x64 order=grouped group=2}"),
    ("sm_90a", "tiling{tile=64x24x64 order=n},copy-insertion"),
    ("sm_90a", "tiling{tile=128x64x64},tma-insertion"),
    ("sm_80", "tiling{tile=32x16x32 mma=fma operands=global}"),
    ("sm_100a", BLACKWELL.replace("scheduler=clc", "order=m ctas=4")),
    ("sm_90a", HOPPER.replace("epilogue-staging", "epilogue-staging{vectors=registers}")),
]
SIZES = ((1, 1), (77, 3), (80, 1))


def compile_both(
    target, pipeline, beside=False, stacked=STACKS, rows=None, change=("", "")
) -> Bundle:
    if rows is None and "swap" in pipeline:
        rows = (1, 80)
    text = MATMUL.replace("BODY", BESIDE if beside else "").replace("MORE", MORE if beside else "")
    text = text.replace("SUM", "%t" if beside else "%x").replace("TARGET", target)
    text = text.replace("ROWS", f"tile.rows = [{rows[0]}, {rows[1]}], " if rows else "")
    for name, whole in zip("AB", stacked, strict=True):
        text = text.replace(f"tensor<{name}", "tensor<?x" if whole else "tensor<")
    for name, size in zip("NK", (N, K), strict=True):
        text = text.replace(f"x{name}x", f"x{size}x").replace(f"<{name}x", f"<{size}x")
    text = text.replace(*change) if change[0] else text
    return bundle_of_text(text, target, pipeline)


def is_right(bundle: Bundle, m: int, batch: int) -> bool:
    """Whether the kernel gives the products of so many matrices, on poisoned outputs."""
    of_sizes = bundle.at(m, batch)
    tensors = make_tensors(of_sizes.manifest, m + batch)
    assert tensors["c"].shape == (batch, m, N)
    open_device("emulator").launch(of_sizes, tensors, batch, check="full")
    a, b = tensors["a"].double(), tensors["b"].double()
    wanted, reach = a @ b.mT, a.abs() @ b.abs().mT
    if "e0" in tensors:
        beside = dict(zip(AXES, (tensors[f"e{at}"].double() for at in range(6)), strict=True))
        gain = beside.pop("b")[:, None, None]
        wanted, reach = wanted * gain, reach * gain.abs()
        for axes, values in beside.items():
            index = tuple(slice(None) if axis in axes else None for axis in "bmn")
            wanted, reach = wanted + values[index], reach + values[index].abs()
    bound = 2**-8 * wanted.abs() + 2**-16 * reach
    return bool(((tensors["c"].double() - wanted).abs() <= bound).all())


@pytest.mark.sweep(30)
@pytest.mark.parametrize("beside", [False, True])
@pytest.mark.parametrize(("target", "pipeline"), PREFIXES + OTHERS)
def test_every_prefix_runs_for_any_rows_and_matrices(target, pipeline, beside):
    if not beside and "vectors" in pipeline:
        pytest.skip("vectors are read ahead where there are some")
    bundle = compile_both(target, pipeline, beside)
    assert all(is_right(bundle, *sizes) for sizes in SIZES)


@pytest.mark.sweep(4)
@pytest.mark.parametrize("shared", [(True, False), (False, True)])
@pytest.mark.parametrize(("target", "pipeline"), FULL)
def test_all_matrices_may_share_an_operand(target, pipeline, shared):
    bundle = compile_both(target, pipeline, True, shared)
    assert all(is_right(bundle, *sizes) for sizes in SIZES)


FORMS = [
    {},
    {"b_stacked": False, "lda": 88},
    {"a_stacked": False, "b_major": "n"},
    {"c_dtype": "f32", "products": 2},
    {"further": ("f32", "bf16")},
    {"a_dtype": "s8", "b_dtype": "u8", "acc_dtype": "s32", "c_dtype": "s32"},
    {"a_dtype": "f32", "b_dtype": "f32", "c_dtype": "f32"},
    {"a_dtype": "bf16x9", "b_dtype": "bf16x9", "c_dtype": "f32"},
    {"lda": 88, "ldb": 96, "ldc": 56, "stride_b": 5056},
    {"k": 51, "n": 33},
]


@pytest.mark.sweep(23)
@pytest.mark.parametrize("least_most", [(0, 0), (1, 64), (65, 200)])
@pytest.mark.parametrize("target", ["sm_90a", "sm_100a", "sm_80"])
@pytest.mark.parametrize("form", FORMS, ids=lambda form: "-".join(form) or "plain")
def test_the_chosen_schedule_is_right_for_any_rows_and_matrices(target, form, least_most):
    least, most = least_most
    fields = {"m": most or 96, "n": 48, "k": 80, "batch": 4, **form}
    spec = MatmulSpec(**fields, dynamic_m=True, dynamic_batch=True, least_m=least, most_m=most)
    bundle = as_bundle(compile_matmul(spec, target=target))
    for m, batch in ((least or 1, 1), (most or 77, 3)):
        of_sizes = bundle.at(m, batch)
        tensors = make_tensors(of_sizes.manifest, batch)
        open_device("emulator").launch(of_sizes, tensors, batch, check="full")
        for c in outputs(of_sizes.manifest):
            refuse_written_gaps(c["name"], tensors[c["name"]])
            expected = expected_output(of_sizes.manifest, tensors, name=c["name"])
            actual = to_float64(tensors[c["name"]], c["dtype"])
            assert compare(expected, actual, c["dtype"], c["name"]).passed


def test_each_matrix_has_whole_clusters_of_its_own_rows():
    tiled = compile_both("sm_90a", HOPPER[: HOPPER.index(",pipelining")])
    grids = [tiled.at(*sizes).manifest["grid"] for sizes in ((1, 1), (128, 2), (129, 3))]
    assert grids == [[2, 2, 1], [4, 2, 1], [12, 2, 1]]
    shared = compile_both("sm_90a", HOPPER)
    grids = [shared.at(*sizes).manifest["grid"] for sizes in ((1, 1), (1, 2), (9, 10**6))]
    assert grids == [[4, 1, 1], [4, 1, 1], [4, 1, 1]]
    known = compile_both("sm_90a", "tiling{tile=64x24x64}", rows=(1, 64))
    assert known.at(33, 5).manifest["grid"] == [5, 3, 1]
    steps = [each["strides"][0] for each in known.at(33, 5).manifest["tensors"]]
    assert steps == [33 * K, N * K, 33 * N]
    assert most_rows(tiled.manifest, {"m": 129}, "batch") == 2**30 // (4 * 2)


def test_outputs_of_one_row_or_one_matrix_more_are_not_written():
    bundle = compile_both("sm_90a", HOPPER).at(65, 2)
    tensors = make_tensors(bundle.manifest, 0)
    whole = torch.full((3 * 65, N), 7.0, dtype=torch.bfloat16)
    tensors["c"] = whole[:130].view(2, 65, N)
    open_device("emulator").launch(bundle, tensors, 0)
    assert (whole[130:] == 7).all() and not (whole[:130] == 7).all()


@pytest.mark.parametrize(
    ("sizes", "said"),
    [
        ((0, 2), r"M must be 1 to \d+, got 0; pass more"),
        ((2, 0), r"the batch of M = 2 must be 1 to \d+, got 0; pass more"),
        ((2**31, 1), r"M must be 1 to \d+, .*; multiply in parts"),
        ((10**9, 10**6), r"the batch of M = 1000000000 must be 1 to \d+, .*; multiply in parts"),
    ],
)
def test_sizes_that_cannot_be_counted_are_refused(sizes, said):
    with pytest.raises(LaunchError, match=said):
        compile_both("sm_90a", "tiling{tile=64x64x64}").at(*sizes)


@pytest.mark.parametrize(
    ("pipeline", "rows", "said"),
    [
        (
            PERMUTED,
            (1, 81),
            "swap of stacks of any M must have all rows in a tile of 80, got up to",
        ),
        (HOPPER.replace("ctas=4", "order=hilbert"), None, "hilbert is a table of known tiles"),
    ],
)
def test_schedules_of_known_tiles_are_refused(pipeline, rows, said):
    with pytest.raises(CompileError, match=said):
        compile_both("sm_90a", pipeline, rows=rows)


def test_any_rows_of_a_known_number_of_matrices_are_refused():
    with pytest.raises(CompileError, match="the number of matrices may be dynamic, and with it"):
        change = "tensor<?x?x", "tensor<3x?x"
        compile_both("sm_90a", "tiling{tile=64x64x64}", stacked=(True, False), change=change)


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"dynamic_batch": False}, "a dynamic m must come with batch = 0, got 4"),
        ({"stride_c": 99999}, "a dynamic m must come with stride_c = 0, got 99999"),
        ({"groups": 2}, "batch must be 0 where rows are grouped, got 4"),
    ],
)
def test_stacks_that_no_kernel_takes_are_refused(fields, said):
    sizes = {"m": 64, "n": N, "k": 128, "batch": 4}
    with pytest.raises(OptionError, match=said):
        MatmulSpec(**{**sizes, "dynamic_m": True, "dynamic_batch": True, **fields})


@functools.cache
def drawn_kernel(target: str) -> Bundle:
    return compile_both(target, HOPPER if target == "sm_90a" else BLACKWELL, True)


@settings(max_examples=3, deadline=None)
@given(
    target=st.sampled_from(["sm_90a", "sm_100a"]),
    m=st.integers(1, 150),
    batch=st.integers(1, 3),
)
def test_any_rows_of_any_number_of_matrices(target, m, batch):
    assert is_right(drawn_kernel(target), m, batch)
