"""Every kernel that record.py runs on a GPU and test_instructions_of_gpus.py on the emulator."""

from __future__ import annotations

from collections.abc import Iterator

from barrier_programs import barrier_programs
from cluster_exchanges import cluster_exchanges
from drawn_copies import drawn_copies
from float_sums import float_sums
from im2col_copies import im2col_copies
from memory_forms import memory_forms
from scalar_instructions import scalar_instructions
from silicon_case import Case
from tensor_copies import tensor_copies
from thread_forms import thread_forms
from warp_exchanges import matrix_moves, warp_exchanges
from warp_products import other_products, warp_products
from warpgroup_products import warpgroup_products
from wmma_products import wmma_products


def all_cases() -> Iterator[Case]:
    """In a fixed order; names differ."""
    yield from warp_products()
    yield from warpgroup_products()
    yield from scalar_instructions()
    yield from warp_exchanges()
    yield from matrix_moves()
    yield from tensor_copies()
    yield from im2col_copies()
    yield from drawn_copies()
    yield from barrier_programs()
    yield from cluster_exchanges()
    yield from float_sums()
    yield from thread_forms()
    yield from other_products()
    yield from wmma_products()
    yield from memory_forms()
