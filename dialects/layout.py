"""Layouts of an operand tile in shared memory: the eight that tcgen05 and wgmma read.

A tile has MN rows or columns (M of A, N of B) and K; one of the two is contiguous ("major").
Its contiguous extent is cut into chunks of `span_bytes` (16, 32, 64 or 128); a chunk holds, for
every index of the other axis, one row of that many bytes, rows packed; chunks follow one another.
The swizzle then permutes the 16-byte units of each 128-byte line of the absolute address. The
descriptor strides below follow from that (PTX ISA, tcgen05 canonical layouts; swizzling modes).

    offset(r, c) = (c // W) * rows * W + r * W + c % W        r row, c byte of the contiguous axis
    address(a)   = a ^ (((a >> 7) & (W / 16 - 1)) << 4)       W in {32, 64, 128}
"""

from __future__ import annotations

import math
from dataclasses import replace

from .dtypes import SCALE_ATOM_BLOCKS as SCALE_ATOM_BLOCKS
from .dtypes import SCALE_ATOM_ROWS as SCALE_ATOM_ROWS
from .record import record

UNIT_BYTES = 16
"""What descriptors count in, swizzles exchange, rows of a bulk copy consist of, and the widest
accesses move."""
SPAN_BYTES = {"none": UNIT_BYTES, "32B": 32, "64B": 64, "128B": 128}
SWIZZLES = tuple(SPAN_BYTES)
LINEAR = "linear"  # rows one after the other, of any length: for threads that read elements
BLOCKED = "blocked"  # whole atoms of scales, those along K one after the other
SHIFTED = "shifted"  # the same of 64 rows, which begin at the first word of each line
HALVED = "halved"  # the same of two halves, an atom of each after the other
OF_SCALES = (BLOCKED, SHIFTED, HALVED)
SCALE_COLUMN_ROWS = 32
HALVES = 2  # of N that the lanes of a CTA with 64 rows of a pair multiply (PTX ISA, layout B)
ATOM_BYTES = SCALE_ATOM_ROWS * SCALE_ATOM_BLOCKS
MAJORS = ("k", "mn")
CORE_ROWS = 8
BANK_LINE_BYTES = 128
SLOT_ALIGNMENT = 1024  # where the widest swizzle repeats: every narrower one does too
VECTOR_ALIGNMENT = 128  # of what TMA writes (PTX ISA, cp.async.bulk.tensor)


def swizzle_address(swizzle: str, address: int) -> int:
    """The shared-memory byte address that holds logical byte `address`."""
    if swizzle in (LINEAR, *OF_SCALES):
        return address
    mask = SPAN_BYTES[swizzle] // UNIT_BYTES - 1
    return address ^ (((address >> 7) & mask) << 4)


@record
class TileLayout:
    """An `mn` by `k` tile (elements of `element_bytes`) in one of the eight layouts, or linear.

    In a linear one a chunk is the whole tile. A blocked one holds the scales of `mn` rows and `k`
    blocks along K, in the atoms that these lie in wherever such a tile begins. Shifted and halved
    ones hold the same, in atoms that begin with the tile, or with a half of it.
    """

    mn: int
    k: int
    element_bytes: int
    major: str
    swizzle: str = "none"

    @property
    def contiguous(self) -> int:
        """Elements along the contiguous axis."""
        return self.k if self.major == "k" else self.mn

    @property
    def rows(self) -> int:
        """Indices of the other axis: rows of one chunk."""
        return self.mn if self.major == "k" else self.k

    @property
    def span_bytes(self) -> int:
        if self.swizzle in (LINEAR, *OF_SCALES):
            return self.contiguous * self.element_bytes
        return SPAN_BYTES[self.swizzle]

    @property
    def span(self) -> int:
        """Elements of one row of a chunk."""
        return self.span_bytes // self.element_bytes

    @property
    def chunks(self) -> int:
        return self.contiguous * self.element_bytes // self.span_bytes

    @property
    def chunk_bytes(self) -> int:
        return self.rows * self.span_bytes

    @property
    def is_vector(self) -> bool:
        """Whether it is one row of elements that threads read."""
        return self.swizzle == LINEAR and self.rows == 1

    @property
    def has_odd_rows(self) -> bool:
        """Whether it is linear and its rows are an odd number of 16-byte units: the same unit of
        eight rows then lies in eight different groups of banks, as with a swizzle. Rows are whole
        8x8 matrices, too."""
        units, rest = divmod(self.contiguous * self.element_bytes, UNIT_BYTES)
        whole = self.major == "k" and self.rows > 1 and not rest and self.k % CORE_ROWS == 0
        return self.swizzle == LINEAR and whole and units % 2 == 1

    @property
    def is_of_scales(self) -> bool:
        """Whether it holds atoms of block scales."""
        return self.swizzle in OF_SCALES

    @property
    def atoms(self) -> tuple[int, int]:
        """Atoms of a tile of scales along MN and along K.

        Tiles begin at multiples of `mn` rows, so the last place in an atom where one may begin is
        short of its end by the common divisor of the two.
        """
        along_k = -(-self.k // SCALE_ATOM_BLOCKS)
        if self.swizzle == HALVED:
            return HALVES * -(-self.mn // (HALVES * SCALE_ATOM_ROWS)), along_k
        before = SCALE_ATOM_ROWS - math.gcd(self.mn, SCALE_ATOM_ROWS)
        before = before if self.swizzle == BLOCKED else 0
        return -(-(before + self.mn) // SCALE_ATOM_ROWS), along_k

    @property
    def scale_columns(self) -> int:
        """Tensor-memory columns of a tile of scales, whole atoms of them.

        A column has 32 rows in each quarter of the lanes, and 4 blocks in its words (PTX ISA,
        tcgen05, scale factor layouts); in halves, 32 of each.
        """
        columns = math.prod(self.atoms) * SCALE_ATOM_ROWS // SCALE_COLUMN_ROWS
        return columns // HALVES if self.swizzle == HALVED else columns

    @property
    def size_bytes(self) -> int:
        if self.is_of_scales:
            return math.prod(self.atoms) * ATOM_BYTES
        return self.mn * self.k * self.element_bytes

    @property
    def slot_bytes(self) -> int:
        """Bytes from one slot of a ring to the next, so that each starts its swizzle pattern; of a
        vector, where TMA may write."""
        alignment = VECTOR_ALIGNMENT if self.is_vector else SLOT_ALIGNMENT
        return -(-self.size_bytes // alignment) * alignment

    def fits(self) -> str | None:
        """Why this layout can't hold the tile, or None when it can."""
        if self.swizzle == LINEAR:
            return None
        if self.is_of_scales:
            return self._fits_atoms()
        extent_bytes = self.contiguous * self.element_bytes
        if extent_bytes % self.span_bytes:
            axis = "K" if self.major == "k" else "MN"
            return (
                f"contiguous extent must be a multiple of {self.span_bytes} bytes for swizzle "
                f"{self.swizzle}, got {extent_bytes} bytes along {axis}"
            )
        if self.rows % CORE_ROWS:
            return f"rows must be a multiple of {CORE_ROWS}, got {self.rows}"
        return None

    def _fits_atoms(self) -> str | None:
        """A tensor-memory column has 32 rows of scales, and an atom is whole along K."""
        if self.mn % SCALE_COLUMN_ROWS == 0 and self.k % SCALE_ATOM_BLOCKS == 0:
            return None
        return (
            f"scales must be of a multiple of {SCALE_COLUMN_ROWS} rows and of {SCALE_ATOM_BLOCKS} "
            f"blocks, got {self.mn}x{self.k}"
        )

    def offset(self, mn: int, k: int) -> int:
        """Byte offset of element (mn, k) from the tile's start, before swizzling."""
        row, column = (mn, k) if self.major == "k" else (k, mn)
        byte = column * self.element_bytes
        chunk, within = divmod(byte, self.span_bytes)
        return chunk * self.chunk_bytes + row * self.span_bytes + within

    def byte_address(self, mn: int, k: int, base: int = 0) -> int:
        """Shared-memory byte address of element (mn, k) of a tile that starts at `base`."""
        return swizzle_address(self.swizzle, base + self.offset(mn, k))

    def descriptor_strides(self) -> tuple[int, int]:
        """(leading, stride) byte offsets of the matrix descriptor.

        PTX ISA, tcgen05 shared memory descriptor and canonical layouts. K-major with a swizzle
        ignores the leading offset; 16 encodes as 1, what other compilers write there.
        """
        if self.is_of_scales:  # an atom is 32 rows of 16 bytes: groups of 8 rows
            return UNIT_BYTES, CORE_ROWS * UNIT_BYTES
        core_bytes = CORE_ROWS * self.span_bytes
        if self.swizzle == "none":
            along_contiguous, along_rows = self.chunk_bytes, core_bytes
            if self.major == "k":
                return along_contiguous, along_rows
            return along_rows, along_contiguous
        return (16, core_bytes) if self.major == "k" else (self.chunk_bytes, core_bytes)


def widest_swizzle(layout: TileLayout) -> str:
    """The widest swizzle whose span divides the tile's contiguous extent, where one does."""
    fitting = (
        swizzle
        for swizzle in reversed(SWIZZLES)
        if TileLayout(layout.mn, layout.k, layout.element_bytes, layout.major, swizzle).fits()
        is None
    )
    return next(fitting, LINEAR if layout.swizzle == LINEAR else "none")


def piece_layout(mn: int, columns: int, element_bytes: int, odd: bool = False) -> TileLayout:
    """A piece that threads write and TMA stores as boxes of whole rows: in the widest swizzle, or,
    if `odd` rows may be and no swizzle is as wide, linear."""
    plain = TileLayout(mn, columns, element_bytes, "k")
    swizzled = replace(plain, swizzle=widest_swizzle(plain))
    linear = replace(plain, swizzle=LINEAR)
    return linear if odd and swizzled.chunks > 1 and linear.has_odd_rows else swizzled


def bank_conflicts(addresses: list[int]) -> int:
    """How many passes eight 16-byte accesses need: 1 when no two share a bank group."""
    groups = [address % BANK_LINE_BYTES // UNIT_BYTES for address in addresses]
    return max(groups.count(group) for group in groups)


def row_conflicts(layout: TileLayout) -> int:
    """Conflict degree of eight threads storing neighbouring 16-byte units of one row."""
    units = min(8, layout.contiguous * layout.element_bytes // UNIT_BYTES)
    step = UNIT_BYTES // layout.element_bytes
    return bank_conflicts([_unit_address(layout, 0, unit * step) for unit in range(units)])


def core_matrix_conflicts(layout: TileLayout) -> int:
    """Conflict degree of reading one core matrix: the same 16 bytes of eight rows."""
    return bank_conflicts([_unit_address(layout, row, 0) for row in range(CORE_ROWS)])


def _unit_address(layout: TileLayout, row: int, column: int) -> int:
    mn, k = (row, column) if layout.major == "k" else (column, row)
    return layout.byte_address(mn, k)
