"""Every form of the instructions of matmul kernels: what ptxas says of it, and the emulator.

`ptx_forms.txt` has the forms as patterns, legal ones and such that are nearly so. `python
test/fuzz/ptx_forms.py` prints where the two disagree; `--page` writes docs/appendix/ptx-forms.md.
"""

from __future__ import annotations

import argparse
import itertools
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from ptx_grid import only_refused, ptxas_refusals, text_of
from ptx_mutants import TESTS, emulator_refuses

PATTERNS = Path(__file__).parent / "ptx_forms.txt"
PAGE = TESTS.parent / "docs/appendix/ptx-forms.md"
HEAD = """.version {version}
.target {target}
.address_size 64
.visible .entry k(.param .align 64 .b8 pm[128]) {{
.reg .b8 %c<8>; .reg .b16 %h<8>; .reg .b32 %r<150>; .reg .b64 %d<16>; .reg .f32 %f<150>;
.reg .f64 %g<8>; .reg .pred %p<8>; .reg .b128 %q<4>;
"""
KNOWN = {
    "scale-input-d is for": "ptxas takes it of kind::i8, for which the ISA lists no such operand",
    "the ordinal of .global_stride": "ptxas takes a fifth stride, of which a map has four",
    "a constant of at least 0": "ptxas takes a negative count of groups",
    "a register of 128 bits": "ptxas takes .b128 registers for narrower values",
    "mma.sync.kind::f8f6f4 needs": "ptxas takes e4m3 and e5m2 for sm_100a, too",
    "the sparsity selector must be 0..1": "ptxas takes 2 and 3, where the ISA has 0 and 1",
    "mismatch for instruction 'mov'": "ptxas makes a mov of a wrong size of cvt.ftz.f32.f64 into a"
    " register of 64 bits",
    **dict.fromkeys(
        ("8.bf16 %h", "8.bf16 %r", "8.bf16 %d", "bf16.s8 %h", "bf16.u8 %h"),
        "ptxas wants registers of 8 bits for bytes that cvt makes of bf16, or bf16 of",
    ),
    "redux.sync": "ptxas wants integer registers for .b32, §9.4 lets it have all of its size",
}
"""Differences that stay, by a part of what one of the two says or of the instruction, and why."""
CHOICE = re.compile(r"<([^<>]*)>")
LIST = re.compile(r"\b([a-z])\*(\d+)")
PLACE = re.compile(r".*?`: (?=[a-z-]+: )")
QUOTED = re.compile(r"`[^`]*`")


@dataclass
class Family:
    """Patterns of instructions that belong together; tests: which execute them."""

    name: str
    section: str
    target: str
    tests: tuple[str, ...]
    patterns: list[str] = field(default_factory=list)


def families() -> list[Family]:
    """All of `ptx_forms.txt`."""
    found: list[Family] = []
    for line in PATTERNS.read_text().splitlines():
        if line.startswith("="):
            name, section, target, tests = (part.strip() for part in line[1:].split(";"))
            found.append(Family(name, section, target, tuple(tests.split())))
        elif line and not line.startswith("#"):
            found[-1].patterns.append(line)
    return found


def forms(pattern: str) -> list[str]:
    """The instructions that a pattern stands for."""
    pieces = CHOICE.split(pattern)
    choices = [each.split("|") if at % 2 else [each] for at, each in enumerate(pieces)]
    lines = ("".join(chosen) for chosen in itertools.product(*choices))
    return list(dict.fromkeys(LIST.sub(_registers, line) for line in lines))


def _registers(match: re.Match) -> str:
    return "{" + ", ".join(f"%{match[1]}{number}" for number in range(int(match[2]))) + "}"


@dataclass
class Outcome:
    """Of the forms of a pattern: how many are taken and refused by both; unmodelled: legal ones
    that the emulator does not have, by its reason; differing: (form, what one of the two says)."""

    taken: int = 0
    refused: int = 0
    unmodelled: Counter[str] = field(default_factory=Counter)
    differing: list[tuple[str, str]] = field(default_factory=list)

    @property
    def forms(self) -> int:
        known = sum(self.unmodelled.values()) + len(self.differing)
        return self.taken + self.refused + known

    def add(self, line: str, ptxas: str | None, here: tuple[str, str] | None) -> None:
        """Count one form by what the two say of it."""
        if here is None or here[0] == "internal":
            if ptxas or here:
                self.differing.append((line, here[1] if here else str(ptxas)))
            else:
                self.taken += 1
        elif ptxas:
            self.refused += 1
        elif here[0] == "unmodelled":
            self.unmodelled[_reason(here[1])] += 1
        else:
            self.differing.append((line, here[1]))

    def unexplained(self) -> list[tuple[str, str]]:
        """Differences that are not known."""
        texts = [(each, " ".join(each)) for each in self.differing]
        return [each for each, text in texts if not any(part in text for part in KNOWN)]


def _reason(message: str) -> str:
    """What a refusal says, without the place and the section."""
    said = PLACE.sub("", message, count=1).removeprefix("unmodelled: ")
    return re.sub(r"\b\d dimensions", "such dimensions", said.partition(" (PTX ISA")[0])


def judge(pattern: str, target: str) -> Outcome:
    """Ask ptxas and the emulator about every form of a pattern."""
    lines, outcome = forms(pattern), Outcome()
    version = "9.0"
    refused = ptxas_refusals(lines, target, version, HEAD)
    for line in lines:
        here = emulator_refuses(text_of([line], target, version, HEAD))
        said = refused.get(line)
        if said and here is None:  # beside others ptxas blames lines that are legal alone
            said = only_refused(line, target, version, HEAD)
        outcome.add(line, said, here)
    return outcome


# -- the page --------------------------------------------------------------------------------

TITLE = """# Forms of instructions

Generated by `python test/fuzz/ptx_forms.py --page`; a test compares it.

`test/fuzz/ptx_forms.txt` has {forms} forms of the instructions, as {patterns}
patterns: {legal} that PTX has, and others that are nearly so. Of those that it has, the emulator
takes {taken} and refuses {unmodelled} as not modelled, each before the kernel starts and with the
reason. The others it refuses as ptxas does. Where the two differ for good is said at the end.

Between `<` and `>` stand alternatives, of which one may be nothing; `r*8` are eight registers.
"""
ROW = "| `{pattern}` | {forms} | {taken} | {refused} | {unmodelled} |"


def page(rows: dict[str, str]) -> str:
    """The text of the page, of the row of every pattern."""
    counts = [
        [int(each) for each in re.findall(r" \| (\d+)(?= \|)", text)] for text in rows.values()
    ]
    total, taken, refused = (sum(each) for each in zip(*counts, strict=True))
    text = TITLE.format(
        forms=total,
        patterns=len(rows),
        legal=total - refused,
        taken=taken,
        unmodelled=total - refused - taken,
    )
    return "\n".join([text, *(_section(family, rows) for family in families()), _differences()])


def known_rows() -> dict[str, str]:
    """The rows of the page as it is, by pattern."""
    lines = PAGE.read_text().splitlines() if PAGE.exists() else []
    rows = {line: line.split("` |")[0].removeprefix("| `") for line in lines if line[:3] == "| `"}
    return {pattern.replace("\\|", "|"): line for line, pattern in rows.items()}


def _section(family: Family, rows: dict[str, str]) -> str:
    tests = ", ".join(f"`{name}`" for name in family.tests) or "no test"
    lines = [
        f"## {family.name[0].upper()}{family.name[1:]}",
        "",
        f"PTX ISA §{family.section}, `{family.target}`. Executed by {tests}.",
        "",
        "| pattern | forms | taken | no PTX, refused | not modelled |",
        "|---|---|---|---|---|",
        *(rows[pattern] for pattern in family.patterns),
    ]
    return "\n".join([*lines, ""])


def row(pattern: str, outcome: Outcome) -> str:
    """A row of the page."""
    reasons = [f"{count}: {QUOTED.sub('', reason)}" for reason, count in outcome.unmodelled.items()]
    return ROW.format(
        pattern=pattern.replace("|", "\\|"),
        forms=outcome.forms,
        taken=outcome.taken,
        refused=outcome.refused,
        unmodelled="; ".join(reasons).replace("|", "\\|"),
    )


def _differences() -> str:
    lines = ["## Where the emulator and ptxas differ", ""]
    return "\n".join([*lines, *(f"- {reason}." for reason in dict.fromkeys(KNOWN.values())), ""])


def _main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--only", default="", help="families with this in their names; the page keeps others"
    )
    parser.add_argument("--page", action="store_true", help="write the page")
    options = parser.parse_args()
    rows = known_rows()
    for pattern, family in chosen():
        if options.only not in family.name and (pattern in rows or not options.page):
            continue
        outcome = judge(pattern, family.target)
        rows[pattern] = row(pattern, outcome)
        counts = f"{outcome.taken} taken, {outcome.refused} refused, {dict(outcome.unmodelled)}"
        print(f"{counts} {pattern}")
        for line, said in outcome.unexplained()[:5]:
            print(f"  differs: {line}\n    {said}")
    if options.page:
        PAGE.write_text(page({pattern: rows[pattern] for pattern, _ in chosen()}))


def chosen() -> Iterator[tuple[str, Family]]:
    """Each pattern and its family."""
    for family in families():
        yield from ((pattern, family) for pattern in family.patterns)


if __name__ == "__main__":
    _main()
