"""IR that our passes would not make: refused at an op, or a kernel that does what the IR says.

What the passes leave after each prefix is changed at random (`ir_mutations`), goes through the rest
of the pipeline and runs on the emulator. The product is compared with what the changed program
means (`tile_program`, which knows no pass), in whole numbers, so that every element must be equal.
A program that the emulator stops with a trap counts as refused; one without a meaning that goes
through all the same is a fault, as is any error but the compiler's and the emulator's own.
"""

import functools
import random

import ir_mutations
import numpy as np
import pytest
import tile_program

from tilewright.compiler.backend import emit_ptx
from tilewright.compiler.compiled import Compiled
from tilewright.compiler.driver import _translate
from tilewright.compiler.pipeline import PassLog, parse_module, parse_pipeline, run_passes
from tilewright.compiler.spec import MatmulSpec
from tilewright.dialects.context import make_context
from tilewright.dialects.errors import CompileError
from tilewright.dialects.mlir import ir
from tilewright.dialects.target import find_target
from tilewright.passes.base import TARGET_ATTRIBUTE
from tilewright.runtime.bundles.bundle import Bundle
from tilewright.runtime.errors import DeviceError
from tilewright.runtime.launch.devices import open_device

SHAPE = (72, 96, 200)
TILING = "tiling{tile=64x48x64}"
TMA = f"{TILING},tma-insertion,swizzle-selection"
PIPELINES = {
    "sm_100a": (
        f"{TMA},epilogue-staging,pipelining{{stages=3}},warp-specialization,persistence{{ctas=2}}",
        f"{TMA},clustering{{shape=2x1 pair=false}},pipelining{{stages=2}},warp-specialization,"
        "persistence{ctas=2}",
        f"{TILING},swizzle-selection,persistence{{ctas=2}}",
        f"{TMA},persistence{{ctas=2}}",
        f"{TMA},split-k,pipelining{{stages=2}}",
    ),
    "sm_90a": (
        f"{TMA},pipelining{{stages=3}},warp-specialization,persistence{{ctas=2}},ping-pong",
        f"{TMA},epilogue-staging,clustering{{shape=1x2}},pipelining{{stages=2}},warp-specialization",
        f"{TMA},split-k,pipelining{{stages=2}},warp-specialization",
    ),
}


@functools.cache
def prefix(target, pipeline, length):
    """The text after the first passes of a pipeline."""
    with make_context(), ir.Location.unknown():
        module = ir.Module.parse(MatmulSpec(*SHAPE, c_dtype="f32").mlir_text())
        module.operation.attributes[TARGET_ATTRIBUTE] = ir.StringAttr.get(target)
        run_passes(module, parse_pipeline("normalize," + pipeline)[: length + 1], PassLog())
        return str(module)


def draw(seed):
    """(target, what was done, text, the passes that are left) of a case."""
    rng = random.Random(seed)
    target = rng.choice(sorted(PIPELINES))
    pipeline = rng.choice(PIPELINES[target])
    calls = parse_pipeline(pipeline)
    length = rng.randint(1, len(calls))
    done, text = ir_mutations.mutate(prefix(target, pipeline, length), rng)
    return target, f"{calls[length - 1]}: {done}", text, calls[length:]


def compiled(text, target, calls):
    """(meaning of the text, its kernel as a bundle); CompileError where it is refused."""
    with make_context(), ir.Location.unknown():
        module = parse_module(text, "foreign.mlir")
        said = meaning_of(module)
        run_passes(module, [*calls, *parse_pipeline("lower-to-nvvm")], PassLog())
        result = Compiled("", target, "", [], [])
        _translate(module, result)
    ptx = emit_ptx(result.llvm_ir, chip=target, ptx_feature=find_target(target).ptx_feature)
    return said, Bundle(result.manifest | {"target": target}, ptx, b"")


def operands():
    """a and b of small whole numbers, none of them zero."""
    m, n, k = SHAPE
    rng = np.random.default_rng(5)
    return [rng.choice([-3, -2, -1, 1, 2, 3], (rows, k)).astype(float) for rows in (m, n)]


def meaning_of(module):
    """C as the program says; a word where it says nothing, None where that can't be told."""
    try:
        return tile_program.meaning(module, operands())
    except tile_program.Undefined:
        return "undefined"
    except (NotImplementedError, KeyError, IndexError, ValueError, AttributeError, TypeError):
        return None


def run(bundle):
    """C of the kernel on the emulator, NaN where it stores nothing."""
    from ml_dtypes import bfloat16

    a, b = (each.astype(bfloat16) for each in operands())
    c = np.full(SHAPE[:2], np.nan, np.float32)
    open_device("emulator").launch(bundle, {"a": a, "b": b, "c": c}, 1)
    return c


def verdict(seed):
    """One of "refused", "trapped", "right" and "untold", which has no meaning to compare with.

    An AssertionError says what is wrong.
    """
    target, done, text, calls = draw(seed)
    try:
        said, bundle = compiled(text, target, calls)
    except CompileError as error:
        assert error.location, f"{done}: no place: {error}"
        return "refused"
    try:
        found = run(bundle)
    except DeviceError:
        return "trapped"
    if said is None:
        return "untold"
    assert not isinstance(said, str), f"{done}: a program without a meaning ran"
    assert np.array_equal(found, said, equal_nan=True), f"{done}: wrong"
    return "right"


@pytest.mark.sweep(32)
@pytest.mark.parametrize("seed", range(160))
def test_a_changed_program_is_refused_or_does_what_it_says(seed):
    verdict(seed)


LOOPS = {
    "from 1 on": ("%c1", "%c4", "%c1"),
    "every second step": ("%c0", "%c4", "%two"),
    "every second from 1 on": ("%c1", "%c4", "%two"),
    "one step": ("%two", "%three", "%c1"),
    "past the end of K": ("%c0", "%six", "%c1"),
    "steps that overshoot": ("%c0", "%c4", "%three"),
}
WAYS = [
    ("sm_100a", f"{TMA},pipelining{{stages=3}},warp-specialization,persistence{{ctas=2}}"),
    ("sm_100a", f"{TMA},pipelining{{stages=2}}"),
    ("sm_100a", "tiling"),
    ("sm_90a", f"{TMA},pipelining{{stages=3}},warp-specialization,persistence{{ctas=2}},ping-pong"),
    ("sm_90a", f"{TMA},pipelining{{stages=3}}"),
]


def loop_over_k(target, bounds):
    """What tiling leaves, with other bounds and step of the loop over K."""
    start, end, step = bounds
    known = "".join(
        f"%{name} = arith.constant {value} : index\n"
        for name, value in (("two", 2), ("three", 3), ("six", 6))
    )
    text = prefix(target, TILING, 1).replace(", %c0 :", f", {start} :")
    head = "scf.for %arg3 = %c0 to %c4 step %c1"
    assert head in text
    return text.replace(head, f"{known}scf.for %arg3 = {start} to {end} step {step}")


@pytest.mark.parametrize("way", range(len(WAYS)))
@pytest.mark.parametrize("loop", LOOPS)
@pytest.mark.sweep
def test_every_pass_keeps_the_bounds_and_the_step_of_a_loop(loop, way):
    target, pipeline = WAYS[way]
    calls = [call for call in parse_pipeline(pipeline) if call.name != "tiling"]
    said, bundle = compiled(loop_over_k(target, LOOPS[loop]), target, calls)
    assert np.array_equal(run(bundle), said)
