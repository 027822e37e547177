"""Products of any kind with a function of their sums, held to numpy bit by bit.

    drawn = draw_fused(random.Random(1))    # a spec and a function
    drawn.text                              # the module that computes it
    FusedProduct(drawn, spec, seed)         # its arrays, and what they should become

The kinds are those of `wide_specs`; functions are those of `random_functions`. The text of the
module is made by what `tilewright.matmul` and its kin make theirs by; the results by torch.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import torch
from exact_products import ExactProduct
from random_functions import drawn_function
from wide_specs import random_spec

OPERANDS = (torch.float32, torch.float32, torch.bfloat16, torch.float16)
SPECIAL_TYPES = ("bf16", "f16", "f32", "tf32", "e5m2", "e4m3")
TENSOR = ("sm_100a", "sm_90a")
INFINITE = SPECIAL_TYPES[:-1]
WIDE = ("bf16", "f16", "f32")
"""Types of C that have infinities, and no rule of their own for them."""


class Operand(NamedTuple):
    """An operand of a function: its shape, of names and numbers, and its type."""

    shape: tuple[int | str, ...]
    dtype: torch.dtype


@dataclass
class Drawn:
    """A spec, as its function makes it, and the function with what it reads: of each operand of
    the kernel the number that it has among those of the function, and its shape."""

    spec: Any
    text: str
    target: str
    function: Callable[..., Any]
    operands: list[Operand]
    read: list[tuple[int, Any]]
    special: bool

    def described(self) -> str:
        """What it is, in a few lines."""
        read = [(each.shape, str(each.dtype)) for each in self.operands]
        return f"{self.spec}\n{self.function.__doc__} {read} special={self.special}\n"


def draw_fused(draw: random.Random) -> Drawn:
    """A spec of any kind with a function of its sums; CompileError where the two do not agree."""
    from tilewright.compiler.spec import MatmulSpec

    fields, target = random_spec(draw)
    fields.pop("further", None)
    fields |= _beside(draw, fields)
    scaled = MatmulSpec(**fields).is_scaled
    if target not in TENSOR and not scaled and draw.random() < 0.7:
        target = draw.choice(TENSOR)
    return fused_of(draw, fields, target)


def fused_of(draw: random.Random, fields: dict[str, Any], target: str) -> Drawn:
    """A spec of these fields with a function of its sums; CompileError as `draw_fused`."""
    from tilewright.compiler.importers.epilogue_function import Frame, TensorLike, import_epilogue
    from tilewright.compiler.spec import MatmulSpec

    spec = MatmulSpec(**fields)
    stack = spec.groups if spec.groups and spec.group_axis == "k" else spec.batch
    opened = {"m": spec.dynamic_m, "stack": spec.dynamic_batch}
    how: dict[str, Any] = {"reduces": False, "signed_zeros": not spec.quantized}
    how |= {"without": [name for name, is_open in opened.items() if is_open]}
    function, shapes = drawn_function(draw, spec.n, stack, spec.products == 2, **how)
    operands = [Operand(shape, draw.choice(OPERANDS)) for shape in shapes.values()]
    sizes = {"m": spec.m, "stack": stack}
    likes = [TensorLike(_shape(each, sizes), each.dtype) for each in operands]
    shape = [spec.m, spec.n]
    frame = Frame.of([stack, *shape] if stack else shape, stack)
    spec, made, read, _ = import_epilogue(spec, frame, function, likes, prepared=True)
    special = draw.random() < 0.25 and not spec.quantized and spec.c_dtype in WIDE
    read = [(each.number, each.shape) for each in read]
    return Drawn(spec, spec.mlir_text(made), target, function, operands, read, special)


def _beside(draw: random.Random, fields: dict[str, Any]) -> dict[str, Any]:
    """Now and then what kinds of products do not draw together: rows that are gathered, two
    products, sums of two levels."""
    found: dict[str, Any] = {}
    rows_are_grouped = fields.get("groups") and fields.get("group_axis", "m") == "m"
    if rows_are_grouped and draw.random() < 0.3:
        found["gathered"] = draw.choice((1, 3, draw.randint(1, 140)))
    if fields.get("a_dtype") in ("e4m3", "e5m2") and "a_scales" not in fields:
        found |= {"sums": "two-level"} if draw.random() < 0.3 else {}
    narrow = fields.get("c_dtype", "").startswith(("mx", "nv")) or fields.get("batch")
    if not narrow and "group_size" not in fields and draw.random() < 0.1:
        found["products"] = 2
    return found


def _shape(operand: Operand, sizes: dict[str, int]) -> tuple[int, ...]:
    return tuple(sizes[each] if isinstance(each, str) else each for each in operand.shape)


class FusedProduct(ExactProduct):
    """The arrays of a product with a function, and what they should become."""

    def __init__(self, drawn: Drawn, spec: Any, seed: int):
        self.drawn = drawn
        super().__init__(spec, seed)

    def _results(self, sums: list[np.ndarray]) -> list[np.ndarray]:
        sizes = {"m": self.spec.m, "stack": sums[0].shape[0]}
        given = [
            torch.as_tensor(self._integers(*_shape(each, sizes))).to(each.dtype)
            for each in self.drawn.operands
        ]
        for name, (number, shape) in enumerate(self.drawn.read):
            self.arrays[f"e{name}"] = given[number].reshape(shape)
        found = self.drawn.function(*map(torch.from_numpy, sums), *(e.double() for e in given))
        return [each.numpy() for each in (found if isinstance(found, tuple) else (found,))]

    def _sprinkled(self, values: np.ndarray, dtype: str) -> np.ndarray:
        if not self.drawn.special or dtype not in SPECIAL_TYPES or not values.size:
            return values
        flat = values.flatten()
        for _ in range(self.draw.randint(1, 3)):
            special = [math.nan, *([math.inf, -math.inf] if dtype in INFINITE else [])]
            flat[self.draw.randrange(flat.size)] = self.draw.choice(special)
        return flat.reshape(values.shape)
