"""One kernel for any M: its tiles are counted, and its rows compared, by numbers of the launch."""

import pytest
import torch
from text_kernels import bundle_of_text

from tilewright.compiler.driver import compile_matmul
from tilewright.compiler.spec import MatmulSpec
from tilewright.dialects.errors import CompileError
from tilewright.runtime import LaunchError
from tilewright.runtime.bundles.bundle import Bundle
from tilewright.runtime.bundles.sizes import most_rows
from tilewright.runtime.launch.devices import open_device
from tilewright.tools.runs.inputs import make_tensors

N, K = 72, 72
MATMUL = """
module attributes {tile.target = "TARGET"} {
  func.func @matmul(%a: tensor<?xKxbf16>, %b: tensor<NxKxbf16>, %bias: tensor<?xf32>,
                    %other: tensor<?xNxbf16>) -> tensor<?xNxbf16> {
    %c = "tile.matmul"(%a, %b) ({
    ^bb0(%x: f32):
      %row = "tile.element"(%bias) {axes = "m"} : (tensor<?xf32>) -> f32
      %here = "tile.element"(%other) {axes = "mn"} : (tensor<?xNxbf16>) -> bf16
      %wide = arith.extf %here : bf16 to f32
      %s = arith.addf %x, %row : f32
      %t = arith.addf %s, %wide : f32
      %y = arith.truncf %t : f32 to bf16
      "tile.yield"(%y) : (bf16) -> ()
    }) {a_major = "k", b_major = "k"}
      : (tensor<?xKxbf16>, tensor<NxKxbf16>) -> tensor<?xNxbf16>
    return %c : tensor<?xNxbf16>
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
AHEAD = HOPPER.replace("epilogue-staging", "epilogue-staging{vectors=registers}")
STRIDE = BLACKWELL.replace("scheduler=clc", "order=m ctas=4")
WARPS = "tiling{tile=64x64x32},copy-insertion,swizzle-selection,epilogue-staging,pipelining"
SPLIT = "tiling{tile=64x64x64},tma-insertion,swizzle-selection,split-k{parts=2},pipelining"
PARTED = SPLIT.replace("parts=2", "parts=2 over=grid").removesuffix(",pipelining")
PREFIXES = [
    (target, ",".join(full.split(",")[:count]))
    for target, full in (("sm_90a", HOPPER), ("sm_100a", BLACKWELL))
    for count in range(1, full.count(",") + 1)
]
OTHERS = [
    ("sm_100a", STRIDE),
    ("sm_90a", SPLIT),
    ("sm_80", WARPS),
    ("sm_90a", "tiling{tile=64x64x64 order=grouped group=2}"),
    ("sm_90a", SPLIT.replace("64x64x64", "64x24x64 order=n")),
    ("sm_80", "tiling{tile=32x16x32 mma=fma operands=global}"),
    ("sm_100a", f"{PARTED},pipelining"),
    ("sm_100a", f"{PARTED},clustering{{shape=2x1 pair=true}},pipelining,warp-specialization"),
]
SIZES = (1, 129)
PLAIN = """
module attributes {tile.target = "TARGET", tile.rows = [LEAST, MOST]} {
  func.func @matmul(%a: tensor<?xKxbf16>, %b: tensor<NxKxbf16>) -> tensor<?xNxbf16> {
    %c = "tile.matmul"(%a, %b) ({
    ^bb0(%x: f32):
      %y = arith.truncf %x : f32 to bf16
      "tile.yield"(%y) : (bf16) -> ()
    }) {a_major = "k", b_major = "k"} : (tensor<?xKxbf16>, tensor<NxKxbf16>) -> tensor<?xNxbf16>
    return %c : tensor<?xNxbf16>
  }
}
"""
EXCHANGED = {
    "sm_90a": "tiling{tile=128x16x64 swap=true},tma-insertion,swizzle-selection,epilogue-staging,"
    "clustering{shape=2x1},pipelining,warp-specialization,persistence{ctas=2}",
    "sm_100a": "tiling{tile=128x32x64 swap=true},tma-insertion,swizzle-selection,epilogue-staging,"
    "clustering{shape=2x1 pair=true},pipelining,warp-specialization,persistence{scheduler=clc}",
}
SHARED = [
    ("sm_90a", "tiling{tile=64x32x64 swap=true},tma-insertion,swizzle-selection,split-k{parts=2}"),
    ("sm_90a", "tiling{tile=64x16x64 swap=true},copy-insertion,swizzle-selection,pipelining"),
    ("sm_100a", "tiling{tile=64x16x64},tma-insertion,swizzle-selection,split-k{parts=2 over=grid}"),
]
LOOPS = ",pipelining,warp-specialization,persistence{ctas=2}"
SHARED += [  # CTAs of one row of tiles that share out those along N
    ("sm_90a", f"tiling{{tile=64x32x64}},tma-insertion,swizzle-selection{LOOPS}"),
    ("sm_100a", f"tiling{{tile=64x32x64}},tma-insertion,swizzle-selection{LOOPS}"),
    ("sm_80", "tiling{tile=32x16x32 mma=mma.sync},copy-insertion,persistence{ctas=2}"),
    (
        "sm_90a",
        "tiling{tile=64x16x64},tma-insertion,swizzle-selection,clustering{shape=1x2}"
        f"{LOOPS.replace('2', '4')}",
    ),
]
BOUNDED = [
    (target, ",".join(full.split(",")[:count]))
    for target, full in EXCHANGED.items()
    for count in range(1, full.count(",") + 2)
] + SHARED
FEW = (1, 7, 16)
STAGED = "tma-insertion,swizzle-selection,epilogue-staging"
COUNTED = [pair for pair in BOUNDED if "split-k" not in pair[1]] + [
    ("sm_90a", "tiling{tile=64x24x64 swap=true order=n},copy-insertion"),
    ("sm_90a", "tiling{tile=64x24x64 swap=true order=grouped group=2}"),
    (
        "sm_90a",
        f"tiling{{tile=64x16x64 swap=true}},{STAGED},clustering{{shape=1x2}},pipelining,"
        "warp-specialization,persistence{order=n ctas=4},ping-pong",
    ),
    (
        "sm_90a",
        "tiling{tile=64x16x64 swap=true},tma-insertion,swizzle-selection,split-k{parts=2},"
        "pipelining,warp-specialization",
    ),
    (
        "sm_90a",
        "tiling{tile=64x16x64 swap=true order=n},tma-insertion,swizzle-selection,"
        "split-k{parts=2 over=grid}",
    ),
    (
        "sm_100a",
        f"tiling{{tile=64x32x64 swap=true order=n}},{STAGED},clustering{{shape=1x2}},pipelining,"
        "warp-specialization",
    ),
    (
        "sm_100a",
        f"tiling{{tile=64x32x64 swap=true}},{STAGED},pipelining,warp-specialization,"
        "persistence{scheduler=clc order=grouped group=2}",
    ),
]
"""A and B exchanged, with any number of tiles along the rows of C, which are columns of sums."""


def compile_dynamic(
    target: str, pipeline: str, bounds: tuple[int, int] | None = None, text: str = MATMUL
) -> Bundle:
    text = text.replace("TARGET", target).replace("xN", f"x{N}").replace("<N", f"<{N}")
    least, most = bounds or (0, 0)
    text = text.replace("LEAST", str(least)).replace("MOST", str(most))
    return bundle_of_text(text.replace("xK", f"x{K}"), target, pipeline)


def is_right(bundle: Bundle, m: int, check: str = "full") -> bool:
    """Whether the kernel gives the product of m rows, on poisoned outputs."""
    of_size = bundle.at(m)
    tensors = make_tensors(of_size.manifest, m)
    open_device("emulator").launch(of_size, tensors, m, check=check)
    a, b = tensors["a"].double(), tensors["b"].double()
    wanted = a @ b.T
    if "e0" in tensors:
        wanted += tensors["e0"].double()[:, None] + tensors["e1"].double()
    bound = 2**-8 * wanted.abs() + 2**-16 * (a.abs() @ b.abs().T)
    return bool(((tensors["c"].double() - wanted).abs() <= bound).all())


@pytest.mark.sweep(2)
@pytest.mark.parametrize(("target", "pipeline"), [("sm_90a", AHEAD), ("sm_100a", BLACKWELL)])
def test_one_kernel_is_right_for_every_m(target, pipeline):
    bundle = compile_dynamic(target, pipeline)
    assert all(is_right(bundle, m) for m in SIZES)


@pytest.mark.sweep(32)
@pytest.mark.parametrize("m", SIZES)
@pytest.mark.parametrize(("target", "pipeline"), PREFIXES + OTHERS)
def test_every_prefix_runs_for_any_m(target, pipeline, m):
    assert is_right(compile_dynamic(target, pipeline), m)


def test_the_launch_has_a_cluster_for_each_tile_or_as_many_as_share_them():
    tiled = compile_dynamic("sm_90a", HOPPER[: HOPPER.index(",pipelining")])
    assert [tiled.at(m).manifest["grid"] for m in (1, 128, 129)] == [
        [2, 2, 1],
        [2, 2, 1],
        [4, 2, 1],
    ]
    shared = compile_dynamic("sm_90a", HOPPER)
    assert shared.at(1).manifest["grid"] == shared.at(10**6).manifest["grid"] == [4, 1, 1]


def test_outputs_of_one_row_more_are_not_written():
    bundle = compile_dynamic("sm_90a", SPLIT).at(65)
    tensors = make_tensors(bundle.manifest, 0)
    whole = torch.full((66, N), 7.0, dtype=torch.bfloat16)
    tensors["c"] = whole[:65]
    open_device("emulator").launch(bundle, tensors, 0)
    assert (whole[65] == 7).all() and not (whole[:65] == 7).all()


@pytest.mark.sweep
@pytest.mark.parametrize("m", FEW)
@pytest.mark.parametrize("beside", [False, True])
@pytest.mark.parametrize(("target", "pipeline"), BOUNDED)
def test_every_prefix_runs_for_few_rows_that_are_those_of_one_tile(target, pipeline, beside, m):
    head = 'module attributes {tile.target = "TARGET"'
    text = MATMUL.replace(head, f"{head}, tile.rows = [LEAST, MOST]") if beside else PLAIN
    assert is_right(compile_dynamic(target, pipeline, (1, 16), text), m)


@pytest.mark.parametrize("m", (1, 2))
def test_lanes_multiply_one_number_of_rows_that_a_launch_says(m):
    pipeline = f"tiling{{tile={m}x2x512 mma=fma operands=global threads=64 lanes=64}}"
    bundle = compile_dynamic("sm_90a", pipeline, (m, m), PLAIN)
    assert is_right(bundle, m)
    assert "_param_3]" not in bundle.ptx  # one number of rows needs no word of a launch
    known = compile_matmul(MatmulSpec(m, N, K), target="sm_90a", pipeline=pipeline)
    assert bundle.ptx.count(";") == known.ptx.count(";")  # nor that a row is compared


def test_tiles_of_one_number_of_rows_that_a_launch_says_are_known():
    pipeline = f"tiling{{tile=64x24x64}},{STAGED},pipelining,warp-specialization"
    bundle = compile_dynamic("sm_90a", pipeline, (7, 7), PLAIN)
    assert is_right(bundle, 7) and "_param_3]" not in bundle.ptx


@pytest.mark.sweep(23)
@pytest.mark.parametrize("m", (1, 16, 17, 77))
@pytest.mark.parametrize("beside", [False, True])
@pytest.mark.parametrize(("target", "pipeline"), COUNTED)
def test_exchanged_tiles_of_any_number_of_rows_are_counted(target, pipeline, beside, m):
    if beside and "split-k" in pipeline:
        pytest.skip("parts of K are summed without other operands of rows")
    text = MATMUL if beside else PLAIN.replace(", tile.rows = [LEAST, MOST]", "")
    assert is_right(compile_dynamic(target, pipeline, None, text), m)


def test_a_launch_of_exchanged_tiles_says_how_many_lie_along_y():
    text = PLAIN.replace(", tile.rows = [LEAST, MOST]", "")
    pipeline = f"tiling{{tile=64x16x64 swap=true}},{STAGED},clustering{{shape=1x2}}"
    bundle = compile_dynamic("sm_90a", pipeline, None, text)
    assert [bundle.at(m).manifest["grid"] for m in (1, 32, 33)] == [[2, 2, 1], [2, 2, 1], [2, 4, 1]]
    assert most_rows(bundle.manifest) == 65_535 // 2 * 32
    shared = compile_dynamic("sm_90a", COUNTED[-5][1], None, text)
    assert [shared.at(m).manifest["grid"] for m in (1, 10**6)] == [[2, 2, 1], [2, 2, 1]]


def boxes(bundle: Bundle, m: int) -> list[list[int]]:
    """Those of the maps of A and B."""
    parameters = bundle.at(m).manifest["parameters"]
    return [each["box"] for each in parameters if each["kind"] == "tensor_map"][:2]


def test_boxes_have_as_many_rows_as_there_are_up_to_those_of_a_tile():
    pipeline = "tiling{tile=64x16x64},tma-insertion,swizzle-selection"
    some = compile_dynamic("sm_90a", pipeline, (1, 70), PLAIN)
    assert [boxes(some, m)[0][1] for m in (1, 9, 64, 70)] == [1, 9, 64, 64]
    many = compile_dynamic("sm_90a", pipeline, (64, 100), PLAIN)  # never fewer than a tile
    assert next(parameter.get("box") for parameter in many.manifest["parameters"]) == [64, 64]
    exchanged = compile_dynamic("sm_90a", BOUNDED[2][1], (1, 16), PLAIN)
    assert [sorted(box[1] for box in boxes(exchanged, m)) for m in (3, 16)] == [[3, 72], [16, 72]]


@pytest.mark.parametrize(
    ("bounds", "said"),
    [
        ((0, 16), "tile.rows must be the fewest and the most rows, from 1 to 2147483647"),
        ((17, 16), "tile.rows must be the fewest and the most rows, from 1 to 2147483647"),
    ],
)
def test_bounds_that_do_not_fit_are_refused(bounds, said):
    with pytest.raises(CompileError, match=said):
        compile_dynamic("sm_90a", "tiling{tile=64x16x64 swap=true}", bounds, PLAIN)


def test_bounds_of_known_rows_are_refused():
    text = PLAIN.replace("?", "64")
    with pytest.raises(CompileError, match="is of a module whose c has any number of rows"):
        compile_dynamic("sm_90a", "tiling{tile=64x64x64}", (1, 64), text)


def test_a_launch_of_other_rows_is_refused():
    bundle = compile_dynamic("sm_90a", "tiling{tile=64x64x64}", (5, 70), PLAIN)
    for m, cure in ((4, "pass more"), (71, "multiply in parts")):
        with pytest.raises(LaunchError, match=f"M must be 5 to 70, got {m}; {cure}"):
            bundle.at(m)
