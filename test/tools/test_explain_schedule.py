"""`tilewright explain schedule`: the choice, and a reason with units for every other candidate."""

import contextlib
import io
import json
import re
from pathlib import Path

import pytest

from tilewright.compiler.schedule.kinds.scaled_schedule import estimates
from tilewright.compiler.spec import MatmulSpec
from tilewright.dialects.target import find_target
from tilewright.tools.main import main

SPEC = ("--m", "1000", "--n", "520", "--k", "200")


@pytest.fixture(scope="module")
def found():
    """The choice for `SPEC` as JSON, explained once."""
    with contextlib.redirect_stdout(io.StringIO()) as out:
        assert main(["explain", "schedule", *SPEC, "--json"]) == 0
    return json.loads(out.getvalue())


def test_the_choice_and_every_rejected_candidate_are_printed(tilewright, found):
    ran = tilewright("explain", "schedule", *SPEC)
    assert ran.status == 0
    assert found["pipeline"] in ran.out
    assert f"{found['estimate']['total_us']:.2f} us" in ran.out
    assert f"{found['estimate']['clock']:.2f} GHz with random operands" in ran.out
    rows = re.findall(r"^ ([a-z-]+) +(\d+) +\d+x\d+x\d+", ran.out, re.MULTILINE)
    assert sum(int(count) for _, count in rows) == len(found["rejected"])
    names = [name for name, _ in rows]
    assert names[:12] == ["estimate"] * 12 and len(set(names)) == len(names) - 12


def test_all_gives_every_rejected_candidate_its_own_line(tilewright, found):
    lines = tilewright("explain", "schedule", *SPEC, "--all").out.splitlines()
    behind = lines[-len(found["rejected"]) :]
    assert len(behind) > 1000
    for line, each in zip(behind, found["rejected"], strict=True):
        assert line.startswith(each["rule"]) and line.endswith(each["reason"])
    assert re.fullmatch("rejected by +candidate +reason", lines[-len(behind) - 1])


def test_reasons_name_units_and_figures_name_sources(found):
    units = {"shared-memory": "bytes", "estimate": " us", "tensor-memory": "columns"}
    for rejected in found["rejected"]:
        assert units.get(rejected["rule"], "") in rejected["reason"]
        assert (rejected["total_us"] is not None) == (rejected["rule"] == "estimate")
    assert all({"value", "unit", "source", "assumed"} <= set(f) for f in found["figures"].values())


def test_a_matmul_that_no_candidate_fits_is_refused(tilewright):
    ran = tilewright("explain", "schedule", "--m", 2**20, "--n", 2**26, "--k", 8)
    assert ran.status == 1
    assert ran.err.startswith("error: schedule: ")
    assert "65535 CTAs along N" in ran.err


@pytest.mark.parametrize(
    ("target", "speaks_of", "not_of"),
    [("sm_100a", "tensor memory", "registers"), ("sm_120a", "registers", "tensor memory")],
)
def test_the_rule_of_scaled_products_speaks_of_where_the_sums_are(
    tilewright, target, speaks_of, not_of
):
    formats = ("--a-dtype", "mxfp8", "--b-dtype", "mxfp8", "--target", target)
    ran = tilewright("explain", "schedule", *SPEC[:4], "--k", "256", *formats)
    (rule,) = re.findall(r"^rule +(.*)$", ran.out, re.MULTILINE)
    assert speaks_of in rule and not_of not in rule
    as_json = tilewright("explain", "schedule", *SPEC[:4], "--k", "256", *formats, "--json").json
    assert as_json["rule"] == rule
    assert bool(re.search("^sums +two accumulators: 2 x ", ran.out, re.MULTILINE)) == (
        target == "sm_100a"
    )
    for each in as_json["candidates"] if target == "sm_100a" else ():
        if each["schedule"]["tile"] == [128, 128, 128]:  # two atoms in each of two K steps
            assert (each["copy"], each["places"], each["scale_bytes"]) == (16, 2, 1024)


def test_the_page_on_block_scales_has_the_estimates():
    """A change of the estimate or of a chip's figures shows in its table."""
    page = (Path(__file__).parents[2] / "docs/block-scales-in-kernels.md").read_text()
    rows = {cells[0]: cells[1:] for line in page.splitlines() if len(cells := cells_of(line)) == 7}
    target, shown = find_target("sm_100a"), {}
    for m, n, k in ((4096, 4096, 4096), (8192, 8192, 16384)):
        for format_ in ("mxfp8", "mxfp4", "nvfp4"):
            found = estimates(MatmulSpec(m, n, k, format_, format_), target)
            for each in (each for each in found if each.schedule.pair):
                bold = "**" if each is found[0] else ""
                text = f"{bold}{each.total_us:.1f}{bold}"
                shown.setdefault(str(each.schedule.tile[1]), []).append(text)
    wanted = {n: texts for n, texts in shown.items() if int(n) >= 128}
    assert {n: rows.get(n) for n in wanted} == wanted


def cells_of(line):
    return [cell.strip() for cell in line.strip("|").split("|")] if line.startswith("|") else []


V6 = (
    "tiling{tile=128x256x64},tma-insertion,swizzle-selection,clustering{shape=2x1 pair=true},"
    "pipelining{stages=7},warp-specialization,persistence{order=n}"
)
CUBE = ("--m", 4096, "--n", 4096, "--k", 4096)


def test_the_estimate_of_a_pipeline_is_that_of_its_kernel_and_inputs(tilewright):
    times = [
        tilewright(
            "explain", "schedule", *CUBE, "--pipeline", V6, "--inputs", inputs, "--json"
        ).json["estimate"]["total_us"]
        for inputs in ("quiet", "random", "sustained")
    ]
    assert times == sorted(times)
    assert times[1:] == pytest.approx([93.1, 107.9], rel=0.1)  # v6 as published, and later
    text = tilewright("explain", "schedule", *CUBE, "--pipeline", V6).out
    assert f"total_us       {times[1]:.2f}\n" in text and "TFLOP/s" in text


@pytest.mark.parametrize(
    ("flags", "said"),
    [
        (["--columns", "512"], "--inputs and --columns must come with --pipeline or --preset"),
        (["--preset", "v6", "--columns", "513"], "columns: must be 1 to 512, got 513"),
        (
            ["--preset", "h4", "--target", "sm_90a", "--inputs", "quiet"],
            "tensor memory for --inputs",
        ),
        (["--preset", "nothing"], "preset: unknown name 'nothing'"),
        (["--pipeline", "tiling{tile=128x128x64}"], "an estimate must know every pass"),
        (["--preset", "v6", "--target", "sm_90a"], "sm_90a has no 2-CTA MMAs; drop pair=true"),
    ],
)
def test_what_no_estimate_describes_is_refused(tilewright, flags, said):
    ran = tilewright("explain", "schedule", *CUBE, *flags)
    assert ran.status != 0 and said in ran.err


OF_F32 = ("--a-dtype", "f32", "--b-dtype", "f32", "--c-dtype", "f32")
KINDS = {
    "threads": ("--m", 64, "--n", 256, "--k", 512, *OF_F32),
    "warps": ("--m", 64, "--n", 256, "--k", 512, "--target", "sm_80"),
    "weights": (
        *("--m", 16, "--n", 512, "--k", 512, "--target", "sm_80"),
        *("--b-dtype", "s4", "--group-size", 128, "--scale-dtype", "bf16"),
    ),
    "lanes": ("--m", 1, "--n", 4096, "--k", 4096, "--target", "h100"),
}


@pytest.mark.parametrize("name", KINDS)
def test_a_kind_of_schedules_of_its_own_has_its_rule_and_candidates(tilewright, name):
    told = tilewright("explain", "schedule", *KINDS[name], "--json").json
    shown = tilewright("explain", "schedule", *KINDS[name]).out
    assert f"\nrule       {told['rule']}\n" in shown
    assert f"\npipeline   {told['pipeline']}\n" in shown
    head, (first, *_) = shown.splitlines()[0], told.get("candidates") or told["rejected"]
    assert head.endswith(told["target"]) and " · " in head
    spent = first.get("ctas", first.get("total_us"))
    assert re.search(rf" {spent:.2f} *$" if "total_us" in first else rf" {spent} *$", shown, re.M)
