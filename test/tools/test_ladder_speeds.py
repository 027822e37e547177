"""`tilewright ladder`: what a rung changes, how fast it is predicted to be and was published."""

import re
from pathlib import Path

import pytest

from tilewright.compiler import presets
from tilewright.compiler.pipeline import all_presets, parse_pipeline
from tilewright.compiler.schedule.estimates.rungs import predict, schedule_of_passes
from tilewright.compiler.schedule.estimates.tensor_estimate import residents_of
from tilewright.compiler.schedule.estimates.tensor_steps import Traits
from tilewright.compiler.schedule.problem import Problem, Schedule
from tilewright.compiler.spec import MatmulSpec
from tilewright.dialects.target import TARGETS
from tilewright.tools.ladder.plot import draw, lines
from tilewright.tools.ladder.published import PUBLISHED
from tilewright.tools.ladder.speeds import speed_of
from tilewright.tools.ladder.steps import changes

DOCS = Path(__file__).parents[2] / "docs"
TARGET = TARGETS["sm_100a"]
CUBE = Problem.of(MatmulSpec(m=4096, n=4096, k=4096), TARGET)


def passes(text):
    return [(call.name, dict(call.options)) for call in parse_pipeline(text)]


def predicted(name):
    return predict(CUBE, passes(all_presets()[name]), TARGET)


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("v1b", "tma-insertion{box=3d}"),
        (
            "kernel2",
            "tiling{tile=64x64x64 no mma no operands}, +tma-insertion{box=2d}, "
            "+expand-loops{reads=matrices}",
        ),
        ("kernel3", "+swizzle-selection"),
        ("v4", "+warp-specialization"),
        ("v6", "+persistence{scheduler=static}"),
        ("kernel6", "clustering{shape=2x1}, +pipelining{stages=5}, +warp-specialization"),
    ],
)
def test_a_rung_says_what_it_adds_to_the_one_before(name, said):
    assert changes(name) == said


def test_a_rung_says_what_it_leaves_out(monkeypatch):
    rungs = {"v1": "tiling{tile=128x128x64},tma-insertion", "v2": "tiling{tile=64x64x64}"}
    monkeypatch.setitem(presets.PRESETS_OF, "sm_100a", rungs)
    assert changes("v2") == "tiling{tile=64x64x64}, no tma-insertion"


def test_the_diff_of_a_rung_is_that_of_its_new_passes(tilewright):
    ran = tilewright("ladder", "--no-run", "--print-diff", "--presets", "v4")
    headings = re.findall(r"^--- before (.*)$", ran.err, re.M)
    assert ran.status == 0 and headings == ["warp-specialization, v4"]
    assert re.search(r"^\+.*pipe\.agent|^\+.*agent", ran.err, re.M)


def test_published_figures_are_those_of_the_page():
    page = (DOCS / "ladder.md").read_text()
    rows = re.findall(r"^\| `(\w+)` \| ([\d.]+) \| ([\d.]+) \| (.*) \|$", page, re.M)
    blackwell = {n: each for n, each in PUBLISHED.items() if each.series.chip == "sm_100a"}
    assert rows == [
        (name, f"{each.tflops:.1f}", f"{each.of_cublas:.3f}", each.source())
        for name, each in blackwell.items()
    ]


@pytest.mark.parametrize(
    ("name", "share"), [("kernel2", 0.087), ("kernel3", 0.164), ("kernel5", 0.20),
                        ("kernel6", 0.81), ("kernel7", 0.85), ("v2a", 0.46), ("v6", 0.98)],
)  # fmt: skip
def test_shares_of_cublas_are_those_that_the_texts_state(name, share):
    assert PUBLISHED[name].of_cublas == pytest.approx(share, abs=0.01)


def test_measured_times_are_those_of_the_hopper_page():
    page = (DOCS / "hopper.md").read_text()
    rows = dict(re.findall(r"^\| `(h\d)` \| .*? \| ([\d.]+) \|", page, re.M))
    found = {name: f"{each.us:.1f}" for name, each in PUBLISHED.items() if name in rows}
    assert found == rows


def test_the_picture_of_the_page_is_what_the_command_draws(tilewright, tmp_path):
    picture = tmp_path / "road.svg"
    assert tilewright("ladder", "--no-run", "--svg", picture).status == 0
    kept = (DOCS / "ladder" / "road.svg").read_text()
    assert kept == picture.read_text(), "run tilewright ladder --no-run --svg docs/ladder/road.svg"


def test_a_bar_is_as_high_as_its_speed():
    spec = MatmulSpec(m=512, n=512, k=512)
    svg = draw("t", [speed_of(name, spec, "sm_100a") for name in ("kernel2", "kernel3")])
    heights = re.findall(r'width="17" height="([\d.]+)" fill="#1f77b4"', svg)
    second, third = map(float, heights)
    assert third / second == pytest.approx(288.3 / 155, rel=0.01)


def test_a_preset_without_figures_has_no_bar(monkeypatch):
    monkeypatch.setitem(presets.PRESETS_OF, "sm_100a", {"mine": "tiling{tile=128x128x64}"})
    speed = speed_of("mine", MatmulSpec(m=512, n=512, k=512), "sm_100a")
    assert speed.predicted is None and list(lines([speed])) == []
    assert "<rect" in draw("t", [speed])


# -- the prediction of rungs that the choice would not make ------------------------------------


def test_narrow_rows_are_copied_one_after_another():
    """64 K tiles of 2048 rows of 16 bytes, a row a cycle, for each of 1024 tiles on 148."""
    rows = 64 * (128 + 128) * 64 * 2 / 16
    least = 1024 / 148 * rows / 1.965e3
    found = predicted("v1a")
    assert found.bound == "rows of 16 bytes" and least < found.total_us < 1.1 * least


def test_a_swizzle_and_residents_make_one_stage_faster():
    assert predicted("v2a").total_us < predicted("v1a").total_us / 2
    schedule = schedule_of_passes(dict(passes(all_presets()["v2a"])))
    small, plain = Schedule((64, 64, 64)), Traits()
    assert residents_of(CUBE, schedule, TARGET, plain) == 3  # of 64 KiB each, of 228
    assert residents_of(CUBE, small, TARGET, plain) == 8  # of 64 columns each, of 512
    assert residents_of(CUBE, small, TARGET, Traits(columns=512)) == 1
    assert residents_of(CUBE, Schedule((64, 16, 64)), TARGET, plain) == 10  # of 192 threads each


def test_a_kernel_that_takes_all_tensor_memory_waits_for_each_step():
    """Where CTAs share a multiprocessor, one's loads hide behind another one's MMAs."""
    text = passes(all_presets()["kernel3"])
    shared, alone = predict(CUBE, text, TARGET), predict(CUBE, text, TARGET, columns=512)
    assert shared.residents == 8 and alone.residents == 1
    assert 2 * shared.total_us < alone.total_us


def test_every_rung_of_two_stages_has_the_estimate_of_its_schedule():
    """The pipeline that a rung's schedule stands for is the rung's own."""
    for name in ("v5", "v6", "kernel7", "kernel8"):
        calls = dict(passes(all_presets()[name]))
        made = dict(passes(schedule_of_passes(calls).pipeline()))
        assert {key: made[key] for key in ("tiling", "pipelining", "clustering")} == {
            key: calls[key] for key in ("tiling", "pipelining", "clustering")
        }
        assert made.get("epilogue-staging") == calls.get("epilogue-staging")


@pytest.mark.parametrize(
    "text", ["tiling{tile=128x128x64}", "tiling,tma-insertion",
             "tiling{tile=128x128x64},tma-insertion,swizzle-selection,pipelining"],
)  # fmt: skip
def test_what_the_estimate_does_not_describe_is_not_predicted(text):
    assert predict(CUBE, passes(text), TARGET) is None


def test_a_type_that_the_tensor_core_lacks_is_not_predicted():
    speed = speed_of("v4", MatmulSpec(512, 512, 512, "f32", "f32", "f32"), "sm_100a")
    assert speed.predicted is None and speed.predicted_tflops > 0


def test_the_diff_of_a_rung_that_is_refused_is_left_out(tilewright, monkeypatch):
    monkeypatch.setitem(presets.PRESETS_OF, "sm_100a", {"wide": "tiling{tile=128x512x64}"})
    ran = tilewright("ladder", "--print-diff")
    assert ran.status == 1 and ran.err == ""
    assert "wide: error: tile.matmul: tile N must be" in ran.out


def test_a_check_without_a_run_is_refused(tilewright):
    ran = tilewright("ladder", "--no-run", "--check", "off")
    assert ran.status == 2 and "--check must come without --no-run" in ran.err
    ran = tilewright("ladder", "--no-run", "--seed", "0")
    assert ran.status == 2 and "--seed must come without --no-run" in ran.err
