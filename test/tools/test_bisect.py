"""`tilewright bisect` names a fault that is planted in a pass or by hand in a file."""

import pytest

from tilewright.compiler.driver import compile_matmul
from tilewright.compiler.spec import MatmulSpec
from tilewright.dialects.mlir import arith, ir
from tilewright.dialects.pipe import ReleaseOp
from tilewright.dialects.tile import YieldOp
from tilewright.passes import PASSES
from tilewright.passes.base import walk

pytestmark = pytest.mark.usefixtures("ptxas_for_a_share")
SIZES = ("--m", "64", "--n", "32", "--k", "128")
TMA = "tiling{tile=64x32x64},tma-insertion"
PIPELINE = f"{TMA},pipelining{{stages=2}},warp-specialization"


def negate(module):
    """Let the epilogue return the negative of what it should."""
    (end,) = walk(module, YieldOp)
    with ir.InsertionPoint(end), end.location:
        end.operation.operands[0] = arith.negf(end.operation.operands[0])


def drop_release(module):
    walk(module, ReleaseOp)[-1].operation.erase()


@pytest.fixture
def plant(monkeypatch):
    """plant(pass, fault) lets the pass also do the fault, where its options are as `when` says."""

    def planted(name, fault, when=lambda options: True):
        right = PASSES[name].__call__

        def call(self, module, log):
            right(self, module, log)
            if when(self):
                fault(module)

        monkeypatch.setattr(PASSES[name], "__call__", call)

    return planted


def test_a_pass_that_makes_the_result_wrong_is_named_with_what_it_changed(plant, tilewright):
    plant("pipelining", negate)
    ran = tilewright("bisect", *SIZES, "--pipeline", PIPELINE, "--json")
    assert (ran.status, ran.json["first_wrong"]) == (1, "pipelining{stages=2}")
    found = [(step["after"].partition("{")[0], step["found"]) for step in ran.json["steps"]]
    assert found == [("tiling", "right"), ("tma-insertion", "right"), ("pipelining", "wrong")]
    assert ran.json["steps"][-1]["said"].startswith("FAIL  ")
    added = [line for line in ran.json["diff"].splitlines() if line.startswith("+ ")]
    assert sum("arith.negf" in line for line in added) == 1


def test_a_pass_that_breaks_a_rule_is_named(plant, tilewright):
    plant("warp-specialization", drop_release)
    ran = tilewright("bisect", *SIZES, "--pipeline", PIPELINE)
    assert ran.status == 1
    assert "first wrong after warp-specialization: error: " in ran.out
    assert "before warp-specialization" not in ran.out  # it leaves nothing to compare


def test_a_fault_in_a_file_is_the_files_own(tilewright, tmp_path):
    path = tmp_path / "k.mlir"
    text = compile_matmul(MatmulSpec(64, 32, 128), pipeline=TMA, stop_after="tma-insertion",
                          until="mlir").mlir  # fmt: skip
    path.write_text(text.replace("constant 2 : index", "constant 1 : index"))
    ran = tilewright("bisect", path, *SIZES, "--pipeline", "pipelining{stages=2}", "--json")
    assert (ran.status, ran.json["first_wrong"]) == (1, "the file itself")
    assert ran.json["diff"] is None


def test_variants_name_the_choice_of_an_option_that_is_wrong(plant, tilewright):
    plant("swizzle-selection", negate, when=lambda options: options.force == "none")
    words = ("--pipeline", f"{TMA},swizzle-selection", "--json")
    assert tilewright("bisect", *SIZES, *words).json["ok"]
    ran = tilewright("bisect", *SIZES, *words, "--variants")
    assert (ran.status, ran.json["first_wrong"]) == (1, "swizzle-selection{force=none}")


def test_a_diff_shows_what_each_pass_changed(tilewright):
    words = ("--pipeline", TMA, "--stop-after", "tma-insertion", "--emit", "mlir")
    ran = tilewright("compile", *SIZES, *words, "--print-diff")
    after_tiling = ran.err.partition("+++ after tiling")[2].partition("--- before")[0]
    lines = after_tiling.splitlines()
    assert any(line.startswith("-") and "tile.matmul" in line for line in lines)
    assert any(line.startswith("+") and "tile.kernel" in line for line in lines)
