"""Tensors of small integers that lie anywhere in memory, of which no other byte may change.

Products of such integers have sums that every order of additions gets exactly, so that a result is
right or wrong to the last bit.
"""

from __future__ import annotations

import math
import random
from typing import Any

import torch

BYTES = torch.uint8
BESIDE = 96
"""Elements before and behind every tensor."""


class Held:
    """Tensors at drawn places of their own memory."""

    def __init__(self, seed: int):
        self.draw = random.Random(f"memory {seed}")
        self.generator = torch.Generator().manual_seed(seed)
        self._kept: list[tuple[torch.Tensor, torch.Tensor, torch.Tensor | None]] = []

    def tensor(self, values: torch.Tensor, order: tuple[int, ...] | None = None) -> torch.Tensor:
        """The values, stored with that order of dims, the last one contiguous, and gaps."""
        place = self._place(values.shape, values.dtype, order)
        place.copy_(values)
        self._kept[-1] = (self._kept[-1][0], self._kept[-1][0].clone(), None)
        return place

    def output(self, *shape: int, dtype: torch.dtype, order: Any = None) -> torch.Tensor:
        """Memory for a result, which holds anything."""
        return self._place(shape, dtype, order)

    def integers(self, *shape: int, dtype: torch.dtype, most: int = 3) -> torch.Tensor:
        """From -most to most, of types without a sign from 0 on."""
        least = 0 if dtype == torch.uint8 else -most
        return torch.randint(least, most + 1, shape, generator=self.generator).to(dtype)

    def sprinkled(self, values: torch.Tensor, *, infinite: bool = True) -> torch.Tensor:
        """The values with NaN here and there, of types that have them infinities, and zeros of
        either sign."""
        dtype = values.dtype
        if not dtype.is_floating_point or not values.numel():
            return values
        special = [math.nan, -0.0, 0.0]
        if infinite and dtype != torch.float8_e4m3fn:
            special += [math.inf, -math.inf]
        wide = values.double().flatten()
        for _ in range(self.draw.randint(1, 3)):
            wide[self.draw.randrange(wide.numel())] = self.draw.choice(special)
        return wide.reshape(values.shape).to(dtype)

    def written(self, place: torch.Tensor) -> None:
        """Say that a tensor may change, but nothing beside it."""
        storage = place.untyped_storage().data_ptr()
        for number, (memory, before, _) in enumerate(self._kept):
            if memory.untyped_storage().data_ptr() == storage:
                self._kept[number] = (memory, before, place)

    def changed(self) -> str:
        """What is not as it was; "" if all is."""
        for memory, before, place in self._kept:
            after = memory.clone()
            if place is not None:
                _view(after, place).view(_bits(place)).zero_()
                before = before.clone()
                _view(before, place).view(_bits(place)).zero_()
            where = (after.view(BYTES) != before.view(BYTES)).nonzero()
            if len(where):
                what = "beside the output" if place is not None else "of an input"
                return f"{len(where)} bytes {what} changed, the first one {int(where[0])}"
        return ""

    def _place(self, shape: Any, dtype: torch.dtype, order: Any) -> torch.Tensor:
        strides = self._strides(list(shape), order)
        offset = self.draw.choice((0, 0, 0, 64, self.draw.randint(1, 31)))
        extent = 1 + sum(max(0, s - 1) * t for s, t in zip(shape, strides, strict=True))
        count = 2 * BESIDE + extent + offset
        memory = torch.empty(count, dtype=dtype)
        noise = torch.randint(0, 256, (memory.nbytes,), generator=self.generator, dtype=BYTES)
        memory.view(BYTES).copy_(noise | 0x78)  # NaN or large in every type of floats
        place = memory.as_strided(tuple(shape), strides, BESIDE + offset)
        self._kept.append((memory, memory.clone(), place))
        return place

    def _strides(self, shape: list[int], order: Any) -> list[int]:
        dims = list(order) if order else list(range(len(shape)))
        strides, step = [0] * len(shape), 1
        for number, dim in enumerate(reversed(dims)):
            strides[dim] = step
            gap = self.draw.choice((0, 0, 0, 8, 16, 3)) if number < len(dims) - 1 else 0
            step = step * max(1, shape[dim]) + gap * (number == 0 or self.draw.random() < 0.3)
        return strides


def _bits(place: torch.Tensor) -> torch.dtype:
    return {1: torch.uint8, 2: torch.int16, 4: torch.int32, 8: torch.int64}[place.element_size()]


def _view(memory: torch.Tensor, place: torch.Tensor) -> torch.Tensor:
    return memory.as_strided(place.shape, place.stride(), place.storage_offset())


def bit_rounded(expected: torch.Tensor, dtype: torch.dtype) -> torch.Tensor:
    """Float64 rounded once to a type; what is too large becomes the largest number of 8 bits."""
    if dtype.is_floating_point and dtype.itemsize == 1:
        most = torch.finfo(dtype).max
        return expected.clamp(-most, most).to(torch.float32).to(dtype)
    if not dtype.is_floating_point:
        return expected.to(dtype)
    return expected.to(dtype)


def difference(found: torch.Tensor, expected: torch.Tensor) -> str:
    """ "" where every element is what float64 gives, rounded once to the type of `found`."""
    if list(found.shape) != list(expected.shape):
        return f"shape {list(found.shape)} for {list(expected.shape)}"
    wanted = bit_rounded(expected.double(), found.dtype).double()
    wide = found.double()
    wrong = ((wide != wanted) & ~(wide.isnan() & wanted.isnan())).nonzero()
    if not len(wrong):
        return ""
    first = tuple(wrong[0].tolist())
    count = f"{len(wrong)} of {math.prod(found.shape)} elements"
    return f"{count}, {list(first)} is {found[first].item()} for {wanted[first].item()}"
