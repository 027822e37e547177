"""Checks that run while LLVM does say what they said between the passes."""

import functools
import os
import signal
import threading
import time

import pytest

from tilewright.compiler import backend, driver, pipeline
from tilewright.compiler.concurrency import run_concurrently
from tilewright.compiler.deferred_checks import DeferredChecks
from tilewright.compiler.driver import compile_matmul
from tilewright.compiler.spec import MatmulSpec
from tilewright.dialects.errors import CompileError
from tilewright.dialects.mlir import ir
from tilewright.passes import PASSES
from tilewright.passes.lowering.nvvm.lower_to_nvvm import LowerToNvvm
from tilewright.passes.lowering.select_instructions import SelectInstructions
from tilewright.passes.schedule.pipelining import Pipelining

SPEC = MatmulSpec(64, 96, 128)


BETWEEN, BESIDE_OPTIMIZER, BESIDE_BACK_END = range(3)


@pytest.fixture
def checked(monkeypatch):
    """What is checked, in order: the pass, and what LLVM does."""
    found, begun, at_work = [], [], threading.Event()
    check, run = pipeline._check_after, backend.run_concurrently

    def noted(name, whole, module):
        found.append((name, len(begun) if at_work.is_set() else BETWEEN))
        check(name, whole, module)

    def beside_llvm(native, python):
        begun.append(native)
        at_work.set()
        run(native, python)
        at_work.clear()

    monkeypatch.setattr(pipeline, "_check_after", noted)
    monkeypatch.setattr(backend, "run_concurrently", beside_llvm)
    return found


@pytest.mark.parametrize("until", ["cubin", "ptx", "llvm"])
def test_every_pass_of_a_chosen_schedule_is_checked(checked, until):
    compiled = compile_matmul(SPEC, until=until)
    first, *names = [
        call.name for call in pipeline.with_lowering(pipeline.parse_pipeline(compiled.pipeline))
    ]
    late = ["pipes-to-barriers", "select-instructions"]
    soon = [name for name in names if name not in late]
    assert checked[0] == (first, BETWEEN)
    if until == "llvm":
        assert checked[1:] == [(name, BETWEEN) for name in names]
    else:
        assert checked[1:] == [
            *((name, BESIDE_OPTIMIZER) for name in soon),
            *((name, BESIDE_BACK_END) for name in late),
        ]


def test_ptxas_starts_once_those_of_llvm_are_over(checked, monkeypatch):
    start, before = driver.assembler_ahead, []

    def started(**how):
        before.append(list(checked))
        return start(**how)

    monkeypatch.setattr(driver, "assembler_ahead", started)
    compile_matmul(SPEC)
    assert before == [[each for each in checked if each[1] != BESIDE_BACK_END]]


def test_what_users_name_is_checked_between_the_passes(checked):
    compile_matmul(SPEC, pipeline="tiling", until="ptx")
    assert len(checked) > 5 and not any(at_work for _, at_work in checked)


def test_so_is_what_a_users_pass_may_have_made(checked, monkeypatch):
    class Mine(Pipelining):
        """Of a user, in the place of the package's."""

    monkeypatch.setattr(PASSES, "_now", {**PASSES._now, "pipelining": Mine})
    compile_matmul(SPEC, until="ptx")
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


def refused(**how):
    with pytest.raises(CompileError) as error:
        compile_matmul(SPEC, until="ptx", **how)
    return str(error.value)


@pytest.mark.parametrize("then", ["nothing", "a pass", "LLVM"])
@pytest.mark.parametrize("pass_class", [Pipelining, SelectInstructions])
def test_the_first_fault_is_said_whatever_fails_behind_it(monkeypatch, pass_class, then):
    """Also where that of a later pass is found first: what breaks one stays broken."""
    chosen = compile_matmul(SPEC, until="ptx").pipeline
    broken_by(monkeypatch, pass_class)
    between = refused(pipeline=chosen)
    assert "arith.addi" in between

    def fails(*_, **__):
        raise CompileError("something that comes of it")

    if then == "a pass":
        monkeypatch.setattr(LowerToNvvm, "__call__", fails)
    if then == "LLVM":
        monkeypatch.setattr(driver, "emit_ptx", fails)
    assert refused() == between


@pytest.mark.parametrize(
    ("found", "said"),
    [
        ({"soon": "a"}, "a"),
        ({"late": "b"}, "b"),
        ({"late": "b", "soon behind it": "c"}, "b"),
        ({"soon": "a", "late": "b", "soon behind it": "c"}, "a"),
    ],
)
def test_the_first_of_them_is_said_in_whatever_order_they_run(found, said):
    later = DeferredChecks()

    def check(name, _):
        if name in found:
            raise CompileError(found[name])

    with ir.Context(), ir.Location.unknown():
        module = ir.Module.create()
        for name in ("soon", "late", "soon behind it"):
            later.add(module, functools.partial(check, name), is_late=name == "late")
    with pytest.raises(CompileError, match=f"^error: {said}$"), later.before_errors():
        later.run_soon()


def test_checks_of_plans_are_among_them(monkeypatch):
    def fails(module):
        raise CompileError(f"plan of {len(list(module.body.operations))} kernel")

    monkeypatch.setattr(pipeline, "check_plan", fails)
    assert refused() == "error: plan of 1 kernel"


def test_both_are_waited_for_and_raise():
    def raises():
        raise ValueError("native")

    ended = []
    with pytest.raises(ValueError, match="native"):
        run_concurrently(raises, lambda: ended.append("python"))
    going = threading.Event()

    def native():
        going.wait(10)
        time.sleep(0.05)
        ended.append("native")

    def python():
        going.set()
        raise KeyError("python")

    with pytest.raises(KeyError, match="python"):
        run_concurrently(native, python)
    assert ended == ["python", "native"]


@pytest.fixture
def interrupts():
    """A process that a terminal can interrupt: what a shell runs behind has SIGINT ignored."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.usefixtures("interrupts")
def test_an_interrupt_comes_behind_native_code():
    """Whose memory is freed then."""
    ended = []

    def native():
        time.sleep(0.1)
        os.kill(os.getpid(), signal.SIGINT)  # while Python has nothing to do but wait
        time.sleep(0.1)
        ended.append("native")

    with pytest.raises(KeyboardInterrupt):
        run_concurrently(native, lambda: None)
    assert ended == ["native"]


def test_where_no_thread_begins_one_comes_behind_the_other(monkeypatch):
    """As when Python 3.12 ends, also while a thread of the user's still compiles."""

    def refused(_):
        raise RuntimeError("can't create new thread at interpreter shutdown")

    monkeypatch.setattr(threading.Thread, "start", refused)
    called = []
    run_concurrently(lambda: called.append("native"), lambda: called.append("python"))
    assert called == ["native", "python"]
