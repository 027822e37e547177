"""The short text of the IR: aliases, names of values, one line for an element's computation."""

import re

import pytest

from tilewright.compiler.ir_text import short_text
from tilewright.compiler.pipeline import (
    PassLog,
    complete_pipeline,
    parse_module,
    run_passes,
    run_passes_on_text,
)
from tilewright.compiler.spec import MatmulSpec
from tilewright.dialects.context import lent_context
from tilewright.dialects.mlir import ir
from tilewright.passes.base import TARGET_ATTRIBUTE

ROLES = "tiling,tma-insertion,swizzle-selection,epilogue-staging,pipelining,warp-specialization"
PIPELINES = [
    ("sm_100a", f"{ROLES},persistence{{scheduler=clc}}"),
    ("sm_100a", "tiling,tma-insertion,split-k{parts=2},clustering,pipelining"),
    ("sm_90a", f"{ROLES},persistence,ping-pong"),
]


def generic(module):
    return module.operation.get_asm(print_generic_op_form=True)


@pytest.mark.parametrize(("target", "pipeline"), PIPELINES)
def test_what_every_pass_leaves_parses_back_to_the_same_module(target, pipeline):
    with lent_context(), ir.Location.unknown():
        module = ir.Module.parse(MatmulSpec(300, 264, 320, b_major="n").mlir_text())
        module.operation.attributes[TARGET_ATTRIBUTE] = ir.StringAttr.get(target)
        same = []

        def observe(event):
            again = parse_module(event.ir(), event.name)
            # MLIR's own text of a gpu.module lacks default attributes, which its parser adds.
            whole = event.name == "lower-to-nvvm" or generic(again) == generic(module)
            same.append(whole and short_text(again) == event.ir())

        run_passes(module, complete_pipeline(pipeline, None, None, True), PassLog(), observe)
    assert len(same) > 5 and all(same)


def test_the_registers_of_sums_are_spelled_out_once():
    with lent_context(), ir.Location.unknown():
        module = ir.Module.parse(MatmulSpec(256, 128, 128).mlir_text())
        module.operation.attributes[TARGET_ATTRIBUTE] = ir.StringAttr.get("sm_90a")
        calls = complete_pipeline("tiling,select-instructions", None, None, False)
        run_passes(module, calls, PassLog())
        lines = short_text(module).splitlines()
    spelled = [line for line in lines if "llvm.struct" in line]
    assert len(spelled) == 1 and spelled[0].startswith("!registers = ")
    assert sum("!registers" in line for line in lines) > 3


LONG = """module attributes {tile.target = "sm_100a"} {
  "tile.kernel"() ({
  ^bb0(%arg0: memref<64x64xf16, 1>, %arg1: memref<32x64xf16, 1>, %arg2: memref<64x32xf32, 1>):
    %0:2 = "tile.cta_tile"() : () -> (index, index)
    %1 = "tile.accumulator"() : () -> !tile.acc<tensor<64x32xf32>>
    %2 = "tile.load"(%arg0, %0#0, %0#1) {note = "!tile.acc<tensor<64x32xf32>> %ij#0 //"}
       : (memref<64x64xf16, 1>, index, index) -> !tile.smem<tensor<64x64xf16>, "k", "none">
    "tile.store"(%1, %arg2, %0#0, %0#1) ({
    ^bb0(%arg3: f32):
      "tile.yield"(%arg3) : (f32) -> ()
    }) : (!tile.acc<tensor<64x32xf32>>, memref<64x32xf32, 1>, index, index) -> ()
  }) {arg_names = ["ring", "a b", ""], cluster = [1, 1, 1], grid = [1, 1, 1], sym_name = "f",
      threads = 128 : i64} : () -> ()
}"""
SHORT = """!acc = !tile.acc<tensor<64x32xf32>>
!ring_tile = !tile.smem<tensor<64x64xf16>, "k", "none">
module attributes {tile.target = "sm_100a"} {
  "tile.kernel"() ({
  ^bb0(%ring: memref<64x64xf16, 1>, %a_b: memref<32x64xf16, 1>, %view: memref<64x32xf32, 1>):
    %i, %j = "tile.cta_tile"() : () -> (index, index)
    %acc = "tile.accumulator"() : () -> !acc
    %ring_tile = "tile.load"(%ring, %i, %j) {note = "!tile.acc<tensor<64x32xf32>> %ij#0 //"} : \
(memref<64x64xf16, 1>, index, index) -> !ring_tile
    "tile.store"(%acc, %view, %i, %j) ({ ^bb0(%x: f32): "tile.yield"(%x) : (f32) -> () }) : \
(!acc, memref<64x32xf32, 1>, index, index) -> ()
  }) {arg_names = ["ring", "a b", ""], cluster = [1, 1, 1], grid = [1, 1, 1], sym_name = "f", \
threads = 128 : i64} : () -> ()
}
"""


def test_types_values_and_epilogue_are_short_and_strings_stay():
    with lent_context(), ir.Location.unknown():
        module = parse_module(LONG, "long")
        assert short_text(module) == SHORT
        assert generic(parse_module(SHORT, "short")) == generic(module)


def test_a_type_keeps_its_alias_when_a_pass_adds_others():
    with lent_context(), ir.Location.unknown():
        module = ir.Module.parse(MatmulSpec(512, 768, 320, c_dtype="f32").mlir_text())
        module.operation.attributes[TARGET_ATTRIBUTE] = ir.StringAttr.get("sm_100a")
        texts = []
        calls = complete_pipeline(ROLES, None, None, False)
        run_passes(module, calls, PassLog(), lambda event: texts.append(event.ir()))
    names = [set(re.findall(r"^(!\w+) = ", text, re.MULTILINE)) for text in texts]
    first = {"!a_map", "!b_map", "!tile", "!ring", "!acc", "!slot"}
    staged = first | {"!c_map", "!staging_tile", "!staging_ring"}
    roles = staged | {"!acc_ring", "!acc_slot"}
    assert names[2:] == [first, first, staged, staged, roles]


def test_instructions_name_parameters_and_mbarriers_by_the_launch():
    source = MatmulSpec(128, 128, 256).mlir_text()
    passes = "tiling,tma-insertion,pipelining{stages=2},warp-specialization,select-instructions"
    text = run_passes_on_text(source, "-", f"normalize,{passes}")
    assert "^bb0(%a_map: !llvm.ptr, %b_map: !llvm.ptr, %c: " in text
    for used in (
        '"sm.barrier_init"(%operands_full1)',
        '"sm.wait_barrier"(%accumulator_full,',
        '"sm.wait_barrier"(%operands_empty,',
    ):
        assert used in text


@pytest.mark.parametrize(
    "more", ["", ', "parameters": [{}]', ', "parameters": [], "names": {"barriers": [7]}']
)
def test_a_launch_of_another_form_names_nothing(more):
    launch = f'{{"entry": "f", "schedule": {{}}{more}}}'.replace('"', chr(92) + "22")
    text = """module {
      "sm.kernel"() ({
      ^bb0(%p: !llvm.ptr<1>):
        %c = arith.constant 0 : i32
        %s = "sm.shared_address"(%c) : (i32) -> !llvm.ptr<3>
      }) {cluster = [1, 1, 1], launch = "LAUNCH", sym_name = "f", threads = 128 : i64} : () -> ()
    }"""
    with lent_context(), ir.Location.unknown():
        module = ir.Module.parse(text.replace("LAUNCH", launch))
        assert "%shared_address = " in short_text(module)


def test_long_text_is_mlirs_own():
    source = MatmulSpec(64, 64, 64).mlir_text()
    text = run_passes_on_text(source, "-", "normalize,tiling", long=True)
    assert "%arg0" in text and "!acc" not in text


def test_a_barrier_of_mbarriers_from_elsewhere_has_a_name_too():
    text = """func.func @f(%barriers: !sm.mbarriers<2 : i64>, %index: i32) {
      %0 = "sm.barrier"(%barriers, %index) : (!sm.mbarriers<2 : i64>, i32) -> !llvm.ptr<3>
      return
    }"""
    with lent_context(), ir.Location.unknown():
        assert '%barrier = "sm.barrier"(' in short_text(ir.Module.parse(text))
