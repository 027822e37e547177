"""Kernels of other compilers with one line taken out: the emulator says what is missing."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tilewright.runtime import run_launch_file
from tilewright.runtime.emulator import Trap

FOLDER = Path(__file__).parent / "triton"
SEEDS = 3
BROKEN = [
    ("matmul.sm_80", r"bar\.sync", 0, "uninitialised-read or race"),
    ("gluon_registers.sm_80", r"cp\.async\.wait_group", 0, "uninitialised-read or race"),
    ("gluon_shared.sm_80", r"bar\.sync", -1, "race"),
    ("small_floats.sm_90a", r"fence\.proxy\.async", 0, "proxy-fence"),
    ("gluon_warpgroups.sm_90a", r"wgmma\.wait_group", -1, "missing-wait"),
    ("gluon_warpgroups.sm_90a", r"wgmma\.fence", 0, "missing-fence"),
    ("device_descriptors.sm_90a", r"fence\.proxy\.tensormap", 0, "proxy-fence"),
    ("gluon_cluster_sum.sm_90a", r"barrier\.cluster\.wait", 0, "uninitialised-read or race"),
    ("gluon_roles.sm_100a", r"fence\.proxy\.async", -1, "proxy-fence"),
    ("gluon_attention.sm_100a", r"tcgen05\.wait::st", 0, "missing-wait"),
    ("gluon_stealing.sm_100a", r"fence\.proxy\.async", 0, "proxy-fence"),
]
"""Kernel, the line and which of its occurrences, the verdicts that will do."""


def without(text: str, line: str, occurrence: int) -> str:
    found = list(re.finditer(rf"^[^/\n]*\b{line}[^;]*;", text, re.MULTILINE))
    start, end = found[occurrence].span()
    return text[:start] + text[end:]


@pytest.mark.parametrize(("kernel", "line", "occurrence", "verdicts"), BROKEN)
def test_a_line_left_out_is_named(tmp_path, kernel, line, occurrence, verdicts):
    ptx, launch = tmp_path / "broken.ptx", FOLDER / f"{kernel}.json"
    ptx.write_text(without((FOLDER / f"{kernel}.ptx").read_text(), line, occurrence))
    found = set()
    for seed in range(SEEDS):
        with pytest.raises(Trap) as caught:
            run_launch_file(ptx, launch, seed, max_steps=1_000_000)
        found.add(caught.value.category)
        assert caught.value.line
    assert found <= set(verdicts.split(" or ")), found
