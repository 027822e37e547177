"""Random calls of `matmul` of operands with dims before their matrices, in any order in memory."""

from __future__ import annotations

import random
from typing import Any

import torch
from drawn_calls import BF16, F16, F32, PAIRS, TARGETS, Drawn, extent, told
from held_tensors import Held

LEADING = (1, 1, 2, 2, 3)


def stacks(draw: random.Random, held: Held) -> Drawn:
    """A product whose dims before the matrices broadcast, or are rows of one matrix."""
    from tilewright import matmul

    a_type, b_type, _ = draw.choice([each for each in PAIRS if each[2] > 1])
    dims = [draw.choice(LEADING) for _ in range(draw.randint(1, 3))]
    m, n, k = (draw.choice((extent(draw, 60),) * 15 + (0,)) for _ in "mnk")
    shapes = [[*_side(draw, dims), rows, k] for rows in (m, n)]
    a, b = (
        held.tensor(held.integers(*shape, dtype=dtype), _order(draw, len(shape)))
        for shape, dtype in zip(shapes, (a_type, b_type), strict=True)
    )
    options: dict[str, Any] = {"target": draw.choice(TARGETS)}
    options |= {"precision": draw.choice(("tf32", "bf16x9"))} if a_type == F32 else {}
    how = draw.choice(("plain", "plain", "function", "out", "dynamic"))
    if how == "dynamic":
        options |= {"batch": "dynamic"} if b.dim() > 2 else {"m": "dynamic"}
    expected = torch.matmul(a.double(), b.double().mT)
    c_type = _result(draw, a_type, options)
    if how == "function":
        of_row = held.tensor(held.integers(n, dtype=draw.choice((F32, BF16))))
        options |= {"epilogue": lambda acc, bias: acc.float() * 2 + bias, "operands": [of_row]}
        expected = expected * 2 + of_row.double()
    if how == "out":
        options["out"] = held.output(*expected.shape, dtype=c_type)

    def call() -> list[tuple[Any, torch.Tensor]]:
        found = matmul(a, b, **options)
        assert found.dtype == c_type
        return [(found, expected)]

    lie = f"strides {list(a.stride())} {list(b.stride())}"
    said = {name: each for name, each in told(options).items() if name not in ("out", "operands")}
    return Drawn(f"stacks {shapes} {a_type} {b_type} {lie} {how} {said}", [call], held)


def _side(draw: random.Random, dims: list[int]) -> list[int]:
    """The dims of one operand: of both, without the first ones, and 1 in the place of some."""
    kept = dims[draw.choice((0, 0, 0, 1, len(dims))) :]
    return [1 if draw.random() < 0.25 else each for each in kept]


def _order(draw: random.Random, rank: int) -> tuple[int, ...] | None:
    """The dims from the outermost in memory on: mostly with the last one contiguous."""
    dims = list(range(rank))
    if draw.random() < 0.4:
        return None
    if draw.random() < 0.7:
        head = dims[:-1]
        draw.shuffle(head)
        return (*head, dims[-1])
    draw.shuffle(dims)
    return tuple(dims)


def _result(draw: random.Random, a_type: torch.dtype, options: dict[str, Any]) -> torch.dtype:
    """The type of C, which is asked for or not."""
    asked = draw.choice((None, "f32", "f16"))
    options["out_dtype"] = asked
    narrow = BF16 if a_type.is_floating_point else torch.int32
    own = a_type if a_type.itemsize > 1 else narrow
    return {None: own, "f32": F32, "f16": F16}[asked]
