"""tcgen05.mma.sp: a structured sparse operand A, 128 rows of it in each CTA (PTX ISA §9.7.16.10.8).

A lies compressed, half as long as B along K. Elements of B that no element of A meets take no part
in the product, not even as zero times infinity.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np

from ...errors import Trap
from ...interface import Warp
from ...ptx.decode import Decoded
from ...ptx.registry import Step, instruction
from ...tensor.descriptor import KINDS
from ...tensor.sparse_metadata import SECTION, kept_positions, metadata_columns, sparse_product
from ...tensor.tensor_engine import tensor_engine
from ...tensor.tensor_memory import split_address
from ..threads.convergence import one_lane
from .collector import take_usage
from .dense import (
    KIND_MODIFIERS,
    bind,
    decode_operands,
    order_read,
    submit,
    take_column_mask,
    take_shift,
)
from .order import take_group
from .product import Multiply, StationaryMultiply

_METADATA_OPERAND = 3


@dataclass(eq=False)
class SparseMultiply(Multiply):
    """One issued operation; ``metadata`` is the tensor memory column where the metadata starts."""

    metadata: int

    @property
    def metadata_columns(self) -> slice:
        """Tensor memory columns of the metadata in each CTA."""
        return metadata_columns(self.descriptor.kind, self.metadata, self.descriptor.selector)

    def run(self) -> None:
        a, b = self._read_a(), self._read_b()
        for block in self.blocks:
            cta, rows = self.ctas[block.cta], a[block.rows]
            where = tensor_engine(cta).memory, self.metadata_columns, self.descriptor.kind
            kept = kept_positions(*where, rows, cta.launch.warn)
            self._write(block, self._product(rows, b, kept))

    def _product(self, a: np.ndarray, b: np.ndarray, kept: np.ndarray) -> np.ndarray:
        """float32[rows, n]: each row meets the columns of B that its metadata names."""
        with np.errstate(all="ignore"):
            product = sparse_product(a, b, kept)
        return -product if self.descriptor.negate_a != self.descriptor.negate_b else product


@dataclass(eq=False)
class StationarySparseMultiply(StationaryMultiply, SparseMultiply):
    """The same with ``.ws`` and a zero-column mask descriptor."""


@instruction("tcgen05.mma.ws.sp", section=SECTION)
def build_stationary_sparse_mma(ins: Decoded) -> Step:
    """tcgen05.mma.ws.sp.cta_group::1.kind{.collector} [d], a, b, [metadata], idesc, p{, mask}."""
    ins.required(("cta_group::1",))
    kind = ins.required(tuple(f"kind::{name}" for name in KINDS)).removeprefix("kind::")
    collector = take_usage(ins, stationary=True)
    ins.finish_modifiers()
    metadata = take_metadata(ins, 6, 7)
    mask = take_column_mask(ins)
    operands = decode_operands(ins, (kind, 1), collector, shifts=False)

    def step(warp: Warp, lanes: np.ndarray) -> None:
        lane = one_lane(lanes, "tcgen05.mma")
        given = dict(metadata=metadata_column(int(metadata(warp)[lane])))
        form = SparseMultiply if mask is None else StationarySparseMultiply
        given |= {} if mask is None else dict(mask=int(mask(warp)[lane]))
        values = tuple([read(warp, lane) for read in operands.values])
        how = kind, 1, True, True
        multiply = bind(warp, lane, operands, values, how, partial(form, **given))
        submit(warp, lane, multiply)
        order_metadata(warp, multiply, multiply.metadata_columns)

    return step


@instruction("tcgen05.mma.sp", section=SECTION)
def build_sparse_mma(ins: Decoded) -> Step:
    """tcgen05.mma.sp.cta_group.kind{.collector} [d], a, b, [metadata], idesc{, lanes}, p{, s}."""
    group = take_group(ins)
    kind = ins.required(KIND_MODIFIERS).removeprefix("kind::")
    if kind not in KINDS:
        ins.unmodelled(f"a sparse operand A of .kind::{kind} without .block_scale behind it")
    collector = take_usage(ins)
    shifts = take_shift(ins, collector)
    ins.finish_modifiers()
    metadata = take_metadata(ins, 6, 7, 8)
    operands = decode_operands(ins, (kind, group), collector, shifts=shifts)
    form = kind, group, False, True

    def step(warp: Warp, mask: np.ndarray) -> None:
        lane = one_lane(mask, "tcgen05.mma")
        make = partial(SparseMultiply, metadata=metadata_column(int(metadata(warp)[lane])))
        values = tuple([read(warp, lane) for read in operands.values])
        multiply = bind(warp, lane, operands, values, form, make)
        submit(warp, lane, multiply)
        order_metadata(warp, multiply, multiply.metadata_columns)

    return step


def take_metadata(ins: Decoded, *counts: int) -> Callable:
    """Take the metadata's address off so many operands, which leaves those of a dense operation."""
    ins.expect_operands(*counts)
    read = ins.address(_METADATA_OPERAND)
    at = _METADATA_OPERAND
    ins.operands = ins.operands[:at] + ins.operands[at + 1 :]
    return read


def metadata_column(address: int) -> int:
    lane, column = split_address(address)
    if lane or column % 2:
        raise Trap("unmodelled", f"sparsity metadata at lane {lane}, column {column} (lane 0 and "
                                 f"even columns are; PTX ISA section {SECTION}.4)")  # fmt: skip
    return column


def order_metadata(warp: Warp, multiply: Multiply, columns: slice) -> None:
    """Check columns and ordering of the metadata, which the operation reads."""
    op = tensor_engine(multiply.ctas[0]).last
    for cta in multiply.ctas:
        order_read(cta, "tcgen05.mma metadata", columns, op, warp)
