"""From PTX text to a program that launches can run."""

from __future__ import annotations

from functools import lru_cache

from ...collector import no_full_collections
from ..instructions import load_all
from ..ptx.binding import decode
from ..ptx.lane_trace import find_traces
from ..ptx.lanewise import join_stretches
from ..ptx.parser import parse
from ..ptx.program import Program
from ..ptx.recall import find_recalls
from ..tensor.load_uses import wait_at_first_uses


@lru_cache(maxsize=32)
def load_program(text: str, entry: str) -> Program:
    """The decoded kernel of a PTX text; kept, since a program holds nothing of a launch."""
    load_all()
    with no_full_collections():  # of all that is made here nearly everything stays
        return _loaded(text, entry)


def _loaded(text: str, entry: str) -> Program:
    program = decode(parse(text), entry)
    program.text = text
    wait_at_first_uses(program)
    join_stretches(program)
    find_recalls(program)
    find_traces(program)
    return program
