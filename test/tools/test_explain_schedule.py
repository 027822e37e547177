"""`tilewright explain schedule`: the choice, and a reason with units for every other candidate."""

import re

SPEC = ("--m", 1000, "--n", 520, "--k", 200)


def test_the_choice_and_every_rejected_candidate_are_printed(tilewright):
    found = tilewright("explain", "schedule", *SPEC, "--json").json
    ran = tilewright("explain", "schedule", *SPEC)
    assert ran.status == 0
    assert found["pipeline"] in ran.out
    assert f"{found['estimate']['total_us']:.2f} us" in ran.out
    rows = re.findall(r"^ ([a-z-]+) +(\d+) +\d+x\d+x\d+", ran.out, re.MULTILINE)
    assert sum(int(count) for _, count in rows) == len(found["rejected"])


def test_all_gives_every_rejected_candidate_its_own_line(tilewright):
    found = tilewright("explain", "schedule", *SPEC, "--json").json
    ran = tilewright("explain", "schedule", *SPEC, "--all")
    rows = re.findall(r"^ ([a-z-]+) +\d+x\d+x\d+", ran.out, re.MULTILINE)
    assert len(rows) == len(found["rejected"])


def test_reasons_name_units_and_figures_name_sources(tilewright):
    found = tilewright("explain", "schedule", *SPEC, "--json").json
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
