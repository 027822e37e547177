"""The planted faults of `run.py` still fit the sources; whether tests find them is seen there."""

import shutil
from collections import Counter
from pathlib import Path
from types import SimpleNamespace

import pytest
import run
from faults import FAULTS
from run import (
    PAGE,
    ROW,
    TREE,
    Outcome,
    finders_of,
    home_of,
    main,
    rows_of,
    table,
    texts_of,
    try_fault,
)

SUBJECTS = {"dialects": 2, "passes": 35, "passes/lowering": 19, "runtime/emulator": 20}


@pytest.fixture(scope="module")
def texts():
    return texts_of(TREE)


@pytest.fixture(scope="module")
def homes(texts):
    """The files that the faults stand in, in their order."""
    return [home_of(fault, texts).as_posix() for fault in FAULTS]


def test_every_fault_has_one_place_in_the_sources_and_leaves_valid_python(homes, texts):
    for fault, home in zip(FAULTS, homes, strict=True):
        assert fault.old != fault.new
        compile(texts[Path(home)].replace(fault.old, fault.new), home, "exec")


def test_faults_are_spread_over_the_compiler_and_the_emulator(homes):
    assert len({fault.what for fault in FAULTS}) == len(FAULTS)
    for subject, least in SUBJECTS.items():
        assert sum(home.startswith(f"{subject}/") for home in homes) >= least
    assert max(Counter(homes).values()) <= 6


def test_the_page_lists_every_fault_by_its_place_and_text(homes):
    """Once: a merge of two rows of one fault leaves both."""
    page = (TREE / PAGE).read_text()
    rows = [(found[1], found[2]) for found in ROW.finditer(page)]
    assert len(rows) == page.count("\n| `"), "a row of the page is none"
    wanted = [(home, fault.what) for home, fault in zip(homes, FAULTS, strict=True)]
    assert rows == wanted, "python test/mutation/run.py --unlisted writes the rows that differ"


def test_a_page_keeps_the_rows_of_faults_that_did_not_run(homes):
    page = (TREE / PAGE).read_text()
    fault, places = FAULTS[1], dict(zip(FAULTS, map(Path, homes), strict=True))
    missed = table({fault: Outcome(None, 1.0)}, page + "| `gone.py` | gone: x | `t` |\n", places)
    changed = [line for line in missed.splitlines() if line not in page.splitlines()]
    assert changed == [f"| `{homes[1]}` | {fault.what} | **none** |"]
    assert set(rows_of(missed)) == set(rows_of(page))
    assert set(finders_of(page)) - set(finders_of(missed)) == {fault.what}
    assert not any(r"\|" in test for test in finders_of(page).values())


def test_the_test_that_the_page_names_runs_first_and_where_it_passes_those_of_the_fault(
    monkeypatch, tmp_path
):
    """A test that there is no more counts as passed."""
    fault, ran, planted = FAULTS[0], [], set()

    def failing(*names):
        def run(command, **_):
            tests = command[command.index("no:cacheprovider") + 1 :]
            ran.append(tests)
            planted.add(fault.old not in (copy / home).read_text())
            bad = [each for each in tests if each in names]
            return SimpleNamespace(
                returncode=1 if bad else 4 if "gone" in tests[0] else 0,
                stdout="".join(f"FAILED {each} - boom\n" for each in bad),
                stderr="",
            )

        return run

    home = next(path for path, text in texts_of(TREE).items() if fault.old in text)
    tree, copy = tmp_path / "tree", tmp_path / "copy" / "tree"
    for place in (tree, copy):
        (place / home).parent.mkdir(parents=True)
        shutil.copy2(TREE / home, place / home)
    (copy / fault.tests[0]).parent.mkdir(parents=True, exist_ok=True)
    (copy / fault.tests[0]).touch()
    monkeypatch.setattr(run, "copy_of", lambda *_: copy)
    monkeypatch.setattr(run, "check_imports", lambda _: None)
    copies = run.Copies(tree, tmp_path)
    for failing_tests, listed, expected, count in (
        (("t.py::a[x|y]",), "t.py::a[x|y]", "t.py::a[x|y]", 1),
        (fault.tests[:1], "t.py::a[x|y]", fault.tests[0], 2),
        (fault.tests[:1], "gone.py::a", fault.tests[0], 2),
        ((), None, None, 1),
    ):
        monkeypatch.setattr(run.subprocess, "run", failing(*failing_tests))
        ran.clear()
        assert try_fault(fault, copies, listed).caught_by == expected
        assert len(ran) == count
        assert planted == {True}, "tests run with the fault"
        assert (copy / home).read_text() == (TREE / home).read_text(), "and the next ones without"


def test_every_fault_names_tests_that_there_are():
    for fault in FAULTS:
        assert all((TREE / test).exists() for test in fault.tests), fault.what


def test_words_of_no_fault_are_refused(monkeypatch, capsys):
    monkeypatch.setattr("sys.argv", ["run.py", "--only", "no such fault"])
    with pytest.raises(SystemExit) as caught:
        main()
    assert caught.value.code == 2
    assert "must be words of a fault, got ['no such fault']" in capsys.readouterr().err


def test_a_tree_that_is_none_is_refused_in_one_line(tmp_path, monkeypatch, capsys):
    for missing in (tmp_path / "gone", tmp_path):
        monkeypatch.setattr("sys.argv", ["run.py", "--tree", str(missing)])
        with pytest.raises(SystemExit) as caught:
            main()
        assert caught.value.code == 2
        last = capsys.readouterr().err.splitlines()[-1]
        assert last.endswith(f"--tree must be a checkout with a pyproject.toml, got {missing}")
