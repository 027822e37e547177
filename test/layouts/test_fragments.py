"""Thread-value layouts: the ISA's figures as formulas, CuTe's strides, the emulator's maps."""

import pytest

from tilewright.dialects.fragments import find_fragment
from tilewright.dialects.strided import LayoutError
from tilewright.runtime.emulator.tensor.tensor_memory import register_map

# As CUTLASS prints them: include/cute/atom/mma_traits_sm80.hpp, mma_traits_sm90_gmma.hpp.
PRINTED = {
    ("m16n8k8", "a", 16): "((4,8),(2,2)):((32,1),(16,8))",
    ("m16n8k8", "b", 16): "((4,8),2):((16,1),8)",
    ("m16n8k8", "d", 32): "((4,8),(2,2)):((32,1),(16,8))",
    ("m16n8k16", "a", 16): "((4,8),(2,2,2)):((32,1),(16,8,128))",
    ("m16n8k16", "b", 16): "((4,8),(2,2)):((16,1),(8,64))",
    ("m16n8k4", "a", 32): "((4,8),2):((16,1),8)",
    ("m16n8k4", "b", 32): "((4,8),1):((8,1),0)",
    ("m16n8k8", "a", 32): "((4,8),(2,2)):((16,1),(8,64))",
    ("m16n8k8", "b", 32): "((4,8),2):((8,1),32)",
    ("m16n8k32", "a", 8): "((4,8),(4,2,2)):((64,1),(16,8,256))",
    ("m16n8k32", "b", 8): "((4,8),(4,2)):((32,1),(8,128))",
    ("m8n8k4", "a", 64): "((4,8),1):((8,1),0)",
    ("m8n8k4", "d", 64): "((4,8),2):((16,1),8)",
    ("m64n64k16", "d", 32): "((4,8,4),(2,2,8)):((128,1,16),(64,8,512))",
    ("m64n64k16", "a", 16): "((4,8,4),(2,2,2)):((128,1,16),(64,8,512))",
    ("m64n8k32", "a", 8): "((4,8,4),(4,2,2)):((256,1,16),(64,8,1024))",
}


@pytest.mark.parametrize(("atom", "operand", "bits"), PRINTED)
def test_a_layout_is_what_cute_prints(atom, operand, bits):
    assert str(find_fragment(atom, operand, bits).layout) == PRINTED[atom, operand, bits]


def mma_places(atom, operand, bits):
    """(thread, value) → (row, column) by the ISA's formulas: groupID = t >> 2, t % 4."""
    per = 32 // bits
    k = int(atom.partition("k")[2])
    for thread in range(32):
        group, lane = thread >> 2, thread % 4
        if operand == "d":
            yield from (((thread, i), (group + 8 * (i >> 1), 2 * lane + (i & 1))) for i in range(4))
            continue
        rows = 2 if operand == "a" else 1
        for i in range(16 * k // 32 if operand == "a" else 8 * k // 32):
            register, low = divmod(i, per)
            half, upper = divmod(register, rows)
            yield (thread, i), (group + 8 * upper, lane * per + low + 4 * per * half)


@pytest.mark.parametrize(
    ("atom", "operand", "bits"), [case for case in PRINTED if case[0].startswith("m16")]
)
def test_mma_fragments_are_the_figures_of_the_isa(atom, operand, bits):
    fragment = find_fragment(atom, operand, bits)
    places = dict(mma_places(atom, operand, bits))
    assert len(places) == fragment.shape[0] * fragment.shape[1]
    assert {held: fragment.element(*held) for held in places} == places
    assert all(fragment.owner(*place) == held for held, place in places.items())


@pytest.mark.parametrize(("atom", "columns"), [("m64n8k16", 8), ("m64n64k16", 64)])
def test_sums_of_wgmma_are_the_figure_of_the_isa(atom, columns):
    """Warp w has rows 16 w on; register i is of column 8 (i / 4) + 2 (t % 4) + i % 2."""
    fragment = find_fragment(atom, "d", 32)
    for thread in range(128):
        for i in range(columns // 2):
            row = 16 * (thread // 32) + thread % 32 // 4 + 8 * (i // 2 % 2)
            column = 8 * (i // 4) + 2 * (thread % 4) + i % 2
            assert fragment.element(thread, i) == (row, column)


@pytest.mark.parametrize(("k", "bits"), [(8, 32), (16, 16), (32, 8)])
def test_a_of_wgmma_in_registers_is_the_figure_of_the_isa(k, bits):
    """Elements of a register are neighbours along K; registers: rows 8 on, then half of K on."""
    fragment, per = find_fragment(f"m64n64k{k}", "a", bits), 32 // bits
    for thread in range(128):
        for i in range(4 * per):
            register, low = divmod(i, per)
            row = 16 * (thread // 32) + thread % 32 // 4 + 8 * (register % 2)
            column = k // 2 * (register // 2) + per * (thread % 4) + low
            assert fragment.element(thread, i) == (row, column)


@pytest.mark.parametrize("count", [1, 2, 4])
@pytest.mark.parametrize("transposed", [False, True])
def test_matrices_are_the_figures_of_the_isa(count, transposed):
    """Register j of thread t has row t / 4, columns 2 (t % 4) and the next, of matrix j."""
    fragment = find_fragment(f"ldmatrix.x{count}{'.trans' * transposed}", None, 16)
    for thread in range(32):
        for matrix in range(count):
            for low in range(2):
                row, column = thread // 4, 2 * (thread % 4) + low
                place = (column, row) if transposed else (row, column)
                found = fragment.element(thread, 2 * matrix + low)
                assert found == (place[0], place[1] + 8 * matrix)


@pytest.mark.parametrize("shape", ["32x32b", "16x64b", "16x128b", "16x256b", "16x32bx2"])
@pytest.mark.parametrize("number", [1, 4])
def test_tensor_memory_is_read_as_the_emulator_reads_it(shape, number):
    fragment = find_fragment(f"{shape}.x{number}", None, 32)
    lanes, columns = register_map(shape, fragment.registers, number)
    for register in range(fragment.registers):
        for thread in range(32):
            expected = int(lanes[register][thread]), int(columns[register][thread])
            assert fragment.element(thread, register) == expected


READS = {  # PTX ISA, tcgen05 matrix fragments: thread t, register r of .x4 → lane, column
    "32x32b": lambda t, r: (t, r),
    "16x64b": lambda t, r: (t % 2 * 8 + t // 4, 2 * r + t // 2 % 2),
    "16x128b": lambda t, r: (t // 4 + r % 2 * 8, 4 * (r // 2) + t % 4),
    "16x256b": lambda t, r: (t // 4 + r // 2 % 2 * 8, 8 * (r // 4) + 2 * (t % 4) + r % 2),
    "16x32bx2": lambda t, r: (t % 16, r + 4 * (t // 16)),  # the halves side by side
}


@pytest.mark.parametrize("shape", READS)
def test_tensor_memory_is_read_as_the_figures_of_the_isa_say(shape):
    fragment = find_fragment(f"{shape}.x4", None, 32)
    for thread in range(32):
        for register in range(fragment.registers):
            assert fragment.element(thread, register) == READS[shape](thread, register)


def test_a_tensor_core_of_blackwell_is_read_as_stmatrix_takes_it():
    """tcgen05.ld.16x256b gives D of mma.sync for every 8 columns: two 8x8 matrices."""
    sums = find_fragment("m16n8k16", "d", 32).layout
    assert find_fragment("16x256b.x1", None, 32).layout == sums


def test_the_inverse_has_a_mode_for_each_axis():
    fragment = find_fragment("m16n8k8", "a", 16)
    assert str(fragment.by_axis()) == "((8,2),(2,4)):((4,64),(32,1))"
    for row in range(16):
        for column in range(8):
            thread, value = fragment.owner(row, column)
            assert fragment.by_axis()(row, column) == thread + 32 * value
            assert fragment.element(thread, value) == (row, column)


@pytest.mark.parametrize(
    ("atom", "operand", "bits", "words"),
    [
        ("m16n8k32", "a", 16, "K of mma.sync must be 8 or 16 with elements of 16 bits, got 32"),
        ("m16n8k9", "d", 32, "K of mma.sync must be 4, 8, 16 or 32, got 9"),
        ("m16n8k8", "c", 16, "operand must be one of a, b, d, got c"),
        ("m16n8k8", "a", 4, "elements must have 8, 16, 32 bits here, got 4"),
        ("m64n64k16", "b", 16, "wgmma has A in registers"),
        ("m64n12k16", "d", 32, "N of 8 to 256, a multiple of 8, and K of 8, 16 or 32, got N 12"),
        ("16x256b.x64", None, 32, "up to 128 registers, got 256"),
        ("16x512b.x1", None, 32, "tensor memory is read as 32x32b, 16x32bx2, 16x64b"),
        ("ldmatrix.x3", None, 16, "16x256b.xR, got 'ldmatrix.x3'; name it so, as m16n8k16"),
        ("32x32b.x3", None, 32, "R of .xR must be a power of 2, got 3; round it up"),
        ("ldmatrix.x4", None, 8, "elements must have 16 bits here, got 8; name such a type"),
        ("ldmatrix.x4", "a", 16, "ldmatrix.x4 has one operand, got a; leave it out"),
        ("32x32b.x8", "d", 32, "32x32b.x8 has one operand, got d; leave it out"),
        ("m16n8k16", None, 16, "operand must be one of a, b, d, got none; name it"),
    ],
)
def test_what_no_instruction_has_is_refused(atom, operand, bits, words):
    with pytest.raises(LayoutError) as caught:
        find_fragment(atom, operand, bits)
    assert words in str(caught.value)
