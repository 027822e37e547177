"""The graphs that torch.compile makes of a model, without computing or compiling them.

Each graph gives tensors of undefined content in the shapes of its results, so that the model runs
on to its next graph. A model of any size can be looked at, on torch's meta device without its
memory.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import torch
from torch import fx

from ...dialects.errors import CompileError


def graphs_of(model: Callable[..., Any], inputs: Sequence[Any], backward: bool) -> list[fx.Graph]:
    """The graphs of one call, taken apart as Inductor does; those of its gradients where asked for.

    Raises CompileError with torch's reason where the model cannot be called so.
    """
    from functorch.compile import make_boxed_func, min_cut_rematerialization_partition
    from torch._dynamo.backends.common import aot_autograd
    from torch._inductor.decomposition import select_decomp_table

    found: list[fx.Graph] = []

    def keep(module: fx.GraphModule, _inputs: Any) -> Callable[..., Any]:
        module.graph.eliminate_dead_code()
        found.append(module.graph)
        (output,) = module.graph.find_nodes(op="output")
        return make_boxed_func(lambda *_: [_undefined(each) for each in output.args[0]])

    backend = aot_autograd(
        fw_compiler=keep,
        bw_compiler=keep,
        decompositions=select_decomp_table(),
        partition_fn=min_cut_rematerialization_partition,
    )
    torch._dynamo.reset()
    try:
        with torch.set_grad_enabled(backward), _gradients_on_meta(), _in_one_message():
            result = torch.compile(model, backend=backend, dynamic=False)(*inputs)
            if backward:
                _first(result).sum().backward()
    except Exception as error:  # a model raises any kind
        rule = "must be called with its inputs, and give tensors"
        raise CompileError(f"model: {rule}, got {_reason(error)}") from error
    return found


def _reason(error: Exception) -> str:
    """What an operator said, where torch tells of one that failed on fake tensors; else the first
    line."""
    lines = str(error).splitlines() or [""]
    said = (line.rpartition("): got ")[2] for line in lines if "): got " in line)
    return next(said, f"{type(error).__name__}: {lines[0]}")


@contextmanager
def _in_one_message() -> Iterator[None]:
    """A block in which torch does not log the traceback of an operator that fails: it is raised."""
    log = logging.getLogger("torch._subclasses.fake_tensor")
    before, log.disabled = log.disabled, True
    try:
        yield
    finally:
        log.disabled = before


@contextmanager
def _gradients_on_meta() -> Iterator[None]:
    """A block in which operators that torch makes of others have gradients on its meta device.

    Some of them, as cross entropy's `nll_loss`, have a kernel of their own there, which hides from
    a trace what they are made of: no gradient went through them.
    """
    from torch._decomp import global_decomposition_table

    key, composite = torch._C.DispatchKey.AutogradMeta, "CompositeImplicitAutograd"
    known = {each for table in global_decomposition_table.values() for each in table}
    hidden = [
        each
        for each in known
        if isinstance(each, torch._ops.OpOverload)
        and torch._C.DispatchKey.Meta in each.py_kernels
        and key not in each.py_kernels
        and torch._C._dispatch_has_kernel_for_dispatch_key(each.name(), composite)
    ]
    for each in hidden:
        each.py_impl(key)(each.decompose)
    try:
        yield
    finally:
        for each in hidden:
            del each.py_kernels[key]
            each._dispatch_cache.clear()


def _undefined(node: Any) -> Any:
    """A value like a node's; zeros on the CPU, where the model may look at it."""
    if not isinstance(node, fx.Node):
        return node
    value = node.meta["val"]
    if not isinstance(value, torch.Tensor):
        return value
    made = torch.empty_strided(value.shape, value.stride(), dtype=value.dtype, device=value.device)
    return made if value.device.type == "meta" else made.zero_()


def _first(result: Any) -> torch.Tensor:
    """The first tensor of what a model returns, as an output of its own or within others."""
    leaves = torch.utils._pytree.tree_leaves(result)
    found = [each for each in leaves if isinstance(each, torch.Tensor) and each.requires_grad]
    if not found:
        raise CompileError("model: must give a tensor that requires gradients, got none")
    return found[0]
