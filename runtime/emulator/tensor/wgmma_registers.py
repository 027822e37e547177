"""Registers that an asynchronous wgmma.mma_async still owns, and the groups of one warp.

A register holds its array, so an unchanged array means an unchanged register: that is how a
register written after the last wgmma.fence is found. Until its group is waited for, a register of D
holds a `Pending` instead of an array: a copy of it moves along, every other use is a Trap. A
register of A must hold the same array until then; reading it is no Trap.
Source: PTX ISA §9.7.15.7 (wgmma.fence, commit_group, wait_group).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, NoReturn, Protocol

import numpy as np

from ..errors import Trap
from ..interface import EngineOp

ROWS = 16  # of a warp


class Product(Protocol):
    """What owns registers: `results` are the new values of `slots` once `op` is done.

    read: what the registers of A held, by slot. form: of the operation; warpgroup: the parts of all
    four warps.

    done: whether the whole operation is complete, of which `op` is this warp's part.
    """

    slots: tuple[int, ...]
    read: dict[int, Any]
    line: int
    form: Any
    warpgroup: Any

    @property
    def results(self) -> list[np.ndarray]: ...
    @property
    def op(self) -> EngineOp: ...
    @property
    def done(self) -> bool: ...


class Pending:
    """Register `number` of D of an operation that has not been waited for."""

    __slots__ = ("number", "product")

    def __init__(self, product: Product, number: int):
        self.product, self.number = product, number

    @property
    def result(self) -> np.ndarray:
        """The value, once the operation is done."""
        return self.product.results[self.number]

    def refuse(self, *_: Any, **__: Any) -> NoReturn:
        """Trap: somebody uses the register too early."""
        raise Trap(
            "missing-wait",
            f"a register of the accumulator of wgmma.mma_async (ptx:{self.product.line}) is used "
            f"before wgmma.wait_group covers its group",
        )

    def __getattr__(self, name: str) -> NoReturn:
        self.refuse()


_USES = (
    "__array__ __array_ufunc__ __array_function__ __getitem__ __len__ __iter__ __invert__ __neg__ "
    "__add__ __radd__ __sub__ __mul__ __and__ __rand__ __or__ __xor__ __lshift__ __rshift__ "
    "__eq__ __ne__ __lt__ __le__ __gt__ __ge__"
)
for _use in _USES.split():
    setattr(Pending, _use, Pending.refuse)
Pending.__hash__ = object.__hash__


def owner_of(registers: list) -> Any:
    """The operation that owns them all, in their order and no others; else None."""
    first = registers[0]
    if type(first) is not Pending or len(first.product.slots) != len(registers):
        return None
    product = first.product
    for number, value in enumerate(registers):
        if type(value) is not Pending or value.product is not product or value.number != number:
            return None
    return product


def numbers_of(registers: list, d: str) -> np.ndarray:
    """Numbers [16, n] of the registers of a D of this type, also of operations that are done."""
    words = np.stack([each.result if type(each) is Pending else each for each in registers])
    if d == "f16":
        pairs = words.reshape(-1, 2, 8, 4).view(np.float16).astype(np.float32)
        parts = pairs.reshape(-1, 2, 8, 4, 2)
    else:
        dtype = np.float32 if d == "f32" else np.int32
        parts = words.view(dtype).reshape(-1, 2, 2, 8, 4).transpose(0, 1, 3, 4, 2)
    return parts.transpose(1, 2, 0, 3, 4).reshape(ROWS, -1)


@dataclass
class WarpProducts:
    """The operations of one warp: not committed, and in groups from old to new.

    fenced: the arrays of all registers at the last wgmma.fence; staged: whether that belongs to the
    operations that are not committed; issued: how many so far; last: the newest one by its slots.
    """

    open: list[Product] = field(default_factory=list)
    groups: list[list[Product]] = field(default_factory=list)
    fenced: list[Any] = field(default_factory=list)
    staged: bool = False
    issued: int = 0
    last: dict[tuple[int, ...], Product] = field(default_factory=dict)

    def fence(self, registers: list) -> None:
        """wgmma.fence: accesses to the registers so far are ordered."""
        self.fenced, self.staged = list(registers), True

    def moved_late(self, slot: int, value: Any, what: str) -> bool:
        """Whether a register was written after the last wgmma.fence, and only moved: a constant, or
        what another register held at a fence of the same group. Trap if it was written otherwise.

        NVVM lets such copies sink behind the fence, and ptxas orders them.
        """
        if type(value) is Pending or self._is_fenced(slot, value):
            return False
        if self.staged and any(value is each for each in self.fenced):
            return True
        raise Trap(
            "missing-fence",
            f"a register of {what} was written after the last wgmma.fence; "
            f"wgmma.fence.sync.aligned must come between",
        )

    def _is_fenced(self, slot: int, value: Any) -> bool:
        return slot < len(self.fenced) and self.fenced[slot] is value

    def commit(self) -> None:
        """wgmma.commit_group."""
        self.groups.append(self.open)
        self.open, self.staged = [], False

    def older(self, newest: int) -> list[Product]:
        """The operations of all groups but the `newest` last ones."""
        groups = self.groups[: max(0, len(self.groups) - newest)]
        return [product for group in groups for product in group]

    def release(self, newest: int, registers: list) -> None:
        """The operations have been waited for, and their registers get their values."""
        done = self.older(newest)
        for product in done:
            _check_untouched(product, registers)
        del self.groups[: max(0, len(self.groups) - newest)]
        owners = set(map(id, done))
        for slot, value in enumerate(registers):
            if type(value) is Pending and id(value.product) in owners:
                registers[slot] = value.result
                self.fenced[slot] = value.result


def _check_untouched(product: Product, registers: list) -> None:
    if any(type(registers[slot]) is not Pending for slot in product.slots):
        raise Trap(
            "missing-wait",
            f"a register of the accumulator of wgmma.mma_async (ptx:{product.line}) was written "
            f"before wgmma.wait_group covered its group",
        )
    if any(registers[slot] is not value for slot, value in product.read.items()):
        raise Trap(
            "missing-wait",
            f"a register of operand A of wgmma.mma_async (ptx:{product.line}) was written before "
            f"wgmma.wait_group covered its group",
        )
