"""`tilewright explain scales`, and the page on block scales that its output stands on."""

import re
from pathlib import Path

import numpy as np
import pytest

from tilewright import scales
from tilewright.runtime.emulator.instructions.tcgen05 import cp as tcgen05_cp
from tilewright.tools.layouts.scales import COPIES, memory_grid, tensor_memory_grid

DOCS = Path(__file__).parents[2] / "docs"
PICTURES = {
    "atom.svg": "--format mxfp8",
    "halves.svg": "--format mxfp8 --copy 64x128b.warpx2::01_23",
}


def texts(grid):
    """The cells of each shown line, by its name."""
    rows = zip(grid.row_names, grid.rows, strict=True)
    return {int(name): [cell.text for cell in row] for name, row in rows if name.isdigit()}


def test_the_bytes_of_the_drawing_are_those_of_blocked_scales():
    linear = np.arange(512, dtype=np.uint16).reshape(128, 4)
    low, high = (scales.to_blocked((linear >> shift & 255).astype(np.uint8)).reshape(-1)
                 for shift in (0, 8))  # fmt: skip
    bytes_of = low + 256 * high.astype(int)
    for offset, row in texts(memory_grid("32x128b.warpx4")).items():
        expected = [f"{at // 4}.{at % 4}" for at in bytes_of[offset : offset + 16]]
        assert row == expected


@pytest.mark.parametrize("copy", COPIES)
def test_the_lanes_of_the_drawing_are_those_that_the_emulator_copies_to(copy):
    name, _, spread = copy.partition(".")
    lanes = tcgen05_cp._SHAPES[name, spread].lanes
    memory, drawn = texts(memory_grid(copy)), texts(tensor_memory_grid(copy))
    seen = {int(lane): drawn[lane] for group in lanes for lane in group if lane in drawn}
    assert len(seen) == len(drawn) == 12
    for group in lanes:
        for line, lane in enumerate(group):
            if lane in drawn:
                assert drawn[int(lane)] == memory[16 * line]


def test_figures_of_a_ragged_matrix(tilewright):
    found = tilewright("explain", "scales", "--format", "nvfp4", "--rows", "300", "--k", "1040",
                       "--json").json  # fmt: skip
    assert found["linear"] == [300, 65] and found["blocked"] == [3, 17, 32, 4, 4]
    assert found["blocked_bytes"] == 384 * 68 and found["padding_bytes"] == 384 * 68 - 300 * 65
    assert found["data_bytes"] == 300 * 520 and found["ids"] == [0] and found["columns_of_a"] == 16


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ("--format mxfp9", "error: scales: format must be mxfp8 or mxfp8_e5m2 or mxfp6 or "
                           "mxfp6_e3m2 or mxfp4 or nvfp4 or mxfp8_1x128 or "
                           "mxfp8_128x128 or mxfp4_1x16, got 'mxfp9'"),
        ("--format mxfp8 --k 40", "error: scales: rows must be 1 or more and K a positive multiple "
                                  "of 32, got 128 and 40"),
        ("--format mxfp8 --copy 4x256b", "--copy must be 32x128b.warpx4 or 64x128b.warpx2::01_23,"
                                         " got '4x256b'"),
    ],
)  # fmt: skip
def test_what_cannot_be_is_refused_in_one_line(tilewright, arguments, message):
    ran = tilewright("explain", "scales", *arguments.split())
    assert ran.status != 0 and message in ran.err and len(ran.err.strip().splitlines()) == 1


@pytest.mark.parametrize("name", PICTURES)
def test_the_pictures_of_the_page_are_those_of_the_commands(tilewright, tmp_path, name):
    path = tmp_path / name
    assert tilewright("explain", "scales", *PICTURES[name].split(), "--svg", path).status == 0
    assert path.read_text() == (DOCS / "block-scales" / name).read_text()


def test_the_table_of_the_page_is_that_of_the_formats():
    page = (DOCS / "block-scales.md").read_text()
    for form in scales.FORMATS.values():
        row = rf"\| `{form.name}` \| {form.element} \| \S+ \| {form.scale} \| {form.depth}\b"
        assert re.search(row, page)
    for name in (name for ways in scales.ROUNDINGS.values() for name in ways):
        assert re.search(rf"^\| `{name}`", page, re.MULTILINE)
