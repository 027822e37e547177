"""A SASS listing that names, at each instruction, the op and the pass it comes from.

    /*0180*/   SYNCS.EXCH.64 URZ, [UR4+0x6000], UR6 ;   // plan-memory/sm.barriers:41

ptxas keeps the file and line of `.loc` (-lineinfo), and nvdisasm prints them in a line of their own
before the instructions that they hold for. Columns are lost on the way.
"""

from __future__ import annotations

import re

from ..dialects.errors import CompileError
from .inspect_sass import CURE, disassemble

_FROM = re.compile(r'\s*//## File "([^"]*)", line (\d+)')
_INSTRUCTION = re.compile(r"\s*/\*[0-9a-f]{4,}\*/.*;")
_SECTION = re.compile(r"\s*\.section\s")


def sass_listing(cubin: bytes) -> str:
    """The SASS of a cubin; where it has line information, `// FILE:LINE` after instructions.

    Raises `CompileError` where no disassembler is installed or it refuses the cubin.
    """
    sass = disassemble(cubin, with_lines=True)
    if sass is None:
        raise CompileError(f"sass: a disassembler must be installed, found none; {CURE}")
    return name_origins(sass)


def name_origins(sass: str) -> str:
    """What nvdisasm prints with line information, that information beside each instruction."""
    named, lines = "", []
    for line in sass.splitlines():
        if found := _FROM.match(line):
            named = f"{found[1]}:{found[2]}"
        else:
            named = "" if _SECTION.match(line) else named
            lines.append(_beside(line, named))
    return "\n".join(lines) + "\n"


def _beside(line: str, named: str) -> str:
    return f"{line:<90} // {named}" if named and _INSTRUCTION.match(line) else line
