"""Random calls of `matmul`: of one M or several, with or without a function of the sums."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import torch
from drawn_calls import (
    BF16,
    F16,
    F32,
    F64,
    NAMES,
    PAIRS,
    TARGETS,
    Drawn,
    extent,
    order_of,
    schedule,
)
from held_tensors import Held
from random_functions import drawn_function

ROWS = (0, 1, 2, 15, 16, 17, 33, 64, 65, 96, 97, 128, 129)
"""Of kernels for any M, about the ends of their ranges."""


@dataclass
class Product:
    """What is drawn of products of one B, or of two."""

    draw: random.Random
    held: Held
    a_type: torch.dtype
    target: str
    n: int
    k: int
    stack: int = 0
    shared: str = ""
    transposed: bool = False
    function: Callable[..., Any] | None = None
    bs: list[torch.Tensor] = field(default_factory=list)
    shapes: dict[str, Any] = field(default_factory=dict)
    given: dict[str, torch.Tensor] = field(default_factory=dict)
    place: str = ""
    special: bool = False
    learns: bool = False
    c_type: torch.dtype = F32
    options: dict[str, Any] = field(default_factory=dict)

    def call(self, m: int) -> list[tuple[Any, torch.Tensor]]:
        """The product of an A of so many rows, and what it should be."""
        from tilewright import matmul

        shape = [self.stack] * (self.stack > 0 and self.shared != "a") + [m, self.k]
        values = self.sprinkled(self.held.integers(*shape, dtype=self.a_type))
        a = self.held.tensor(values, order_of(shape, self.transposed))
        if self.learns:
            return self._learned(a)
        read = self._read(m)
        sums = [torch.matmul(a.double(), each.double().mT) for each in self.bs]
        expected: Any = sums[0]
        more = dict(self.options)
        if self.function is not None:
            expected = self.function(*sums, *(each.double() for each in read))
            more |= {"epilogue": self.function, "operands": read}
        wanted = expected if isinstance(expected, tuple) else (expected,)
        if self.place and len(wanted) == 1:
            more["out"] = self._out(list(wanted[0].shape), read)
        found = matmul(a, tuple(self.bs) if len(self.bs) > 1 else self.bs[0], **more)
        assert "out" not in more or found is more["out"]
        results = found if isinstance(found, tuple) else (found,)
        return list(zip(results, wanted, strict=True))

    def _learned(self, a: torch.Tensor) -> list[tuple[Any, torch.Tensor]]:
        """The product where torch records gradients, and those of its operands."""
        from tilewright import matmul

        (b,) = self.bs
        wide = [each.detach().double().requires_grad_() for each in (a, b)]
        own = [each.detach().requires_grad_() for each in (a, b)]
        expected = torch.matmul(wide[0], wide[1].mT)
        found = matmul(*own, **self.options)
        onward = self.held.integers(*expected.shape, dtype=found.dtype)
        pairs = (expected, *torch.autograd.grad(expected, wide, onward.double()))
        given = (found, *torch.autograd.grad(found, own, onward))
        return [(each.detach(), other.detach()) for each, other in zip(given, pairs, strict=True)]

    def sprinkled(self, values: torch.Tensor) -> torch.Tensor:
        """The values, some of them special where that is drawn."""
        split = self.options.get("precision") == "3xtf32"  # of which infinities become NaN
        narrow = self.c_type.is_floating_point and self.c_type.itemsize == 1
        fits = self.special and self.c_type.is_floating_point
        return self.held.sprinkled(values, infinite=not (split or narrow)) if fits else values

    def _read(self, m: int) -> list[torch.Tensor]:
        """The operands of the function, those with rows drawn for this M."""
        return [
            self.given[name] if name in self.given else self.operand(shape, m)
            for name, shape in self.shapes.items()
        ]

    def operand(self, shape: Any, m: int = 0) -> torch.Tensor:
        """An operand of the function; its dims have names, or are numbers."""
        sizes = {"m": m, "n": self.n, "stack": self.stack}
        found = [sizes[each] if isinstance(each, str) else each for each in shape]
        dtype = self.draw.choice((F32, F32, BF16, F16, torch.int8, torch.bool))
        values = self.sprinkled(self.held.integers(*found, dtype=dtype, most=4))
        transposed = len(found) == 2 and self.draw.random() < 0.3
        return self.held.tensor(values, (1, 0) if transposed else None) if found else values

    def _out(self, shape: list[int], read: list[torch.Tensor]) -> torch.Tensor:
        """Memory of the caller's for C: row by row, column by column, or that of an operand."""
        for each in read if self.place == "in place" else ():
            if list(each.shape) == shape and each.dtype == self.c_type:
                self.held.written(each)
                return each
        order = order_of(shape, self.place == "turned")
        return self.held.output(*shape, dtype=self.c_type, order=order)


def product(draw: random.Random, held: Held) -> Drawn:
    """Products of matrices and stacks, with or without a function, of one M or of several."""
    a_type, b_type, depth = draw.choice(PAIRS)
    target = draw.choice(TARGETS)
    most = 24 if a_type == F64 else 200  # threads take long
    n, k = (min(most, extent(draw, size)) for size in (150, 200))
    made = Product(draw, held, a_type, target, n, k)
    made.options = {"target": target, "pipeline": schedule(draw, target, depth)}
    if a_type == F32:
        made.options["precision"] = draw.choice(("tf32", "3xtf32", "ieee", "bf16x9"))
    rows = [min(most, extent(draw))]
    if draw.random() < 0.25:
        made.options["m"] = "dynamic"
        rows += [draw.choice((*ROWS, extent(draw))) for _ in range(2)]
    else:
        made.stack, made.transposed = draw.choice((0, 0, 0, 1, 2, 3)), draw.random() < 0.25
        made.shared = draw.choice(("", "", "a", "b")) if made.stack else ""
    _choose_c(made)
    made.special = draw.random() < 0.3
    fused = draw.random() < 0.65 and a_type != F64
    made.learns = not fused and made.a_type.itemsize > 1 and draw.random() < 0.3
    two = fused and a_type.is_floating_point and not made.stack and draw.random() < 0.25
    shape = [made.stack] * (made.stack > 0 and made.shared != "b") + [made.n, made.k]
    order = order_of(shape, draw.random() < 0.3)
    values = [made.sprinkled(held.integers(*shape, dtype=b_type)) for _ in range(1 + two)]
    made.bs = [held.tensor(each, order) for each in values]
    if fused:
        made.function, made.shapes = drawn_function(draw, made.n, made.stack, two)
        fixed = {name: shape for name, shape in made.shapes.items() if "m" not in shape}
        made.given = {name: made.operand(shape) for name, shape in fixed.items()}
    made.place = "" if made.learns else draw.choice(("", "", "new", "turned", "in place"))
    what = f"{a_type} {b_type} stack={made.stack} shared={made.shared} two={two} {order}"
    said = f"out={made.place} {made.options} {getattr(made.function, '__doc__', '')}"
    text = f"matmul {rows}x{made.n}x{made.k} {what} turned={made.transposed} {said}"
    text += f" special={made.special} learns={made.learns}"
    return Drawn(text, [partial(made.call, m) for m in rows], held)


def _choose_c(made: Product) -> None:
    """The type of C, asked for or not."""
    integers, types = not made.a_type.is_floating_point, dict(NAMES)
    types |= {"s32": torch.int32} if integers else {}
    types = {"f64": F64} if made.a_type == F64 else types
    asked = made.options["out_dtype"] = made.draw.choice((None, *types))
    narrow = torch.int32 if integers else BF16
    default = made.a_type if made.a_type.itemsize > 1 else narrow
    made.c_type = types.get(asked or "", default)
