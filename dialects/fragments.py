"""Which thread of a warp or warpgroup holds which elements of a tile: thread-value layouts.

A fragment's layout goes from (thread, value) to the index of an element in its tile, whose first
axis runs fastest: row + rows * column. Values count from the low bits of the first register on.
Its right inverse says, of an element, which thread has it and as which value: the number
thread + threads * value.

    mma.sync          a, b, c/d of m16n8kK and m8n8k4    PTX ISA, matrix fragments for mma
    ldmatrix, stmatrix    8x8 matrices of 16 bits        PTX ISA, ldmatrix; stmatrix
    wgmma.mma_async   d, and a where registers hold it   PTX ISA, wgmma register fragments
    tcgen05.ld, .st   lanes and columns of 32 bits       PTX ISA, tcgen05 matrix fragments

A of an MMA is [M, K], B is [N, K], C and D are [M, N]; of tensor memory the tile is [lanes,
columns].
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import cached_property

from .record import record
from .strided import Layout, LayoutError, Nested, right_inverse

REGISTER_BITS, QUAD, ROWS = 32, 4, 8
MATRICES = (1, 2, 4)
OPERANDS = ("a", "b", "d")


@record
class Fragment:
    """A tile of `shape` elements of `bits` bits, and where they are: `layout` as said above."""

    name: str
    shape: tuple[int, int]
    bits: int
    layout: Layout

    @property
    def threads(self) -> int:
        return self.layout.modes[0].size

    @property
    def values(self) -> int:
        """Elements that one thread holds."""
        return self.layout.modes[1].size

    @property
    def registers(self) -> int:
        """32-bit registers that hold them."""
        return -(-self.values * self.bits // REGISTER_BITS)

    def element(self, thread: int, value: int) -> tuple[int, int]:
        """(row, column) of a thread's value."""
        column, row = divmod(self.layout(thread, value), self.shape[0])
        return row, column

    @cached_property
    def inverse(self) -> Layout:
        """From the index of an element to thread + threads * value."""
        return right_inverse(self.layout)

    def owner(self, row: int, column: int) -> tuple[int, int]:
        """(thread, value) of an element."""
        value, thread = divmod(self.inverse(row + self.shape[0] * column), self.threads)
        return thread, value

    def by_axis(self) -> Layout:
        """The inverse with a mode for each axis of the tile, as ((rows), (columns))."""
        inverse = [*self.inverse.leaves()]
        return _layout_of(*_cut(inverse, self.shape[0]))


def find_fragment(atom: str, operand: str | None, bits: int) -> Fragment:
    """The fragment of an instruction's operand, of elements of `bits` bits.

    `atom` is m16n8k8 (mma.sync), m8n8k4 (of f64), m64n128k16 (wgmma), ldmatrix.x4[.trans],
    stmatrix.x2[.trans], 32x32b.x8 or another shape of tcgen05.ld. Only MMAs have several operands:
    "a", "b" and "d". Raises LayoutError for others.
    """
    for pattern, make in ATOMS:
        found = re.fullmatch(pattern, atom)
        if found:
            return make(found, operand, bits)
    known = "m16n8kK, m8n8k4, m64nNkK, ldmatrix.xR[.trans], stmatrix.xR[.trans]"
    shapes = ", ".join(f"{shape}.xR" for shape in _TENSOR_SHAPES)
    raise LayoutError(
        f"fragment: atom must be one of {known}, {shapes}, got {atom!r}; name it so, as m16n8k16 "
        "or ldmatrix.x4.trans"
    )


def mma_sync(k: int, operand: str, bits: int) -> Fragment:
    """An operand of mma.sync.m16n8k{k}; 32-bit sums, f16 ones as pairs.

    A register of A or B holds neighbours along K; thread t has row t / 4 of each 8 rows and the
    t % 4-th register of each four along K.
    """
    if k not in (4, 8, 16, 32):
        raise LayoutError(f"fragment: K of mma.sync must be 4, 8, 16 or 32, got {k}; take one")
    if operand == "d":
        return _sums(f"mma.sync m16n8k{k}", 16, bits, warps=1)
    _need_bits(bits, (8, 16, 32))
    packed = REGISTER_BITS // bits
    along_k = k // (QUAD * packed)
    if k % (QUAD * packed) or along_k not in (1, 2):
        raise LayoutError(
            f"fragment: K of mma.sync must be {QUAD * packed} or {2 * QUAD * packed} with elements "
            f"of {bits} bits, got {k}; take one of them, or another type"
        )
    rows = 16 if operand == "a" else 8
    halves = [(2, ROWS)] if operand == "a" else []
    values = [(packed, rows), *halves, (along_k, QUAD * packed * rows)]
    threads = [(QUAD, packed * rows), (ROWS, 1)]
    return _fragment(f"mma.sync m16n8k{k} {operand}", (rows, k), bits, threads, values)


def mma_double(operand: str, bits: int) -> Fragment:
    """An operand of mma.sync.m8n8k4 with f64."""
    _need_bits(bits, (64,))
    if operand == "d":
        threads, values = [(QUAD, 2 * ROWS), (ROWS, 1)], [(2, ROWS)]
        return _fragment("mma.sync m8n8k4 d", (8, 8), bits, threads, values)
    threads = [(QUAD, ROWS), (ROWS, 1)]
    return _fragment(f"mma.sync m8n8k4 {operand}", (8, 4), bits, threads, [(1, 0)])


def wgmma(n: int, k: int, operand: str, bits: int) -> Fragment:
    """D of wgmma.m64n{n}k{k}, or A in registers, over the four warps of a warpgroup."""
    if n % 8 or not 8 <= n <= 256 or k not in (8, 16, 32):
        raise LayoutError(
            "fragment: wgmma has N of 8 to 256, a multiple of 8, and K of 8, 16 or 32, got "
            f"N {n} and K {k}; change it"
        )
    if operand == "d":
        return _sums(f"wgmma m64n{n}k{k}", n, bits, warps=4)
    _need_bits(bits, (8, 16, 32))
    packed, rows = REGISTER_BITS // bits, 64
    if operand != "a" or k != 2 * QUAD * packed:
        raise LayoutError(
            f"fragment: wgmma has A in registers with K of {2 * QUAD * packed} elements of {bits} "
            f"bits, and D; got {operand} with K of {k}; other operands lie in shared memory"
        )
    threads = [(QUAD, packed * rows), (ROWS, 1), (4, 16)]
    values = [(packed, rows), (2, ROWS), (2, QUAD * packed * rows)]
    return _fragment(f"wgmma m64n{n}k{k} a", (rows, k), bits, threads, values)


def matrices(name: str, count: int, transposed: bool, bits: int) -> Fragment:
    """What ldmatrix gives, or stmatrix takes, of `count` 8x8 matrices side by side."""
    _need_bits(bits, (16,))
    threads, values = [(QUAD, 2 * ROWS), (ROWS, 1)], [(2, ROWS), (count, ROWS * ROWS)]
    if transposed:
        threads, values = [(QUAD, 2), (ROWS, ROWS)], [(2, 1), (count, ROWS * ROWS)]
    return _fragment(name, (ROWS, ROWS * count), bits, threads, values)


def tensor_memory(shape: str, number: int) -> Fragment:
    """What tcgen05.ld.{shape}.x{number} gives; of 16x32bx2 the halves lie side by side."""
    if shape not in _TENSOR_SHAPES or not 1 <= number <= 128:
        raise LayoutError(
            f"fragment: tensor memory is read as {', '.join(_TENSOR_SHAPES)}, x1 to x128, got "
            f"{shape}.x{number}; take one of them"
        )
    lanes, registers, columns = _TENSOR_SHAPES[shape]
    threads, values = {
        "32x32b": ([(32, 1)], [(number, 32)]),
        "16x32bx2": ([(16, 1), (2, 16 * number)], [(number, 16)]),
        "16x64b": ([(2, 8), (2, 16), (8, 1)], [(number, 32)]),
        "16x128b": ([(QUAD, 16), (8, 1)], [(2, 8), (number, 64)]),
        "16x256b": ([(QUAD, 32), (8, 1)], [(2, 16), (2, 8), (number, 128)]),
    }[shape]
    if registers * number > 128:
        most = 128 // registers
        raise LayoutError(
            f"fragment: a thread takes up to 128 registers, got {registers * number}; "
            f"take .x{most} or less"
        )
    name = f"tcgen05.ld {shape}.x{number}"
    return _fragment(name, (lanes, columns * number), REGISTER_BITS, threads, values)


_TENSOR_SHAPES = {  # lanes; registers and columns of .x1
    "32x32b": (32, 1, 1),
    "16x32bx2": (16, 1, 2),
    "16x64b": (16, 1, 2),
    "16x128b": (16, 2, 4),
    "16x256b": (16, 4, 8),
}


def _sums(name: str, columns: int, bits: int, warps: int) -> Fragment:
    """D: each warp has 16 rows, a thread pairs of columns of two rows 8 apart."""
    _need_bits(bits, (16, 32))
    rows, columns = 16 * warps, 8 if warps == 1 else columns
    threads = [(QUAD, 2 * rows), (ROWS, 1), *([(4, 16)] if warps > 1 else [])]
    values = [(2, rows), (2, ROWS), *([(columns // 8, 8 * rows)] if warps > 1 else [])]
    return _fragment(f"{name} d", (rows, columns), bits, threads, values)


def _fragment(
    name: str,
    shape: tuple[int, int],
    bits: int,
    threads: list[tuple[int, int]],
    values: list[tuple[int, int]],
) -> Fragment:
    parts = [[mode for mode in part if mode[0] > 1] or [(1, 0)] for part in (threads, values)]
    return Fragment(name, shape, bits, _layout_of(*parts))


def _layout_of(*parts: list[tuple[int, int]]) -> Layout:
    """A layout with a mode for each part."""
    return Layout(
        tuple(_nested([extent for extent, _ in part]) for part in parts),
        tuple(_nested([stride for _, stride in part]) for part in parts),
    )


def _nested(numbers: list[int]) -> Nested:
    return numbers[0] if len(numbers) == 1 else tuple(numbers)


def _cut(modes: list[tuple[int, int]], rows: int) -> tuple[list, list]:
    """The modes that make up `rows` indices, and the rest; a mode over both is cut in two."""
    first, reached = [], 1
    rest = list(modes)
    while reached < rows:
        extent, stride = rest.pop(0)
        here = min(extent, rows // reached)
        first.append((here, stride))
        reached *= here
        if here < extent:
            rest.insert(0, (extent // here, stride * here))
    return first or [(1, 0)], rest or [(1, 0)]


def _need_bits(bits: int, legal: tuple[int, ...]) -> None:
    if bits not in legal:
        known = ", ".join(map(str, legal))
        raise LayoutError(
            f"fragment: elements must have {known} bits here, got {bits}; name such a type"
        )


def _make_mma(found: re.Match, operand: str | None, bits: int) -> Fragment:
    return mma_sync(int(found["k"]), _one_of(operand), bits)


def _make_double(found: re.Match, operand: str | None, bits: int) -> Fragment:
    return mma_double(_one_of(operand), bits)


def _make_wgmma(found: re.Match, operand: str | None, bits: int) -> Fragment:
    return wgmma(int(found["n"]), int(found["k"]), _one_of(operand), bits)


def _make_matrices(found: re.Match, operand: str | None, bits: int) -> Fragment:
    _no_operand(found, operand)
    return matrices(found[0], int(found["count"]), found["trans"] is not None, bits)


def _make_tensor_memory(found: re.Match, operand: str | None, bits: int) -> Fragment:
    _no_operand(found, operand)
    _need_bits(bits, (32,))
    number = int(found["number"])
    if number & (number - 1):  # PTX ISA, tcgen05.ld: .num
        raise LayoutError(f"fragment: R of .xR must be a power of 2, got {number}; round it up")
    return tensor_memory(found["shape"], number)


def _one_of(operand: str | None) -> str:
    if operand not in OPERANDS:
        known, got = ", ".join(OPERANDS), operand or "none"
        raise LayoutError(f"fragment: operand must be one of {known}, got {got}; name it")
    return operand


def _no_operand(found: re.Match, operand: str | None) -> None:
    if operand is not None:
        raise LayoutError(f"fragment: {found[0]} has one operand, got {operand}; leave it out")


ATOMS: tuple[tuple[str, Callable[[re.Match, str | None, int], Fragment]], ...] = (
    (r"m16n8k(?P<k>\d+)", _make_mma),
    (r"m8n8k4", _make_double),
    (r"m64n(?P<n>\d+)k(?P<k>\d+)", _make_wgmma),
    (r"(?:ld|st)matrix\.x(?P<count>[124])(?P<trans>\.trans)?", _make_matrices),
    (r"(?P<shape>\d+x\d+b(?:x2)?)\.x(?P<number>\d+)", _make_tensor_memory),
)
