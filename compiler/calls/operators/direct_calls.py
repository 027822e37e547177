"""Matmuls in code that Inductor writes, called as Python functions instead of operators.

tilewright::product(a, b, …) of a graph → out = empty_strided(…); product_into(a, b, key, out=out)

An operator costs torch's dispatcher, which turns every argument from Python's into its own and back
again. Inductor calls the kernels of other libraries as here. The key names the sizes and the
options, by which a kernel is found again; whether it fits the tensors, it looks itself.
"""

from __future__ import annotations

import functools
import json
import sys
from collections.abc import Callable, Sequence
from typing import Any

import torch

from ....dialects.tables import changes, keep, when_changed
from ..kernels.lookup import How, call_kernel, kernel_for

KEPT = 4096  # keys of graphs

_kernels: dict[str, Any] = {}
when_changed(_kernels.clear)


def product_into(a: torch.Tensor, b: torch.Tensor, key: str, *, out: torch.Tensor) -> None:
    """What `tilewright::product` returns, in `out`; `key` is what `key_of` gave."""
    kernel = _kernels.get(key)
    if kernel is None or not kernel.relaunched((a, b), out):
        how = How(*json.loads(key)[0])
        call_kernel(a, b, out, how)
        before = changes()
        _keep(key, kernel_for(a, b, out, how), before)


def _keep(key: str, kernel: Any, before: int) -> None:
    if len(_kernels) >= KEPT:
        _kernels.clear()
    if kernel is not None:
        keep(_kernels, key, kernel, before)


def key_of(a: torch.Tensor, b: torch.Tensor, how: How) -> str:
    """The options, and what tells the kernels of a graph apart."""
    forms = [[str(each.dtype), *map(str, (*each.shape, *each.stride()))] for each in (a, b)]
    return json.dumps([how, *forms])


def tell_inductor(operator: Any) -> None:
    """Let Inductor call products directly, once it is there."""
    if is_there():
        _register(operator)


def is_there() -> bool:
    """Whether Inductor is, which takes a second to import."""
    return "torch._inductor.lowering" in sys.modules


@functools.cache
def _register(operator: Any) -> None:
    def lower(node: torch.fx.Node, a: Any, b: Any, *options: str, **named: str) -> Any:
        values = [value_of(each) for each in (*node.args[:2], node)]
        if any(each is None for each in values):
            return None
        left, right, c = values
        return direct_call(product_into, c, (a, b), key_of(left, right, How(*options, **named)))

    register(operator, lower)


def value_of(node: Any) -> torch.Tensor | None:
    """The fake tensor that torch knows a node of a graph by."""
    found = getattr(node, "meta", {}).get("val")
    return found if isinstance(found, torch.Tensor) else None


def register(operator: Any, lower: Callable[..., Any], several: str = "") -> None:
    """Let `lower(node, *arguments)` say what an operator is in Inductor's code.

    Where that gives None it remains an operator, of which the code calls `several`, a name that
    `torch` has, with the same arguments. In code that is not Python it always remains one.
    """
    from torch._inductor import lowering
    from torch._inductor.virtualized import V

    as_operator = lowering.fallback_handler(operator, add_to_fallback_set=False)

    def lowered(*given: Any, **named: Any) -> Any:
        graph = V.graph
        in_python = not (graph.cpp_wrapper or getattr(graph, "fx_wrapper", False))
        found = lower(graph.current_node, *given, **named) if in_python else None
        if found is not None:
            return found
        return _known(
            as_operator(*given, **named), graph.current_node, several if in_python else ""
        )

    lowering.register_lowering(operator, type_promotion_kind=None)(lowered)


def _known(results: Any, node: torch.fx.Node, called: str) -> Any:
    """What an operator of several outputs gave, whose call Inductor can estimate: it knows the node
    and a type of neither such calls nor those of aten. Its code calls `called` where that is named.
    """
    first = results[0] if isinstance(results, (list, tuple)) else None
    inputs = getattr(getattr(getattr(first, "data", None), "data", None), "inputs", None)
    if inputs:
        dtype = first.get_dtype()  # type: ignore[union-attr]
        inputs[0]._post_init_setattr("origin_node", node)
        inputs[0]._post_init_setattr("maybe_get_dtype", lambda: dtype)
        inputs[0].python_kernel_name = called or inputs[0].python_kernel_name
    return results


def direct_call(
    function: Callable[..., None], like: torch.Tensor, inputs: Sequence[Any], *keys: str
) -> Any:
    """The output of function(*inputs, *keys, out=…), which Inductor allocates as `like` lies."""
    from torch._inductor import ir
    from torch._inductor.virtualized import V

    read = [ir.ExternKernel.realize_input(each) for each in inputs]
    for each in read:  # as for an operator: nothing may give them other strides later
        if ir.is_storage_and_layout(each):
            ir.as_storage_and_layout(each, freeze=True)
    size, stride = map(ir.convert_shape_to_inductor, (like.shape, like.stride()))
    name = f"tilewright_extern_kernels_{function.__name__}"  # Inductor knows products by the middle
    call = _call_type()(
        ir.FixedLayout(like.device, like.dtype, size, stride),
        read,
        constant_args=keys,
        python_kernel_name=name,
    )
    call.line = f"from {function.__module__} import {function.__name__} as {name}"
    call.calls = V.graph.current_node
    return ir.TensorBox.create(call)


@functools.cache
def _call_type() -> Any:
    from torch._inductor import ir

    class DirectCall(ir.ExternKernelOut):
        """A call that brings the line which imports what it calls.

        calls: the node whose operations Inductor counts. By itself it would take the one that
        reads an output from the list of them.
        """

        line = ""
        calls: torch.fx.Node | None = None

        def get_origin_node(self) -> torch.fx.Node | None:
            return self.calls

        def codegen(self, wrapper: Any) -> None:
            root = wrapper
            while getattr(root, "parent_wrapper", None) is not None:
                root = root.parent_wrapper
            root.add_import_once(self.line)
            super().codegen(wrapper)

    return DirectCall
