"""Stores that read tensor memory as 8x8 matrices: every data path layout, ragged sizes, types."""

import re

import pytest

from tilewright.compiler.driver import compile_matmul
from tilewright.compiler.spec import MatmulSpec

READS = "expand-loops{reads=matrices}"
LAYOUTS = {  # PTX ISA, data path layouts of tcgen05: F, D and two of D, B of a pair
    "F": "tiling{tile=64x72x64},tma-insertion",
    "D": "tiling{tile=256x48x64},tma-insertion,swizzle-selection",
    "B": "tiling{tile=64x64x64},tma-insertion,swizzle-selection,clustering{shape=2x1 pair=true}",
    "roles": "tiling{tile=128x32x64},tma-insertion,pipelining{stages=2},warp-specialization,"
    "persistence",
}


@pytest.mark.parametrize(
    ("layout", "c_dtype"), [("F", "bf16"), ("D", "f32"), ("B", "f16"), ("roles", "bf16")]
)
def test_every_layout_is_stored_where_it_belongs(check_matmul, layout, c_dtype):
    spec = MatmulSpec(130, 151, 72, "f16", "f16", c_dtype)
    check_matmul(spec, pipeline=f"{LAYOUTS[layout]},{READS}", seed=3)


def test_hopper_keeps_its_registers(check_matmul):
    text = f"tiling{{tile=64x64x64}},tma-insertion,{READS}"
    check_matmul(MatmulSpec(70, 72, 72), target="sm_90a", pipeline=text)


@pytest.mark.parametrize("preset", ["kernel2", "kernel3"])
def test_kernels_2_and_3_read_and_store_as_published(preset):
    """Part 2 of the series: tcgen05.ld.16x256b, BN / 8 = 8 times, and stores of two bf16.

    Kernel 4 says the latter of kernel 3, too, which differs from kernel 2 in the swizzle alone.
    """
    ptx = compile_matmul(MatmulSpec(256, 256, 128), preset=preset, until="ptx").ptx
    assert re.findall(r"tcgen05\.ld\.sync\.aligned\.(\w+\.x\d+)", ptx) == ["16x256b.x8"]
    assert set(re.findall(r"st\.global\.(\S+)", ptx)) == {"b32"}
