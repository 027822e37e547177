"""Views of a tensor as a short chain of steps that can be inverted and compared.

    x.view(2, 8, 4, 12).transpose(1, 2)    →    reshape(2, 8, 4, 12), permute(0, 2, 1, 3)

A view of torch is at most a reshape, which keeps the order of all elements, a permutation of dims,
a spread of dims of one element, and slices. Steps that follow one another become one where they
can: so a chain and what undoes it become none.
"""

from __future__ import annotations

from math import prod
from typing import Any, NamedTuple

from ...dialects.record import record

Shape = tuple[int, ...]


class Step(NamedTuple):
    """One step: a "reshape" or an "expand" to a shape, a "permute" by an order of dims, or a
    "slice" by (dim, start, step, count)."""

    kind: str
    what: Shape

    def of(self, value: Any) -> Any:
        """The step of a tensor: a view, or a copy where no strides are a reshape's."""
        if self.kind != "slice":
            return getattr(value, self.kind)(self.what)
        dim, start, step, _ = self.what
        return value[(slice(None),) * dim + (slice(start, _stop(self.what), step),)]

    def __str__(self) -> str:
        if self.kind != "slice":
            return f".{self.kind}({', '.join(map(str, self.what))})"
        dim, start, step, _ = self.what
        part = f"{start}:{_stop(self.what)}" + (f":{step}" if step > 1 else "")
        return f"[{':, ' * dim}{part}]"


def _stop(part: Shape) -> int:
    _, start, step, count = part
    return start + step * (count - 1) + 1


@record
class Chain:
    """Steps from tensors of `shape`; `result` is the shape after them."""

    shape: Shape
    steps: tuple[Step, ...] = ()

    @property
    def result(self) -> Shape:
        """The shape after all steps."""
        return _shapes(self)[-1]

    @property
    def picks(self) -> bool:
        """Whether it leaves elements out, or repeats some."""
        return any(each.kind in ("slice", "expand") for each in self.steps)

    def of(self, value: Any) -> Any:
        """What the chain makes of a tensor."""
        for step in self.steps:
            value = step.of(value)
        return value

    def then(self, other: Chain) -> Chain:
        """This chain, and another after it."""
        found = self
        for kind, what in other.steps:
            found = getattr(found, kind)(what)
        return found

    def inverse(self) -> Chain | None:
        """The chain that undoes this one; None where it leaves out or repeats elements."""
        if self.picks:
            return None
        shapes = _shapes(self)
        found = Chain(shapes[-1])
        for step, before in zip(self.steps[::-1], shapes[-2::-1], strict=True):
            if step.kind == "permute":
                found = found.permute(tuple(step.what.index(dim) for dim in range(len(before))))
            else:
                found = found.reshape(before)
        return found

    def reshape(self, shape: Shape) -> Chain:
        """The elements in their order, in another shape."""
        last = self.steps[-1:]
        if last and last[0].kind == "reshape":
            return Chain(self.shape, self.steps[:-1]).reshape(shape)
        return self if self.result == shape else self._and("reshape", shape)

    def permute(self, order: Shape) -> Chain:
        """The dims in another order."""
        shape = self.result
        moved = [dim for dim in order if shape[dim] != 1]
        if moved == sorted(moved):
            return self.reshape(tuple(shape[dim] for dim in order))
        last = self.steps[-1:]
        if last and last[0].kind == "permute":
            both = tuple(last[0].what[dim] for dim in order)
            return Chain(self.shape, self.steps[:-1]).permute(both)
        return self._and("permute", order)

    def expand(self, shape: Shape) -> Chain:
        """Dims of one element repeated; those that are new come first."""
        alike = self.reshape((1,) * (len(shape) - len(self.result)) + self.result)
        return alike if alike.result == shape else alike._and("expand", shape)

    def slice(self, part: Shape) -> Chain:
        """Take every `step`-th element of one dim: (dim, start, step, count).

        Dims are permuted after slices, so that the same elements in another order are one chain.
        """
        dim, start, step, count = part
        if (start, step, count) == (0, 1, self.result[dim]):
            return self
        last = self.steps[-1:]
        if last and last[0].kind == "permute":
            order = last[0].what
            inner = Chain(self.shape, self.steps[:-1]).slice((order[dim], start, step, count))
            return inner.permute(order)
        before = Chain(self.shape, self.steps[:-1])
        if last and last[0].kind == "expand" and before.result[dim] == 1:
            spread = last[0].what
            return before.expand((*spread[:dim], count, *spread[dim + 1 :]))
        return self._and("slice", (dim, start, step, count))

    def swap(self) -> Chain:
        """The last two dims exchanged."""
        rank = len(self.result)
        return self.permute((*range(rank - 2), rank - 1, rank - 2))

    def named(self, name: str) -> str:
        """What it makes of an argument of that name, as Python has it."""
        return name + "".join(map(str, self.steps))

    def _and(self, kind: str, what: Shape) -> Chain:
        return Chain(self.shape, (*self.steps, Step(kind, tuple(what))))


def _shapes(chain: Chain) -> list[Shape]:
    """The shape before the first step, and after each."""
    shapes = [chain.shape]
    for kind, what in chain.steps:
        before = shapes[-1]
        if kind == "permute":
            shapes.append(tuple(before[dim] for dim in what))
        elif kind == "slice":
            dim, *_, count = what
            shapes.append((*before[:dim], count, *before[dim + 1 :]))
        else:
            shapes.append(what)
    return shapes


def merged(shape: Shape, kept: int) -> Shape:
    """The shape with all dims but the last `kept` as one."""
    first = len(shape) - kept
    return (prod(shape[:first]), *shape[first:])
