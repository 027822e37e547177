"""Products with block scales bring what their epilogues read as other products do: pieces of what
is as large as C, and a tile's part of a bias, by TMA while MMAs run."""

import pytest
from fuzz_linalg import judge_problem
from random_linalg import Problem
from scaled_linalg import scaled_text

from tilewright.compiler.driver import choose_pipeline, read_spec
from tilewright.compiler.importers.linalg_text import LinalgText

M, N = 140, 104
SUMS, C = f"tensor<{M}x{N}xf32>", f"tensor<{M}x{N}xbf16>"
BESIDE = {
    "residual": ("%r", C, "(m, n)", "%rr: bf16"),
    "bias": ("%v", f"tensor<{N}xf32>", "(n)", "%vv: f32"),
}
STEPS = {
    "residual": "%w = arith.extf %rr : bf16 to f32\n    %with = arith.addf %x, %w : f32",
    "bias": "%biased = arith.addf %LAST, %vv : f32",
}
MADE = {"residual": "%with", "bias": "%biased"}


def with_epilogue(form, names, k=160):
    """C = A · Bᵀ, plus a residual [M, N], a bias [N], or both."""
    read = [BESIDE[name] for name in names]
    places = ["(m, n)", *(place for _, _, place, _ in read), "(m, n)"]
    maps = ", ".join(f"affine_map<(m, n) -> {place}>" for place in places)
    values = ", ".join(["%sum", *(value for value, *_ in read)])
    types = ", ".join([SUMS, *(type_ for _, type_, *_ in read)])
    block = ", ".join(["%x: f32", *(argument for *_, argument in read), "%old: bf16"])
    last, steps = "%x", []
    for name in names:
        steps.append(STEPS[name].replace("%LAST", last))
        last = MADE[name]
    body = "\n    ".join([*steps, f"%low = arith.truncf {last} : f32 to bf16"])
    text = scaled_text(M, N, k, form, c="f32")
    given = ", ".join(f"{value}: {type_}" for value, type_, *_ in read)
    text = text.replace(f") -> {SUMS} {{", f", {given}) -> {C} {{", 1)
    return text.replace(
        f"  return %sum : {SUMS}",
        f"""  %into = tensor.empty() : {C}
  %c = linalg.generic {{indexing_maps = [{maps}], iterator_types = ["parallel", "parallel"]}}
    ins({values} : {types}) outs(%into : {C}) {{
  ^bb0({block}):
    {body}
    linalg.yield %low : bf16
  }} -> {C}
  return %c : {C}""",
    )


@pytest.mark.parametrize(
    ("names", "options"),
    [
        (("residual",), "{ahead=2}"),
        (("bias",), "{vectors=ahead}"),
        (("residual", "bias"), "{ahead=2 vectors=ahead}"),
    ],
)
@pytest.mark.parametrize("form", ["mxfp8", "mxfp6", "nvfp4"])
@pytest.mark.sweep(4)
def test_what_an_epilogue_reads_comes_ahead_and_is_right(form, names, options):
    text = with_epilogue(form, names)
    spec = read_spec(LinalgText(text, "f.mlir"), "sm_100a")
    assert (spec.beside, spec.beside_columns) == (
        ("bf16",) * ("residual" in names),
        ("f32",) * ("bias" in names),
    )
    assert f"epilogue-staging{options}" in choose_pipeline(spec, "sm_100a")
    outcome = judge_problem(Problem(text, "sm_100a"), seed=len(form) + len(names))
    assert outcome.kind == "right", outcome


@pytest.mark.sweep(4)
@pytest.mark.parametrize("names", [("residual",), ("bias",), ("residual", "bias")])
@pytest.mark.parametrize("form", ["mxfp8", "nvfp4"])
def test_pieces_of_half_a_swizzle_are_right_for_pairs(form, names):
    """Two accumulators, two tiles along N, and operands of the epilogue beside both CTAs."""
    depth = 128 if form == "mxfp8" else 256
    options = {"residual": "ahead=2 ", "bias": "vectors=ahead "}
    text = (
        f"tiling{{tile=128x64x{depth}}},tma-insertion,swizzle-selection,"
        f"epilogue-staging{{columns=32 {''.join(options[name] for name in names).strip()}}},"
        "clustering{shape=2x1 pair=true},pipelining{stages=2},warp-specialization,"
        "persistence{ctas=2}"
    )
    problem = Problem(with_epilogue(form, names), "sm_100a")
    outcome = judge_problem(problem, seed=7, pipeline=text)
    assert outcome.kind == "right", outcome
