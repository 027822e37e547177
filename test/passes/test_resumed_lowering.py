"""A lowering that stops after one of its passes goes on from what is printed there."""

import functools
import re
from pathlib import Path

import pytest

from tilewright.compiler.driver import compile_matmul
from tilewright.compiler.importers.linalg_text import LinalgText
from tilewright.compiler.pipeline import (
    DEFAULT_PIPELINE,
    LOWERING_NAMES,
    checked_text,
    complete_pipeline,
    run_passes_on_text,
)
from tilewright.compiler.presets import HOPPER_PRESETS, PRESETS
from tilewright.compiler.spec import MatmulSpec
from tilewright.dialects.errors import CompileError

BIASED = Path(__file__).parents[1] / "numerics" / "inputs" / "bias_relu.mlir"
SPEC = MatmulSpec(136, 264, 136)
PIPELINES = {
    ("sm_100a", "kernel8"): PRESETS["kernel8"],
    ("sm_100a", "default"): DEFAULT_PIPELINE,
    ("sm_100a", "curve"): "tiling{tile=64x64x64},tma-insertion,persistence{order=hilbert ctas=2}",
    ("sm_100a", "parts"): "tiling{tile=64x64x64},tma-insertion,split-k{parts=2}",
    ("sm_90a", "default"): DEFAULT_PIPELINE,
    ("sm_90a", "parts"): "tiling{tile=64x64x64},tma-insertion,split-k{parts=2}",
    ("sm_90a", "copies"): "tiling{tile=64x64x64}",
}


def test_a_pass_after_which_it_stops_keeps_its_options():
    text = "tiling,expand-loops{reads=matrices},lower-to-nvvm{pdl=early}"
    for stop in ("expand-loops", "lower-to-nvvm"):
        *_, last = complete_pipeline(text, None, stop, stop == "lower-to-nvvm")
        assert str(last) == text[text.index(stop) :].split(",")[0]


@functools.cache
def lowered(target, name, stop=None):
    text = f"{PIPELINES[target, name]},lower-to-nvvm{{pdl=early}}"
    return compile_matmul(SPEC, target=target, pipeline=text, until="mlir", stop_after=stop).mlir


@pytest.mark.sweep(8)
@pytest.mark.parametrize("stop", LOWERING_NAMES[:-1])
@pytest.mark.parametrize(("target", "name"), PIPELINES)
def test_what_is_printed_after_a_pass_goes_on_to_the_same_kernel(target, name, stop):
    stopped = lowered(target, name, stop)
    goes_on = run_passes_on_text(stopped, "stop.mlir", "lower-to-nvvm{pdl=early}")
    assert goes_on == lowered(target, name)


PRINTED = {
    "claims": (SPEC, PRESETS["kernel8"], "sm_100a"),
    "turns": (SPEC, HOPPER_PRESETS["h8"], "sm_90a"),
    "groups": (MatmulSpec(100, 72, 80, groups=3), None, "sm_90a"),
    "stacks": (MatmulSpec(72, 72, 80, batch=3), None, "sm_100a"),
    "scales of C": (MatmulSpec(140, 96, 160, "mxfp8", "mxfp8", "mxfp8"), None, "sm_100a"),
}


GROUPS_OF_K = MatmulSpec(72, 48, 96, a_major="m", b_major="n", groups=3, group_axis="k")
ROLES = "tiling{tile=64x48x32},tma-insertion,pipelining{stages=2},warp-specialization"
EXCHANGED = "tiling{tile=64x16x32 swap=true},tma-insertion,split-k{parts=2}"
RESUMED = {
    "turns with groups of K": (GROUPS_OF_K, f"{ROLES},persistence{{ctas=2}},ping-pong", "sm_90a"),
    "an order of groups of K": (GROUPS_OF_K, "tiling{tile=64x48x32 order=n}", "sm_100a"),
    "tiles asked for early": (
        SPEC,
        "tiling{tile=64x96x64},tma-insertion,warp-specialization,expand-loops{early=2}",
        "sm_90a",
    ),
    "sums of exchanged parts": (LinalgText(BIASED.read_text(), "-"), EXCHANGED, "sm_90a"),
}


@pytest.mark.parametrize("stop", ["expand-loops", "pipes-to-barriers"])
@pytest.mark.parametrize("name", RESUMED)
def test_kernels_whose_loops_are_written_out_are_read_again(name, stop):
    source, pipeline, target = RESUMED[name]
    options = {"target": target, "pipeline": pipeline, "until": "mlir"}
    text = compile_matmul(source, stop_after=stop, **options).mlir
    run_passes_on_text(text, "stop.mlir", "select-instructions")


@pytest.mark.parametrize("name", PRINTED)
def test_what_is_printed_after_any_pass_is_read_and_printed_alike(name):
    spec, pipeline, target = PRINTED[name]
    left = []
    compile_matmul(
        spec,
        target=target,
        pipeline=pipeline,
        until="mlir",
        stop_after=LOWERING_NAMES[-1],
        observer=lambda event: left.append(event.ir()),
    )
    assert left == [checked_text(text, "left.mlir") for text in left]


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
        (
            "expand-loops",
            "tile.apply_epilogue",
            "tile.apply_epilogue: attributes: nothing reads 'fast'",
        ),
        ("pipes-to-barriers", "sm.position", "sm.position: attributes: nothing reads 'fast'"),
        ("select-instructions", "sm.fence", "sm.fence: attributes: nothing reads 'fast'"),
    ],
)
def test_an_attribute_that_nobody_reads_is_refused_at_every_level(stop, op, message):
    pipeline = "tiling{tile=64x64x64},tma-insertion,epilogue-staging"
    stopped = compile_matmul(SPEC, pipeline=pipeline, until="mlir", stop_after=stop).mlir
    first = {"sm.fence": "kind = ", "sm.position": "label = "}.get(op, "behind = ")
    edited = stopped.replace(f"{{{first}", f"{{fast, {first}", 1)
    assert edited != stopped
    with pytest.raises(CompileError) as caught:
        run_passes_on_text(edited, "stop.mlir", "lower-to-nvvm")
    assert caught.value.message == f"{message}; take it off the op"


@pytest.fixture(scope="module")
def instructions():
    pipeline = "tiling{tile=64x64x64},tma-insertion,epilogue-staging"
    return compile_matmul(
        SPEC, pipeline=pipeline, until="mlir", stop_after="select-instructions"
    ).mlir


@pytest.mark.parametrize(
    ("op", "before", "after"),
    [
        ("arith.constant", r"arith\.constant ", "arith.constant {fast} "),
        ("arith.addi", r"(arith\.addi [^:]*) :", r"\1 {fast} :"),
        ("llvm.store", r"(llvm\.store [^:]*) :", r"\1 {fast} :"),
        ("scf.for", r"\n( *)(scf\.for .*\n(?:\1  .*\n)*\1})", r"\n\1\2 {fast}"),
    ],
)
def test_an_attribute_that_nobody_reads_is_refused_on_ops_of_mlir(instructions, op, before, after):
    edited, count = re.subn(before, after, instructions, count=1)
    assert count == 1
    with pytest.raises(CompileError) as caught:
        run_passes_on_text(edited, "stop.mlir", "lower-to-nvvm")
    assert caught.value.message == f"{op}: attributes: nothing reads 'fast'; take it off the op"


@pytest.mark.parametrize("alignment", [0, 3, -4, 2**33])
def test_an_alignment_that_llvm_does_not_take_is_refused(instructions, alignment):
    """MLIR lets it through; of some LLVM's own parser dies."""
    edited, count = re.subn(
        r"(llvm\.store [^:]*?)(?: \{[^}]*\})? :",
        rf"\1 {{alignment = {alignment} : i64}} :",
        instructions,
        count=1,
    )
    assert count == 1
    rule = f"alignment: must be a power of two up to 4096, got {alignment}; say that"
    with pytest.raises(CompileError, match=rule):
        run_passes_on_text(edited, "stop.mlir", "lower-to-nvvm")


def test_what_a_loop_says_to_llvm_is_read(instructions, tmp_path):
    loop = r"\n( *)(scf\.for .*\n(?:\1  .*\n)*\1})"
    said = r"\n\1\2 {loop_annotation = #llvm.loop_annotation<disableNonforced = true>}"
    edited, count = re.subn(loop, said, instructions, count=1)
    assert count == 1
    path = tmp_path / "loop.mlir"
    path.write_text(edited)
    compiled = compile_matmul(path, until="llvm")
    assert "llvm.loop.disable_nonforced" in compiled.llvm_ir
