"""Checks that run while ptxas does say what they said between the passes."""

import pytest

from tilewright.compiler import driver, pipeline
from tilewright.compiler.driver import compile_matmul
from tilewright.compiler.ptxas_ahead import PtxasAhead
from tilewright.compiler.spec import MatmulSpec
from tilewright.dialects.errors import CompileError
from tilewright.dialects.mlir import ir
from tilewright.passes import PASSES
from tilewright.passes.lowering.nvvm.lower_to_nvvm import LowerToNvvm
from tilewright.passes.schedule.pipelining import Pipelining

SPEC = MatmulSpec(64, 96, 128)


@pytest.fixture
def checked(monkeypatch):
    """What is checked, in order: the pass, and whether ptxas is at work."""
    found, at_work = [], set()
    check, give, ended = pipeline._check_after, PtxasAhead._give, PtxasAhead._ended

    def noted(name, whole, module):
        found.append((name, bool(at_work)))
        check(name, whole, module)

    def given(ahead, *arguments):
        at_work.add(ahead)
        return give(ahead, *arguments)

    def over(ahead, *arguments):
        at_work.discard(ahead)
        return ended(ahead, *arguments)

    monkeypatch.setattr(pipeline, "_check_after", noted)
    monkeypatch.setattr(PtxasAhead, "_give", given)
    monkeypatch.setattr(PtxasAhead, "_ended", over)
    return found


@pytest.mark.parametrize("until", ["cubin", "ptx", "llvm"])
def test_every_pass_of_a_chosen_schedule_is_checked(checked, until):
    compiled = compile_matmul(SPEC, until=until)
    names = [
        call.name for call in pipeline.with_lowering(pipeline.parse_pipeline(compiled.pipeline))
    ]
    assert checked == [(names[0], False), *((name, until == "cubin") for name in names[1:])]


def test_what_users_name_is_checked_between_the_passes(checked):
    compile_matmul(SPEC, pipeline="tiling")
    assert len(checked) > 5 and not any(at_work for _, at_work in checked)


def test_so_is_what_a_users_pass_may_have_made(checked, monkeypatch):
    class Mine(Pipelining):
        """Of a user, in the place of the package's."""

    monkeypatch.setattr(PASSES, "_now", {**PASSES._now, "pipelining": Mine})
    compile_matmul(SPEC)
    assert len(checked) > 5 and not any(at_work for _, at_work in checked)


def broken_by(monkeypatch, pass_class):
    """Let a pass leave an addition of integers of two types."""
    run = pass_class.__call__

    def breaking(self, module, log):
        run(self, module, log)
        with ir.InsertionPoint.at_block_begin(module.body):
            made = [
                ir.Operation.create(
                    "arith.constant",
                    results=[ir.IntegerType.get_signless(bits)],
                    attributes={"value": ir.IntegerAttr.get(ir.IntegerType.get_signless(bits), 1)},
                )
                for bits in (32, 64)
            ]
            types = [ir.IntegerType.get_signless(32)]
            ir.Operation.create("arith.addi", results=types, operands=[op.result for op in made])

    monkeypatch.setattr(pass_class, "__call__", breaking)


def refused(until="ptx", **how):
    with pytest.raises(CompileError) as error:
        compile_matmul(SPEC, until=until, **how)
    return str(error.value)


@pytest.mark.parametrize("then", ["nothing", "a pass", "LLVM", "ptxas"])
def test_the_first_fault_is_said_whatever_fails_behind_it(monkeypatch, then):
    chosen = compile_matmul(SPEC, until="ptx").pipeline
    broken_by(monkeypatch, Pipelining)
    between = refused(pipeline=chosen)
    assert "arith.addi" in between

    def fails(*_, **__):
        raise CompileError("something that comes of it")

    if then == "a pass":
        monkeypatch.setattr(LowerToNvvm, "__call__", fails)
    if then == "LLVM":
        monkeypatch.setattr(driver, "emit_ptx", fails)
    if then == "ptxas":
        monkeypatch.setattr(PtxasAhead, "_ended", lambda *_: 1)
    assert refused("cubin" if then == "ptxas" else "ptx") == between


def test_checks_of_plans_are_among_them(monkeypatch):
    def fails(module):
        raise CompileError(f"plan of {len(list(module.body.operations))} kernel")

    monkeypatch.setattr(pipeline, "check_plan", fails)
    assert refused() == "error: plan of 1 kernel"
