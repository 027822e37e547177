"""Integers of attributes are i64 and fit in 32 bits, truths i1; terminators have no attribute."""

from pathlib import Path

import pytest

from tilewright.compiler.driver import compile_matmul
from tilewright.compiler.pipeline import parse_module, run_passes_on_text
from tilewright.compiler.spec import MatmulSpec
from tilewright.dialects.context import lent_context
from tilewright.dialects.errors import CompileError
from tilewright.dialects.mlir import ir
from tilewright.dialects.pipe import TileOp
from tilewright.dialects.record import record
from tilewright.passes import PASSES
from tilewright.passes.base import the_kernel, walk

STEPS = (
    '%1 = "tile.group_steps"(%n) {depth = 64, least = 1, less = SAID, most = 9} : (index) -> index'
)
MEET = '"sm.cluster_barrier"() {releases = SAID} : () -> ()'
PLACE = '%1 = "sm.slot_memory"() {offsets = [0, SAID], slots = 1} : () -> !pipe.slot<[TILE, TILE]>'
TILE = '!tile.smem<tensor<64x64xbf16>, "k", "none">'
YIELD = "scf.for %i = %n to %n step %n { scf.yield SAID }"
RETURN = "return SAID\n}\n"
TYPED = "must be of i64, got"
WIDE = "must be at most 2147483647, as kernels count in 32 bits, got"


def parsed(op, said):
    end = "" if op == RETURN else "\nreturn\n}"
    op = op.replace("SAID", said).replace("TILE", TILE)
    with lent_context(), ir.Location.unknown():
        return str(parse_module(f"func.func @f(%n: index) {{\n{op}{end}", "kernel.mlir"))


@pytest.mark.parametrize(
    ("op", "said"), [(STEPS, "1"), (MEET, "true"), (PLACE, "8192"), (YIELD, "")]
)
def test_integers_of_64_bits_and_truths_are_taken(op, said):
    assert said in parsed(op, said)


@pytest.mark.parametrize(
    ("op", "said", "rule"),
    [
        (MEET, "1", "releases must be of i1, got 1 : i64; write true or false"),
        (STEPS, "true", "less must be of i64, got true; write a number without a type"),
        (STEPS, "1 : i8", "less must be of i64, got 1 : i8; write a number without a type"),
        (STEPS, "2147483648", f"less {WIDE} 2147483648; write a smaller one"),
        (PLACE, "8192 : i32", f"offsets {TYPED} 8192 : i32; write a number without a type"),
        (PLACE, "4294975488", f"offsets {WIDE} 4294975488; write a smaller one"),
        (YIELD, "{odd}", "nothing reads 'odd'; take it off the op"),
        (RETURN, "{odd}", "nothing reads 'odd'; take it off the op"),
    ],
)  # fmt: skip
def test_others_are_refused_at_the_op(op, said, rule):
    with pytest.raises(CompileError) as caught:
        parsed(op, said)
    assert caught.value.message.split(": attributes: ")[1] == rule
    assert caught.value.location.startswith("-:2:")


@record
class Short:
    """A pass of a user that writes a number of 32 bits."""

    name = "short"

    def __call__(self, module, log):
        for op in walk(the_kernel(module, self.name), TileOp):
            of_32 = ir.IntegerType.get_signless(32)
            op.operation.attributes["index"] = ir.IntegerAttr.get(of_32, op.index.value)


@pytest.mark.parametrize("behind", ["", ",warp-specialization"])
def test_what_a_pass_of_a_user_leaves_is_held_to_it_at_once(behind, monkeypatch):
    monkeypatch.setitem(PASSES, "short", Short)
    passes = f"tiling{{tile=64x32x64}},tma-insertion,pipelining,short{behind}"
    with pytest.raises(CompileError) as caught:
        compile_matmul(MatmulSpec(64, 32, 128), pipeline=passes, until="mlir")
    assert caught.value.message == (
        f"pipe.tile: attributes: index {TYPED} 0 : i32; write a number without a type"
    )


def test_an_op_of_an_epilogue_says_nothing_that_nobody_reads():
    source = Path(__file__).parents[1] / "numerics" / "inputs" / "bias_relu.mlir"
    how = {"pipeline": "tiling{tile=64x64x64}", "stop_after": "tiling", "until": "mlir"}
    text = compile_matmul(source, **how).mlir
    (op,) = [line for line in text.splitlines() if "arith.addf" in line]
    changed = text.replace(op, op.replace(" : f32", " {odd = 1 : i64} : f32"))
    with pytest.raises(CompileError) as caught:
        run_passes_on_text(changed, "kernel.mlir", "tma-insertion")
    assert caught.value.message.endswith("nothing reads 'odd'; take it off the op")
