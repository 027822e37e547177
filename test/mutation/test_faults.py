"""The planted faults of `run.py` still fit the sources; whether tests find them is seen there."""

import re
from collections import Counter
from pathlib import Path

import pytest
from faults import FAULTS
from run import TREE, home_of, main, texts_of

PAGE = TREE / "docs" / "mutation.md"
SUBJECTS = {"dialects": 2, "passes": 35, "passes/lowering": 19, "runtime/emulator": 20}


@pytest.fixture(scope="module")
def texts():
    return texts_of(TREE)


@pytest.fixture(scope="module")
def homes(texts):
    """The files that the faults stand in."""
    return [home_of(fault, texts).as_posix() for fault in FAULTS]


def test_every_fault_has_one_place_in_the_sources_and_leaves_valid_python(homes, texts):
    for fault, home in zip(FAULTS, homes, strict=True):
        assert fault.old != fault.new
        compile(texts[Path(home)].replace(fault.old, fault.new), home, "exec")


def test_faults_are_spread_over_the_compiler_and_the_emulator(homes):
    assert len({fault.what for fault in FAULTS}) == len(FAULTS)
    for subject, least in SUBJECTS.items():
        assert sum(home.startswith(f"{subject}/") for home in homes) >= least
    assert max(Counter(homes).values()) <= 4


def test_the_page_lists_every_fault_by_its_number_and_place(homes):
    rows = re.findall(
        r"^\| (\d+) \| `([^`]+)` \| (.*) \| `[^`]+` \|$", PAGE.read_text(), re.MULTILINE
    )
    assert [(int(number), home, what) for number, home, what in rows] == [
        (number, home, fault.what)
        for number, (home, fault) in enumerate(zip(homes, FAULTS, strict=True), 1)
    ]


def test_every_fault_names_tests_that_there_are():
    for fault in FAULTS:
        assert all((TREE / test).exists() for test in fault.tests), fault.what


def test_a_tree_that_is_none_is_refused_in_one_line(tmp_path, monkeypatch, capsys):
    for missing in (tmp_path / "gone", tmp_path):
        monkeypatch.setattr("sys.argv", ["run.py", "--tree", str(missing)])
        with pytest.raises(SystemExit) as caught:
            main()
        assert caught.value.code == 2
        last = capsys.readouterr().err.splitlines()[-1]
        assert last.endswith(f"--tree must be a checkout with a pyproject.toml, got {missing}")
