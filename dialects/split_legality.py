"""Limits of MMAs on f32 tiles that threads split into narrower terms; without MLIR."""

from __future__ import annotations

from collections.abc import Sequence

from .target import Target
from .terms import DEPTHS, term_bytes


def split_depth(target: Target, k: int) -> str | None:
    """MMAs sum no more of K before threads add them."""
    if not target.mma.splits or k in DEPTHS:
        return None
    return f"tile K must be {' or '.join(map(str, DEPTHS))} for {target.mma.name}, got {k}"


def terms_bytes(target: Target, tile: Sequence[int]) -> int:
    """Shared memory of the terms of tiles of A and B, if threads split them."""
    (m, n, k), form = tile, target.mma.splits
    if form is None:
        return 0
    return term_bytes(n, k, form) + (term_bytes(m, k, form) if form.of_a else 0)
