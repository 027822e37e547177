"""A Python function of tensors as a graph of aten operators, with source lines.

    lambda acc, bias: gelu(acc + bias)  →  aten.add.Tensor, aten.mul.Tensor, aten.erf.default, …

By torch's make_fx on fake tensors: nothing is computed. Imports torch when it is first used.
"""

from __future__ import annotations

import functools
import inspect
import operator
import sys
import traceback
from collections.abc import Callable, Sequence
from types import CodeType, TracebackType
from typing import TYPE_CHECKING, Any, NamedTuple

from ...dialects.errors import CompileError
from .quiet import quiet

if TYPE_CHECKING:
    import torch
    from torch import fx


VALUES_OF = frozenset(
    {f"__{kind}__" for kind in ("bool", "int", "float", "complex", "index", "contains")}
    | {"item", "tolist", "is_nonzero", "equal", "allclose"}
)
"""What gives Python values of a tensor's elements."""


class TensorLike(NamedTuple):
    """What a trace knows of a tensor: its sizes, and its type by torch's name."""

    shape: tuple[int, ...]
    dtype: torch.dtype


def trace(function: Callable[..., Any], values: Sequence[TensorLike]) -> fx.Graph:
    """The operators that `function` applies to values like these.

    Raises CompileError at the user's line for what is no function of its arguments' elements
    alone: other tensors, tensors that are changed in place, a branch on an element.
    """
    import torch
    from torch._subclasses.fake_tensor import FakeTensorMode
    from torch.fx.experimental.proxy_tensor import make_fx

    from .torch_operators import BeforeExport

    lines, records = _lines_of(function), torch.is_grad_enabled()
    try:
        with quiet(), torch.no_grad(), FakeTensorMode(allow_non_fake_inputs=False):
            fakes = [torch.empty(each.shape, dtype=each.dtype) for each in values]
            with BeforeExport(), lines:
                called = functools.partial(_call, function, records)
                graph = make_fx(called, decomposition_table=decomposed_operators())(*fakes).graph
    except Exception as error:  # a user's function raises any kind
        place = _place(error.__traceback__, lines.code)
        raise CompileError(f"epilogue: {_why(error)}", place) from error
    for node in graph.nodes:
        if node.op == "get_attr":
            raise refused(node, "must read tensors that are given by operands=, got another one")
        if torch.Tag.nondeterministic_seeded in getattr(node.target, "tags", ()):
            raise refused(node, f"must make no random choice, got {name_of(node)}; draw outside")
        schema = getattr(node.target, "_schema", None)
        if schema is not None and schema.is_mutable:
            rule = f"must change no tensor in place, got {name_of(node)}"
            raise refused(node, f"{rule}; use the operator that returns its result")
    return graph


def _call(function: Callable[..., Any], records: bool, *values: torch.Tensor) -> Any:
    """`function` of `values`, where torch records gradients as around the call of a product, which
    code may ask. make_fx counts the parameters of a method's code, `self` included."""
    import torch

    with torch.set_grad_enabled(records):
        return function(*values)


def refused(node: fx.Node, rule: str) -> CompileError:
    """The error for an operator, at the line of the user's function that asks for it."""
    return CompileError(f"epilogue: {rule}", node.meta.get("stack_trace"))


def name_of(node: Any) -> str:
    """An operator as torch calls it, `aten.cumsum`; that of a part of its result, too."""
    if node.target is operator.getitem:
        return name_of(node.args[0])
    return str(getattr(node.target, "overloadpacket", node.target))


def _lines_of(function: Callable[..., Any]) -> Any:
    """A mode under which each operator that is recorded knows the line of `function` it is from."""
    from torch.fx.traceback import preserve_node_meta, set_stack_trace
    from torch.overrides import TorchFunctionMode

    class Lines(TorchFunctionMode):
        code = _code_of(function)

        def __enter__(self) -> Any:
            self._kept = preserve_node_meta()
            self._kept.__enter__()
            return super().__enter__()

        def __exit__(self, *raised: Any) -> None:
            super().__exit__(*raised)
            self._kept.__exit__(*raised)

        def __torch_function__(
            self, called: Any, types: Any, args: Any = (), kwargs: Any = None
        ) -> Any:
            set_stack_trace([_caller(self.code)])
            if getattr(called, "__name__", "") in VALUES_OF and any(map(_is_outside, args)):
                raise RuntimeError(f"{called.__name__} of a non-Fake tensor")
            return called(*args, **(kwargs or {}))

    return Lines()


def _is_outside(value: Any) -> bool:
    """Whether a value is a tensor that is none of the trace's."""
    import torch
    from torch._subclasses.fake_tensor import FakeTensor

    return isinstance(value, torch.Tensor) and not isinstance(value, FakeTensor)


def _code_of(function: Any) -> CodeType | None:
    found = inspect.unwrap(function)
    while isinstance(found, functools.partial):
        found = inspect.unwrap(found.func)
    called = found if hasattr(found, "__code__") else type(found).__call__
    return getattr(called, "__code__", None)


def _caller(code: CodeType | None) -> str:
    """`file:line` of the innermost call of `code` that runs, or "" if none does."""
    frame = sys._getframe(1)
    while frame is not None and frame.f_code is not code:
        frame = frame.f_back
    return f"{frame.f_code.co_filename}:{frame.f_lineno}" if frame else ""


def _place(raised: TracebackType | None, code: CodeType | None) -> str | None:
    """`file:line` of `code` in what was raised; of where it is defined, if it was not reached."""
    if code is None:
        return None
    lines = [line for frame, line in traceback.walk_tb(raised) if frame.f_code is code]
    return f"{code.co_filename}:{lines[-1] if lines else code.co_firstlineno}"


def _why(error: Exception) -> str:
    text = next((line for line in str(error).splitlines() if line), type(error).__name__)
    if "non-Fake" in text or "convert all Tensors to FakeTensors" in text:
        return "must read tensors that are given by operands=, got another one; pass it there"
    if "data-dependent" in text or "DataDependent" in type(error).__name__:
        return "must not branch on an element's value, got such a branch; use torch.where"
    return f"must be a function of acc and the operands, got {type(error).__name__}: {text}"


@functools.cache
def decomposed_operators() -> dict[Any, Any]:
    """Down to operators that `aten_elements` knows: ours, and torch's for the others."""
    import torch
    from torch._decomp import get_decompositions

    from .torch_operators import decompositions

    aten: Any = torch.ops.aten
    torchs = ("silu", "rsub", "square", "addcmul", "lerp", "glu")
    return {**get_decompositions([getattr(aten, name) for name in torchs]), **decompositions()}
