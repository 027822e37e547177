"""A lowering that stops after one of its passes goes on from what is printed there."""

import pytest

from tilewright.compiler.driver import compile_matmul
from tilewright.compiler.pipeline import DEFAULT_PIPELINE, LOWERING_NAMES, run_passes_on_text
from tilewright.compiler.presets import PRESETS
from tilewright.compiler.spec import MatmulSpec
from tilewright.dialects.errors import CompileError

SPEC = MatmulSpec(136, 264, 136)
PIPELINES = {
    ("sm_100a", "kernel8"): PRESETS["kernel8"],
    ("sm_100a", "default"): DEFAULT_PIPELINE,
    ("sm_100a", "curve"): "tiling{tile=64x64x64},tma-insertion,persistence{order=hilbert ctas=2}",
    ("sm_90a", "default"): DEFAULT_PIPELINE,
    ("sm_90a", "copies"): "tiling{tile=64x64x64}",
}


@pytest.mark.parametrize("stop", LOWERING_NAMES[:-1])
@pytest.mark.parametrize(("target", "name"), PIPELINES)
def test_what_is_printed_after_a_pass_goes_on_to_the_same_kernel(target, name, stop):
    text = f"{PIPELINES[target, name]},lower-to-nvvm{{pdl=early}}"
    ways = {"target": target, "pipeline": text, "until": "mlir"}
    at_once = compile_matmul(SPEC, **ways).mlir
    stopped = compile_matmul(SPEC, **ways, stop_after=stop).mlir
    assert run_passes_on_text(stopped, "stop.mlir", "lower-to-nvvm{pdl=early}") == at_once


def test_stopping_in_the_lowering_leaves_the_passes_after_it_out_of_the_text():
    compiled = compile_matmul(SPEC, preset="v4", until="mlir", stop_after="select-instructions")
    assert compiled.pipeline.endswith(",select-instructions")
    assert [stage for stage, _ in compiled.stages][-1] == "select-instructions"


def test_a_kernel_is_lowered_whole_wherever_its_lowering_is_told_to_stop():
    stopped = compile_matmul(SPEC, preset="v4", until="llvm", stop_after="select-instructions")
    assert stopped.llvm_ir == compile_matmul(SPEC, preset="v4", until="llvm").llvm_ir


@pytest.mark.parametrize(
    ("stop", "op", "message"),
    [
        ("expand-loops", "tile.write_piece", "tile.write_piece: attributes: nothing reads 'fast'"),
        ("select-instructions", "sm.fence", "sm.fence: attributes: nothing reads 'fast'"),
    ],
)
def test_an_attribute_that_nobody_reads_is_refused_at_every_level(stop, op, message):
    pipeline = "tiling{tile=64x64x64},tma-insertion,epilogue-staging"
    stopped = compile_matmul(SPEC, pipeline=pipeline, until="mlir", stop_after=stop).mlir
    first = "kind = " if op == "sm.fence" else "whole = "
    edited = stopped.replace(f"{{{first}", f"{{fast, {first}", 1)
    assert edited != stopped
    with pytest.raises(CompileError) as caught:
        run_passes_on_text(edited, "stop.mlir", "lower-to-nvvm")
    assert caught.value.message == f"{message}; take it off the op"
