"""The ceilings of GPUs by name: rates a cycle make the figures that NVIDIA states."""

import re
from pathlib import Path

import pytest

from tilewright.compiler.schedule.chips.boards import BOARDS, board_of, runs_on
from tilewright.compiler.schedule.chips.ceilings import CHIP_OF, HBM, L2, SHARED, ceilings_of
from tilewright.compiler.schedule.chips.chip_figures import figures
from tilewright.dialects.errors import OptionError
from tilewright.dialects.target import TARGETS, find_target

PAGE = Path(__file__).parents[3] / "docs" / "roofline.md"


@pytest.mark.parametrize("name", BOARDS)
def test_rates_a_cycle_make_the_stated_figures(name):
    ceilings = ceilings_of(BOARDS[name].chip, name)
    for unit, tera in BOARDS[name].stated.items():
        threads = unit.startswith("threads")
        found = ceilings.rate(*unit.split()) if threads else ceilings.rate("tensor core", unit)
        assert found is not None and found / 1e12 == pytest.approx(tera, rel=0.013), unit


@pytest.mark.parametrize("chip", TARGETS)
def test_a_target_stands_for_the_first_board_of_its_chip(chip):
    target, board, ceilings = TARGETS[chip], board_of(chip), ceilings_of(chip)
    assert ceilings.multiprocessors == target.multiprocessors
    assert {HBM, L2, SHARED} <= set(ceilings.memory)
    if board is not None:
        assert float(figures(target).clock) == board.clock
        assert float(figures(target).mma_rate) == board.mma


@pytest.mark.parametrize(
    ("unit", "type_", "chips"),
    [
        ("tensor core", "e4m3", {"sm_100a", "sm_90a", "sm_89", "sm_120a"}),
        ("tensor core", "mxf4", {"sm_100a", "sm_120a"}),
        ("tensor core", "f64", {"sm_100a", "sm_90a", "sm_80"}),
        ("threads", "f64", set(TARGETS)),
    ],
)
def test_chips_have_ceilings_for_what_their_tensor_cores_take(unit, type_, chips):
    assert {chip for chip in TARGETS if ceilings_of(chip).rate(unit, type_)} == chips


@pytest.mark.parametrize(
    ("target", "chip", "runs"),
    [
        ("sm_80", "sm_89", True),
        ("sm_80", "sm_90a", True),
        ("sm_89", "sm_86", False),
        ("sm_90a", "sm_100a", False),
        ("sm_120a", "sm_120a", True),
    ],
)
def test_ptx_without_a_letter_runs_on_later_chips(target, chip, runs):
    assert runs_on(target, chip) == runs


@pytest.mark.parametrize(
    ("gpu", "message"),
    [
        ("rtx9090", "gpu: unknown name 'rtx9090'; use one of b200, h200, h100, a100, "),
        ("a100", "gpu: must run PTX for sm_90a, got a100, an sm_80; use one of h200, h100"),
    ],
)
def test_a_gpu_that_cannot_run_the_kernel_is_refused(gpu, message):
    with pytest.raises(OptionError, match=re.escape(message)):
        ceilings_of("sm_90a", gpu)


@pytest.mark.parametrize("gpu", ["h200", "h100"])
def test_no_step_is_estimated_to_take_less_of_l2_than_the_ceiling_says(gpu):
    """A multiprocessor takes `l2_rate` bytes a cycle at most."""
    target = find_target(gpu)
    chip = figures(target)
    most = target.multiprocessors * chip.l2_rate * chip.clock * 1e9
    assert ceilings_of("sm_90a", gpu).memory[L2] == pytest.approx(most)
    assert ceilings_of(gpu) == ceilings_of("sm_90a", gpu)


def test_the_page_names_every_gpu_with_its_ceilings():
    rows = re.findall(r"^\| `([\w-]+)` \| (.*) \|$", PAGE.read_text(), re.M)
    found = {name: row for name, row in rows if name in CHIP_OF}
    assert found == {name: row_of(name) for name in CHIP_OF}


def row_of(name):
    """As the page has it: chip, bf16, f32, HBM, L2 and shared memory."""
    ceilings = ceilings_of(CHIP_OF[name], name)
    bf16, f32 = ceilings.rate("tensor core", "bf16"), ceilings.rate("threads", "f32")
    memory = [f"{ceilings.memory[level] / 1e12:.3g}" for level in (HBM, L2, SHARED)]
    memory[1] += " (assumed)" if ceilings.memory[L2].assumed else ""
    rates = [f"{bf16 / 1e12:.4g}", f"{f32 / 1e12:.3g}"]
    return " | ".join([ceilings.gpu, f"`{CHIP_OF[name]}`", *rates, *memory])


def test_a_figure_of_l2_that_others_measured_names_them():
    """4903 GB/s at 2.52 GHz, as its source says."""
    l2 = ceilings_of("sm_89", "rtx4090").memory[L2]
    assert l2 / 1e9 == pytest.approx(4903, abs=1) and not l2.assumed
    assert "smallscientist1/cuda_microbenchmark" in l2.source
