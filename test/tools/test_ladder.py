"""`tilewright ladder`: every rung compiled, inspected, run and judged."""

import re
from pathlib import Path

import pytest

from tilewright.compiler import backend, presets
from tilewright.compiler.driver import compile_matmul
from tilewright.compiler.spec import MatmulSpec
from tilewright.runtime.judge import reference
from tilewright.tools.ladder import COLUMNS
from tilewright.tools.tables import print_table

SIZE = ("--m", 72, "--n", 40, "--k", 136)


def test_rungs_are_printed_with_their_resources_and_verdict(tilewright):
    ran = tilewright("ladder", *SIZE, "--presets", "v1a,kernel3")
    assert ran.status == 0
    rows = [line.split() for line in ran.out.splitlines() if line.startswith(" kernel3")]
    row, evidence, speed = rows
    assert row[1:5] == ["tma", "swizzle", "64×64×64", "1"]
    assert row[-1] == "PASS"
    assert len(evidence) == 10 and evidence[-2] == "0"  # conflicts
    assert speed[1].startswith("+swizzle-selection") and "288.3" in speed
    assert ran.out.splitlines()[-1] == "PASS  2 of 2 rungs"


def test_json_counts_the_loops_of_the_roles(tilewright):
    found = tilewright("ladder", *SIZE, "--presets", "v2a", "--json").json
    (rung,) = found["rungs"]
    assert found["ok"] and rung["ok"] and rung["error"] is None
    assert rung["tile"] == [128, 128, 128]
    assert rung["spilled_bytes"] == 0
    assert rung["ptx_loops"]["mma"] > 4
    assert rung["sass_loops"] is None or rung["sass_loops"]["mma"] > 4


@pytest.mark.sweep(2)
@pytest.mark.parametrize(("plain", "swizzled"), [("v1a", "v2a"), ("kernel2", "kernel3")])
def test_a_swizzle_asks_for_whole_lines_and_takes_one_pass_for_each(tilewright, plain, swizzled):
    """A and B are read once for each tile of C: rows of 16 bytes without a swizzle, of 128 with.

    The tensor core reads 8x8 matrices of 128 bytes, one pass each in both layouts.
    """
    size = ("--m", 128, "--n", 128, "--k", 128)
    ran = tilewright("ladder", *size, "--presets", f"{plain},{swizzled}", "--json")
    before, after = (rung["evidence"] for rung in ran.json["rungs"])
    tile = 128 if plain == "v1a" else 64
    loaded = (128 // tile) ** 2 * 2 * tile * 128 * 2
    stored = 128 * 128 * 2
    assert before["asked_bytes"] == after["asked_bytes"] == loaded + stored
    narrow = plain == "kernel2"  # both store 16 bytes of each of 8 rows at a time
    stores = narrow * stored // 16
    assert before["requests"]["16"] == loaded // 16 + stores
    assert before["requests"]["128"] == 0
    assert (after["requests"]["16"], after["requests"]["128"]) == (stores, loaded // 128)
    assert before["sectors"] * 32 == 2 * loaded + (1 + narrow) * stored
    assert after["sectors"] * 32 == loaded + (1 + narrow) * stored
    assert before["conflicts"] == loaded // 16 - loaded // 128
    assert after["conflicts"] == 0


def test_a_rung_that_is_refused_fails_the_ladder_and_leaves_the_others(tilewright, monkeypatch):
    broken = {"wide": "tiling{tile=128x512x64}", "kernel3": presets.PRESETS["kernel3"]}
    monkeypatch.setitem(presets.PRESETS_OF, "sm_100a", broken)
    ran = tilewright("ladder", *SIZE)
    assert ran.status == 1
    assert "wide: error: tile.matmul: tile N must be a multiple of" in ran.out
    assert ran.out.splitlines()[-1] == "FAIL  1 of 2 rungs"


def test_a_wrong_element_fails_its_rung(tilewright, monkeypatch):
    right = reference.expected_output
    monkeypatch.setattr(
        reference, "expected_output", lambda m, tensors, on_gpu: _shifted(right, m, tensors)
    )
    ran = tilewright("ladder", *SIZE, "--presets", "kernel3")
    assert ran.status == 1
    assert "kernel3: FAIL  " in ran.out


def _shifted(right, manifest, tensors):
    tensors = dict(tensors, a=tensors["a"].roll(1, 0))
    return right(manifest, tensors)


def test_a_rung_that_spills_fails(tilewright, monkeypatch):
    read = backend._read_report

    def spilling(cubin, log):
        return read(cubin, log.replace("0 bytes spill stores", "8 bytes spill stores"))

    monkeypatch.setattr(backend, "_read_report", spilling)
    ran = tilewright("ladder", *SIZE, "--presets", "kernel3")
    assert ran.status == 1
    assert "kernel3: registers spill 8 bytes a thread" in ran.out


def test_the_puzzles_ladder_counts_what_its_page_says(tilewright):
    types = [word for each in "abc" for word in (f"--{each}-dtype", "f32")]
    size = ("--m", 9, "--n", 9, "--k", 9, *types)
    ran = tilewright("ladder", "--target", "sm_80", "--presets", "puzzle", *size, "--json")
    page = (README.parent / "docs" / "simt.md").read_text()
    rows = re.findall(
        r"^\| `(puzzle-\w+)` \|(?: \d+ \|){3} (\d+) \| (\d+) \| (\d+) \|$", page, re.M
    )
    found = [(rung["name"], rung["evidence"]) for rung in ran.json["rungs"]]
    assert rows == [
        (name, str(each["asked_bytes"]), str(32 * each["sectors"]), str(each["passes"]))
        for name, each in found
    ]


def test_the_swizzle_of_mma_sync_takes_the_conflicts_away(tilewright):
    """Every second pass of s2 is one of its 1536 conflicts, as the page says."""
    size = ("--m", 128, "--n", 128, "--k", 128)
    ran = tilewright("ladder", "--target", "sm_80", "--presets", "s2,s3", *size, "--json")
    plain, swizzled = (rung["evidence"] for rung in ran.json["rungs"])
    assert (plain["conflicts"], swizzled["conflicts"]) == (1536, 0)
    assert plain["passes"] - swizzled["passes"] == 1536


def test_names_of_rungs_are_never_cut(capsys):
    print_table(COLUMNS, [["puzzle-registers", *["256×256×128"] * (len(COLUMNS) - 1)]], width=80)
    assert " puzzle-registers " in capsys.readouterr().out


def test_an_unknown_preset_is_named(tilewright):
    ran = tilewright("ladder", "--presets", "v1a,v9")
    assert ran.status == 1
    assert ran.err.startswith("error: preset: unknown name 'v9'; use one of v1a, ")


README = Path(__file__).parents[2] / "README.md"
ROW = r"^\| `(\w+)` \| .* \| ([\d×]+) \| (\d+) \| (\d×\d)( pair)? \| (\d+) \| (\w+) \|$"
ANY_SIZE = ("--m", 136, "--n", 264, "--k", 136)
RUNGS = list(presets.PRESETS_OF["sm_100a"])


def test_the_rows_of_the_readme_are_what_the_presets_compile_to():
    printed = re.findall(ROW, README.read_text(), re.MULTILINE)
    assert [row[0] for row in printed] == RUNGS
    for name, tile, stages, cluster, pair, columns, _ in printed:
        manifest = compile_matmul(MatmulSpec(136, 264, 136), preset=name, until="ptx").manifest
        schedule = manifest["schedule"]
        assert "×".join(map(str, schedule["tile"])) == tile, name
        assert "×".join(map(str, manifest["cluster"][:2])) == cluster, name
        assert ("pair=true" in presets.PRESETS[name]) == bool(pair), name
        assert (str(schedule["stages"]), str(schedule["tmem_columns"])) == (stages, columns), name


@pytest.mark.slow
@pytest.mark.sweep(8)
@pytest.mark.parametrize("name", RUNGS)
def test_a_rung_of_the_ladder_passes_as_its_row_of_the_readme_says(name, tilewright):
    ran = tilewright("ladder", *ANY_SIZE, "--presets", name, "--json")
    assert ran.status == 0, ran.err
    (rung,) = ran.json["rungs"]
    (row,) = [row for row in re.findall(ROW, README.read_text(), re.MULTILINE) if row[0] == name]
    assert row == (
        rung["name"],
        "×".join(map(str, rung["tile"])),
        str(rung["stages"]),
        "×".join(map(str, rung["cluster"])),
        " pair" * rung["pair"],
        str(rung["tmem_columns"]),
        "PASS",
    )
