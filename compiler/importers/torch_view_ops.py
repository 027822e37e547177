"""torch's view operators, as chains of steps (`view_chains`)."""

from __future__ import annotations

import operator
import re
from pathlib import Path
from typing import Any

import torch
from torch import fx

from ...dialects.errors import CompileError
from .view_chains import Chain, Shape

FRAME = re.compile(r'File "(.+)", line (\d+)')
ORDERED = (
    "aten::view", "aten::reshape", "aten::_unsafe_view", "aten::flatten", "aten::unflatten",
    "aten::unsqueeze", "aten::squeeze", "aten::view_as", "aten::reshape_as",
)  # fmt: skip
"""Those that keep the order of all elements."""
PERMUTED = (
    "aten::permute", "aten::transpose", "aten::t", "aten::numpy_T", "aten::mT", "aten::movedim",
    "aten::moveaxis", "aten::swapaxes", "aten::swapdims",
)  # fmt: skip
"""Those that order dims anew."""
SPREAD = ("aten::expand", "aten::expand_as", "aten::broadcast_to")
SAME = ("aten::contiguous", "aten::clone", "aten::detach", "aten::alias", "aten::lift_fresh_copy")
"""Those that change no value."""
CUTTING = ("aten::chunk", "aten::split", "aten::split_with_sizes", "aten::tensor_split")


def name_of(node: fx.Node) -> str:
    """The operator of a node without its overload, "" of other nodes."""
    target = node.target
    return target._schema.name if isinstance(target, torch._ops.OpOverload) else ""


def shape_of(node: fx.Node) -> Shape:
    """The sizes of a node's tensor; of anything else CompileError."""
    shape = getattr(node.meta.get("val"), "shape", None)
    if shape is None or not all(type(size) is int for size in shape):
        raise refusal(node, "must be a tensor of known sizes, got another value")
    return tuple(shape)


def refusal(node: fx.Node, rule: str, cure: str = "compute it outside") -> CompileError:
    """The error that names a node, and the line of Python that asks for it."""
    found = FRAME.findall(node.meta.get("stack_trace") or "")
    frames = [each for each in found if Path(__file__).parents[1] not in Path(each[0]).parents]
    place = ":".join(frames[-1]) if frames else None
    what = name_of(node).replace("::", ".") or node.name
    return CompileError(f"{what}: {rule}; {cure}", place)


def read_view(node: fx.Node) -> tuple[fx.Node, Chain] | None:
    """The node that a node is a view of, and by which steps; None where it is none."""
    if node.target is operator.getitem:
        return _piece(node)
    name = name_of(node)
    source: Any = node.args[0] if node.args else None
    if not isinstance(source, fx.Node) or name not in READERS:
        return None
    given, made = source.meta.get("val"), node.meta.get("val")
    if not hasattr(given, "shape") or not hasattr(made, "shape"):
        return None
    if given.dtype != made.dtype:  # its bits, read as another type
        return None
    whole = Chain(shape_of(source))
    found = READERS[name](whole, node)
    if found is None:
        return None
    assert found.result == shape_of(node), f"{node.format_node()} is read as {found}"
    return source, found


def _ordered(whole: Chain, node: fx.Node) -> Chain:
    return whole.reshape(shape_of(node))


def _transposed(whole: Chain, node: fx.Node) -> Chain:
    """By the operator itself, of dims of different sizes."""
    sizes = range(1, len(whole.shape) + 1)
    other: Any = node.target
    transposed = other(torch.empty(tuple(sizes), device="meta"), *node.args[1:], **node.kwargs)
    return whole.permute(tuple(size - 1 for size in transposed.shape))


def _spread(whole: Chain, node: fx.Node) -> Chain:
    return whole.expand(shape_of(node))


def _same(whole: Chain, node: fx.Node) -> Chain:
    return whole


def _not_dropped(whole: Chain, node: fx.Node) -> Chain | None:
    """Dropout of evaluation."""
    return None if node.args[2] else whole


def _argument(node: fx.Node, place: int, name: str, default: Any = None) -> Any:
    return node.args[place] if len(node.args) > place else node.kwargs.get(name, default)


def _sliced(whole: Chain, node: fx.Node) -> Chain:
    dim, start, end, step = (
        _argument(node, place, name, default)
        for place, (name, default) in enumerate(
            (("dim", 0), ("start", None), ("end", None), ("step", 1)), start=1
        )
    )
    dim = int(dim) % len(whole.shape)
    taken = range(whole.shape[dim])[slice(start, end, step)]
    return whole.slice((dim, taken.start, taken.step, len(taken)))


def _narrowed(whole: Chain, node: fx.Node) -> Chain:
    dim, start, count = (int(_argument(node, n, "")) for n in (1, 2, 3))
    dim %= len(whole.shape)
    return whole.slice((dim, start % whole.shape[dim] if start < 0 else start, 1, count))


def _selected(whole: Chain, node: fx.Node) -> Chain:
    return _one_of(whole, int(_argument(node, 1, "dim")), int(_argument(node, 2, "index")))


def _one_of(whole: Chain, dim: int, index: int) -> Chain:
    """One place along a dim, which is gone."""
    dim %= len(whole.shape)
    shape = (*whole.shape[:dim], *whole.shape[dim + 1 :])
    return whole.slice((dim, index % whole.shape[dim], 1, 1)).reshape(shape)


def _piece(node: fx.Node) -> tuple[fx.Node, Chain] | None:
    """One of the tensors that an operator cuts another into."""
    cut, index = node.args
    if not isinstance(cut, fx.Node) or not isinstance(index, int):
        return None
    source, name = cut.args[0] if cut.args else None, name_of(cut)
    if not isinstance(source, fx.Node) or name not in (*CUTTING, "aten::unbind"):
        return None
    whole = Chain(shape_of(source))
    if name == "aten::unbind":
        found = _one_of(whole, int(_argument(cut, 1, "dim", 0)), index)
    else:
        dim = int(_argument(cut, 2, "dim", 0)) % len(whole.shape)
        sizes = [each.shape[dim] for each in _cut_like(cut, whole.shape)]
        index %= len(sizes)
        found = whole.slice((dim, sum(sizes[:index]), 1, sizes[index]))
    assert found.result == shape_of(node), f"{node.format_node()} is read as {found}"
    return source, found


def _cut_like(cut: fx.Node, shape: Shape) -> Any:
    target: Any = cut.target
    return target(torch.empty(shape, device="meta"), *cut.args[1:], **cut.kwargs)


READERS = {
    **dict.fromkeys(ORDERED, _ordered),
    **dict.fromkeys(PERMUTED, _transposed),
    **dict.fromkeys(SPREAD, _spread),
    **dict.fromkeys(SAME, _same),
    "aten::dropout": _not_dropped,
    "aten::slice": _sliced,
    "aten::narrow": _narrowed,
    "aten::select": _selected,
}
