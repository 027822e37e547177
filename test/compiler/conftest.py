"""What tests of the schedule choice share, and those of kernels for any M or any batch."""

from contextlib import nullcontext
from importlib.metadata import version

import pytest

from tilewright.compiler import driver
from tilewright.compiler.backend import Assembled
from tilewright.compiler.calls.dense import fused_rows
from tilewright.compiler.calls.kernels import kernel_cache, lookup, row_kernels
from tilewright.compiler.calls.kernels.found_kernels import FoundKernels
from tilewright.compiler.schedule import tile_extents
from tilewright.compiler.schedule.search import choice
from tilewright.dialects.mma_units import REGISTERS

BY_RECIPES = [
    "groups/test_grouped_blocks.py",
    "groups/test_scaled_grouped_mm.py",
    "scales/test_bad_block_scales.py",
    "scales/test_blockwise_scaled_mm.py",
    "scales/test_matmul_quantized.py",
    "scales/test_scaled_mm.py",
    "scales/test_scaled_modules.py",
]
"""Tests that name recipes as torch does, which torch 2.9 does not; there they are left out."""
collect_ignore = BY_RECIPES if version("torch").startswith("2.9.") else []


@pytest.fixture(autouse=True)
def without_most_searches_for_races(races_for_a_share):
    """Kernels are those of `test/numerics`: what is tested here is how they are called."""


@pytest.fixture
def no_tables(monkeypatch):
    """The estimate decides: measured schedules have tests of their own."""
    monkeypatch.setattr(choice, "tuned_schedule", lambda problem, chip: None)


@pytest.fixture
def fewer_tiles(request, monkeypatch):
    """Every third width of tiles on Hopper, whose whole list has 100,000 candidates; --all: all.

    The quick choice and the whole list look at the same widths, so either finds what the other does
    for the same reasons.
    """
    if not request.config.getoption("--all"):
        monkeypatch.setitem(tile_extents.N_TILES, REGISTERS, tile_extents.N_TILES[REGISTERS][::3])


@pytest.fixture
def compiled(request, monkeypatch, tmp_path):
    """The sources that the compiler is asked for; without ptxas, since the emulator runs PTX.

    Kernels of any M or any batch are those that the test's own `two_kernels` names.
    """
    asked, compile_matmul = [], kernel_cache.compile_matmul

    def noted(source, **options):
        asked.append(source)
        return compile_matmul(source, **options)

    nothing = Assembled(b"", 0, 0, 0, 0, 0, "")
    monkeypatch.setenv(kernel_cache.VARIABLE, str(tmp_path))
    monkeypatch.setattr(driver, "assemble", lambda *_, **__: nothing)
    monkeypatch.setattr(driver, "assembler_ahead", lambda **_: nullcontext())
    monkeypatch.setattr(kernel_cache, "compile_matmul", noted)
    kernel_cache.cached_bundle.cache_clear()
    monkeypatch.setattr(row_kernels, "kept_buckets", request.module.two_kernels)
    monkeypatch.setattr(lookup, "_seen", {})
    for module, name in ((lookup, "_kernels"), (fused_rows, "_found")):
        monkeypatch.setattr(module, name, FoundKernels())
    return asked
