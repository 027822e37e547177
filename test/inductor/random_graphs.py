"""Random programs of torch whose first size a call says, each drawn by its seed alone.

A program begins with a product, and goes on with products, functions, casts, reductions, views, and
operators of a number that is computed from the size. Its functions have no jumps, so that
`function` of the same inputs in float64 says what is right: casts leave float64 as it is.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import torch
import torch.nn.functional as F

BF16, F16, F32 = torch.bfloat16, torch.float16, torch.float32
TOKENS, HEAD = 4, 8
ROWS, FLAT, FIRST = "rows", "rows * TOKENS", "min(rows, HEAD)"
Shape = tuple[Any, ...]


def extents(shape: Shape, rows: int) -> tuple[int, ...]:
    """A shape with numbers for what follows from the rows."""
    known: dict[Any, int] = {ROWS: rows, FLAT: rows * TOKENS, FIRST: min(rows, HEAD)}
    return tuple(known[each] if each in known else each for each in shape)


class Program:
    """`function(*inputs(rows))` gives a tuple of tensors; `steps` are the names of what it does."""

    def __init__(self, seed: int):
        self.draw = random.Random(f"graph {seed}")
        self.seed = seed
        self.given: list[tuple[Shape, torch.dtype, float]] = []
        self.values: list[Shape] = []
        self.steps: list[str] = []
        self._run: list[Callable[[list[torch.Tensor], tuple[torch.Tensor, ...]], torch.Tensor]] = []
        columns = self.draw.choice((16, 32, 64))
        self.given.append(((ROWS, TOKENS, columns), BF16, 1.0))
        self.values.append(self.given[0][0])
        self._step("linear", 0)
        for _ in range(self.draw.randint(4, 10)):
            self._step(self.draw.choice(sorted(STEPS)), self.draw.choice(self._latest()))
        count = min(len(self.values) - 1, self.draw.choice((1, 1, 2)))
        self.outputs = [len(self.values) - 1, *self.draw.sample(range(1, len(self.values)), count)]

    def inputs(self, rows: int) -> list[torch.Tensor]:
        """Its tensors; those that know no rows are the same in every call."""
        return [self._drawn(number, rows) for number in range(len(self.given))]

    def open_dims(self) -> list[list[bool]]:
        """Which sizes of the inputs a call says."""
        return [[each == ROWS for each in shape] for shape, _, _ in self.given]

    def function(self, *inputs: torch.Tensor) -> tuple[torch.Tensor, ...]:
        found = [inputs[0]]
        for run in self._run:
            found.append(run(found, inputs))
        return tuple(found[each] for each in self.outputs)

    def operand(self, shape: Shape, dtype: torch.dtype = BF16, scale: float = 1.0) -> int:
        """The number of one more input."""
        self.given.append((shape, dtype, scale))
        return len(self.given) - 1

    def weight(self, rows: int, columns: int) -> int:
        return self.operand((rows, columns), BF16, columns**-0.5)

    def _latest(self) -> range:
        return range(max(1, len(self.values) - 4), len(self.values))

    def _step(self, name: str, at: int) -> None:
        made = STEPS[name](self, at, self.values[at])
        if made is not None:
            run, shape = made
            self._run.append(run)
            self.values.append(shape)
            self.steps.append(name)

    def _drawn(self, number: int, rows: int) -> torch.Tensor:
        shape, dtype, scale = self.given[number]
        known = 1000 * self.seed + number
        generator = torch.Generator().manual_seed(known if ROWS not in shape else known + rows)
        values = torch.randn(extents(shape, rows), generator=generator) * scale
        return values > 0 if dtype == torch.bool else values.to(dtype)


def cast(value: torch.Tensor, dtype: torch.dtype) -> torch.Tensor:
    return value if value.dtype == torch.float64 else value.to(dtype)


def linear(program: Program, at: int, shape: Shape) -> Any:
    columns = program.draw.choice((8, 16, 24, 32))
    transposed = program.draw.random() < 0.3
    weight = program.weight(*((shape[-1], columns) if transposed else (columns, shape[-1])))
    biased = program.draw.random() < 0.3
    bias = program.operand((columns,)) if biased else None

    def run(found, inputs):
        held = inputs[weight].t() if transposed else inputs[weight]
        added = None if bias is None else inputs[bias]
        return F.linear(cast(found[at], BF16), held, added)

    return run, (*shape[:-1], columns)


def gated(program: Program, at: int, shape: Shape) -> Any:
    gate, up = program.weight(24, shape[-1]), program.weight(24, shape[-1])

    def run(found, inputs):
        x = cast(found[at], BF16)
        return F.silu(F.linear(x, inputs[gate])) * F.linear(x, inputs[up])

    return run, (*shape[:-1], 24)


def addmm(program: Program, at: int, shape: Shape) -> Any:
    if len(shape) != 2:
        return None
    weight, addend = program.weight(shape[1], 16), program.operand((16,))
    alpha, beta = program.draw.choice([(1, 1), (0.5, 2), (2, 0), (1, -1)])

    def run(found, inputs):
        x = cast(found[at], BF16)
        return torch.addmm(inputs[addend], x, inputs[weight], alpha=alpha, beta=beta)

    return run, (shape[0], 16)


def scores(program: Program, at: int, shape: Shape) -> Any:
    if len(shape) != 3:
        return None
    scale = 1 / shape[2]
    return lambda found, _: (found[at] @ found[at].mT) * scale, (*shape[:2], shape[1])


FUNCTIONS: tuple[Callable[[torch.Tensor], torch.Tensor], ...] = (
    F.relu, F.silu, F.gelu, F.elu, F.softplus, F.hardswish, F.mish, torch.tanh, torch.sigmoid,
    torch.abs, torch.neg, lambda x: F.leaky_relu(x, 0.2), lambda x: torch.exp(-x.abs()),
    lambda x: torch.rsqrt(x.abs() + 1), lambda x: x.clamp(-0.7, 1.2), lambda x: 3 - x,
    lambda x: x * -1.25, lambda x: x.clone().mul_(2).add_(1),
)  # fmt: skip
PAIRS: tuple[Callable[[torch.Tensor, torch.Tensor], torch.Tensor], ...] = (
    torch.add, torch.sub, torch.maximum, torch.minimum,
    lambda x, y: torch.add(x, y, alpha=2), lambda x, y: x / (y.abs() + 1),
)  # fmt: skip


def function(program: Program, at: int, shape: Shape) -> Any:
    chosen = program.draw.choice(FUNCTIONS)
    return lambda found, _: chosen(found[at]), shape


def pair(program: Program, at: int, shape: Shape) -> Any:
    other = program.draw.choice([n for n, each in enumerate(program.values) if each == shape])
    chosen = program.draw.choice(PAIRS)
    return lambda found, _: chosen(found[at], found[other]), shape


def operand(program: Program, at: int, shape: Shape) -> Any:
    shapes = [shape[-1:]]
    if shape[0] == ROWS:
        shapes += [shape, (*shape[:-1], 1)]
    number = program.operand(program.draw.choice(shapes), program.draw.choice((BF16, BF16, F32)))
    chosen = program.draw.choice((torch.add, torch.mul))
    return lambda found, inputs: chosen(found[at], inputs[number]), shape


def mask(program: Program, at: int, shape: Shape) -> Any:
    shapes = [shape[-1:]] + ([(*shape[:-1], 1)] if shape[0] == ROWS else [])
    number = program.operand(program.draw.choice(shapes), torch.bool)
    if program.draw.random() < 0.5:
        return lambda found, inputs: found[at].masked_fill(inputs[number], -1.0), shape
    return lambda found, inputs: torch.where(inputs[number], found[at], 0.5), shape


def narrowed(program: Program, at: int, shape: Shape) -> Any:
    dtype = program.draw.choice((F32, BF16, F16))
    return lambda found, _: cast(found[at], dtype), shape


def reduction(program: Program, at: int, shape: Shape) -> Any:
    kind = program.draw.choice(("mean", "norm", "softmax"))

    def run(found, _):
        x = found[at]
        if kind == "softmax":
            return torch.softmax(x, -1)
        return x - x.mean(-1, keepdim=True) if kind == "mean" else F.rms_norm(x, x.shape[-1:])

    return run, shape


def view(program: Program, at: int, shape: Shape) -> Any:
    if len(shape) == 3 and shape[:2] == (ROWS, TOKENS):
        return lambda found, _: found[at].flatten(0, 1), (FLAT, shape[2])
    if shape[0] == FLAT:
        return lambda found, _: found[at].unflatten(0, (-1, TOKENS)), (ROWS, TOKENS, shape[1])
    return None


def halves(program: Program, at: int, shape: Shape) -> Any:
    if shape[-1] % 16:
        return None

    def run(found, _):
        first, second = found[at].chunk(2, -1)
        return F.silu(first) * second

    return run, (*shape[:-1], shape[-1] // 2)


def joined(program: Program, at: int, shape: Shape) -> Any:
    if shape[-1] > 32:
        return None
    return lambda found, _: torch.cat([found[at], -found[at]], -1), (*shape[:-1], 2 * shape[-1])


def computed(program: Program, at: int, shape: Shape) -> Any:
    """A number that follows from the rows, as a factor or an addend."""
    chosen = program.draw.choice(
        (
            lambda x, rows: x * (1 / rows),
            lambda x, rows: x * (torch.sym_min(rows, HEAD) / HEAD),
            lambda x, rows: x + rows // 5,
            lambda x, rows: x - torch.full((1,), rows % 3, dtype=x.dtype),
        )
    )
    return lambda found, inputs: chosen(found[at], inputs[0].shape[0]), shape


def first(program: Program, at: int, shape: Shape) -> Any:
    """At most `HEAD` of the rows."""
    if shape[0] != ROWS:
        return None

    def run(found, inputs):
        return found[at][: torch.sym_min(inputs[0].shape[0], HEAD)]

    return run, (FIRST, *shape[1:])


STEPS: dict[str, Callable[[Program, int, Shape], Any]] = {
    each.__name__: each
    for each in (
        linear, gated, addmm, scores, function, pair, operand, mask, narrowed, reduction, view,
        halves, joined, computed, first,
    )
}  # fmt: skip
