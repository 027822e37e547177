"""What a matrix in a block-scaled format looks like: bytes, scales, the MMA that takes it.

Sources: PTX ISA §9.7.16.2 (shapes of tcgen05.mma), §9.7.16.10.7 (block scaling).
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod
from typing import Any

from ..element_types import SCALE_ATOM_BLOCKS, SCALE_ATOM_ROWS, blocked_scale_shape
from .formats import ELEMENTS, ScaleError, find_format

_LANES = 32
_TILE_MMAS = 4
"""MMAs along K in the usual tile: 128 bytes of each row."""


@dataclass(frozen=True)
class ScaledMma:
    """A block-scaled tcgen05.mma: its kind with the block, K, and the scales of a row it takes."""

    name: str
    k: int
    scales: int

    @property
    def ids(self) -> list[int]:
        """Scale factor ids of the MMAs that share a word of four scales."""
        return list(range(0, SCALE_ATOM_BLOCKS, self.scales))


_BYTES = ScaledMma("kind::mxf8f6f4.block32", 32, 1)
MMAS = {
    "e4m3": _BYTES, "e5m2": _BYTES, "e2m3": _BYTES, "e3m2": _BYTES,
    "mxfp4": ScaledMma("kind::mxf4.block32", 64, 2),
    "nvfp4": ScaledMma("kind::mxf4nvf4.block16", 64, 4),
    "mxfp4_1x16": ScaledMma("kind::mxf4nvf4.block16", 64, 4),
}  # fmt: skip
"""By the element, or the format where elements of 4 bits have an MMA of their own."""


def explain(form: str, rows: int, k: int) -> str:
    """Lines that say how a matrix [rows, k] of the format `form` lies, and what multiplies it.

    Raises ScaleError for an unknown format, and a k that is not whole blocks.
    """
    described = describe(form, rows, k)
    return "\n".join(
        f"{name.replace('_', ' '):14} {_words(each)}" for name, each in described.items()
    )


def describe(form: str, rows: int, k: int) -> dict[str, Any]:
    """The same by name; bytes count elements, or scales, with their padding."""
    which = find_format(form)
    if rows < 1 or k < 1 or k % which.depth:
        raise ScaleError(
            f"scales: rows must be 1 or more and K a positive multiple of {which.depth}, "
            f"got {rows} and {k}"
        )
    element, blocks = ELEMENTS[which.element], k // which.block
    atoms = blocked_scale_shape(rows, blocks)
    mma = MMAS.get(form) or MMAS[which.element]
    words = -(-_TILE_MMAS * mma.scales // SCALE_ATOM_BLOCKS)
    return {
        "format": form,
        "element": f"{element.name}, {element.bits} bits, at most {element.largest:g}",
        "scale": f"{which.scale} for {which.depth} elements along K"
        + (f" of {which.rows} rows" if which.rows > 1 else "")
        + (", an f32 for the tensor" if form == "nvfp4" else ""),
        "data_bytes": rows * k * element.bits // 8,
        "linear": [-(-rows // which.rows), k // which.depth],
        "blocked": list(atoms),
        "blocked_bytes": prod(atoms),
        "padding_bytes": prod(atoms) - rows * blocks,
        "byte": f"(r / {SCALE_ATOM_ROWS} · {atoms[1]} + kb / {SCALE_ATOM_BLOCKS}) · 512"
        f" + r % {_LANES} · 16 + r % {SCALE_ATOM_ROWS} / {_LANES} · 4 + kb % {SCALE_ATOM_BLOCKS}",
        "mma": f"tcgen05.mma.{mma.name}: K {mma.k}, {mma.scales} of a row's scales",
        "ids": mma.ids,
        "columns_of_a": SCALE_ATOM_ROWS // _LANES * words,
        "columns_of_b": f"N / {_LANES // words}",
    }


def _words(value: Any) -> str:
    return ", ".join(map(str, value)) if isinstance(value, list) else f"{value}"
