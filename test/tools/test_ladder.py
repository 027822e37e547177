"""`tilewright ladder`: every rung compiled, inspected, run and judged."""

import functools
import re
from contextlib import nullcontext
from math import prod
from pathlib import Path

import pytest

from tilewright.compiler import backend, driver, inspect_sass, presets
from tilewright.compiler.driver import compile_matmul
from tilewright.compiler.schedule.chips.ceilings import HBM, ceilings_of
from tilewright.compiler.spec import MatmulSpec
from tilewright.runtime.judge import reference
from tilewright.tools.command_line.tables import print_table
from tilewright.tools.commands.ladder import COLUMNS, climb
from tilewright.tools.ladder.bounds import request_passes
from tilewright.tools.roofline.model import counts_of, rooflines_of
from tilewright.tools.roofline.plot import draw

DOCS = Path(__file__).parents[2] / "docs"
PAGE = DOCS / "ladder.md"
SIZE = ("--m", 72, "--n", 40, "--k", 136)


def leave_cubins_out(patch):
    """What the emulator counts is PTX: ptxas and nvdisasm would take most of a rung's time."""
    assembled = backend.Assembled(b"", 0, 0, 0, 0, 0, "")
    patch.setattr(driver, "assemble", lambda *_, **__: assembled)
    patch.setattr(driver, "assembler_ahead", lambda **_: nullcontext())
    patch.setattr(inspect_sass, "disassemble", lambda *_: None)


def test_rungs_are_printed_with_their_resources_and_verdict(tilewright):
    ran = tilewright("ladder", *SIZE, "--presets", "v1a,kernel3")
    assert ran.status == 0
    rows = [line.split() for line in ran.out.splitlines() if line.startswith(" kernel3")]
    row, evidence, speed = rows
    assert row[1:5] == ["tma", "swizzle", "64×64×64", "1"]
    assert row[-1] == "PASS"
    assert evidence[8] == "0"  # conflicts
    assert float(evidence[10]) > 0 and evidence[11] in ("HBM", "shared", "tensor", "requests")
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


@pytest.mark.sweep(4)
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
        reference, "expected_output", lambda m, tensors, *_: _shifted(right, m, tensors)
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


@functools.cache
def puzzle(size):
    """The rungs of the puzzle's ladder at one of its sizes."""
    spec = MatmulSpec.of_type(size, size, size, "f32")
    names = [name for name in presets.THREAD_PRESETS if name.startswith("puzzle-")]
    with pytest.MonkeyPatch.context() as patch:
        leave_cubins_out(patch)
        return [climb(name, spec, "sm_80", 0) for name in names]


@pytest.mark.parametrize(("size", "column"), [(2, 0), (9, 3)])
def test_the_puzzles_ladder_counts_what_its_page_says(size, column):
    page = (DOCS / "simt.md").read_text()
    rows = re.findall(r"^\| `(puzzle-\w+)` \|" + r" (\d+) \|" * 6 + "$", page, re.M)
    found = []
    for rung in puzzle(size):
        assert rung.error is None
        totals = rung.report.profile.totals()
        found.append((rung.name, totals.asked_bytes, 32 * totals.sectors, totals.passes))
    assert [(row[0], *map(int, row[column + 1 : column + 4])) for row in rows] == found


@pytest.mark.parametrize(("size", "column"), [(2, 1), (9, 3)])
def test_the_puzzles_arithmetic_intensity_is_what_its_page_says(size, column):
    """By hand: whole rows and columns for each element, once for each block of 3×3, or once."""
    page = (DOCS / "simt.md").read_text()
    rows = re.findall(r"^\| `(puzzle-\w+)` \|" + r" (\d\.\d{4}) \|" * 4 + "$", page, re.M)
    shown = {row[0]: row[column : column + 2] for row in rows}
    operations, blocks = size * size * (2 * size - 1), -(-size // 3)
    reads = dict.fromkeys(shown, blocks) | {"puzzle-naive": size, "puzzle-registers": 1}
    for rung in puzzle(size):
        loaded = rung.report.profile.totals().asked_bytes - 4 * size * size
        by_hand = operations / (2 * 4 * size * size * reads[rung.name])
        assert shown[rung.name] == (f"{by_hand:.4f}", f"{operations / loaded:.4f}")


def test_the_roofs_of_the_puzzles_page_meet_where_it_says():
    roofs = ceilings_of("sm_80")
    threads, memory = roofs.rate("threads", "f32"), roofs.memory[HBM]
    assert f"{threads / memory:.1f}" == "12.5"
    assert f"{0.1875 * memory / 1e9:.0f} {0.1875 * memory / threads:.1%}" == "292 1.5%"


def test_the_puzzles_roofline_is_the_picture_of_its_page():
    counts = [
        counts_of(rung.name, "sm_80", prod(rung.manifest["grid"]), rung.report.profile)
        for rung in puzzle(9)[:4]
    ]
    kept = (DOCS / "roofline" / "puzzle.svg").read_text()
    assert draw("9×9×9 on sm_80", rooflines_of(counts, {})) == kept, "see docs/simt.md"


def test_threads_that_read_global_memory_are_bound_by_their_requests():
    """Two loads for each of 9 steps of K and a store, by the warp of each of 9 CTAs; a request
    takes a cycle of a multiprocessor, of which 9 have a CTA."""
    naive = puzzle(9)[0]
    assert request_passes(naive.report.profile) == 9 * (2 * 9 + 1)
    assert naive.bound.by == "requests"
    assert naive.bound.us == pytest.approx(19 / 1.41e3)


def test_the_ir_of_the_puzzles_page_is_what_tiling_leaves():
    shown, lanes = re.findall(r"```mlir\n(.*?)```", (DOCS / "simt.md").read_text(), re.DOTALL)
    spec = MatmulSpec.of_type(9, 9, 9, "f32")
    tiled = compile_matmul(
        spec, target="sm_80", preset="puzzle-tiled", stop_after="tiling", until="mlir"
    )
    assert shown in tiled.mlir
    tiling = "tiling{tile=1x1x2048 mma=fma operands=global lanes=128}"
    how = {"target": "sm_90a", "stop_after": "tiling", "until": "mlir"}
    assert lanes in compile_matmul(MatmulSpec(1, 40, 4096), pipeline=tiling, **how).mlir


def test_the_ladder_of_mma_sync_counts_what_its_page_says(tilewright, monkeypatch):
    """Every second pass of s1 and s2 is a conflict, which the swizzle of s3 takes away."""
    leave_cubins_out(monkeypatch)
    size = ("--m", 128, "--n", 256, "--k", 64, "--check", "off")
    names = "s1,s2,s3,s4,s5"
    ran = tilewright("ladder", "--target", "sm_80", "--presets", names, *size, "--json")
    page = (DOCS / "mma-sync.md").read_text()
    rows = re.findall(r"^\| `(s\d)` \| [^|]* \|" + r" (\d+) \|" * 4 + "$", page, re.M)
    found = []
    for rung in ran.json["rungs"]:
        each = rung["evidence"]
        counts = (32 * each["sectors"], each["passes"], each["conflicts"])
        found.append((rung["name"], *map(str, counts), f"{rung['predicted_tflops']:.0f}"))
    assert rows == found


def test_names_of_rungs_are_never_cut(capsys):
    print_table(COLUMNS, [["puzzle-registers", *["256×256×128"] * (len(COLUMNS) - 1)]], width=80)
    assert " puzzle-registers " in capsys.readouterr().out


def test_an_unknown_preset_is_named(tilewright):
    ran = tilewright("ladder", "--presets", "v1a,v9")
    assert ran.status == 2
    assert ran.err.startswith("error: preset: unknown name 'v9'; use one of v1a, ")


ROW = r"^\| `(\w+)` \| .* \| ([\d×]+) \| (\d+) \| (\d×\d)( pair)? \| (\d+) \| (\w+) \|$"
ANY_SIZE = ("--m", 136, "--n", 264, "--k", 136)
RUNGS = list(presets.PRESETS_OF["sm_100a"])


def test_the_rows_of_the_page_are_what_the_presets_compile_to():
    printed = re.findall(ROW, PAGE.read_text(), re.MULTILINE)
    assert [row[0] for row in printed] == RUNGS
    for name, tile, stages, cluster, pair, columns, _ in printed:
        manifest = compile_matmul(MatmulSpec(136, 264, 136), preset=name, until="ptx").manifest
        schedule = manifest["schedule"]
        assert "×".join(map(str, schedule["tile"])) == tile, name
        assert "×".join(map(str, manifest["cluster"][:2])) == cluster, name
        assert ("pair=true" in presets.PRESETS[name]) == bool(pair), name
        assert (str(schedule["stages"]), str(schedule["tmem_columns"])) == (stages, columns), name


@pytest.mark.slow
@pytest.mark.sweep(16)
@pytest.mark.parametrize("name", RUNGS)
def test_a_rung_of_the_ladder_passes_as_its_row_of_the_page_says(name, tilewright):
    ran = tilewright("ladder", *ANY_SIZE, "--presets", name, "--json")
    assert ran.status == 0, ran.err
    (rung,) = ran.json["rungs"]
    (row,) = [row for row in re.findall(ROW, PAGE.read_text(), re.MULTILINE) if row[0] == name]
    assert row == (
        rung["name"],
        "×".join(map(str, rung["tile"])),
        str(rung["stages"]),
        "×".join(map(str, rung["cluster"])),
        " pair" * rung["pair"],
        str(rung["tmem_columns"]),
        "PASS",
    )
