"""The guides do what they say: their Python runs, block by block, and prints what stands there."""

import re
import shlex

import pytest
from test_documents import ROOT

from tilewright.dialects.target import TARGETS
from tilewright.passes import PASSES
from tilewright.runtime.emulator.ptx import registry
from tilewright.tools import main

ADDED = (
    (PASSES, "reverse-k"),
    (PASSES, "mistaken-k"),
    (TARGETS, "sm_103a"),
    (registry._TABLE, "vabsdiff4.u32.u32.u32"),
)
GUIDES = ("own-pass", "wrong-kernel", "own-instruction")
BLOCK = re.compile(r"^```(python|text|console)\n(.*?)^```", re.MULTILINE | re.DOTALL)


def blocks(page: str) -> list[tuple[str, str]]:
    return BLOCK.findall((ROOT / "docs" / f"{page}.md").read_text())


def missing(expected: str, printed: str) -> list[str]:
    """The lines, in their order, that were not printed behind the one before; `…` is any text."""
    lines = [" ".join(line.split()) for line in printed.splitlines()]
    at = 0
    for line in expected.splitlines():
        words = " ".join(line.split())
        if words == "…":
            continue
        form = re.compile(".*".join(map(re.escape, words.split("…"))))
        found = [n for n in range(at, len(lines)) if form.fullmatch(lines[n])]
        if not found:
            return [words, *lines[at:]]
        at = found[0] + 1
    return []


@pytest.fixture
def tables():
    """What the guides add to tables of the package is taken out of them again."""
    yield
    for table, name in ADDED:
        table.pop(name, None)


@pytest.mark.parametrize("page", GUIDES)
def test_a_guide_prints_what_stands_there(page, tables, tmp_path, monkeypatch, capfd):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("TILEWRIGHT_CACHE", str(tmp_path / "cache"))
    names: dict = {"__name__": page}
    printed, compared = "", 0
    for kind, text in blocks(page):
        if kind == "python":
            exec(compile(text, page, "exec"), names)
            printed = "".join(capfd.readouterr())
            continue
        if kind == "console":
            command, _, text = text.partition("\n")
            main.main(shlex.split(command.removeprefix("$ tilewright ")))
            printed = "".join(capfd.readouterr())
        assert missing(text, printed) == []
        compared += 1
    assert compared > 1


def test_a_line_that_was_not_printed_is_seen():
    assert missing("a\n…\nc … e\n", "a\nb\nc d e\n") == []
    assert missing("a\nc\n", "c\na\n") == ["c"]


CITED = re.compile(r"^```py\n# (\S+)\n(.*?)^```", re.MULTILINE | re.DOTALL)


@pytest.mark.parametrize("page", GUIDES)
def test_what_a_guide_cites_stands_in_the_file(page):
    for path, text in CITED.findall((ROOT / "docs" / f"{page}.md").read_text()):
        assert text in (ROOT / path).read_text(), path


def test_the_guides_cite_and_run_something():
    assert sum(len(blocks(page)) for page in GUIDES) > 12
    assert len(CITED.findall((ROOT / "docs/own-instruction.md").read_text())) == 3
