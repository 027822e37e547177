"""benchmarks/gpu.py without a GPU: its arithmetic, its table, and the bundles that it takes."""

import math
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch

from tilewright.compiler.pipeline import parse_pipeline
from tilewright.compiler.presets import HOPPER_PRESETS
from tilewright.runtime import read_bundle
from tilewright.runtime.errors import DeviceError

FOLDER = Path(__file__).parent.parent.parent / "benchmarks"


@pytest.fixture(autouse=True)
def benchmarks(monkeypatch):
    """The scripts' folder, as when one of them is run."""
    monkeypatch.syspath_prepend(str(FOLDER))
    yield
    for name in ("gpu", "gpu_bundles", "gpu_comparisons"):
        sys.modules.pop(name, None)


def row(gpu, us, rivals, name="512x256x1000", host=True):
    times = {"tilewright": us, **rivals}
    host_us = {"tilewright": 5.25, "cublas": 11.0} if host else {}
    return gpu.Row(name, 512, 256, 1000, times, {}, host_us, 3.0, {}, "tiling")


def test_rates_ratios_and_means_follow_from_the_times(monkeypatch):
    import gpu

    first = row(gpu, 20.0, {"cublas": 10.0, "triton": 80.0})
    second = row(gpu, 10.0, {"cublas": 20.0})
    assert first.tflops("tilewright") == pytest.approx(2 * 512 * 256 * 1000 / 20e-6 / 1e12)
    assert (first.ratio("cublas"), first.ratio("triton")) == (0.5, 4.0)
    assert gpu.means([first, second]) == {"cublas": 1.0}, "not every row has Triton"
    monkeypatch.setattr(gpu, "machine", lambda: {"gpu": "H200"})
    *_, head, _, one, two, _, said, last = gpu.as_text([first, second]).split("\n")
    assert head.count("|") == one.count("|") == two.count("|")
    assert one == "| 512×256×1000 | 20.0 | 10.0 | 13 | 26 | 3 | 0.500 | 4.000 | 5.2 | 11.0 |"
    assert two == "| 512×256×1000 | 10.0 | 20.0 | 26 | 13 | — | 2.000 | — | 5.2 | 11.0 |"
    assert said == "stream: 1.000 of cuBLAS (geometric mean), least 0.500, 50% at 0.95 or more"
    assert last == "geometric mean: 1.000 of cublas"


def test_times_in_graphs_are_beside_those_of_the_stream(monkeypatch):
    import gpu

    only = row(gpu, 20.0, {"cublas": 10.0}, host=False)
    chain = {"tilewright": 8.0, "tilewright, serial": 12.5, "cublas": 10.0}
    only.graphs = {"chain": chain, "apart": {"tilewright": 10.0, "cublas": 9.0}}
    monkeypatch.setattr(gpu, "machine", lambda: {"gpu": "H200"})
    *_, head, _, line, _, apart, chained, stream, _ = gpu.as_text([only]).split("\n")
    names, cells = (text.strip("| ").split(" | ") for text in (head, line))
    found = dict(zip(names, cells, strict=True))
    assert [found[name] for name in ("apart", "chain", "chain, serial")] == [
        "0.900",
        "1.250",
        "0.800",
    ]
    assert apart.startswith("apart: 0.900 of cuBLAS")
    assert (chained[:12], stream[:13]) == ("chain: 1.250", "stream: 0.500")


def test_the_table_has_no_empty_columns_and_tells_kernels_of_a_shape_apart(monkeypatch):
    import gpu

    monkeypatch.setattr(gpu, "machine", lambda: {"gpu": "H200"})
    names = ("512x256x1000.h1", "512x256x1000.64x64x64-split-2")
    rows = [row(gpu, 20.0, {"cublas": 10.0}, name, host=False) for name in names]
    _, _, head, _, one, two, *_ = gpu.as_text(rows).split("\n")
    assert head == "| M×N×K | kernel | µs | cuBLAS µs | TFLOP/s | cuBLAS | of cuBLAS |"
    assert one == "| 512×256×1000 | h1 | 20.0 | 10.0 | 13 | 26 | 0.500 |"
    assert two.startswith("| 512×256×1000 | 64x64x64-split-2 | 20.0 ")
    assert gpu.as_line(rows[0]).startswith("512×256×1000 h1: TFLOP/s ")


def kernel(m, n, k, result="bf16"):
    shapes, types = ((m, k), (n, k), (m, n)), ("bf16", "bf16", result)
    tensors = [
        {"shape": list(shape), "strides": [shape[1], 1], "dtype": dtype}
        for shape, dtype in zip(shapes, types, strict=True)
    ]
    return SimpleNamespace(manifest={"tensors": tensors, "pipeline": "tiling"})


def test_bundles_for_the_same_tensors_are_measured_together_from_the_least_work_on():
    import gpu

    kernels = {
        "first": kernel(64, 64, 64),
        "few": kernel(16, 4096, 4096),
        "second": kernel(64, 64, 64),
        "float": kernel(64, 64, 64, "f32"),
        "least": kernel(4096, 8, 6),
    }
    groups = [set(group) for group in gpu.by_matmul(kernels)]
    assert groups[0] == {"least"}
    assert groups[-1] == {"few"}
    assert {"first", "second"} in groups[1:3]
    assert {"float"} in groups[1:3]


def test_folders_without_bundles_that_it_can_measure_are_refused(monkeypatch, tmp_path):
    import gpu

    with pytest.raises(SystemExit, match=r"must hold bundles, got none; see gpu_bundles\.py"):
        gpu.load_all(tmp_path)
    (tmp_path / "1x1x1.zip").touch()
    tensors = [{"name": name} for name in ("a", "b", "bias", "c")]
    monkeypatch.setattr(gpu, "load", lambda path: SimpleNamespace(manifest={"tensors": tensors}))
    with pytest.raises(SystemExit, match=r"must have the tensors a, b, c, got a, b, bias, c$"):
        gpu.load_all(tmp_path)


def test_bundles_of_a_shape_take_turns_with_one_cublas(monkeypatch, capsys):
    import gpu

    asked = []

    def interleaved(launches, sets, rounds, rest):
        asked.append((list(launches), sets, rounds, rest))
        return {name: [10.0 + at, 90.0, 11.0 + at] for at, name in enumerate(launches)}

    fakes = {
        "count_sets": lambda tensors: 3,
        "make_set": lambda tensors, seed: [torch.empty(1, 1)] * 3,
        "first_call": lambda kernel, a, b, out: 2.5,
        "check": lambda *arguments: asked.append(arguments[0]),
        "interleaved": interleaved,
        "clocks_under": lambda launch, count, sets: {"count": count},
    }
    for name, fake in fakes.items():
        monkeypatch.setattr(gpu, name, fake)
    options = SimpleNamespace(
        no_triton=True, no_graphs=True, only_apart=False, no_host=True, rounds=5, rest=2.0
    )
    group = {"40x24x64.h1": kernel(40, 24, 64), "40x24x64.h2": kernel(40, 24, 64)}
    first, second = gpu.measure(group, options)
    everyone = [*group, "cublas"]
    assert asked == [*everyone, (everyone, 3, 5, 2.0)]
    assert (first.us, second.us) == (
        {"tilewright": 11.0, "cublas": 13.0},
        {"tilewright": 12.0, "cublas": 13.0},
    )
    assert (second.m, second.n, second.k, second.kernel) == (40, 24, 64, "h2")
    assert (second.first_call_ms, second.host_us) == (2.5, {})
    assert second.clocks == {"count": 300_000 // 12 + 1}


def test_the_clock_apart_is_measured_alone_where_that_is_asked_for(monkeypatch):
    import gpu

    asked = []

    def measured(launches, sets, rounds, clocks, rest):
        asked.append((list(launches), sets, rounds, clocks, rest))
        return {"apart": {name: 8.0 + 2 * at for at, name in enumerate(launches)}}

    fakes = {
        "count_sets": lambda tensors: 3,
        "make_set": lambda tensors, seed: [torch.empty(1, 1)] * 3,
        "first_call": lambda kernel, a, b, out: 2.5,
        "check": lambda *arguments: None,
        "measure_in_graphs": measured,
        "machine": lambda: {"gpu": "H200"},
    }
    for name, fake in fakes.items():
        monkeypatch.setattr(gpu, name, fake)
    options = SimpleNamespace(no_triton=True, only_apart=True, no_host=True, rounds=5, rest=2.0)
    (row,) = gpu.measure({"40x24x64": kernel(40, 24, 64)}, options)
    assert asked == [(["40x24x64", "cublas"], 3, 5, ("apart",), 2.0)]
    *_, head, _, line, _, said, _ = gpu.as_text([row]).split("\n")
    assert head == "| M×N×K | µs | cuBLAS µs | TFLOP/s | cuBLAS | apart |"
    assert line == "| 40×24×64 | 8.0 | 10.0 | 0 | 0 | 1.250 |"
    assert said == "apart: 1.250 of cuBLAS (geometric mean), least 1.250, 100% at 0.95 or more"


def test_a_rival_that_is_less_exact_is_told_of_marked_and_timed(monkeypatch, capsys):
    import gpu

    def check(name, *arguments):
        if name == "cublas":
            raise DeviceError("cublas: relative error must be below 0.01, got 0.0267")

    monkeypatch.setattr(gpu, "check", check)
    monkeypatch.setattr(gpu, "machine", lambda: {"gpu": "H200"})
    sets = [[torch.empty(40, 64), None, torch.empty(40, 24)]]
    found = row(gpu, 20.0, {"cublas": 10.0})
    found.inexact = [name for name in ("cublas", "triton") if gpu.is_inexact(name, print, sets)]
    assert capsys.readouterr().err == (
        "40×24×64: cublas: relative error must be below 0.01, got 0.0267; it is timed "
        "nevertheless\n"
    )
    assert "| 20.0 | 10.0 (inexact) |" in gpu.as_text([found])


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


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float32, torch.int8])
def test_the_library_multiplies_every_type_by_what_it_has_for_it(dtype):
    import gpu

    generator = torch.Generator().manual_seed(2)
    a, b = ((9 * torch.randn(each, generator=generator)).to(dtype) for each in ((40, 64), (24, 64)))
    out = torch.zeros((40, 24), dtype=torch.int32 if dtype == torch.int8 else torch.float32)
    out = out.to(dtype) if dtype == torch.bfloat16 else out
    gpu.torch_product(a, b, out)()
    exact = a.double() @ b.double().T
    assert (out.double() - exact).abs().max() < 0.01 * exact.abs().max()


def test_bundles_of_every_type_can_be_made(monkeypatch, tmp_path):
    import gpu_bundles

    for type_, c in (("tf32", "f32"), ("e4m3", "bf16"), ("u8", "s32")):
        words = ["gpu_bundles.py", str(tmp_path / type_), "--shapes", "64x64x64", "--type", type_]
        monkeypatch.setattr(sys, "argv", words)
        assert gpu_bundles.main() == 0
        tensors = read_bundle(tmp_path / type_ / "64x64x64.zip").manifest["tensors"]
        assert [tensor["dtype"] for tensor in tensors] == [type_, type_, c]


def test_outputs_of_integers_are_poisoned_too():
    from tilewright.runtime.launch import comparison

    for dtype in (torch.int32, torch.float32):
        output = torch.zeros((3, 4), dtype=dtype)
        assert not comparison.is_poisoned(output)
        comparison.poison(output[1:2, 2:3])
        assert comparison.is_poisoned(output)


def test_what_nvidia_smi_does_not_know_is_not_a_number():
    from tilewright.runtime.gpu import timing

    sm, watts = timing.parse_numbers([" 1980", " [N/A]\n"])
    assert sm == 1980
    assert math.isnan(watts)


def test_clocks_are_read_while_the_gpu_works_and_left_out_without_nvidia_smi(monkeypatch):
    from tilewright.runtime.gpu import timing

    launched, answers = [], iter([None, None, 0])

    class Process:
        returncode = 0
        poll = staticmethod(lambda: next(answers))
        communicate = staticmethod(lambda: ("1500, 1980, 3201, 690.5, [N/A]\n", None))

    monkeypatch.setattr(torch.cuda, "synchronize", lambda: launched.append("wait"))
    monkeypatch.setattr(timing.subprocess, "Popen", lambda *_, **__: Process)
    found = timing.clocks_under(launched.append, 32, 2)
    assert (found["sm_mhz"], found["highest_mhz"], found["watts"]) == (1500, 1980, 690.5)
    assert launched == [*[0, 1] * 16, "wait", *[0, 1, 0, "wait"] * 2]
    Process.returncode, answers = 9, iter([9])
    assert timing.clocks_under(launched.append, 1, 1) == {}


def test_bundles_are_made_and_refused_shapes_are_said(tmp_path, monkeypatch, capsys):
    import gpu_bundles

    shapes = "64x64x64,64x64x0"
    arguments = ["gpu_bundles.py", str(tmp_path), "--target", "sm_100a", "--shapes", shapes]
    monkeypatch.setattr(sys, "argv", arguments)
    assert gpu_bundles.main() == 1
    assert [path.name for path in tmp_path.iterdir()] == ["64x64x64.zip"]
    assert read_bundle(tmp_path / "64x64x64.zip").manifest["spec"]["k"] == 64
    assert "64x64x0" in capsys.readouterr().err


def test_several_processes_make_the_same_bundles(tmp_path, monkeypatch):
    import gpu_bundles

    arguments = ["gpu_bundles.py", str(tmp_path), "--shapes", "64x32x64,64x64x64", "--jobs", "2"]
    monkeypatch.setattr(sys, "argv", arguments)
    assert gpu_bundles.main() == 0
    assert {path.name for path in tmp_path.iterdir()} == {"64x32x64.zip", "64x64x64.zip"}


def test_presets_and_pipelines_of_a_shape_get_bundles_of_their_own(tmp_path, monkeypatch, capsys):
    import gpu_bundles

    arguments = ["gpu_bundles.py", str(tmp_path), "--shapes", "64x32x64", "--chosen"]
    arguments += ["--preset", "h1", "--preset", "h3", "--pipeline", "small=tiling{tile=64x32x32}"]
    monkeypatch.setattr(sys, "argv", arguments)
    assert gpu_bundles.main() == 0
    found = {path.name: read_bundle(path).manifest for path in tmp_path.iterdir()}
    names = {"64x32x64.zip", *(f"64x32x64.{name}.zip" for name in ("h1", "h3", "small"))}
    assert found.keys() == names
    pipeline = found["64x32x64.small.zip"]["pipeline"]
    assert pipeline == "normalize,tiling{tile=64x32x32},lower-to-nvvm"
    assert "swizzle-selection" in found["64x32x64.h3.zip"]["pipeline"]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--shapes", "64x64x64,12x"], "--shapes: must be MxNxK separated by commas, got '12x'"),
        (["--target", "sm_75"], "--target: invalid choice: 'sm_75'"),
    ],
)
def test_options_that_it_cannot_read_are_refused(tmp_path, monkeypatch, capsys, words, message):
    import gpu_bundles

    monkeypatch.setattr(sys, "argv", ["gpu_bundles.py", str(tmp_path / "new"), *words])
    with pytest.raises(SystemExit):
        gpu_bundles.main()
    assert message in capsys.readouterr().err
    assert not (tmp_path / "new").exists()


def test_a_pipeline_without_a_name_is_refused(tmp_path, monkeypatch, capsys):
    import gpu_bundles

    arguments = ["gpu_bundles.py", str(tmp_path), "--pipeline", "tiling{tile=64x32x32}"]
    monkeypatch.setattr(sys, "argv", arguments)
    with pytest.raises(SystemExit):
        gpu_bundles.main()
    assert "must be NAME=TEXT, got 'tiling{tile=64x32x32}'" in capsys.readouterr().err


def test_comparisons_name_every_kernel_once_and_their_pipelines_can_be_read():
    import gpu_comparisons

    for name, variants in gpu_comparisons.COMPARISONS.items():
        found = list(variants("sm_90a"))
        assert len({(each.shape, each.name) for each in found}) == len(found), name
        for each in found:
            assert each.pipeline is None or parse_pipeline(each.pipeline)
    presets = [each.name for each in gpu_comparisons.presets("sm_90a")]
    assert presets == list(HOPPER_PRESETS)
