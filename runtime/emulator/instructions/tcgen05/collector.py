"""The collector buffers of a tensor core, which keep operand A, or B of `.ws`, for later products.

Source: PTX ISA §9.7.16.10.9, `.collector_usage`. `fill` keeps what is read, `use` and `lastuse` may
read it from the buffer and require an earlier `fill` to be still valid; without a usage, and with
`discard`, what it holds may be lost. Here operands are always read from memory, so that a product
that uses a buffer must find there what it names in memory.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from ...errors import Trap
from ...ptx.decode import Decoded
from ...tensor.tensor_engine import tensor_engine

_USES = ("fill", "use", "lastuse", "discard")
_STATIONARY = tuple(f"b{number}" for number in range(4))


class Usage(NamedTuple):
    """The collector buffer, `a` or `b0` to `b3`, and what is done with it."""

    buffer: str
    use: str

    def __str__(self) -> str:
        return f".collector::{self.buffer}::{self.use}"


class Held(NamedTuple):
    """An operand: type, rows, columns along K, whether it is transposed; its words."""

    form: tuple[Any, ...]
    words: list[np.ndarray]

    def is_same(self, other: Held) -> bool:
        """Whether a buffer that holds the one has the other."""
        pairs = zip(self.words, other.words, strict=False)
        return self.form == other.form and all(np.array_equal(*pair) for pair in pairs)


def take_usage(ins: Decoded, *, stationary: bool = False) -> Usage:
    """The modifier of an instruction."""
    buffers = _STATIONARY if stationary else ("a",)
    found = ins.choice(tuple(f"collector::{name}::{use}" for name in buffers for use in _USES))
    return Usage(*found.split("::")[1:]) if found else Usage(buffers[0], "discard")


def collect(product: Any) -> None:
    """Do with the buffer what a product says that is about to run; Trap where it may find other
    elements there than in memory."""
    kept, usage = tensor_engine(product.ctas[0]).kept, product.collector
    if usage.use == "discard":
        kept.pop(usage.buffer, None)
        return
    held = Held(*product.collected(usage.buffer))
    if usage.use != "fill":
        _check(usage, kept.get(usage.buffer), held)
    kept[usage.buffer] = held
    if usage.use == "lastuse":
        del kept[usage.buffer]


def _check(usage: Usage, before: Held | None, held: Held) -> None:
    if before is None:
        raise Trap(
            "protocol",
            f"tcgen05.mma with {usage}: no valid fill of the buffer comes before it; the product"
            f" that reads this operand first takes .collector::{usage.buffer}::fill",
        )
    if not held.is_same(before):
        raise Trap(
            "protocol",
            f"tcgen05.mma with {usage}: the buffer was filled with another operand than this"
            f" product names, or memory has changed since; fill it again",
        )
