"""`tilewright tune` can be stopped, goes on where it was, and says how long it will take."""

import json

from tilewright.compiler import own_sources
from tilewright.runtime import read_bundle
from tilewright.tools.main import main
from tilewright.tools.tuning import candidates as tune_candidates
from tilewright.tools.tuning.progress import left


def test_what_was_stopped_goes_on_where_it_was(gpu, tmp_path, capsys):
    folder, results = tmp_path / "c", tmp_path / "r.json"
    words = ["tune", "compile", str(folder), "--count", "2", "--shapes"]
    assert main([*words, "64x64x64"]) == 0
    assert main(["tune", "measure", str(folder), "-o", str(results)]) == 0
    first = {path.name: path.stat().st_mtime_ns for path in folder.glob("*.zip")}
    rows = json.loads(results.read_text())["rows"]
    rows[0]["us"] = 77.0
    results.write_text(json.dumps(json.loads(results.read_text()) | {"rows": rows}))
    assert main([*words, "64x64x64,64x72x64"]) == 0
    assert {path.name: path.stat().st_mtime_ns for path in folder.glob("64x64*.zip")} == first
    assert main(["tune", "measure", str(folder), "-o", str(results)]) == 0
    assert [row["us"] for row in json.loads(results.read_text())["rows"]] == [
        77.0,
        20.0,
        30.0,
        20.0,
    ]
    capsys.readouterr()
    assert main(["tune", "measure", str(folder), "-o", str(results), "--rounds", "3"]) == 1
    assert "must be of rounds 3, got 9; name another file" in capsys.readouterr().err
    assert main(["tune", "measure", str(folder), "-o", str(results), "--rest", "2"]) == 1
    assert "must be of rest 2.0, got 0; name another file" in capsys.readouterr().err
    assert main([*words, "64x64x64", "--type", "e4m3"]) == 1
    assert "must be of the same type and for sm_90a" in capsys.readouterr().err
    (folder / "64x72x64.01.zip").write_bytes(b"PK")
    assert main([*words, "64x64x64,64x72x64"]) == 0
    read_bundle(folder / "64x72x64.01.zip")
    assert {path.name: path.stat().st_mtime_ns for path in folder.glob("64x64*.zip")} == first


def test_what_other_sources_made_is_made_and_measured_anew(gpu, tmp_path, monkeypatch):
    folder, results = tmp_path / "c", tmp_path / "r.json"
    words = ["tune", "compile", str(folder), "--jobs", "1", "--shapes", "64x64x64", "--count"]
    assert main([*words, "3"]) == 0
    assert main(["tune", "measure", str(folder), "-o", str(results)]) == 0
    monkeypatch.setattr(own_sources, "source_digest", lambda: "other")
    assert main([*words, "2"]) == 0
    index = json.loads((folder / "candidates.json").read_text())
    assert [entry["sources"] for entry in index.values()] == ["other"] * 2
    assert main(["tune", "measure", str(folder), "-o", str(results)]) == 0
    assert [row["sources"] for row in json.loads(results.read_text())["rows"]] == ["other"] * 2


def test_two_that_compile_into_a_folder_keep_what_each_has_made(tmp_path, monkeypatch):
    entry = {"target": "sm_90a", "spec": {}, "pipeline": "tiling"}
    index, made = tmp_path / "candidates.json", {"64x64x64.00.zip": entry}
    other = {"72x64x64.00.zip": entry}

    def compiled(jobs, processes):
        index.write_text(json.dumps(other))  # by somebody else, meanwhile
        yield made

    monkeypatch.setattr(tune_candidates, "_compiled", compiled)
    assert main(["tune", "compile", str(tmp_path), "--shapes", "64x64x64", "--jobs", "1"]) == 0
    assert json.loads(index.read_text()) == other | made


def test_the_time_that_is_left_follows_the_pace():
    assert left(0, 10, 5.0) == ""
    assert left(4, 10, 20.0) == ", 30 s left"
    assert left(1, 100, 6.0) == ", 10 min left"
