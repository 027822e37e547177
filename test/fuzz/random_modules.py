"""Random torch modules: views of inputs, a product of any form, and views and elementwise
operations of its result, drawn as lines of Python that torch itself tries.

All values are small integers, so that every result is exact in bf16: what torch computes in
float64 is what a kernel must give, in every bit. Nothing here knows what the compiler makes of a
view: a line that torch refuses is drawn again.
"""

from __future__ import annotations

import random
from math import prod
from typing import Any

import torch

SIZES = (1, 2, 3, 4, 5, 6, 8)
MOST = 4096
"""Elements of one tensor."""
LARGEST = 256
"""To which bf16 has all integers."""


class DrawnModule(torch.nn.Module):
    """Lines of Python on t0, t1, …, which are its inputs; `results` are what it returns."""

    def __init__(self, shapes: list[tuple[int, ...]], lines: list[str], results: str) -> None:
        super().__init__()
        self.shapes, self.lines, self.results = shapes, lines, results
        self._code = compile("\n".join([*lines, f"returned = {results}"]), "<drawn>", "exec")

    def forward(self, *inputs: torch.Tensor) -> Any:
        return self.values(*inputs)["returned"]

    def values(self, *inputs: torch.Tensor) -> dict[str, Any]:
        """Every value of a line by its name, and what is returned."""
        found: dict[str, Any] = {f"t{n}": each for n, each in enumerate(inputs)}
        exec(self._code, {"torch": torch, "F": torch.nn.functional}, found)
        return found

    def inputs(self, seed: int) -> list[torch.Tensor]:
        """Small integers of every input, in float64."""
        made = torch.Generator().manual_seed(seed)
        return [torch.randint(-1, 2, shape, generator=made).double() for shape in self.shapes]

    def largest(self, inputs: list[torch.Tensor]) -> float:
        """The largest magnitude of all that is computed."""
        values = self.values(*inputs).values()
        return max(float(each.abs().max()) for each in values if isinstance(each, torch.Tensor))

    def described(self) -> str:
        """The module as Python."""
        shapes = [f"t{n}: {list(shape)}" for n, shape in enumerate(self.shapes)]
        return "\n".join([*shapes, *self.lines, f"return {self.results}", ""])


class _Draw:
    """Draws line by line, with the values that torch has for them."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(f"module {seed}")
        self.values: dict[str, Any] = {}
        self.shapes: list[tuple[int, ...]] = []
        self.lines: list[str] = []
        self.count = 0

    def input(self, shape: tuple[int, ...]) -> str:
        name = f"t{len(self.shapes)}"
        self.shapes.append(shape)
        self.values[name] = torch.randint(-1, 2, shape).double()
        return name

    def line(self, text: str) -> str | None:
        """The name of what an expression gives; None where torch has none, or one too large."""
        value = None
        try:
            value = eval(text, {"torch": torch, "F": torch.nn.functional}, self.values)
        except (RuntimeError, IndexError, ValueError):
            return None
        if not 0 < value.numel() <= MOST or value.dim() > 5 or value.abs().max() > LARGEST / 4:
            return None
        self.count += 1
        name = f"v{self.count}"
        self.lines.append(f"{name} = {text}")
        self.values[name] = value
        return name

    def shape(self, name: str) -> tuple[int, ...]:
        return tuple(self.values[name].shape)

    def viewed(self, name: str, most: int) -> str:
        """The name of a few views of a value, one after the other."""
        for _ in range(self.random.randint(0, most)):
            name = self.line(self._view(name)) or name
        return name

    def _view(self, name: str) -> str:
        draw, shape = self.random, self.shape(name)
        rank = len(shape)
        dim = draw.randrange(-rank, rank) if rank else 0
        size = shape[dim] if rank else 1
        other = draw.randrange(rank) if rank else 0
        start = draw.randrange(size)
        order = draw.sample(range(rank), rank)
        sizes = self._regrouped(prod(shape))
        views = [
            f"{name}.reshape({sizes})",
            f"{name}.view({sizes})",
            f"{name}.permute({order})",
            f"{name}.transpose({dim}, {other})",
            f"{name}.mT",
            f"{name}.flatten({draw.choice((0, 1, -2))})",
            f"{name}.flatten(0, {draw.choice((1, -2))})",
            f"{name}.unsqueeze({dim})",
            f"{name}.squeeze({dim})",
            f"{name}.narrow({dim}, {start}, {draw.randint(1, size - start)})",
            f"{name}.select({dim}, {start})",
            f"{name}.contiguous()",
            f"{name}[{':, ' * other}{start}::{draw.choice((1, 1, 2))}]",
            f"{name}.chunk({draw.choice((2, 3))}, {dim})[{draw.choice((0, -1))}]",
            f"{name}.unbind({dim})[-1]",
            f"{name}.unflatten({dim}, (-1, {draw.choice((1, 2, 4))}))",
            f"{name}.movedim({dim}, {other})",
            f"{name}.expand(2, {', '.join(['-1'] * rank)})",
            f"{name}.swapaxes(-1, 0).clone()",
        ]
        return draw.choice(views)

    def _regrouped(self, count: int) -> str:
        """Sizes of so many elements."""
        sizes = []
        while count > 1 and len(sizes) < 4:
            size = self.random.choice([n for n in range(1, 65) if count % n == 0])
            sizes.append(size)
            count //= size
        self.random.shuffle(sizes := [*sizes, count])
        return ", ".join(map(str, sizes))

    def operand(self, *last: int) -> str:
        """A matrix of these sizes, of an input that has more, or others first."""
        draw, (rows, columns) = self.random, last
        kind = draw.choice(("whole", "whole", "turned", "one", "part", "other", "folded"))
        if kind == "turned":
            return f"{self.input((columns, rows))}.{draw.choice(('t()', 'mT', 'T'))}"
        if kind == "one":
            return f"{self.input((3, rows, columns))}[{draw.randrange(3)}]"
        if kind == "part":
            return f"{self.input((rows, columns + 8))}[:, {draw.randrange(9)}:][:, :{columns}]"
        if kind == "other":
            return f"{self.input((2 * rows, columns))}[{draw.randrange(2)}::2]"
        if kind == "folded" and columns % 2 == 0:
            return f"{self.input((rows, 2, columns // 2))}.flatten(1)"
        return self.input((rows, columns))

    def product(self, a: str) -> str | None:
        """A product of a value and of further inputs."""
        draw, shape = self.random, self.shape(a)
        k, n = shape[-1], draw.choice((1, 2, 4, 6, 8, 12, 16, 24))
        kind = draw.choice(("linear", "linear", "matmul", "stack", "addmm", "vector", "turned"))
        if kind == "linear":
            bias = draw.choice(("", f", {self.input((n,))}"))
            return self.line(f"F.linear({a}, {self.operand(n, k)}{bias})")
        if kind == "matmul":
            return self.line(f"{a} @ {self.operand(k, n)}")
        if kind == "turned":
            return self.line(f"{self.operand(n, shape[-2] if len(shape) > 1 else k)} @ {a}")
        if kind == "vector":
            return self.line(f"{a} @ {self.input((k,))}")
        if kind == "addmm" and len(shape) == 2:
            added = self.input(draw.choice(((shape[0], n), (n,), (1, n), (shape[0], 1))))
            return self.line(f"torch.addmm({added}, {a}, {self.operand(k, n)})")
        lead = [draw.choice((size, size, 1)) for size in shape[:-2]]
        return self.line(f"{a} @ {self.viewed(self.input((*lead, k, n)), 0)}")

    def after(self, name: str) -> str | None:
        """An elementwise operation of a value, perhaps with another input."""
        draw, shape = self.random, self.shape(name)
        if draw.random() < 0.4:
            return self.line(
                draw.choice(
                    (f"F.relu({name})", f"-{name}", f"{name}.abs()", f"{name} * 2", f"{name} + 1")
                )
            )
        first = draw.randint(0, len(shape)) if draw.random() < 0.4 else 0
        sizes = [draw.choice((size, size, size, 1)) for size in shape[first:]]
        beside = self.input(tuple(sizes))
        if draw.random() < 0.3 and len(sizes) > 1:
            self.shapes[-1] = (*sizes[:-2], sizes[-1], sizes[-2])
            self.values[beside] = self.values[beside].mT
            beside = f"{beside}.mT"
        return self.line(f"{name} {draw.choice('+-*')} {beside}")


def draw_module(seed: int) -> DrawnModule:
    """The module of a seed, one product and what stands around it."""
    for attempt in range(100):
        found = _drawn(_Draw(seed * 100 + attempt))
        if found is not None:
            return found
    raise AssertionError("one of a hundred is a module")


def _drawn(draw: _Draw) -> DrawnModule | None:
    rank = draw.random.choice((1, 2, 2, 3, 3, 4))
    x = draw.viewed(draw.input(tuple(draw.random.choice(SIZES) for _ in range(rank))), 3)
    if draw.values[x].dim() == 0 or draw.shape(x)[-1] > 32:
        return None
    y = draw.product(x)
    for _ in range(draw.random.randint(0, 4)):
        if y is not None:
            y = draw.after(y) if draw.random.random() < 0.5 else draw.viewed(y, 1)
    if y is None or draw.values[y].dim() == 0:
        return None
    results = y
    if draw.random.random() < 0.25:
        several = draw.random.choice((f"{y}.unbind(0)", f"{y}.chunk(2, -1)", f"({y}, F.relu({y}))"))
        given = eval(several, {"F": torch.nn.functional}, draw.values)
        results = several if len(given) in (2, 3) else y
    return DrawnModule(draw.shapes, draw.lines, results)
