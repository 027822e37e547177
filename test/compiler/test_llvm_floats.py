"""Float constants that MLIR's LLVM prints and llvmlite's LLVM reads are the same values."""

import struct

import pytest

from tilewright.compiler.llvm_floats import in_older_syntax


@pytest.mark.parametrize(
    ("newer", "older"),
    [
        ("splat (float +inf)", "splat (float 0x7FF0000000000000)"),
        ("fadd float %1, -inf", "fadd float %1, 0xFFF0000000000000"),
        ("half +qnan, half -snan(0x1)", "half 0xH7E00, half 0xHFC01"),
        ("bfloat -nan(0x5)", "bfloat 0xRFFC5"),
        ("float +snan(0x12345)", "float 0x7FF02468A0000000"),
        ("double -nan(0xABC)", "double 0xFFF8000000000ABC"),
        ("fcmp oeq float %1, f0x3F800000", "fcmp oeq float %1, 0x3FF0000000000000"),
        ("float 1.000000e-01", "float 0x3FB99999A0000000"),
        ("float 1.401300e-45, half f0x3C00", "float 0x36A0000000000000, half 0xH3C00"),
        ("double 1.000000e-01", "double 1.000000e-01"),
        ("double f0x3FB999999999999A", "double 0x3FB999999999999A"),
        ("bfloat 9.183550e-41", "bfloat 0xR0001"),
        ("%inf = add i32 %1, -3 ; 2.5e+03", "%inf = add i32 %1, -3 ; 2.5e+03"),
    ],
)
def test_constants_keep_their_bits(newer, older):
    assert in_older_syntax(f"a\n  {newer}\nb") == f"a\n  {older}\nb"


def test_the_bits_of_a_double_are_those_of_the_float():
    value = struct.unpack(">d", bytes.fromhex("3FB99999A0000000"))[0]
    assert value == struct.unpack(">f", struct.pack(">f", 0.1))[0]
