"""Classes of the bindings' ops, each made when it is first asked for.

    @register_operation(_Dialect)         a LateClass, which makes the class for a call, an
    class AddOp(OpView): …          →     attribute, `isinstance`, a subclass, or for the view of
                                          such an op, which the bindings ask it for

The bindings have two classes for each op of a dialect, and some for enumerations: 1,500 in the
modules of `LATE`, of which a kernel needs some sixty. Python takes as long to make one as to run a
page of code.
"""

import builtins
import importlib.util
import re
import sys
import threading
from collections.abc import Callable
from types import FunctionType, ModuleType, SimpleNamespace
from typing import Any

LATE = ("llvm_enum", "llvm_ops", "nvvm_enum", "nvvm_ops", "math_ops", "linalg_ops")
KINDS = ("OpView", "OpAdaptor", "IntEnum", "IntFlag")
MAKING = threading.RLock()  # one class makes that of its adaptor
OP_NAME = re.compile(r"\w+(\.\w+)+")


def leave_to_first_use(dialects: str) -> None:
    """Import the generated modules of `LATE`, whose public modules take their classes from them.

    dialects: the package of the wheel that has them.
    """
    for generated in LATE:
        name = f"{dialects}._{generated}_gen"
        spec = None if name in sys.modules else importlib.util.find_spec(name)
        if spec is None or spec.loader is None:
            continue
        module = importlib.util.module_from_spec(spec)
        module.__dict__["__builtins__"] = {
            **vars(builtins),
            "__build_class__": _later,
            "__import__": _imported,
        }
        sys.modules[name] = module
        try:
            spec.loader.exec_module(module)
        except BaseException:
            del sys.modules[name]
            raise


def ask_for_classes(module: ModuleType) -> None:
    """Let a public module give its late classes themselves to whoever asks it by their names."""
    names: dict[str, Any] = vars(module)
    names.setdefault("__all__", [name for name in names if not name.startswith("_")])
    late = {name: found for name, found in names.items() if isinstance(found, LateClass)}
    own = [each for each in names.values() if isinstance(each, FunctionType)]
    own = [each for each in own if each.__globals__ is names]
    for name in {name for each in own for name in each.__code__.co_names} & late.keys():
        names[name] = late.pop(name).real
    for name in late:
        del names[name]

    def first_asked(name: str) -> Any:
        if name not in late:
            raise AttributeError(f"module {module.__name__!r} has no attribute {name!r}")
        return names.setdefault(name, late[name].real)

    names["__getattr__"] = first_asked


class LateClass:
    """Stands for the class of an op, of its adaptor or of an enumeration until it is asked for
    anything."""

    def __init__(self, body: FunctionType, name: str, *bases: Any) -> None:
        self._body, self._name, self._bases = body, name, bases
        self._known_by: list[Callable[[Any], object]] = []
        self._made: Any = None
        self.__dict__["__new__"] = self._new

    @property
    def real(self) -> Any:
        """The class, which takes the place of what stood for it in its module."""
        with MAKING:
            if self._made is None:
                self._made = builtins.__build_class__(self._body, self._name, *self._bases)
                self._body.__globals__[self._name] = self._made
                for make_known in self._known_by:
                    make_known(self._made)
        return self._made

    @property
    def op_name(self) -> str:
        """The op that it is a class of, as its body says."""
        found = self._body.__code__.co_consts
        return next(each for each in found if OP_NAME.fullmatch(str(each)))

    def then(self, make_known: Callable[[Any], object]) -> "LateClass":
        """Itself, which makes its class known so."""
        self._known_by.append(make_known)
        return self

    def _new(self, _: Any) -> Any:
        """What becomes a view: the bindings ask what they know by an op's name for it."""
        return self.real.__new__(self.real)

    def __call__(self, *args: Any, **fields: Any) -> Any:
        return self.real(*args, **fields)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") and not hasattr(type, name):  # `typing` asks for some
            raise AttributeError(f"no class of an op has {name!r}")
        return getattr(self.real, name)

    def __instancecheck__(self, one: Any) -> bool:
        return isinstance(one, self.real)

    def __mro_entries__(self, _: Any) -> tuple[Any]:
        return (self.real,)


class _Bindings:
    """The bindings as a generated module sees them, which tells them of its classes."""

    def __init__(self, bindings: Any) -> None:
        self._bindings = bindings

    def __getattr__(self, name: str) -> Any:
        return getattr(self._bindings, name)

    def register_operation(self, dialect: Any) -> Callable[[LateClass], LateClass]:
        """By an op's name they find its class at once, or what makes it."""

        def known(late: LateClass) -> LateClass:
            self._bindings.globals._register_operation_impl(late.op_name, late)
            return late.then(self._bindings.register_operation(dialect, replace=True))

        return known

    def register_op_adaptor(self, op: LateClass) -> Callable[[LateClass], LateClass]:
        """The adaptor is made with the op's class: who asks for one has the other."""

        def known(late: LateClass) -> LateClass:
            op.then(lambda made: self._bindings.register_op_adaptor(made)(late.real))
            return late

        return known


def _later(body: FunctionType, name: str, *bases: Any, **more: Any) -> Any:
    """Of a class statement of a generated module: later, if it has the class of an op."""
    late = len(bases) == 1 and bases[0].__name__ in KINDS and not more
    return (LateClass if late else builtins.__build_class__)(body, name, *bases, **more)


def _imported(name: str, *how: Any) -> Any:
    found = builtins.__import__(name, *how)
    return SimpleNamespace(_cext=_Bindings(found._cext)) if how[2:3] == (("_cext",),) else found
