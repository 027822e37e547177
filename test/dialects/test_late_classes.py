"""Classes of the bindings' ops that are made late are those that the bindings would have made."""

import subprocess
import sys
import textwrap

import pytest

from tilewright.dialects.late_classes import LATE
from tilewright.dialects.mlir import DIALECTS, ir, llvm, math, nvvm

UNASKED = """
    import sys
    from tilewright.dialects import mlir
    from tilewright.dialects.late_classes import LATE, LateClass
    made = lambda late: late._made is not None
"""


def printed_by(program: str) -> list[str]:
    """The words that a fresh process prints."""
    text = textwrap.dedent(UNASKED) + textwrap.dedent(program)
    done = subprocess.run([sys.executable, "-c", text], capture_output=True, text=True, check=True)
    return done.stdout.split()


def test_no_class_is_made_before_it_is_asked_for():
    program = """
        found = [vars(sys.modules[f"{mlir.DIALECTS}._{each}_gen"]) for each in LATE]
        late = [one for names in found for one in names.values() if isinstance(one, LateClass)]
        print(len(late), sum(map(made, late)))
        mlir.llvm.FNegOp, mlir.nvvm.ProxyKind
        print(sum(map(made, late)))
    """
    late, at_first, then = map(int, printed_by(program))
    assert late > 1000
    assert at_first == 0
    assert then == 3  # an op has an adaptor


def test_every_op_is_known_by_the_name_that_its_class_says():
    program = """
        for each in LATE:
            for late in list(vars(sys.modules[f"{mlir.DIALECTS}._{each}_gen"]).values()):
                if isinstance(late, LateClass) and each.endswith("ops"):
                    print(late.op_name == late.real.OPERATION_NAME)
    """
    words = printed_by(program)
    assert len(words) > 1000
    assert set(words) == {"True"}


def test_the_view_of_an_op_has_the_class_that_its_module_gives():
    text = "llvm.func @f(%x: f32) -> f32 { %y = llvm.fneg %x : f32 llvm.return %y : f32 }"
    with ir.Context(), ir.Location.unknown():
        module = ir.Module.parse(text)
        negation, back = module.body.operations[0].body.blocks[0].operations
        assert type(negation) is llvm.FNegOp
        assert isinstance(back, llvm.ReturnOp)
        assert not isinstance(back, llvm.FNegOp)
        with ir.InsertionPoint(back):
            assert type(llvm.fneg(negation.res).owner.opview) is llvm.FNegOp
            assert type(math.AbsFOp(negation.res)) is math.AbsFOp
        assert module.operation.verify()


def test_a_name_gives_the_class_itself_however_it_is_imported():
    program = """
        from importlib import import_module
        one = getattr(import_module(f"{mlir.DIALECTS}.llvm"), "FNegOp")
        class Own(mlir.linalg_ops.FillOp): pass
        print(one is mlir.llvm.FNegOp, isinstance(one, type), Own.OPERATION_NAME)
        print(mlir.nvvm.ProxyKind.async_ is mlir.nvvm.ProxyKind["async_"])
        every = {}
        exec(f"from {mlir.DIALECTS}.nvvm import *", every)
        print(every["AddFOp"] is mlir.nvvm.AddFOp, "barrier" in every)
    """
    assert printed_by(program) == ["True", "True", "linalg.fill", "True", "True", "True"]


def test_an_unknown_name_is_refused_as_of_any_module():
    with pytest.raises(AttributeError, match=f"module '{DIALECTS}.nvvm' has no attribute 'NoOp'"):
        nvvm.NoOp  # noqa: B018


@pytest.mark.parametrize("generated", LATE)
def test_generated_modules_are_those_of_the_wheel(generated):
    found = sys.modules[f"{DIALECTS}._{generated}_gen"]
    assert found.__spec__ is not None
    assert found.__spec__.has_location
