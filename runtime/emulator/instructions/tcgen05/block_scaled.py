"""tcgen05.mma of the block-scaled kinds mxf8f6f4, mxf4 and mxf4nvf4 (PTX ISA §9.7.16.10.9).

The operation reads its scale factors from tensor memory when it runs, behind earlier tcgen05.cp of
the CTA (pair). Each CTA holds the factors of its own rows of A and those of all columns of B.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import dataclass
from functools import partial

import numpy as np

from ...errors import Trap
from ...interface import Cta, Warp
from ...machine.events import Listener
from ...ptx import syntax
from ...ptx.decode import Decoded
from ...ptx.registry import Step, instruction
from ...tensor.block_scale import (
    ALIASES,
    KINDS,
    Scaling,
    decode_scaled,
    factor_columns,
    scale_factors,
)
from ...tensor.descriptor import SharedDescriptor, shared_operand
from ...tensor.tensor_core import Block
from ...tensor.tensor_engine import pair_of, tensor_engine
from ...tensor.tensor_memory import split_address
from ..threads.convergence import one_lane
from .collector import Usage, take_usage
from .dense import order_read, submit
from .product import Multiply, Place

ScaledForm = tuple[str, str, int]
"""Kind, scale vector and CTAs."""
_WITHOUT_ID = 0x3FFF_FFFF
"""A scale address without its two top bits, where libraries keep the scale factor id."""
_PREFIXES = tuple(
    f"tcgen05.mma.cta_group::{group}.kind::{kind}" for kind in KINDS for group in (1, 2)
)


@dataclass(frozen=True)
class _Scaled:
    """Rows of an operand times their factors.

    factors: float32[rows, blocks]; empty: bool[blocks], where all rows are zero.
    """

    values: np.ndarray
    factors: np.ndarray
    empty: np.ndarray

    @property
    def nan(self) -> np.ndarray:
        """bool[rows, blocks]: which factors are NaN."""
        return np.isnan(self.factors)

    def part(self, rows: slice) -> _Scaled:
        return _Scaled(self.values[rows], self.factors[rows], self.empty)


@dataclass(eq=False)
class ScaledMultiply(Multiply):
    """One issued operation; ``a_factors`` and ``b_factors`` are tensor memory columns."""

    scaling: Scaling
    a_factors: int
    b_factors: int

    @property
    def form(self) -> tuple[Hashable, ...]:
        return *super().form, self.scaling, self.a_factors, self.b_factors

    @property
    def column_groups(self) -> int:
        """Groups of lanes that compute different columns of D in a CTA."""
        return 2 if self.layout == "B" else 1

    @property
    def factor_spans(self) -> tuple[tuple[str, int, int], ...]:
        """(operand, first column, columns) of the scale factors in each CTA."""
        rows = self.descriptor.m // self.group
        return (
            ("A", self.a_factors, factor_columns(rows)),
            ("B", self.b_factors, factor_columns(self.descriptor.n // self.column_groups)),
        )

    def run(self) -> None:
        b, rows = self._read_b(), self._rows_of_blocks()
        with np.errstate(all="ignore"):
            left = [self._scaled_a(*pair) for pair in zip(self.blocks, rows, strict=True)]
            right = [self._scaled_b(cta, b) for cta in self.ctas]
            self.ctas[0].launch.events.product_scaled(self, right)
            for block, a in zip(self.blocks, left, strict=True):
                columns = right[block.cta].part(block.columns)
                if self.add:
                    sums = partial(self._sums, block)
                    self.ctas[0].launch.events.sums_scaled(self.ctas[0], a, columns, sums)
                self._write(block, self._product(block, a.values, columns.values))

    def _rows_of_blocks(self) -> list[np.ndarray]:
        """The rows of A that the lanes of each block of D multiply."""
        if isinstance(self.a, Place):
            return [self._read_lanes(block, self.a) for block in self.blocks]
        a = self._read_a()
        return [a[block.rows] for block in self.blocks]

    def _product(self, block: Block, a: np.ndarray, b: np.ndarray) -> np.ndarray:
        """float32[rows, columns]: in float64 no product of scaled elements is lost."""
        product = self._sum(block, a, b).astype(np.float32)
        return -product if self.descriptor.negate_a != self.descriptor.negate_b else product

    def _sum(self, block: Block, a: np.ndarray, b: np.ndarray) -> np.ndarray:
        return a @ b.T

    def _sums(self, block: Block) -> np.ndarray:
        first = self.d.column + block.first_column
        memory = tensor_engine(self.ctas[block.cta]).memory
        sums = memory.accumulator(block.lanes, slice(first, first + self.d_columns))
        return sums.words().view(np.float32)

    def _scaled_a(self, block: Block, a: np.ndarray) -> _Scaled:
        cta, first = self.ctas[block.cta], self.scaling.a_id
        return self._scaled(cta, a, self.a_factors, first, "A")

    def _scaled_b(self, cta: Cta, b: np.ndarray) -> _Scaled:
        first, groups = self.scaling.b_id, self.column_groups
        return self._scaled(cta, b, self.b_factors, first, "B", groups)

    def _scaled(
        self, cta: Cta, values: np.ndarray, column: int, first: int, name: str, groups: int = 1
    ) -> _Scaled:
        memory, what = tensor_engine(cta).memory, f"tcgen05.mma scale factors of {name}"
        factors = scale_factors(memory, column, len(values), self.scaling, first, what, groups)
        blocks = values.astype(np.float64).reshape(len(values), self.scaling.blocks, -1)
        scaled = (blocks * factors[:, :, None]).reshape(len(values), -1)
        return _Scaled(scaled, factors, np.asarray(~blocks.any(axis=(0, 2))))


@dataclass(frozen=True)
class Reads:
    """Closures of the operands of one instruction."""

    d: Callable
    a: Callable
    b: Callable
    descriptor: Callable
    a_factors: Callable
    b_factors: Callable
    enable: Callable
    a_in_tensor_memory: bool
    collector: Usage


def take_scaled_form(ins: Decoded) -> tuple[ScaledForm, Usage]:
    """The form of an instruction's modifiers, and its use of the collector."""
    group = int(ins.mnemonic.partition("cta_group::")[2][0])
    kind = ins.mnemonic.rpartition("kind::")[2]
    ins.required(("block_scale",))
    form = kind, _take_vector(ins, kind), group
    collector = take_usage(ins)
    ins.finish_modifiers()
    return form, collector


@instruction(*_PREFIXES, section="9.7.16.10.9")
def build_scaled_mma(ins: Decoded) -> Step:
    """tcgen05.mma….block_scale{.scale_vec::NX} [d], a, b, idesc, [sfa], [sfb], p."""
    form, collector = take_scaled_form(ins)
    reads = scaled_operands(ins, collector)

    def step(warp: Warp, mask: np.ndarray) -> None:
        lane = one_lane(mask, "tcgen05.mma")
        multiply = bind_scaled(warp, lane, reads, form, ScaledMultiply)
        submit(warp, lane, multiply)
        order_factors(multiply, warp)

    return step


def _take_vector(ins: Decoded, kind: str) -> str:
    legal = KINDS[kind]
    names = {f"scale_vec::{vector}": vector for vector in legal.vectors} | ALIASES[kind]
    if legal.has_default:
        chosen = ins.choice(tuple(names))
        return names[chosen] if chosen else next(iter(legal.vectors))
    return names[ins.required(tuple(names))]


def scaled_operands(ins: Decoded, collector: Usage) -> Reads:
    ins.expect_operands(7)
    in_tensor_memory = isinstance(ins.operand(1), syntax.Address)
    return Reads(
        d=ins.address(0),
        a=ins.address(1) if in_tensor_memory else ins.read(1, np.uint64),
        b=ins.read(2, np.uint64),
        descriptor=ins.read(3, np.uint32),
        a_factors=ins.address(4),
        b_factors=ins.address(5),
        enable=ins.read_predicate(6),
        a_in_tensor_memory=in_tensor_memory,
        collector=collector,
    )


def bind_scaled(
    warp: Warp,
    lane: int,
    reads: Reads,
    form: ScaledForm,
    make: Callable[..., ScaledMultiply],
    *,
    sparse: bool = False,
) -> ScaledMultiply:
    word = int(reads.descriptor(warp)[lane])
    descriptor, scaling = decode_scaled(word, *form, sparse)
    events = warp.launch.events
    return make(
        ctas=pair_of(warp.cta, form[2]),
        descriptor=descriptor,
        d=Place(*split_address(int(reads.d(warp)[lane]))),
        a=_operand_a(int(reads.a(warp)[lane]), reads.a_in_tensor_memory, events),
        b=shared_operand(int(reads.b(warp)[lane]), events),
        add=bool(reads.enable(warp)[lane]),
        scale=0,
        disabled=None,
        collector=reads.collector,
        shifts=False,
        scaling=scaling,
        a_factors=_factor_column(int(reads.a_factors(warp)[lane]), "A"),
        b_factors=_factor_column(int(reads.b_factors(warp)[lane]), "B"),
    )


def _operand_a(value: int, in_tensor_memory: bool, events: Listener) -> SharedDescriptor | Place:
    return Place(*split_address(value)) if in_tensor_memory else shared_operand(value, events)


def _factor_column(address: int, name: str) -> int:
    lane, column = split_address(address & _WITHOUT_ID)
    if lane:
        raise Trap("tmem", f"the scale factors of {name} must start at lane 0, got {lane}")
    return column


def order_factors(multiply: ScaledMultiply, warp: Warp) -> None:
    """Check columns and ordering of the scale factors, which the operation reads."""
    op = tensor_engine(multiply.ctas[0]).last
    for cta in multiply.ctas:
        for name, first, count in multiply.factor_spans:
            what = f"tcgen05.mma scale factors of {name}"
            order_read(cta, what, slice(first, first + count), op, warp)
