"""tcgen05.mma.sp of the block-scaled kinds, 128 rows of A in each CTA (PTX ISA §9.7.16.10.8).

An operation covers twice the K of a dense one, with as many scale factors; they scale the elements
of A that are stored, and all of B. Of mxf8f6f4 two of each four elements are stored, of the kinds
of packed 4-bit elements two pairs of each four pairs. The sparsity selector counts as 0.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

import numpy as np

from ...interface import Warp
from ...ptx.decode import Decoded
from ...ptx.registry import Step, instruction
from ...tensor.block_scale import KINDS
from ...tensor.sparse_metadata import SECTION, kept_positions, metadata_columns, sparse_product
from ...tensor.tensor_core import Block
from ...tensor.tensor_engine import tensor_engine
from ..threads.convergence import one_lane
from .block_scaled import (
    ScaledMultiply,
    bind_scaled,
    order_factors,
    scaled_operands,
    take_scaled_form,
)
from .dense import submit
from .sparse import metadata_column, order_metadata, take_metadata

_PREFIXES = tuple(
    f"tcgen05.mma.sp.cta_group::{group}.kind::{kind}" for kind in KINDS for group in (1, 2)
)


@dataclass(eq=False)
class SparseScaledMultiply(ScaledMultiply):
    """One issued operation; ``metadata`` is the tensor memory column where the metadata starts."""

    metadata: int

    @property
    def metadata_columns(self) -> slice:
        """Tensor memory columns of the metadata in each CTA."""
        return metadata_columns(self.descriptor.kind, self.metadata, 0)

    def _sum(self, block: Block, a: np.ndarray, b: np.ndarray) -> np.ndarray:
        cta = self.ctas[block.cta]
        where = tensor_engine(cta).memory, self.metadata_columns, self.descriptor.kind
        return sparse_product(a, b, kept_positions(*where, a, cta.launch.warn))


@instruction(*_PREFIXES, section=SECTION)
def build_sparse_scaled_mma(ins: Decoded) -> Step:
    """tcgen05.mma.sp….block_scale{.scale_vec::NX} [d], a, b, [metadata], idesc, [sfa], [sfb], p."""
    form, collector = take_scaled_form(ins)
    metadata = take_metadata(ins, 8)
    reads = scaled_operands(ins, collector)

    def step(warp: Warp, mask: np.ndarray) -> None:
        lane = one_lane(mask, "tcgen05.mma")
        column = metadata_column(int(metadata(warp)[lane]))
        make = partial(SparseScaledMultiply, metadata=column)
        multiply = bind_scaled(warp, lane, reads, form, make, sparse=True)
        assert isinstance(multiply, SparseScaledMultiply)
        submit(warp, lane, multiply)
        order_factors(multiply, warp)
        order_metadata(warp, multiply, multiply.metadata_columns)

    return step
