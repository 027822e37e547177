"""Plants each fault of `faults.py` in a copy of the tree and runs the tests that should find it.

    python test/mutation/run.py                                  all, one after another
    python test/mutation/run.py --processes 60                   on a machine with many cores
    python test/mutation/run.py --only stmatrix 'layout: SBO'    those whose text has one of these
    python test/mutation/run.py --unlisted                       those that the README here lacks
    python test/mutation/run.py --processes 60 --write test/mutation/README.md
    python test/mutation/run.py --tree OLD                       another tree, with its own tests

The test that the README here names for a fault runs first, alone. Where it passes, or the page
names none, all tests of the fault do. Nothing is changed in place but the page: `--write`, and
`--unlisted` without it, renews the rows of the faults that ran, and leaves out those of faults that
there are no more. It needs what the tests need and no network. In the end the tests that found
something run once more without any fault, and have to pass. Exit status 1: a fault was missed.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
import tomllib
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from queue import Empty, SimpleQueue

from fault import Fault
from faults import FAULTS

TREE = Path(__file__).resolve().parents[2]
PAGE = Path("test", "mutation", "README.md")
SOURCES = ("compiler", "dialects", "passes", "runtime", "tools")
LEFT_OUT = (".git", ".venv*", "build", "*.egg-info", "__pycache__", ".pytest_cache")
LIMIT_S = 1800
FOUND = re.compile(r"^(?:FAILED|ERROR) (\S+::\S.*?|\S+)(?: - .*)?$", re.MULTILINE)
HEAD = """# What the tests catch

Faults are planted in copies of the sources, one at a time: in the layouts, the passes, the
lowering and the emulator. Tests of `make test` that concern the file then run until one fails.

`python test/mutation/run.py --unlisted` adds the rows that are missing, `--only 'FAULT'` repeats
one, and `--processes 60 --write test/mutation/README.md` writes all anew. The texts that are
exchanged stand in the files beside this one.

| planted in | fault | first test that fails |
|---|---|---|"""
ROW = re.compile(r"^\| `([^`]+)` \| (.*) \| (?:`(.+)`|\*\*none\*\*) \|$", re.MULTILINE)
CACHE = "cache"
NO_SUCH_TEST = 4
"""Exit status of pytest for a test that there is none of."""
NO_END = f"no end within {LIMIT_S} s"


@dataclass(frozen=True)
class Outcome:
    """The first test that failed, None if all passed; how many seconds that took."""

    caught_by: str | None
    seconds: float


def texts_of(tree: Path) -> dict[Path, str]:
    """The tree's sources by their paths in it."""
    paths = [path for folder in SOURCES for path in sorted((tree / folder).rglob("*.py"))]
    return {path.relative_to(tree): path.read_text(encoding="utf-8") for path in paths}


def home_of(fault: Fault, texts: dict[Path, str]) -> Path:
    """The source in which the fault's text stands; it must stand there once."""
    counts = {path: text.count(fault.old) for path, text in texts.items()}
    homes = [path for path, count in counts.items() if count]
    if sum(counts.values()) != 1:
        places = ", ".join(f"{path} ({counts[path]})" for path in homes)
        raise LookupError(
            f"{fault.what}: the text must stand once in the sources, got {places or 'no place'}; "
            "write the fault anew in test/mutation"
        )
    return homes[0]


def copy_of(tree: Path, folder: Path) -> Path:
    """A copy of the tree, with a folder `tilewright` of links, from which Python imports."""
    copy = folder / "tree"
    shutil.copytree(tree, copy, ignore=shutil.ignore_patterns(*LEFT_OUT))
    project = tomllib.loads((tree / "pyproject.toml").read_text(encoding="utf-8"))
    places = project["tool"]["setuptools"]["package-dir"]
    for package, place in sorted(places.items()):
        link = copy.joinpath(*package.split("."))
        if package == "tilewright":
            shutil.copytree(copy / place, link, dirs_exist_ok=True)
        else:
            link.parent.mkdir(exist_ok=True)
            link.symlink_to(copy / place)
    return copy


def plant(fault: Fault, copy: Path) -> Path:
    """Exchange the fault's text in the copy; returns the file."""
    texts = texts_of(copy)
    home = home_of(fault, texts)
    path, text = copy / home, texts[home].replace(fault.old, fault.new)
    compile(text, str(path), "exec")
    path.write_text(text, encoding="utf-8")
    return path


def environment(copy: Path) -> dict[str, str]:
    """Imports come from the copy, compiled kernels from nowhere; one thread for each process."""
    one = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")
    cache = str(copy.parent / CACHE)
    return {**os.environ, **one, "PYTHONPATH": str(copy), "TILEWRIGHT_CACHE": cache}


def run_tests(copy: Path, tests: Sequence[str], may_lack: bool = False) -> Outcome:
    """The default suite's part in `tests`, until one fails; where it `may_lack` them, none does."""
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-x",
        "-q",
        "-rfE",
        "--tb=no",
        "-p",
        "no:cacheprovider",
    ]
    start = time.monotonic()
    try:
        done = subprocess.run(
            [*command, *tests],
            cwd=copy,
            env=environment(copy),
            capture_output=True,
            text=True,
            timeout=LIMIT_S,
        )
    except subprocess.TimeoutExpired:
        return Outcome(NO_END, time.monotonic() - start)
    seconds = time.monotonic() - start
    if done.returncode == 0 or (may_lack and done.returncode == NO_SUCH_TEST):
        return Outcome(None, seconds)
    found = FOUND.search(done.stdout)
    if found is None:
        raise RuntimeError(f"pytest ended with {done.returncode}:\n{done.stdout}\n{done.stderr}")
    return Outcome(found[1], seconds)


def check_imports(copy: Path) -> None:
    """Raise unless Python takes the sources from the copy."""
    code = "import tilewright.runtime as r, tilewright.passes as p; print(r.__file__, p.__file__)"
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=copy,
        env=environment(copy),
        capture_output=True,
        text=True,
    )
    if done.stdout.count(str(copy)) != 2:
        raise RuntimeError(f"tilewright is imported from elsewhere: {done.stdout} {done.stderr}")


class Copies:
    """Copies of a tree in a folder, each of which serves one fault after another."""

    def __init__(self, tree: Path, folder: Path):
        self.tree, self._folder = tree, folder
        self._numbers, self._free = count(), SimpleQueue[Path]()

    @contextmanager
    def one(self) -> Iterator[Path]:
        """A copy for some time; where something fails, nobody takes it again."""
        try:
            copy = self._free.get_nowait()
        except Empty:
            place = self._folder / str(next(self._numbers))
            place.mkdir()
            copy = copy_of(self.tree, place)
            check_imports(copy)
        yield copy
        shutil.rmtree(copy.parent / CACHE, ignore_errors=True)
        self._free.put(copy)


def try_fault(fault: Fault, copies: Copies, listed: str | None = None) -> Outcome:
    """Plant one fault, run the test `listed` for it and then its tests, and say at once what came
    of it."""
    with copies.one() as copy:
        path = plant(fault, copy)
        outcome = run_tests(copy, [listed], may_lack=True) if listed else None
        if outcome is None or outcome.caught_by is None:
            outcome = run_tests(copy, [test for test in fault.tests if (copy / test).exists()])
        shutil.copy2(copies.tree / path.relative_to(copy), path)  # with its time, as compiled code
    verdict = f"caught by {outcome.caught_by}" if outcome.caught_by else "MISSED"
    print(f"{outcome.seconds:6.0f} s  {fault.what}: {verdict}", flush=True)
    return outcome


def rows_of(page: str) -> dict[tuple[str, str], str]:
    """The rows of a page by the file and the fault that they are of."""
    return {(found[1], found[2]): found[0] for found in ROW.finditer(page)}


def finders_of(page: str) -> dict[str, str]:
    """The test that the page names for each fault that one found."""
    named = {found[2]: found[3] for found in ROW.finditer(page) if found[3]}
    return {what: test.replace(chr(92) + "|", "|") for what, test in named.items()}


def row(home: Path, fault: Fault, outcome: Outcome) -> str:
    caught_by = f"`{outcome.caught_by}`" if outcome.caught_by else "**none**"
    return f"| `{home.as_posix()}` | {fault.what} | {caught_by.replace('|', chr(92) + '|')} |"


def table(outcomes: dict[Fault, Outcome], page: str, homes: dict[Fault, Path]) -> str:
    """The page with the rows of these outcomes, and those that it has of other faults."""
    lines, kept = [HEAD], rows_of(page)
    for fault, home in homes.items():
        if fault in outcomes:
            lines.append(row(home, fault, outcomes[fault]))
        elif of_before := kept.get((home.as_posix(), fault.what)):
            lines.append(of_before)
    return "\n".join([*lines, ""])


def text_of(page: Path) -> str:
    return page.read_text(encoding="utf-8") if page.exists() else ""


def passes_without_faults(outcomes: dict[Fault, Outcome], copies: Copies) -> bool:
    """Whether every test that found something passes on the tree as it is."""
    tests = {outcome.caught_by for outcome in outcomes.values()} - {None, NO_END}
    if not tests:
        return True
    with copies.one() as copy:
        outcome = run_tests(copy, sorted(tests))
    print(f"without a fault: {outcome.caught_by or 'all of these tests pass'}", flush=True)
    return outcome.caught_by is None


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    which = parser.add_mutually_exclusive_group()
    which.add_argument("--only", nargs="+", default=[""], metavar="WORDS")
    which.add_argument("--unlisted", action="store_true")
    parser.add_argument("--processes", type=int, default=1)
    parser.add_argument("--tree", type=Path, default=TREE)
    parser.add_argument("--write", type=Path)
    options = parser.parse_args()
    tree = options.tree.resolve()
    if not (tree / "pyproject.toml").is_file():
        parser.error(f"--tree must be a checkout with a pyproject.toml, got {options.tree}")
    if options.unlisted and not options.write:
        options.write = tree / PAGE
    faults = [each for each in FAULTS if any(words in each.what for words in options.only)]
    if not faults:
        parser.error(f"--only must be words of a fault, got {options.only}")
    texts = texts_of(tree)
    homes = {each: home_of(each, texts) for each in (FAULTS if options.write else faults)}
    if options.unlisted:
        listed = rows_of(text_of(options.write))
        faults = [each for each in FAULTS if (homes[each].as_posix(), each.what) not in listed]
    with tempfile.TemporaryDirectory(prefix="mutation-") as folder:
        return tried(faults, Copies(tree, Path(folder)), options, homes)


def tried(
    faults: Sequence[Fault],
    copies: Copies,
    options: argparse.Namespace,
    homes: dict[Fault, Path],
) -> int:
    """Try faults as the options say, and return the exit status."""
    listed = finders_of(text_of(copies.tree / PAGE))
    with ThreadPoolExecutor(options.processes) as pool:
        outcomes = pool.map(lambda fault: try_fault(fault, copies, listed.get(fault.what)), faults)
        found = dict(zip(faults, outcomes, strict=True))
    missed = [fault.what for fault, outcome in found.items() if outcome.caught_by is None]
    print(f"{len(found) - len(missed)} of {len(found)} caught; missed: {missed or 'none'}")
    if options.write:
        page = table(found, text_of(options.write), homes)
        options.write.write_text(page, encoding="utf-8")
    return int(bool(missed) or not passes_without_faults(found, copies))


if __name__ == "__main__":
    sys.exit(main())
