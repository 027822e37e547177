"""A matmul as the schedule search sees it: sizes, layouts, element sizes and the epilogue's
cost."""

from __future__ import annotations

import math
from dataclasses import replace

from ...dialects.dtypes import BLOCKWISE, BLOCKWISE_FORMS, DTYPES, FMA, ScaledFormat
from ...dialects.errors import CompileError
from ...dialects.held_registers import ATOM_ROWS
from ...dialects.layout import SLOT_ALIGNMENT, VECTOR_ALIGNMENT, TileLayout
from ...dialects.legality import PARTIAL_BYTES
from ...dialects.record import record
from ...dialects.store_legality import columns_beside
from ...dialects.target import Target
from ..spec import MatmulSpec
from .cached import cached_attribute
from .extents import expected_tiles, round_up, widest_layout
from .quantized_costs import bits_of, instructions
from .schedule import AHEAD, Schedule

LINE_BYTES, SECTOR_BYTES = 128, 32  # of L2
SCALE_BYTES = 4  # of 128 elements of K
GROUP_ROWS = 64  # of the least tile
WARPGROUPS_MOST = 3  # that share a tile


@record
class Problem:
    """M×N×K with element sizes in bytes, the major axis of each operand, and the alignment that TMA
    needs.

    `batch` is the number of matrices of a batch with separate operands. `grouped` is the axis that
    is cut into groups, "m", "k" or "": groups count as a batch of equal matrices, except that a
    group of rows may end anywhere in its last tile. `further_bytes` are the element sizes of the
    outputs beside C, and `neighbours` the number of adjacent columns that a reduction combines.
    `a_major` and `b_major` are "k" or "mn". `tma_alignment_bytes` is the unit of a row pitch.

    `epilogue_instructions` is roughly the number of instructions per element of C. `beside` are the
    element sizes of other operands as large as C, `beside_columns` of those with an element per
    column, and `beside_rows` of those with an element per row or a single element. `leading` and
    `steps` are the elements from row to row, and from matrix to matrix, of A, B and C where there
    is padding, and 0 elsewhere. `quantized` is the format of a C with block scales.

    If it `adds_products`, threads add the products of tiles to sums in f32; with `row_scales` each
    row of C has its own scale, with `column_scales` each column. `swapped` means that A and B are
    exchanged and C is column-major; `gathered`, that threads copy the rows of A by index. With
    `dynamic_m` a launch gives M, at most `most_m` unless that is 0, and `m` is only a hint. The
    rows of A in memory may then be as long as M, which is a multiple of `pitch_unit` elements; 0
    means that their length is known. With `dynamic_batch` a launch gives the batch size, with
    `dynamic_k` it gives K. MMAs of `integers` exist for fewer values of N.
    """

    m: int
    n: int
    k: int
    element_bytes: int
    k_per_mma: int
    c_bytes: int
    a_major: str
    b_major: str
    tma_alignment_bytes: int
    batch: int = 1
    further_bytes: tuple[int, ...] = ()
    grouped: str = ""
    dynamic_m: bool = False
    leading: tuple[int, int, int] = (0, 0, 0)
    steps: tuple[int, int, int] = (0, 0, 0)
    neighbours: int = 0
    products: int = 1
    epilogue_instructions: int = 0
    quantized: ScaledFormat | None = None
    adds_products: bool = False
    column_scales: bool = False
    beside: tuple[int, ...] = ()
    swapped: bool = False
    beside_columns: tuple[int, ...] = ()
    beside_rows: tuple[int, ...] = ()
    gathered: bool = False
    most_m: int = 0
    row_scales: bool = False
    dynamic_batch: bool = False
    dynamic_k: bool = False
    pitch_unit: int = 0
    integers: bool = False

    def __hash__(self) -> int:
        """Hashes the sizes only: hashing all fields takes longer than much of what is looked up."""
        return hash((self.m, self.n, self.k, self.batch, self.swapped))

    @staticmethod
    def of(spec: MatmulSpec, target: Target) -> Problem:
        """The problem of a `MatmulSpec` on a target, for a tensor core."""
        if spec.is_scaled:
            rule = f"must be of types without block scales, got {spec.a_dtype}"
            raise CompileError(f"schedule: {rule}; `tilewright explain schedule` has that of them")
        dtype = DTYPES[spec.a_dtype]
        if dtype.operand_kind == FMA:
            rule = f"must be of types that tensor cores multiply, got {dtype.name}"
            raise CompileError(f"schedule: {rule}; `tilewright explain schedule` has that of fma")
        groups = max(1, spec.groups)
        of_rows, of_k = (groups if spec.group_axis == axis else 1 for axis in "mk")
        return Problem(
            -(-spec.m // of_rows),
            spec.products * spec.n,
            -(-spec.k // of_k),
            dtype.bytes,
            dtype.k_per_mma,
            DTYPES[spec.quantized.element if spec.quantized else spec.outputs[0]].bytes,
            "k" if spec.a_major == "k" else "mn",
            "k" if spec.b_major == "k" else "mn",
            target.tma_alignment_bytes,
            max(groups, spec.batch),
            tuple(DTYPES[dtype].bytes for dtype in spec.further),
            spec.group_axis if spec.groups else "",
            spec.dynamic_m,
            (spec.lda, spec.ldb, spec.ldc),
            (spec.stride_a, spec.stride_b, spec.stride_c),
            spec.grouped_columns,
            spec.products,
            spec.epilogue_instructions + instructions(spec.quantized),
            spec.quantized,
            spec.adds_products,
            spec.b_scales == BLOCKWISE_FORMS[0],
            tuple(DTYPES[dtype].bytes for dtype in spec.beside),
            False,
            tuple(DTYPES[dtype].bytes for dtype in spec.beside_columns),
            tuple(DTYPES[dtype].bytes for dtype in spec.beside_rows),
            gathered=bool(spec.gathered) and not target.gathers_rows,
            most_m=spec.most_m,
            row_scales=spec.a_scales == BLOCKWISE_FORMS[0],
            dynamic_batch=spec.dynamic_batch,
            dynamic_k=spec.dynamic_k,
            pitch_unit=max(1, spec.multiple_m) if spec.is_long_as_m else 0,
            integers=dtype.is_integer,
        )

    def pitch_bytes(self, tensor: str) -> tuple[int, int]:
        """(bytes from row to row, rows) of tensor "a", "b" or "c" as it is stored."""
        rows, contiguous = self._stored(tensor)
        pitch = self.leading["abc".index(tensor)] or contiguous
        if self.pitch_unit and tensor == ("b" if self.swapped else "a"):
            unit = self.pitch_unit  # rows of any length are of an odd one here
            rows, pitch = max(2, rows), round_up(pitch, unit) if unit > 1 else pitch | 1
        return pitch * self._item_bits(tensor) // 8, rows

    def step_bytes(self, tensor: str) -> int:
        """Bytes from matrix to matrix of a padded batch, and 0 if there is no padding."""
        return self.steps["abc".index(tensor)] * self._item_bits(tensor) // 8

    def _item_bits(self, tensor: str) -> int:
        return self.c_bits if tensor == "c" else 8 * self.element_bytes

    @cached_attribute
    def c_bits(self) -> int:
        """Bits of an element of C."""
        return bits_of(self.quantized) if self.quantized else 8 * self.c_bytes

    def row_bytes(self, columns: int) -> int:
        """Bytes of that many adjacent elements of a row of C."""
        return columns * self.c_bits // 8

    def output_bytes(self, elements: int) -> int:
        """Bytes of that many elements of C and of every other output."""
        return self.row_bytes(elements) + elements * sum(self.further_bytes)

    def contiguous(self, tensor: str) -> int:
        """Elements of one stored row of tensor "a", "b" or "c"."""
        return self._stored(tensor)[1]

    def _stored(self, tensor: str) -> tuple[int, int]:
        """(rows, elements of each) as the tensor is stored."""
        m, n = self.m, self.n
        if self.dynamic_m:  # a launch may have more than one row, whatever the hint is
            m, n = (m, max(2, n)) if self.swapped else (max(2, m), n)
        if tensor == "c":
            return (n, m) if self.swapped else (m, n // self.products)
        mn, major = (m, self.a_major) if tensor == "a" else (n, self.b_major)
        return (mn, self.k) if major == "k" else (self.k, mn)

    def counts_tiles(self, schedule: Schedule) -> bool:
        """Whether only a launch knows the number of tiles: M is given at launch, and there may be
        several tiles along M."""
        rows = schedule.tile[1 if self.swapped else 0]
        return self.dynamic_m and (bool(self.grouped) or not 0 < self.most_m <= rows)

    def knows_grid(self, schedule: Schedule) -> bool:
        """Whether the number of all tiles is known before a launch."""
        return not (self.dynamic_batch or self.counts_tiles(schedule))

    def counted_refusal(self, schedule: Schedule) -> str | None:
        """Why the schedule cannot handle a number of tiles that a launch gives; None if it can."""
        if not self.knows_grid(schedule) and schedule.order == "hilbert":
            return "a Hilbert curve is a table of known tiles, got any number"
        if self.swapped and self.dynamic_batch and self.counts_tiles(schedule):
            return f"tiles of {schedule.tile[1]} rows along N do not hold all of any M of a stack"
        return None

    def parts_refusal(self, target: Target) -> str | None:
        """Why K may not be split over the grid, whatever the tile; None if it may."""
        if self.grouped:
            return "K is not split where rows or K are grouped"
        if self.swapped and target.has_tensor_memory:
            return "sums of rows that are columns of C are added up in clusters"
        if self.further_bytes or self.quantized or self.adds_products:
            return "K is split over the grid for one output of plain sums"
        return None

    def seen_by(self, schedule: Schedule) -> Problem:
        """The problem as a schedule sees it: with M and N exchanged if the schedule exchanges A and
        B."""
        return self if schedule.swap == self.swapped else exchanged(self)

    def by_tma(self, tensor: str) -> bool:
        """Whether TMA can address the tensor (cuTensorMapEncodeTiled: strides)."""
        return tensor in self._by_tma and not (self.gathered and tensor == "a")

    @cached_attribute
    def _by_tma(self) -> list[str]:
        unit, found = self.tma_alignment_bytes, {name: self.pitch_bytes(name) for name in "abc"}
        fitting = [name for name, (each, rows) in found.items() if rows == 1 or each % unit == 0]
        return [name for name in fitting if self.step_bytes(name) % unit == 0]

    @cached_attribute
    def unaligned(self) -> list[str]:
        """The operands that TMA loads whose rows may start anywhere in a sector of L2."""
        return [name for name in "ab" if self.by_tma(name) and self.row_start(name) == "inside"]

    @cached_attribute
    def lines_beyond(self) -> dict[str, float]:
        """For each operand that TMA loads, the average number of additional L2 lines that a line's
        worth of a row touches; 0 where rows start at a line."""
        pitches = {name: self.pitch_bytes(name) for name in "ab" if self.by_tma(name)}
        starts = {
            name: LINE_BYTES // math.gcd(pitch, LINE_BYTES) if rows > 1 else 1
            for name, (pitch, rows) in pitches.items()
        }
        return {name: 1 - 1 / count for name, count in starts.items()}

    def row_start(self, operand: str) -> str:
        """Where rows of "a" or "b" may start: at a "line" of L2, at a "sector", or "inside" a
        sector."""
        pitch_bytes, rows = self.pitch_bytes(operand)
        if rows == 1 or pitch_bytes % LINE_BYTES == 0:
            return "line"
        return "inside" if pitch_bytes % SECTOR_BYTES else "sector"

    def layouts(self, schedule: Schedule) -> tuple[TileLayout, TileLayout]:
        """The layouts of the tiles of A and B that one CTA holds, with the widest possible
        swizzle."""
        m, _, k = schedule.tile
        return (
            widest_layout(m, k, self.element_bytes, self.a_major),
            widest_layout(schedule.b_rows, k, self.element_bytes, self.b_major),
        )

    def a_tile_bytes(self, schedule: Schedule) -> int:
        """Bytes of A that one CTA holds a stage."""
        return schedule.tile[0] * schedule.tile[2] * self.element_bytes

    def b_tile_bytes(self, schedule: Schedule) -> int:
        """Bytes of B that one CTA holds a stage."""
        return schedule.b_rows * schedule.tile[2] * self.element_bytes

    def stage_bytes(self, schedule: Schedule) -> int:
        """Shared memory of one stage: both tiles and the scales of their rows, each aligned."""
        a, b = self.a_tile_bytes(schedule), self.b_tile_bytes(schedule)
        tiles = round_up(a, SLOT_ALIGNMENT) + round_up(b, SLOT_ALIGNMENT)
        if schedule.tile[2] != BLOCKWISE:
            return tiles
        rows = zip((self.row_scales, self.column_scales), schedule.tile, strict=False)
        vectors = (SCALE_BYTES * extent for has_own, extent in rows if has_own)
        return tiles + sum(round_up(each, VECTOR_ALIGNMENT) for each in vectors)

    def staging_bytes(self, schedule: Schedule) -> int:
        """Shared memory of the store's staging buffers, or of a split K's partial sums."""
        if schedule.split_k > 1:
            return round_up(schedule.tile[0] * schedule.tile[1] * PARTIAL_BYTES, SLOT_ALIGNMENT)
        if schedule.staging is None:
            return 0
        rows, (columns, buffers) = schedule.tile[0], schedule.staging
        pieces = round_up(rows * self.row_bytes(columns), SLOT_ALIGNMENT)
        for each in self.further_bytes:
            width = columns_beside(columns, self.c_bytes, each)
            pieces += round_up(rows * width * each, SLOT_ALIGNMENT)
        found = buffers * pieces
        if schedule.ahead:
            slots = [round_up(rows * columns * each, SLOT_ALIGNMENT) for each in self.beside]
            found += schedule.ahead * sum(slots)
        if schedule.vectors == AHEAD and self.beside_columns:
            consumers = 2 if schedule.ping_pong else 1  # each has its own, as warpgroups may have
            warpgroups = 1 if consumers > 1 else max(1, min(rows // ATOM_ROWS, WARPGROUPS_MOST))
            each_has = [schedule.tile[1] * each for each in self.beside_columns]
            vectors = [warpgroups * round_up(each, VECTOR_ALIGNMENT) for each in each_has]
            found += consumers * sum([round_up(each, SLOT_ALIGNMENT) for each in vectors])
        return found

    def stored_together(self, schedule: Schedule) -> bool:
        """Whether the pieces of all outputs have the same columns and are stored together."""
        columns = schedule.staging[0] if schedule.staging else 0
        widths = (columns_beside(columns, self.c_bytes, each) for each in self.further_bytes)
        return not self.neighbours and all(width == columns for width in widths)

    def pieces(self, schedule: Schedule) -> int:
        """The number of pieces in which a tile of C is staged; 0 if it is not staged."""
        columns = schedule.tile[1] // self.products
        return columns // schedule.staging[0] if schedule.staging else 0

    @cached_attribute
    def moved_bytes(self) -> int:
        """Bytes of all matrices of C, and of the other operands and outputs as large as C."""
        each = self.c_bytes + sum(self.beside) + sum(self.further_bytes)
        return self.batch * self.m * self.n // self.products * each

    @cached_attribute
    def most_rows(self) -> int:
        """The most rows that a tile may cover: M, or for groups twice the average number of
        rows."""
        return 2 * self.m if self.grouped == "m" else self.m

    @cached_attribute
    def has_epilogue(self) -> bool:
        """Whether the epilogue does more than convert the sums, or reads other operands."""
        return self.epilogue_instructions > 0 or bool(self.beside)

    @cached_attribute
    def cut(self) -> bool:
        """Whether rows are grouped and a group may have more rows than the smallest tile."""
        return self.grouped == "m" and self.most_rows > GROUP_ROWS

    def tiles(self, schedule: Schedule) -> tuple[int, int]:
        """Tiles along M and N."""
        m, n, _ = schedule.tile
        return -(-self.m // m), -(-self.n // n)

    def grid(self, schedule: Schedule) -> tuple[int, int]:
        """CTAs along M and N if each computes one tile, rounded up to whole clusters: of all
        matrices, or the expected number for all groups of rows."""
        m, n = self.matrix_grid(schedule)
        if self.grouped != "m":
            return self.batch * m, n
        rows, peers = self.batch * self.m, schedule.cluster[0]
        return peers * expected_tiles(rows, self.batch, peers * schedule.tile[0]), n

    def matrix_grid(self, schedule: Schedule) -> tuple[int, int]:
        """CTAs along M and N for a single matrix."""
        (m, n, _), (along_m, along_n) = schedule.tile, schedule.cluster
        return along_m * -(-self.m // (along_m * m)), along_n * -(-self.n // (along_n * n))

    def ctas(self, schedule: Schedule) -> int:
        """The number of CTAs if each computes one tile."""
        return math.prod(self.grid(schedule)) * schedule.split_k * schedule.split_grid

    def k_tiles(self, schedule: Schedule) -> int:
        """The number of K tiles that one CTA processes per output tile."""
        return -(-self.k // (schedule.tile[2] * schedule.split_k * schedule.split_grid))

    def parts_bytes(self, schedule: Schedule) -> int:
        """Global memory for the partial sums of all parts of K that are split over the grid."""
        m, n, _ = schedule.tile
        return self.ctas(schedule) * m * n * PARTIAL_BYTES if schedule.split_grid > 1 else 0


def exchanged(problem: Problem) -> Problem:
    """The same product computed as Cᵀ = B·Aᵀ."""
    known = problem.__dict__.get("_exchanged")
    if known is None:
        known = problem.__dict__["_exchanged"] = _exchanged(problem)
    return known


def _exchanged(problem: Problem) -> Problem:
    return replace(
        problem,
        m=problem.n,
        n=problem.m,
        a_major=problem.b_major,
        b_major=problem.a_major,
        leading=(*problem.leading[1::-1], problem.leading[2]),
        steps=(*problem.steps[1::-1], problem.steps[2]),
        beside_columns=problem.beside_rows,
        beside_rows=problem.beside_columns,
        row_scales=problem.column_scales,
        column_scales=problem.row_scales,
        swapped=not problem.swapped,
    )
