"""Forms of a kernel's PTX compute what they say, as the emulator executes them."""

import sys
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch

from tilewright.compiler.bundle_writer import as_bundle
from tilewright.compiler.driver import compile_matmul
from tilewright.runtime import DeviceError, load

FOLDER = Path(__file__).parent.parent.parent / "benchmarks"
ROWS, COLUMNS, DEPTH, TILE, PIECE, STEP = 128, 64, 320, 64, 32, 64
KEPT = 256  # elements of K, of which the first step is multiplied again
PIPELINE = (
    f"tiling{{tile={TILE}x{TILE}x{STEP}}},tma-insertion,swizzle-selection,"
    f"epilogue-staging{{columns={PIECE} buffers=2 ahead=2}},pipelining{{stages=4}},"
    "warp-specialization,persistence{order=m}"
)


@pytest.fixture(scope="module")
def scripts():
    sys.path.insert(0, str(FOLDER))
    import power_limit
    import ptx_variants

    yield power_limit, ptx_variants
    sys.path.remove(str(FOLDER))
    for name in ("power_limit", "ptx_variants", "epilogues", "epilogue_functions", "contenders"):
        sys.modules.pop(name, None)


@pytest.fixture(scope="module")
def made(scripts):
    """A product with a residual, in two tiles of two pieces."""
    source = scripts[0].source_of(ROWS, COLUMNS, DEPTH, "residual")
    return compile_matmul(source, target="sm_90a", pipeline=PIPELINE)


@pytest.fixture
def operands():
    sizes = (ROWS, DEPTH), (COLUMNS, DEPTH), (ROWS, COLUMNS)
    return [torch.randint(-1, 2, size).bfloat16() for size in sizes]


def product(a, b):
    return a.double() @ b.double().T


def wanted(form, a, b, beside):
    """What the kernel computes in that form, in float64: every sum is a number of bf16."""
    if form == "operands_l2":
        return product(a[:TILE], b).repeat(2, 1) + beside
    if form == "operands_kept":
        return product(a[:, :KEPT], b[:, :KEPT]) + product(a[:, :STEP], b[:, :STEP]) + beside
    if form == "beside_l2":
        return product(a, b) + beside[:TILE, :PIECE].repeat(2, 2)
    return product(a, b) + (0 if form == "beside_unadded" else beside)


NAMES = (
    "operands_l2 operands_kept beside_l2 beside_unadded c_first beside_first operands_last "
    "hinted_polls"
).split()


@pytest.mark.parametrize("form", NAMES)
def test_a_form_computes_what_it_says(scripts, made, operands, form):
    bundle = as_bundle(replace(made, ptx=scripts[1].form_of(made.ptx, form)))
    assert torch.equal(load(bundle, "emulator")(*operands).double(), wanted(form, *operands))


def test_all_tiles_of_c_are_stored_over_the_first(scripts, made, operands):
    bundle = as_bundle(replace(made, ptx=scripts[1].form_of(made.ptx, "c_l2")))
    with pytest.raises(DeviceError, match="race: the write of a tensor copy of byte 0"):
        load(bundle, "emulator")(*operands)


def test_a_cta_goes_back_along_k_in_its_second_tile(scripts, operands):
    """Of which the fifth step from the end is not loaded: the slot has the second of the tile
    before, as the first tile's fifth step has its first."""
    script, rewritten = scripts
    source = script.source_of(ROWS, COLUMNS, DEPTH, "residual")
    pipeline = PIPELINE.replace("order=m", "order=m ctas=1")
    made = compile_matmul(source, target="sm_90a", pipeline=pipeline)
    transposed = rewritten.form_of(made.ptx, "back_and_forth")
    a, b, beside = operands
    run = load(as_bundle(replace(made, ptx=transposed)), "emulator")
    assert torch.equal(run(*operands).double(), product(a, b) + beside)

    kept = as_bundle(replace(made, ptx=rewritten.form_of(transposed, "operands_kept")))
    steps = [(each[:, :STEP], each[:, STEP : 2 * STEP]) for each in (a[:TILE], b)]
    again = [product(*pair) for pair in zip(*steps, strict=True)]
    found = product(a[:, :KEPT], b[:, :KEPT]) + torch.cat(again) + beside
    assert torch.equal(load(kept, "emulator")(*operands).double(), found)


def test_no_form_is_untried(scripts):
    assert {*NAMES, "c_l2", "back_and_forth"} == {*scripts[1].FORMS}


def test_a_kernel_without_another_operand_has_no_form_of_it(scripts, made):
    ptx = scripts[1].LOAD.sub("", made.ptx)
    with pytest.raises(ValueError, match="nothing that the form 'beside_l2' changes"):
        scripts[1].form_of(ptx, "beside_l2")


def test_a_pipeline_takes_another_order_or_loses_what_brings_operands(scripts):
    script, text = scripts[0], "epilogue-staging{columns=32 ahead=2 vectors=ahead},persistence{}"
    assert script.with_order(text, "grouped:16").endswith("persistence{order=grouped group=16}")
    assert script.with_order(text, "hilbert").endswith("persistence{order=hilbert}")
    plain = "epilogue-staging{columns=32},persistence{}"
    assert script.without_operands(f"{text},slot-reuse") == plain


def test_a_folder_without_the_bundles_is_told_of(scripts, tmp_path, capsys):
    (tmp_path / "64x64x64.residual.chosen.zip").touch()  # of another epilogue
    options = SimpleNamespace(folder=tmp_path, shapes="64x64x64", epilogue="plain", json=None)
    assert scripts[0].run_all(options) == 1
    assert "must hold bundles of 64x64x64 with --epilogue plain" in capsys.readouterr().err
