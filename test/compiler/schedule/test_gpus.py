"""GPUs as targets: code for their chip, schedules for themselves."""

from types import SimpleNamespace

import pytest

from tilewright.compiler.calls.kernels import kernels
from tilewright.compiler.driver import compile_matmul, plan_passes
from tilewright.compiler.schedule.chips.chip_figures import figures
from tilewright.compiler.schedule.search.choice import choose_schedule
from tilewright.compiler.spec import MatmulSpec
from tilewright.dialects.errors import OptionError
from tilewright.dialects.target import GPUS, find_target

LARGE = MatmulSpec(16384, 16384, 16384)


def test_an_h100_has_schedules_of_its_own_and_code_for_its_chip():
    """Twice 512 MiB of operands: what an H200 was fastest with needs more L2 than an H100 has."""
    h100, h200 = find_target("h100"), find_target("h200")
    assert choose_schedule(LARGE, h100) != choose_schedule(LARGE, h200)
    planned = plan_passes(LARGE, target="h100", pipeline=None, preset=None)
    assert choose_schedule(LARGE, h100).pipeline() in ",".join(str(call) for call in planned.calls)
    compiled = compile_matmul(MatmulSpec(64, 64, 64), target="h100", until="ptx")
    assert compiled.target == "sm_90a" and ".target sm_90a" in compiled.ptx


@pytest.mark.parametrize("name", GPUS)
def test_l2_of_a_gpu_is_its_own(name):
    sizes = {"b200": 132.6e6, "h200": 60e6, "h100": 50e6}
    assert float(figures(find_target(name)).l2_size) == sizes[name]


@pytest.mark.parametrize(
    ("name", "target"),
    [
        ("NVIDIA H100 80GB HBM3", "h100"),
        ("NVIDIA H200", "sm_90a"),
        ("NVIDIA GH200 480GB", "sm_90a"),
    ],
)
def test_calls_take_the_schedules_of_the_gpu_that_they_are_for(monkeypatch, name, target):
    gpu = SimpleNamespace(name=name, target="sm_90a")
    monkeypatch.setattr(kernels, "open_device", lambda kind: SimpleNamespace(gpu=lambda index: gpu))
    assert kernels.default_target(0) == target


def test_an_unknown_gpu_is_refused_with_those_that_are_known():
    with pytest.raises(OptionError, match=r"unknown chip 'h300'; use one of .*sm_90a.*h100"):
        find_target("h300")
