"""The policy for the error of an epilogue's functions: who says it, and where it stands."""

from __future__ import annotations

import numpy as np
import pytest

from tilewright.compiler.driver import compile_matmul
from tilewright.compiler.importers.linalg_text import LinalgText
from tilewright.compiler.spec import MatmulSpec
from tilewright.compiler.spec.epilogue import Epilogue
from tilewright.dialects.epilogue import NO_FUNCTION
from tilewright.dialects.errors import CompileError, OptionError
from tilewright.runtime.judge.intervals import Interval
from tilewright.runtime.judge.reference import half_ulp
from tilewright.runtime.judge.relaxed import relaxed
from tilewright.tools.main import main

PIPELINE = "tiling{tile=64x64x64}"


def source(c: str, *body: str) -> LinalgText:
    """A product whose epilogue has these lines, the last of which gives %c."""
    spec = MatmulSpec(64, 64, 64, c_dtype=c)
    return LinalgText(spec.mlir_text(Epilogue("%x", (), body, "%c")), "matmul", ("a", "b"))


def tanh(c: str) -> LinalgText:
    lines = ["%t = math.tanh %x : f32"]
    lines += ["%c = arith.truncf %t : f32 to bf16" if c == "bf16" else "%c = arith.negf %t : f32"]
    return source(c, *lines)


@pytest.mark.parametrize(
    "c, asked, said", [("bf16", None, "fast"), ("f32", None, "exact"), ("bf16", "exact", "exact")]
)
def test_a_module_with_a_function_says_its_policy_and_so_does_its_launch(c, asked, said):
    text = compile_matmul(tanh(c), pipeline=PIPELINE, until="mlir", stop_after="normalize",
                          math=asked).mlir  # fmt: skip
    assert f'tile.math = "{said}"' in text
    compiled = compile_matmul(tanh(c), pipeline=PIPELINE, until="llvm", math=asked)
    assert compiled.manifest["math"] == said
    assert ("tanh.approx" in compiled.llvm_ir) == (said == "fast")


RELU = ("%nought = arith.constant 0.0 : f32", "%r = arith.maximumf %x, %nought : f32",
        "%c = arith.truncf %r : f32 to bf16")  # fmt: skip


def test_a_product_without_a_function_says_no_policy():
    compiled = compile_matmul(source("bf16", *RELU), pipeline=PIPELINE, until="llvm")
    assert "math" not in compiled.manifest


@pytest.mark.parametrize("asked", ["fast", "exact"])
@pytest.mark.parametrize("given", [MatmulSpec(64, 64, 64), source("bf16", *RELU)])
def test_a_policy_of_no_function_is_refused(given, asked):
    with pytest.raises(OptionError) as refused:
        compile_matmul(given, pipeline=PIPELINE, math=asked)
    assert refused.value.message == f"math: {NO_FUNCTION}"


@pytest.mark.parametrize("level", ["normalize", "tiling", "warp-specialization", "expand-loops"])
def test_a_policy_of_ir_between_passes_needs_a_function_as_well(level, tmp_path):
    path, passes = tmp_path / "between.mlir", "tma-insertion,swizzle-selection,warp-specialization"
    before = {"pipeline": f"{PIPELINE},{passes}", "until": "mlir", "stop_after": level}
    path.write_text(compile_matmul(source("bf16", *RELU), **before).mlir)
    with pytest.raises(OptionError, match="math: an epilogue must have a function"):
        compile_matmul(path, until="llvm", math="fast")
    if level != "normalize":  # which refuses it at the product
        told = path.read_text().replace(
            "module attributes {", 'module attributes {tile.math = "fast", '
        )
        path.write_text(told)
        with pytest.raises(CompileError, match=r"tile\.math: an epilogue must have a function"):
            compile_matmul(path, until="llvm")
    path.write_text(compile_matmul(tanh("bf16"), **before).mlir)
    for policy in ("fast", "exact"):
        assert compile_matmul(path, until="llvm", math=policy).manifest["math"] == policy


def test_a_module_that_names_a_policy_needs_a_function():
    text = source("bf16", *RELU).text
    named = LinalgText(f'module attributes {{tile.math = "fast"}} {{\n{text}\n}}', "m", ("a", "b"))
    with pytest.raises(CompileError) as refused:
        compile_matmul(named, pipeline=PIPELINE, until="llvm")
    assert refused.value.message == f"tile.matmul: tile.math: {NO_FUNCTION}"


def test_the_command_line_refuses_a_policy_of_no_function(capsys):
    sizes = [word for size in "mnk" for word in (f"--{size}", "64")]
    assert main(["compile", *sizes, "--math", "exact", "--emit", "ptx"]) == 2
    assert f"error: math: {NO_FUNCTION}" in capsys.readouterr().err


def test_an_unknown_policy_is_refused():
    with pytest.raises(OptionError, match="math: must be fast or exact, got 'quick'; name one"):
        compile_matmul(tanh("bf16"), math="quick")


def test_a_module_with_an_unknown_policy_is_refused():
    text = tanh("bf16").text
    broken = LinalgText(
        f'module attributes {{tile.math = "quick"}} {{\n{text}\n}}', "m", ("a", "b")
    )
    with pytest.raises(CompileError, match=r'tile\.math must be fast or exact, got "quick"'):
        compile_matmul(broken, pipeline=PIPELINE, until="llvm")


def test_a_function_whose_error_would_grow_stays_exact():
    """tanh(x) + x: what is added may cancel, and a relative error says nothing of the sum."""
    lines = ("%t = math.tanh %x : f32", "%s = arith.addf %t, %x : f32")
    compiled = compile_matmul(
        source("bf16", *lines, "%c = arith.truncf %s : f32 to bf16"),
        pipeline=PIPELINE,
        until="llvm",
    )
    assert compiled.manifest["math"] == "fast"
    assert "tanh.approx" not in compiled.llvm_ir


def test_limits_move_by_one_number_of_the_output_type():
    """Below a power of two numbers of bf16 stand 2^-8 apart, above it 2^-7."""
    values = np.array([1.0, -1.0, 1.5, 0.0, np.inf])
    found = relaxed(Interval(values, values, values), lambda part: half_ulp(part, "bf16"))
    step, least = 2.0**-7, 2.0**-133
    assert found.low.tolist() == [1 - step / 2, -1 - step, 1.5 - step, -least, np.inf]
    assert found.high.tolist() == [1 + step, -1 + step / 2, 1.5 + step, least, np.inf]


def test_explain_says_what_an_epilogue_takes_and_the_policy(tmp_path, capsys):
    path = tmp_path / "tanh.mlir"
    path.write_text(tanh("bf16").text)
    assert main(["explain", "schedule", str(path), "--target", "sm_90a"]) == 0
    told = "epilogue   about 2 instructions an element; functions, where it has some, are fast"
    assert told in capsys.readouterr().out
