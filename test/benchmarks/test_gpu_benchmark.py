"""benchmarks/gpu.py without a GPU: its arithmetic, its table, and the bundles that it takes."""

import math
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch

from tilewright.runtime import read_bundle
from tilewright.runtime.errors import DeviceError

FOLDER = Path(__file__).parent.parent.parent / "benchmarks"


@pytest.fixture(autouse=True)
def benchmarks(monkeypatch):
    """The scripts' folder, as when one of them is run."""
    monkeypatch.syspath_prepend(str(FOLDER))
    yield
    for name in ("gpu", "gpu_bundles"):
        sys.modules.pop(name, None)


def row(gpu, us, rivals, sizes=(512, 256, 1000)):
    times = {"tilewright": us, **rivals}
    return gpu.Row("x", *sizes, times, {}, {"tilewright": 5.25, "cublas": 11.0}, 3.0, {}, "tiling")


def test_rates_ratios_and_means_follow_from_the_times(monkeypatch):
    import gpu

    first = row(gpu, 20.0, {"cublas": 10.0, "triton": 80.0})
    second = row(gpu, 10.0, {"cublas": 20.0})
    assert first.tflops("tilewright") == pytest.approx(2 * 512 * 256 * 1000 / 20e-6 / 1e12)
    assert (first.ratio("cublas"), first.ratio("triton")) == (0.5, 4.0)
    assert gpu.means([first, second]) == {"cublas": 1.0}, "not every row has Triton"
    monkeypatch.setattr(gpu, "machine", lambda: {"gpu": "H200"})
    *_, head, _, one, two, _, last = gpu.as_text([first, second]).split("\n")
    assert head.count("|") == one.count("|") == two.count("|")
    assert one == "| 512×256×1000 | 20.0 | 13 | 26 | 3 | 0.500 | 4.000 | 5.2 | 11.0 |"
    assert two == "| 512×256×1000 | 10.0 | 26 | 13 | — | 2.000 | — | 5.2 | 11.0 |"
    assert last == "geometric mean: 1.000 of cublas"


def test_bundles_are_measured_from_the_least_work_to_the_most():
    import gpu

    names = ["4096x128x4096", "16x4096x4096", "odd", "512x512x512"]
    found = sorted((Path(f"{name}.zip") for name in names), key=gpu.sizes_of)
    ordered = ["odd", "512x512x512", "16x4096x4096", "4096x128x4096"]
    assert [path.stem for path in found] == ordered


def test_there_are_enough_input_sets_to_exceed_l2(monkeypatch):
    import gpu

    properties = SimpleNamespace(L2_cache_size=60 * 2**20)
    monkeypatch.setattr(torch.cuda, "get_device_properties", lambda index: properties)
    for size, expected in ((16_384, 2), (4096, 2), (1024, 30), (64, 64)):
        square = {"shape": [size, size], "dtype": "bf16"}
        assert gpu.count_sets((square,) * 3) == expected


@pytest.mark.parametrize("wrong", ["value", "missing"])
def test_a_wrong_output_is_an_error(monkeypatch, wrong):
    import gpu

    monkeypatch.setattr(torch, "linspace", lambda *a, device, **k: _linspace(*a, **k))
    generator = torch.Generator().manual_seed(1)
    a, b = (torch.randn(each, generator=generator).bfloat16() for each in ((40, 64), (24, 64)))
    c = torch.empty(40, 24, dtype=torch.bfloat16)

    def right(index):
        c.copy_(a.double() @ b.double().T)

    def damaged(index):
        right(index)
        c[13, 7] = 99.0 if wrong == "value" else math.nan

    gpu.check("right", right, [a, b, c], 0)
    with pytest.raises(DeviceError, match=r"^damaged: relative error must be below"):
        gpu.check("damaged", damaged, [a, b, c], 0)


_linspace = torch.linspace


def test_what_nvidia_smi_does_not_know_is_not_a_number():
    from tilewright.runtime.gpu import timing

    sm, watts = timing.parse_numbers([" 1980", " [N/A]\n"])
    assert sm == 1980
    assert math.isnan(watts)


def test_bundles_are_made_and_refused_shapes_are_said(tmp_path, monkeypatch, capsys):
    import gpu_bundles

    shapes = "64x64x64,64x64x0"
    arguments = ["gpu_bundles.py", str(tmp_path), "--target", "sm_100a", "--shapes", shapes]
    monkeypatch.setattr(sys, "argv", arguments)
    assert gpu_bundles.main() == 1
    assert [path.name for path in tmp_path.iterdir()] == ["64x64x64.zip"]
    assert read_bundle(tmp_path / "64x64x64.zip").manifest["spec"]["k"] == 64
    assert "64x64x0" in capsys.readouterr().err
