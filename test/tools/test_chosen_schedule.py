"""-v says which schedule was chosen, and names a command that says why."""

import re
import shlex

import pytest

from tilewright.compiler.driver import choose_pipeline
from tilewright.compiler.spec import MatmulSpec

FLAGS = ("--m", 90, "--n", 64, "--k", 72, "--a-major", "m", "--c-dtype", "f32")
LINE = re.compile(r"^schedule(?: {3}|: )(.*); why: tilewright (explain schedule .*)$", re.MULTILINE)
SOURCE = """func.func @f(%a: tensor<90x72xf16>, %b: tensor<64x72xf16>) -> tensor<90x64xf32> {
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<90x64xf32>
  %init = linalg.fill ins(%zero : f32) outs(%empty : tensor<90x64xf32>) -> tensor<90x64xf32>
  %c = linalg.matmul
    indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (n, k)>,
                     affine_map<(m, n, k) -> (m, n)>]
    ins(%a, %b : tensor<90x72xf16>, tensor<64x72xf16>)
    outs(%init : tensor<90x64xf32>) -> tensor<90x64xf32>
  return %c : tensor<90x64xf32>
}
"""

SPEC_OF_SOURCE = MatmulSpec(90, 64, 72, "f16", "f16", "f32")


def assert_explained(text, pipeline, tilewright):
    """The line in `text` names the command that prints this very schedule and pipeline."""
    label, command = LINE.search(text).groups()
    explained = tilewright(*shlex.split(command)).out
    assert f"schedule   {label}" in explained
    assert f"pipeline   {pipeline}" in explained


def test_run_names_the_schedule_and_the_command_that_explains_it(tilewright):
    ran = tilewright("run", *FLAGS, "-v")
    pipeline = re.search(r"^pipeline   normalize,(.*),lower-to-nvvm$", ran.out, re.MULTILINE)[1]
    assert "--a-major m" in ran.out and "--c-dtype f32" in ran.out
    assert_explained(ran.out, pipeline, tilewright)


def test_a_gpu_for_which_it_was_chosen_is_named(tilewright, tmp_path):
    shape, gpu = MatmulSpec(128, 512, 2048), "h100"
    pipeline = choose_pipeline(shape, gpu)
    assert pipeline != choose_pipeline(shape, "sm_90a")
    flags = ("--m", shape.m, "--n", shape.n, "--k", shape.k, "--target", gpu)
    ran = tilewright("compile", *flags, "-v", "-o", tmp_path / "made.ptx")
    assert_explained(ran.err, pipeline, tilewright)


@pytest.mark.parametrize("emit", ["mlir", "bundle"])
def test_compile_names_the_schedule_of_a_file(emit, tilewright, tmp_path):
    source = tmp_path / "my matmul.mlir"
    source.write_text(SOURCE)
    ran = tilewright("compile", source, "-v", "--emit", emit, "-o", tmp_path / "made")
    assert_explained(ran.err, choose_pipeline(SPEC_OF_SOURCE, "sm_100a"), tilewright)


def test_run_names_the_schedule_of_a_file(tilewright, tmp_path):
    source = tmp_path / "matmul.mlir"
    source.write_text(SOURCE)
    ran = tilewright("run", source, "-v")
    assert f"; why: tilewright explain schedule {source}\n" in ran.out
    assert_explained(ran.out, choose_pipeline(SPEC_OF_SOURCE, "sm_100a"), tilewright)


def test_a_schedule_that_is_cut_says_where(tilewright):
    ran = tilewright("compile", *FLAGS, "-v", "--stop-after", "tma-insertion")
    assert ", cut after tma-insertion; why: " in ran.err


@pytest.mark.parametrize("flags", [("--preset", "v2a"), ("--pipeline", "tiling{tile=64x64x64}")])
def test_a_schedule_that_was_named_is_not_explained(flags, tilewright):
    assert not LINE.search(tilewright("compile", *FLAGS, "-v", *flags).err)


def test_without_v_nothing_is_said(tilewright):
    assert not LINE.search(tilewright("compile", *FLAGS).err)
