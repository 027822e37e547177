"""What MLIR's parser can't survive is refused before it reads any, at its place."""

import pytest

from tilewright.compiler.importers.source_text import DEPTH_MAX, check_text
from tilewright.compiler.pipeline import run_passes_on_text
from tilewright.dialects.errors import CompileError


def refusal(text):
    with pytest.raises(CompileError) as caught:
        run_passes_on_text(text, "m", "normalize")
    return str(caught.value)


@pytest.mark.parametrize(
    ("opening", "closing"),
    [("(", ")"), ("((d0) + ", ")"), ("(\n", ")")],
)
def test_brackets_that_nest_too_deep_are_refused(opening, closing):
    text = f"#m = affine_map<(d0) -> ({opening * 20000}d0{closing * 20000})>\n"
    assert f"text: brackets must nest at most {DEPTH_MAX} deep, got more" in refusal(text)


@pytest.mark.parametrize(
    "text",
    ["{" * 20000, "#a = " + "[" * 20000, "tuple<" * 20000, '"o"() : ' + "tuple<(" * 20000],
)
def test_any_bracket_counts(text):
    assert f"at most {DEPTH_MAX} deep" in refusal(text)


def test_minus_signs_that_nest_too_deep_are_refused_at_their_place():
    text = "module {\n}\n#m = affine_map<(d0) -> (" + "- " * 50000 + "d0)>"
    rule = f"text: minus signs must nest at most {DEPTH_MAX} deep, got more"
    assert refusal(text) == f"m:3:26: error: {rule}"


def test_what_is_no_bracket_does_not_count():
    deep = "(" * 1000
    pairs = "// " + deep + '\n"' + deep + ' \\" ' + deep + '" -> -> >= () [] {} <>\n'
    check_text(pairs * 500, "m")


@pytest.mark.parametrize("name", [r"\FF", r"a\C3", r"\ED\A0\80", r"\80b"])
def test_strings_of_other_bytes_than_utf8_are_refused(name):
    text = f'func.func @"{name}"() {{\n  return\n}}\n'
    assert refusal(text) == "m:1:12: error: text: a string must be UTF-8, got other bytes"


def test_escapes_of_utf8_are_taken():
    check_text(r'@"gr\C3\B6\C3\9Fe \22 \n \\ größe"', "m")


@pytest.mark.parametrize("dims", ["[1x]", "[1 0]", "[", "1", "[99999999999999999999]", "[%a]"])
def test_lists_of_dims_that_are_none_are_refused(dims):
    text = "%t = linalg.transpose ins(%a : tensor<4x4xf32>) outs(%b : tensor<4x4xf32>)"
    rule = "text: permutation and dimensions must be lists of integers, got something else"
    assert refusal(f"{text}\n  permutation = {dims}") == f"m:2:3: error: {rule}"


def test_lists_of_dims_in_either_form_are_taken():
    check_text("permutation = [1, 0] dimensions=[] permutation = array<i64: 1, 0>", "m")
    check_text('// dimensions = all\n"permutation = none" permutation = [ -1 ,\n 0 ]', "m")
