"""Limits of products with narrow weights; see `legality`.

Each rule returns how it is broken, or None.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from .layout import UNIT_BYTES
from .legality import RESERVED_BYTES
from .mma_units import PRODUCT_SLOTS, WIDENED
from .target import Target, targets_with

MMA_K = 16  # of 16-bit operands
FLOATS = ("e4m3", "e5m2")


def weight_type(target: Target, dtype: str) -> str | None:
    """Threads widen integers by their bits, and floats of 8 bits by an instruction."""
    if target.narrow_floats or dtype not in FLOATS:
        return None
    chips = targets_with(lambda each: each.narrow_floats)
    return f"weights of {dtype} are for {chips}, got {target.chip}; take s8"


def weight_depth(k: int, bits: int, group: int, depth: int) -> str | None:
    """A tile's K is whole MMAs and whole units of a row of weights, of parts of groups likewise."""
    unit = max(MMA_K, UNIT_BYTES * 8 // bits)
    if k % unit:
        return f"tile K must be a multiple of {unit} for weights of {bits} bits, got {k}"
    part = k if group in (0, depth) else math.gcd(k, group)
    if part % MMA_K:
        return f"tile K must share whole MMAs of {MMA_K} with groups of {group}, got {k}"
    return None


def weight_columns(target: Target, n: int, k: int, group: int, depth: int) -> str | None:
    """Tensor memory has columns for two tiles of widened weights, two to a column, beside one
    product, or two where those of groups are added."""
    apart = group not in (0, depth)
    part = math.gcd(k, group) if apart else k
    needed = (PRODUCT_SLOTS if apart else 1) * n + PRODUCT_SLOTS * part // 2
    if needed <= target.tmem_columns:
        return None
    return f"tile N {n} and K {k} need {needed} tensor-memory columns, got {target.tmem_columns}"


def weight_memory(target: Target, tile: Sequence[int], bits: int) -> str | None:
    """One tile of A of 16 bits and one of weights fit the shared memory of a CTA."""
    m, n, k = tile
    needed = m * k * 2 + n * k * bits // 8
    if needed + RESERVED_BYTES <= target.shared_bytes:
        return None
    have = target.shared_bytes - RESERVED_BYTES
    return f"tile {m}x{n}x{k} needs {needed} bytes of shared memory for A and B, got {have}"


def has_weights(target: Target) -> str | None:
    """The rule that a product without narrow weights breaks if its MMA widens weights."""
    if not any(target.mma.name in names for names in WIDENED.values()):
        return None
    return f"{target.mma.name} is for weights that threads widen, got none"
