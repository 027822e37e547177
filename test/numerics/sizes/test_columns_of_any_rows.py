"""Kernels for any M of an A that has M contiguous: rows in memory are as long as a launch says."""

import functools
import json

import pytest
import torch
from shapes import prefixes_of

from tilewright import load
from tilewright.compiler.bundle_writer import as_bundle, write_several
from tilewright.compiler.driver import compile_matmul
from tilewright.compiler.spec import ROWS_MOST, MatmulSpec
from tilewright.dialects.errors import CompileError, OptionError
from tilewright.runtime import LaunchError
from tilewright.runtime.bundles.bundle import Bundle, manifest_hash, read_bundle
from tilewright.runtime.bundles.manifest import BundleError
from tilewright.runtime.launch.devices import open_device
from tilewright.tools.runs.inputs import make_tensors

N, K, UNIT = 72, 72, 8
HOPPER = (
    "tiling{tile=64x64x64},tma-insertion,swizzle-selection,epilogue-staging,clustering{shape=2x1},"
    "pipelining,warp-specialization,persistence{ctas=4},ping-pong"
)
PAIRED = (
    "tiling{tile=128x32x64},tma-insertion,swizzle-selection,epilogue-staging,"
    "clustering{shape=2x1 pair=true},pipelining,warp-specialization,persistence{order=n ctas=4}"
)
PERMUTED = (
    "tiling{tile=64x80x64 swap=true},tma-insertion,swizzle-selection,epilogue-staging,"
    "clustering{shape=1x2},pipelining,warp-specialization,persistence{order=n ctas=4}"
)
FULL = (("sm_90a", HOPPER), ("sm_100a", PAIRED), ("sm_90a", PERMUTED))
SPLIT = "tiling{tile=64x64x64},tma-insertion{box=3d},swizzle-selection,split-k{parts=2 over=grid}"
OTHERS = [
    ("sm_90a", SPLIT),
    ("sm_100a", SPLIT.replace("grid", "cluster")),
    ("sm_80", "tiling{tile=64x64x32},copy-insertion,swizzle-selection,epilogue-staging,pipelining"),
    ("sm_80", "tiling{tile=32x16x32 mma=fma operands=global}"),
]
TMA = "tma-insertion,swizzle-selection"


@functools.lru_cache(8)
def compiled_for(target: str, pipeline: str, multiple: int = 0, stacks: bool = False) -> Bundle:
    more = {"batch": 3, "dynamic_batch": True} if stacks else {}
    more |= {"least_m": 1, "most_m": 80} if "swap" in pipeline else {}
    spec = MatmulSpec(80, N, K, a_major="m", dynamic_m=True, multiple_m=multiple, **more)
    return as_bundle(compile_matmul(spec, target=target, pipeline=pipeline))


def is_right(bundle: Bundle, *sizes: int) -> bool:
    """Whether the kernel gives the products of a poisoned output's sizes, of an A by columns."""
    tensors = make_tensors(bundle.at(*sizes).manifest, sum(sizes))
    m, *stack = sizes
    assert tensors["a"].shape == (*stack, m, K) and tensors["a"].mT.is_contiguous()
    open_device("emulator").launch(bundle.at(*sizes), tensors, m, check="full")
    a, b = tensors["a"].double(), tensors["b"].double()
    wanted, reach = a @ b.mT, a.abs() @ b.abs().mT
    return bool(
        ((tensors["c"].double() - wanted).abs() <= 2**-8 * wanted.abs() + 2**-16 * reach).all()
    )


@pytest.mark.sweep(20)
@pytest.mark.parametrize("stacks", [False, True])
@pytest.mark.parametrize("multiple", [0, UNIT])
@pytest.mark.parametrize(("target", "pipeline"), prefixes_of(*FULL) + OTHERS)
def test_every_prefix_is_right(target, pipeline, multiple, stacks):
    bundle = compiled_for(target, pipeline, multiple, stacks)
    many = () if "fma" in pipeline else (80 if multiple else 77,)
    few = () if many and stacks else (8 if multiple else 3,)
    for m in (*few, *many):
        assert is_right(bundle, m, *((2,) if stacks else ()))


def test_only_rows_of_whole_units_are_loaded_by_tma():
    passes = f"tiling{{tile=64x24x64}},{TMA}"
    any_rows, multiples = (compiled_for("sm_90a", passes, each) for each in (0, UNIT))
    of_a = [
        [each for each in bundle.manifest["parameters"] if each.get("tensor") == "a"]
        for bundle in (any_rows, multiples)
    ]
    assert [[each["kind"] for each in found] for found in of_a] == [["pointer"], ["tensor_map"]]
    assert of_a[1][0]["strides_bytes"] == [{"size": "m", "times": 2}]
    assert multiples.at(40).manifest["tensors"][0]["strides"] == [1, 40]
    with pytest.raises(
        LaunchError, match="M must be a multiple of 8, got 42; take a kernel for any"
    ):
        multiples.at(42)
    with pytest.raises(LaunchError, match="M must be 8 to 2147483"):
        multiples.at(4)


@pytest.fixture(scope="module")
def pair():
    """A kernel for multiples of 8 up to 64, one for further ones, and one for all others."""
    found = []
    for least, most, multiple, tile in (
        (1, 64, 8, 16),
        (65, ROWS_MOST, 8, 32),
        (1, ROWS_MOST, 0, 24),
    ):
        spec = MatmulSpec(
            64 if most == 64 else 4096, N, K, a_major="m", dynamic_m=True, least_m=least,
            most_m=most, multiple_m=multiple,
        )  # fmt: skip
        found.append(
            compile_matmul(spec, target="sm_90a", pipeline=f"tiling{{tile=64x{tile}x64}},{TMA}")
        )
    return found


def test_a_bundle_takes_the_kernel_for_the_multiple(pair, tmp_path):
    path = write_several(tmp_path / "kernels", pair).path
    bundle = read_bundle(path)
    tiles = [
        bundle.at(m).manifest["schedule"]["tile"][1] for m in (1, 8, 9, 64, 65, 72, 4096, 4097)
    ]
    assert tiles == [24, 16, 24, 16, 24, 32, 32, 24]
    kernel = load(path)
    for m in (7, 8, 72, 0):
        a, b = torch.randn(K, m).bfloat16().t(), torch.randn(N, K).bfloat16()
        out = torch.full((m, N), torch.nan).bfloat16()
        wanted = a.double() @ b.double().T
        assert kernel(a, b, out=out) is out
        assert ((out.double() - wanted).abs() <= 2**-7 * wanted.abs() + 1e-3).all()


@pytest.mark.parametrize(
    ("edit", "said"),
    [
        (lambda e: e["bands"][0].update(multiple=16), "of the multiples that kernel 0 takes"),
        (lambda e: e["bands"].reverse(), "must begin with those of the largest multiple"),
        (lambda e: e["bands"][1]["ranges"][0].update(kernel=0), "in the order of their first"),
        (lambda e: e["bands"][0].pop("multiple"), "must have the field .multiple."),
    ],
)  # fmt: skip
def test_bundles_that_mix_multiples_are_refused(pair, tmp_path, edit, said):
    folder = write_several(tmp_path / "kernels", pair).path
    manifest = json.loads((folder / "manifest.json").read_text())
    edit(manifest)
    manifest["hashes"]["manifest.json"] = manifest_hash(manifest)
    (folder / "manifest.json").write_text(json.dumps(manifest))
    with pytest.raises(BundleError, match=said):
        read_bundle(folder)


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"multiple_m": 3, "dynamic_m": False}, "must be a number that rows of a dynamic"),
        ({"multiple_m": 8, "least_m": 65, "most_m": 71, "m": 65}, "multiple_m must be a number"),
        ({"lda": 128}, "a dynamic m must come with lda = 0, got 128"),
    ],
)  # fmt: skip
def test_specs_that_no_launch_can_keep_are_refused(fields, said):
    with pytest.raises(OptionError, match=said):
        MatmulSpec(**{"m": 64, "n": N, "k": K, "a_major": "m", "dynamic_m": True, **fields})


@pytest.mark.parametrize(("number", "said"), [("0", "got 0"), ("-8", "got -8"), ('"8"', 'got "8"')])
def test_a_multiple_that_is_none_is_refused(number, said, tmp_path):
    text = MatmulSpec(64, N, K, a_major="m", dynamic_m=True, multiple_m=8).mlir_text()
    place = tmp_path / "rows.mlir"
    place.write_text(text.replace("rows_multiple = 8", f"rows_multiple = {number}"))
    with pytest.raises(CompileError, match=f"tile.rows_multiple must be a number .*{said}"):
        compile_matmul(place, target="sm_90a", pipeline="tiling")
