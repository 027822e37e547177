"""benchmarks/gpu_counters.py without a GPU: what it reads of ncu's pages, and its verdicts."""

import json
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

FOLDER = Path(__file__).parent.parent.parent / "benchmarks"
CLOCKS = {"sm_mhz": 1600.0, "highest_mhz": 1980.0, "watts": 690.0}
OURS, MAIN, REDUCE = "matmul", "nvjet_sm90", "splitKreduce"


@pytest.fixture
def script(monkeypatch):
    """The script, imported as when it is run."""
    monkeypatch.syspath_prepend(str(FOLDER))
    import gpu_counters

    yield gpu_counters
    for name in ("gpu_counters", "gpu_profiled"):
        sys.modules.pop(name, None)


def raw_page(script, kernels):
    """ncu's raw page: kernels are (name, microseconds, tensor percent)."""
    names = ["ID", "Kernel Name", script.TIME, *script.METRICS.values()]
    rows = [names, ["", "", "ns", *["%"] * len(script.METRICS)]]
    for number, (name, us, tensor) in enumerate(kernels):
        values = {"cycles": 20_000, "active": 15_000, "busiest": 18_000, "tensor": tensor}
        found = [f"{values.get(each, 10.0):,}" for each in script.METRICS]
        rows.append([str(number), name, f"{us * 1000:,}", *found])
    quoted = [",".join(f'"{cell}"' for cell in row) for row in rows]
    return "\n".join(["==PROF== Connected", *quoted])


def source_page(name, rows):
    """ncu's source page of a kernel: rows are (instruction, executed, samples, for memory)."""
    lines = [
        f'"Kernel Name","{name}",',
        '"Address","Source","# Samples","Instructions Executed","stall_long_sb"',
    ]
    for at, (text, executed, samples, memory) in enumerate(rows):
        lines.append(f'"{at:#x}","{text}","{samples}","{executed}","{memory}"')
    return "\n".join(lines) + "\n"


LOOP = [
    ("HGMMA.64x256x16.F32.BF16 R24, gdesc[UR12], RZ, !UPT", 64, 500, 0),
    ("SYNCS.PHASECHK.TRANS64.TRYWAIT P1, [R0+UR9], R3", 640, 2, 0),
    ("@!P1 BRA 0x61e0", 640, 28, 28),
    ("HGMMA.64x256x16.F32.BF16 R24, gdesc[UR12], R24", 640, 60, 0),
    ("WARPGROUP.DEPBAR.LE gsb0, 0x1", 640, 10, 0),
    ("@P0 BRA 0x5bd0", 1600, 900, 900),
]


def test_times_are_added_and_the_rest_is_weighted_by_them(script, monkeypatch, tmp_path):
    kernels = [
        (OURS, 12, 50.0),
        (MAIN, 9, 40.0),
        (REDUCE, 3, 0.0),
        (OURS, 20, 90.0),
        (MAIN, 10, 85.0),
    ]
    pages_of = {OURS: [LOOP], MAIN: [[]], REDUCE: [[], []]}  # ncu lists it twice
    source = "".join(source_page(name, each) for name, *_ in kernels for each in pages_of[name])
    pages = {"raw": raw_page(script, kernels), "source": source}
    passes = "normalize,tiling{tile=64x32x16},lower-to-nvvm"
    told = {
        "entry": OURS,
        "pipeline": passes,
        "ours": CLOCKS,
        "cublas": {**CLOCKS, "sm_mhz": 1980.0},
    }

    def run(command, **_):
        if "-o" in command:
            Path(command[-1]).write_text(json.dumps({"16x8x4": told, "32x8x4.h1": told}))
            return SimpleNamespace(returncode=0, stdout="", stderr="")
        return SimpleNamespace(returncode=0, stdout=pages[command[command.index("--page") + 1]])

    monkeypatch.setattr(script.subprocess, "run", run)
    first, rival, second, other = script.profile(tmp_path, tmp_path)
    assert (rival.bundle, rival.who, rival.us) == ("16x8x4", "cuBLAS", 12.0)
    assert rival.found["tensor"] == pytest.approx((9 * 40.0 + 3 * 0.0) / 12)
    assert (first.kernels, rival.kernels) == (["tile=64x32x16"], [MAIN, REDUCE])
    assert (first.operands, rival.operands) == (pytest.approx(28.0), None)
    assert first.losses == {
        "waiting": pytest.approx(100 - 50 - 15 - 10),
        "uneven": pytest.approx(15.0),
        "ends": pytest.approx(10.0),
    }
    assert second.bundle == "32x8x4.h1"
    assert second.verdict == "tensor pipe, at the power limit"
    assert other.verdict == "tensor pipe"
    lines = script.as_text([first, rival]).splitlines()
    assert len({line.count("|") for line in lines}) == 1
    assert lines[2].startswith(
        "| 16×8×4 | ours | tile=64x32x16 | 12.0 | 50 | 25 | 15 | 10 | 28 | 10 | 320 | 10 |"
    )
    assert lines[2].endswith("| 1600 | 690 | start and end, at the power limit |")


@pytest.mark.parametrize(
    ("changes", "operands", "expected"),
    [
        ({"tensor": 85, "dram": 99}, 90, "tensor pipe"),
        ({"tensor": 84, "dram": 50, "l2": 99}, 90, "DRAM"),
        ({"tensor": 20, "dram": 49, "l2": 55}, 90, "L2"),
        ({"tensor": 50, "active": 60, "busiest": 90}, 90, "waves"),
        ({"tensor": 50, "active": 60, "busiest": 65}, 90, "launch"),
        ({"tensor": 50, "active": 90, "busiest": 95}, 33, "loads"),
        ({"tensor": 50, "active": 90, "busiest": 95}, 32, "start and end"),
        ({"tensor": 50, "active": 90, "busiest": 95}, None, "waiting"),
    ],
)
def test_the_verdict_is_the_first_rule_that_holds(script, changes, operands, expected):
    found = {"cycles": 100, "active": 100, "busiest": 100, "tensor": 0, "dram": 10, "l2": 10}
    row = script.Counters("x", "ours", 1.0, {**found, **changes}, operands, CLOCKS, [OURS])
    assert row.verdict == f"{expected}, at the power limit"
    row.clocks = {**CLOCKS, "sm_mhz": 1921.0}
    assert row.verdict == expected


def test_a_kernel_without_such_a_loop_has_no_share_of_waiting(script):
    ((_, copies),) = script.read_source(source_page(OURS, [("LDGSTS.E [R0]", 0, 40, 40)]))
    assert script.waiting_share(copies) is None
    ((name, loop),) = script.read_source(source_page(OURS, LOOP))
    assert (name, script.waiting_share(loop)) == (OURS, pytest.approx(28.0))


def test_ncu_s_own_message_is_shown_when_it_fails(script, monkeypatch, tmp_path):
    failed = SimpleNamespace(returncode=1, stdout="==ERROR== ERR_NVGPUCTRPERM\n", stderr="")
    monkeypatch.setattr(script.subprocess, "run", lambda *_, **__: failed)
    with pytest.raises(SystemExit, match=r"ncu: must succeed, got exit status 1:\n==ERROR== ERR"):
        script.profile(tmp_path, tmp_path)


def test_without_ncu_or_bundles_it_says_what_is_missing(script, monkeypatch, tmp_path):
    monkeypatch.setattr(sys, "argv", ["gpu_counters.py", str(tmp_path)])
    with pytest.raises(SystemExit, match=r"must hold bundles, got none"):
        script.main()
    (tmp_path / "1x1x1.zip").touch()
    monkeypatch.setattr(script.shutil, "which", lambda name: None)
    with pytest.raises(SystemExit, match=r"ncu: must be on the PATH, got none"):
        script.main()


def test_what_ncu_runs_is_each_kernel_once_after_it_has_run_for_a_while(script, monkeypatch):
    import gpu_profiled

    seen = []

    def kernel(a, b, out):
        seen.append("ours")

    kernel.manifest = {"tensors": [], "entry": OURS, "pipeline": "tiling"}
    profiler = SimpleNamespace(
        cudaProfilerStart=lambda: seen.append("start"), cudaProfilerStop=lambda: seen.append("stop")
    )
    fakes = {
        "load": lambda path: kernel,
        "make_set": lambda tensors, seed: [gpu_profiled.torch.zeros(4, 4)] * 3,
        "batch_us": lambda launch, count, sets: launch(0) or 1e5,
        "clocks_under": lambda launch, count, sets: {"count": count},
    }
    for name, fake in fakes.items():
        monkeypatch.setattr(gpu_profiled, name, fake)
    monkeypatch.setattr(gpu_profiled.torch.cuda, "cudart", lambda: profiler)
    monkeypatch.setattr(gpu_profiled.torch.cuda, "synchronize", lambda: seen.append("wait"))
    monkeypatch.setattr(gpu_profiled.torch, "mm", lambda *_, **__: seen.append("cublas"))
    found = gpu_profiled.profile(Path("1x1x1.zip"))
    clocks = {"ours": {"count": 4}, "cublas": {"count": 4}}
    assert found == {"entry": OURS, "pipeline": "tiling", **clocks}
    assert seen[-5:] == ["start", "ours", "cublas", "wait", "stop"]
