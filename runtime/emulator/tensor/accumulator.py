"""An accumulator of tensor memory, and the products that are still to be added to it.

A tcgen05.mma multiplies a short piece of K and reads its operands when it runs. Nobody sees the
sums until something else looks at their columns, so the products of several operations are formed
as one, which is as long along K as they are together. PTX leaves the order of a sum open.
"""

from __future__ import annotations

import numpy as np

from .descriptor import InstructionDescriptor
from .tensor_core import Block, decode_words, multiply

DEPTH = 64
"""Elements along K that come together before their products are formed: the fastest on a core."""


class Products:
    """Products with operands in shared memory that are formed as one.

    blocks: where D lies.
    """

    def __init__(self, descriptor: InstructionDescriptor, blocks: tuple[Block, ...]):
        self.descriptor, self.blocks = descriptor, blocks
        self._a: list[list[np.ndarray]] = []
        self._b: list[list[np.ndarray]] = []
        self._count = 0
        self._sums: np.ndarray | None = None

    def takes(self, descriptor: InstructionDescriptor, blocks: tuple[Block, ...]) -> bool:
        """Whether an operation of this form may join."""
        alike = descriptor is self.descriptor and blocks is self.blocks
        return alike and self._sums is None and self.room > 0

    @property
    def room(self) -> int:
        """How many more operations may join until enough of K has come together."""
        return max(0, -(-DEPTH // self.descriptor.k) - self._count)

    def join(self, a: list[np.ndarray], b: list[np.ndarray], count: int = 1) -> None:
        """Some more operations: the words of A and B that each CTA holds."""
        self._a.append(a)
        self._b.append(b)
        self._count += count

    def sums(self) -> np.ndarray:
        """float32[m, n] of all that have joined; nobody joins any more."""
        if self._sums is None:
            d = self.descriptor
            a = _operand(self._a, d.a.name, d.a_transposed)
            b = _operand(self._b, d.b.name, d.b_transposed)
            self._sums = multiply(d, a, b)
            self._a, self._b = [], []
        return self._sums


def _operand(pieces: list[list[np.ndarray]], type_name: str, transposed: bool) -> np.ndarray:
    """float32[rows, k] of pieces along K, each of words by CTA."""
    along, across = (0, 1) if transposed else (1, 0)
    if len(pieces) == 1:
        shares = pieces[0]
    else:
        shares = [np.concatenate(share, axis=along) for share in zip(*pieces, strict=True)]
    words = shares[0] if len(shares) == 1 else np.concatenate(shares, axis=across)
    return decode_words(words, type_name, transposed)


class Accumulator:
    """A block of f32 sums without gaps. waiting: products that are to be added, or to replace them,
    of which the block is ``part``."""

    __slots__ = ("_part", "_replaces", "_words", "waiting")

    def __init__(self, words: np.ndarray):
        self._words = words
        self.waiting: Products | None = None
        self._part: Block | None = None
        self._replaces = False

    def await_products(self, products: Products, part: Block, add: bool) -> None:
        """The products come next: the sums are kept, or replaced."""
        if add:
            self.words()
        self.waiting, self._part, self._replaces = products, part, not add

    def words(self) -> np.ndarray:
        """uint32, up to date, to change in place."""
        if self.waiting is not None and self._part is not None:
            sums = self.waiting.sums()[self._part.rows, self._part.columns]
            values = self._words.view(np.float32)
            with np.errstate(all="ignore"):
                np.copyto(values, sums) if self._replaces else np.add(values, sums, out=values)
            self.waiting = self._part = None
        return self._words
