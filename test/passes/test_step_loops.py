"""Which MMAs of a step along K are put in a loop: wide ones, where no function is computed."""

import re

import pytest

from tilewright.compiler.driver import compile_matmul
from tilewright.compiler.importers.linalg_text import LinalgText
from tilewright.compiler.pipeline import parse_module
from tilewright.compiler.spec import MatmulSpec
from tilewright.compiler.spec.epilogue import Epilogue
from tilewright.dialects.context import lent_context
from tilewright.dialects.mlir import ir
from tilewright.passes.lowering.wgmma.step_loop import put_steps_in_loops

PIPELINE = "tma-insertion,swizzle-selection,pipelining{stages=2},warp-specialization"
PERMUTES = "persistence{ctas=3},ping-pong"
EIGHT_BITS = {"a_dtype": "e4m3", "b_dtype": "e4m3"}


def mmas_of(tile: str, more: str = "", source=None, **kinds) -> int:
    pipeline = f"tiling{{tile={tile}}},{PIPELINE}{more}"
    source = source or MatmulSpec(256, 256, 256, **kinds)
    made = compile_matmul(source, target="sm_90a", pipeline=pipeline, until="ptx")
    return made.ptx.count("wgmma.mma_async")


@pytest.mark.parametrize(
    ("tile", "kinds", "mmas"),
    [
        ("64x128x64", {}, 2),
        ("128x128x64", {}, 4),  # down a tile there are two of each step
        ("128x256x64", {}, 1),  # of one of two warpgroups
        ("64x128x16", {}, 1),  # there is one, and no loop
        ("64x128x32", {}, 2),  # as many as a turn has
        ("64x64x64", {}, 2 * 4),  # narrow ones, of the first step before the loop along K, too
        ("128x256x128", EIGHT_BITS, 1),
        ("64x128x128", EIGHT_BITS | {"sums": "two-level"}, 2 * 4),  # threads add between them
    ],
)
def test_mmas_of_a_step(tile, kinds, mmas):
    assert mmas_of(tile, **kinds) == mmas


@pytest.mark.parametrize(("more", "mmas"), [("", 4), (f",{PERMUTES}", 2 * 4)])
def test_where_functions_are_computed_all_of_a_step_stay(more, mmas):
    """And the first step before the loop along K, where consumers take turns."""
    body = ["%t = math.tanh %x : f32", "%c = arith.truncf %t : f32 to bf16"]
    text = MatmulSpec(256, 256, 256).mlir_text(Epilogue("%x", (), body, "%c"))
    assert mmas_of("64x128x64", more, LinalgText(text, "matmul")) == mmas


def test_consumers_in_turns_share_a_loop():
    assert mmas_of("64x128x64", f",{PERMUTES}") == 2


SUMS = f"!llvm.struct<({', '.join(['f32'] * 64)})>"
DESCRIPTOR = (
    "!sm.descriptor<{base_offset = 0 : i64, lbo = 16 : i64, sbo = 1024 : i64, "
    'swizzle = "128B", version = 0 : i64}>'
)
FIELDS = 'a_type = "bf16", b_type = "bf16", d_type = "f32", a_major = "k", b_major = "k"'
SHAPE = "first = 0 : i64, k = 16 : i64, m = 64 : i64, n = 128 : i64"


def mma(gives: str, adds_to: str, a: int, b: int, accumulate: str = "true") -> str:
    return (
        f'  %{gives} = "sm.wgmma"(%{adds_to}, %a, %b, %{accumulate}) {{{FIELDS}, {SHAPE},'
        f" a_offset = {a} : i64, b_offset = {b} : i64}} : ({SUMS}, {DESCRIPTOR}, {DESCRIPTOR}, i1)"
        f" -> {SUMS}\n"
    )


GROUP = (
    f"""  %held = llvm.load %slot : !llvm.ptr -> {SUMS}
  "sm.wgmma_fence"() : () -> ()
"""
    + mma("s0", "held", 0, 0, "adds")
    + "".join(mma(f"s{at}", f"s{at - 1}", 32 * at, 64 * at) for at in range(1, 4))
    + f"""  "sm.wgmma_commit"() : () -> ()
  llvm.store %s3, %slot : {SUMS}, !llvm.ptr
  "sm.wgmma_wait"() {{pending = 1 : i64}} : () -> ()
"""
)


def steps_put_in_loops(body: str) -> str:
    kernel = f"""
"sm.kernel"() ({{
^bb0(%out: !llvm.ptr<1>):
  %i = arith.constant 0 : i32
  %one = arith.constant 1 : i32
  %true = arith.constant true
  %adds = "sm.elect"() : () -> i1
  %p = "sm.shared_address"(%i) : (i32) -> !llvm.ptr<3>
  %a = "sm.smem_descriptor"(%p) : (!llvm.ptr<3>) -> {DESCRIPTOR}
  %b = "sm.smem_descriptor"(%p) : (!llvm.ptr<3>) -> {DESCRIPTOR}
  %slot = llvm.alloca %one x {SUMS} : (i32) -> !llvm.ptr
  %slot2 = llvm.alloca %one x {SUMS} : (i32) -> !llvm.ptr
{body}}}) {{cluster = [1, 1, 1], launch = "{{\\"entry\\": \\"f\\", \\"schedule\\": {{}}}}",
     sym_name = "f", threads = 128 : i64}} : () -> ()
"""
    with lent_context(), ir.Location.unknown():
        module = parse_module(kernel, "-")
        put_steps_in_loops(module.body.operations[0], 2)
        module.operation.verify()
        return str(module)


def test_a_loop_over_two_steps():
    made = steps_put_in_loops(GROUP)
    assert re.findall(r"a_offset = (\d+)", made) == ["0", "32"]
    assert re.findall(r"b_offset = (\d+)", made) == ["0", "64"]
    assert "pending = 2" in made
    # units of 16 bytes that a turn is behind the one before
    assert set(re.findall(r"arith.muli %arg\d+, %c(\d+)_i32", made)) == {"4", "8"}


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("a_offset = 64", "a_offset = 80"),
        ("b_offset = 192", "b_offset = 208"),
        ("%s3, %slot :", "%s3, %slot2 :"),
        ("pending = 1", "pending = 4"),  # 8 were then pending, and 7 may be
        ("n = 128", "n = 120"),
        ("  llvm.store", f"  llvm.store %s2, %slot2 : {SUMS}, !llvm.ptr\n  llvm.store"),
        ("%s1, %a, %b, %true", "%s1, %a, %b, %adds"),
    ],
)
def test_what_is_no_turn_of_a_loop_stays(old, new):
    assert old in GROUP
    made = steps_put_in_loops(GROUP.replace(old, new))
    assert made.count('sm.wgmma"') == 4
    assert "scf.for" not in made


def test_groups_of_another_number_of_steps_stay_all():
    """Who waits for some of the groups counts both kinds."""
    short = re.sub(r"%(s\d|held)", r"%\1_", GROUP).replace(mma("s2_", "s1_", 64, 128), "")
    short = short.replace(mma("s3_", "s2_", 96, 192), "").replace("%s3_", "%s1_")
    made = steps_put_in_loops(GROUP + short)
    assert made.count('sm.wgmma"') == 6
