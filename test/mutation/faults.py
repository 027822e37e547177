"""Planted faults: a text that stands once in the sources, and what takes its place.

They are addressed by their text, so that a file may move. `tests` is where they should be found:
what `run.py` runs of the default suite, in this order, until a test fails. Every list of faults in
a module `*_faults.py` beside this one counts; they come in the order of what they say.
"""

from __future__ import annotations

from collections.abc import Iterator
from importlib import import_module
from pathlib import Path

from fault import Fault


def _faults() -> Iterator[Fault]:
    for path in sorted(Path(__file__).parent.glob("*_faults.py")):
        if not path.stem.startswith("test_"):
            for value in vars(import_module(path.stem)).values():
                if isinstance(value, list):
                    yield from (each for each in value if isinstance(each, Fault))


FAULTS = sorted(_faults(), key=lambda fault: fault.what)
