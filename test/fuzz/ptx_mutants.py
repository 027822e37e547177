"""Mutants of PTX that works, judged by ptxas and by the emulator's decoder.

`python test/fuzz/ptx_mutants.py --count 3000 --seed 1` prints how often the two disagree and shows
the mutants that do. Each mutant is the `number`-th of a `seed`, so that one can be made again.
"""

from __future__ import annotations

import argparse
import random
import re
import subprocess
import tempfile
import traceback
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from tilewright.compiler.backend import find_ptxas
from tilewright.runtime.emulator.errors import DeviceError, LaunchError, PtxSyntaxError, Trap
from tilewright.runtime.emulator.host.programs import load_program

TESTS = Path(__file__).parent.parent
MAX_BYTES = 30_000
"""Of the texts that are mutated: ptxas takes its time in proportion."""
PTXAS_SECONDS = 60
ENTRY = re.compile(r"\.entry\s+([\w$%]+)")
TARGET = re.compile(r"\.target\s+(sm_\w+)")
REGISTER = re.compile(r"%[a-z]+\d+\b")
LABEL = re.compile(r"^\s*([\w$%]+):", re.MULTILINE)
OPERAND_LABEL = re.compile(r"\bbra(?:\.uni)?\s+([\w$%]+);")
NUMBER = re.compile(r"(?<![\w.%$])-?\d+(?![\w.])")
TYPES = ("b8", "b16", "b32", "b64", "u8", "u16", "u32", "u64", "s8", "s16", "s32", "s64", "f16",
         "bf16", "f32", "f64", "pred", "b128", "f16x2", "bf16x2", "tf32")  # fmt: skip
TYPE = re.compile(r"\.(" + "|".join(TYPES) + r")\b")
MODIFIERS = ("rn", "rz", "sat", "ftz", "wide", "lo", "hi", "global", "shared", "shared::cta",
             "shared::cluster", "local", "param", "v2", "v4", "volatile", "relaxed", "acquire",
             "release", "cta", "gpu", "cluster", "aligned", "sync", "uni", "parity", "x1", "x4",
             "trans", "eq", "lt", "and", "cta_group::1", "nc", "approx")  # fmt: skip
NUMBERS = ("0", "1", "-1", "2", "3", "16", "31", "32", "255", "256", "4096", "65536", "2147483648",
           "4294967296", "0x1FFFFFFFFFFFFFFFF", "1.5", "0f3F800000")  # fmt: skip
TARGETS = ("sm_70", "sm_80", "sm_89", "sm_90", "sm_90a", "sm_100", "sm_100a", "sm_100f", "sm_120a")
VERSIONS = ("6.0", "7.0", "7.8", "8.0", "8.6", "8.7", "8.8", "9.0", "9.1", "10.9")

KNOWN = {
    "of 64 bits, got": "PTX constants have 64 bits (§4.5); ptxas takes the low ones of longer ones",
    "got a register of 1 bits": "ptxas takes a predicate as an element of a vector of words",
}
"""What the emulator refuses and ptxas does not, by a part of the message, and why."""

Mutation = Callable[[random.Random, list[str]], list[str]]


def sources() -> list[Path]:
    """The texts that are mutated: kernels of other compilers, and ours."""
    folders = ("foreign/*", "backend/golden", "bugs/bug_zoo/kernels", "emulator/ptx")
    found = [path for folder in folders for path in sorted(TESTS.glob(f"{folder}/*.ptx"))]
    return [path for path in found if path.stat().st_size <= MAX_BYTES]


# -- mutations -------------------------------------------------------------------------------


def _statements(lines: list[str]) -> list[int]:
    """Lines that say something, but for a debugger: sections behind the code, `.loc`, `.file`."""
    end = next((n for n, line in enumerate(lines) if line.strip().startswith(".section")), None)
    chosen = [(n, line.strip()) for n, line in enumerate(lines[:end])]
    return [n for n, text in chosen if text and not text.startswith(("//", ".loc", ".file"))]


def _instructions(lines: list[str]) -> list[int]:
    return [n for n in _statements(lines) if line_is_instruction(lines[n])]


def line_is_instruction(line: str) -> bool:
    """Whether a line is one whole instruction."""
    text = line.strip()
    return text.endswith(";") and not text.startswith((".", "{", "}")) and ":" not in text[:1]


def _edited(lines: list[str], at: int, line: str) -> list[str]:
    return [*lines[:at], line, *lines[at + 1 :]]


def delete_line(rng: random.Random, lines: list[str]) -> list[str]:
    at = rng.choice(_statements(lines))
    return lines[:at] + lines[at + 1 :]


def duplicate_line(rng: random.Random, lines: list[str]) -> list[str]:
    at = rng.choice(_statements(lines))
    return lines[: at + 1] + lines[at:]


def duplicate_declaration(rng: random.Random, lines: list[str]) -> list[str]:
    """A label, or a declaration of registers or variables, once more, here or elsewhere"""
    kinds = (".reg", ".shared", ".param", ".local", ".extern")
    chosen = [n for n in _statements(lines)
              if lines[n].strip().startswith(kinds) or LABEL.match(lines[n])]  # fmt: skip
    at = rng.choice(chosen or _statements(lines))
    to = rng.choice((at + 1, rng.choice(_statements(lines))))
    return [*lines[:to], lines[at], *lines[to:]]


def swap_lines(rng: random.Random, lines: list[str]) -> list[str]:
    one = rng.choice(_statements(lines))
    other = rng.choice((min(one + 1, len(lines) - 1), rng.choice(_statements(lines))))
    swapped = list(lines)
    swapped[one], swapped[other] = lines[other], lines[one]
    return swapped


def _replace_one(rng: random.Random, line: str, pattern: re.Pattern, make: Callable) -> str:
    found = list(pattern.finditer(line))
    if not found:
        return line
    match = rng.choice(found)
    return line[: match.start()] + make(match) + line[match.end() :]


def _in_an_instruction(pattern: re.Pattern, make: Callable[[random.Random, list[str]], Callable]):
    def mutate(rng: random.Random, lines: list[str]) -> list[str]:
        fitting = [n for n in _instructions(lines) if pattern.search(lines[n])]
        if not fitting:
            return delete_line(rng, lines)
        at = rng.choice(fitting)
        return _edited(lines, at, _replace_one(rng, lines[at], pattern, make(rng, lines)))

    return mutate


def _other_register(rng: random.Random, lines: list[str]) -> Callable:
    names = sorted(set(REGISTER.findall("\n".join(lines))))
    return lambda match: rng.choice([*names, "%r99999", "%unknown", "_"])


def _other_label(rng: random.Random, lines: list[str]) -> Callable:
    names = LABEL.findall("\n".join(lines)) or ["NOWHERE"]
    return lambda match: match.group().replace(match[1], rng.choice([*names, "NOWHERE"]))


def rename_label(rng: random.Random, lines: list[str]) -> list[str]:
    defined = [n for n in _statements(lines) if LABEL.match(lines[n])]
    if not defined:
        return delete_line(rng, lines)
    at = rng.choice(defined)
    other = LABEL.match(lines[rng.choice(defined)])[1]
    return _edited(lines, at, lines[at].replace(LABEL.match(lines[at])[1], other, 1))


OPCODE = re.compile(r"^\s*(?:@!?%\w+\s+)?([a-z]\w*(?:\.[\w:]+)+)")


def change_modifiers(rng: random.Random, lines: list[str]) -> list[str]:
    """One modifier of an opcode deleted, doubled, replaced or added"""
    fitting = [n for n in _instructions(lines) if OPCODE.match(lines[n])]
    if not fitting:
        return delete_line(rng, lines)
    at = rng.choice(fitting)
    opcode = OPCODE.match(lines[at])[1]
    pieces = opcode.split(".")
    place = rng.randrange(1, len(pieces))
    how = rng.randrange(4)
    if how == 0:
        del pieces[place]
    elif how == 1:
        pieces.insert(place, pieces[place])
    elif how == 2:
        pieces[place] = rng.choice(MODIFIERS)
    else:
        pieces.insert(place, rng.choice(MODIFIERS))
    return _edited(lines, at, lines[at].replace(opcode, ".".join(pieces), 1))


def change_operands(rng: random.Random, lines: list[str]) -> list[str]:
    """An operand deleted, doubled or swapped with its neighbour"""
    fitting = [n for n in _instructions(lines) if "," in lines[n]]
    if not fitting:
        return delete_line(rng, lines)
    at = rng.choice(fitting)
    parts = lines[at].rstrip().rstrip(";").split(",")
    place = rng.randrange(1, len(parts))
    how = rng.randrange(3)
    if how == 0:
        del parts[place]
    elif how == 1:
        parts.insert(place, parts[place])
    else:
        other = rng.randrange(1, len(parts))
        parts[place], parts[other] = parts[other], parts[place]
    return _edited(lines, at, ",".join(parts) + ";")


def drop_character(rng: random.Random, lines: list[str]) -> list[str]:
    at = rng.choice(_statements(lines))
    place = rng.randrange(len(lines[at]))
    return _edited(lines, at, lines[at][:place] + lines[at][place + 1 :])


DIRECTIVE = re.compile(r"^\s*\.(?!file|loc|section|visible|b8|b32)\w+")


def change_directive(rng: random.Random, lines: list[str]) -> list[str]:
    """Version, target, or a number or type of another directive"""
    fitting = [n for n in _statements(lines) if DIRECTIVE.match(lines[n])]
    at = rng.choice(fitting)
    line = lines[at]
    if ".version" in line:
        return _edited(lines, at, f".version {rng.choice(VERSIONS)}")
    if ".target" in line:
        return _edited(lines, at, f".target {rng.choice(TARGETS)}")
    pattern = rng.choice((NUMBER, TYPE))
    make = _number if pattern is NUMBER else _type
    return _edited(lines, at, _replace_one(rng, line, pattern, make(rng, lines)))


def _number(rng: random.Random, lines: list[str]) -> Callable:
    return lambda match: rng.choice(NUMBERS)


def _type(rng: random.Random, lines: list[str]) -> Callable:
    return lambda match: "." + rng.choice(TYPES)


MUTATIONS: tuple[Mutation, ...] = (
    delete_line,
    duplicate_line,
    duplicate_declaration,
    swap_lines,
    _in_an_instruction(TYPE, _type),
    _in_an_instruction(REGISTER, _other_register),
    _in_an_instruction(OPERAND_LABEL, _other_label),
    rename_label,
    change_modifiers,
    change_operands,
    _in_an_instruction(NUMBER, _number),
    change_directive,
    drop_character,
)


@dataclass(frozen=True)
class Mutant:
    """A text with one change; lines: what the change took away and put in."""

    seed: int
    number: int
    source: Path
    text: str
    original: str

    @property
    def change(self) -> str:
        """What was there and what is now, line by line."""
        before, after = self.original.splitlines(), self.text.splitlines()
        while before and after and before[0] == after[0]:
            before, after = before[1:], after[1:]
        while before and after and before[-1] == after[-1]:
            before, after = before[:-1], after[:-1]
        old = [f"  - {line.strip()}" for line in before[:2]]
        return "\n".join(old + [f"  + {line.strip()}" for line in after[:2]])


def mutant(seed: int, number: int) -> Mutant:
    """The `number`-th mutant of a seed."""
    rng = random.Random(seed << 32 | number)
    source = rng.choice(sources())
    original = source.read_text()
    lines = original.splitlines()
    return Mutant(
        seed, number, source, "\n".join(rng.choice(MUTATIONS)(rng, lines)) + "\n", original
    )


# -- judges ----------------------------------------------------------------------------------


def ptxas_refuses(text: str) -> str | None:
    """The first error of ptxas, for the target that the text names; None if it assembles."""
    target = TARGET.search(text)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "mutant.ptx"
        path.write_text(text)
        command = [find_ptxas(), f"-arch={target[1] if target else 'sm_100a'}", "-O0",
                   path, "-o", Path(folder) / "out"]  # fmt: skip
        done = subprocess.run(command, capture_output=True, text=True, timeout=PTXAS_SECONDS)
    if done.returncode == 0:
        return None
    log = (done.stderr + done.stdout).splitlines()
    errors = [line for line in log if "error" in line or "fatal" in line]
    return (errors or log or ["no message"])[0].replace(str(path), "")


def emulator_refuses(text: str) -> tuple[str, str] | None:
    """(kind, message) if a kernel of the text is refused: `malformed`, `unmodelled`, `internal`."""
    try:
        for entry in dict.fromkeys(ENTRY.findall(text)) or ("none",):
            load_program(text, entry)
    except Trap as trap:
        return ("unmodelled" if trap.category == "unmodelled" else "malformed"), str(trap)
    except (PtxSyntaxError, LaunchError) as error:
        return "malformed", str(error)
    except DeviceError as error:
        return "unmodelled", str(error)
    except Exception:
        return "internal", traceback.format_exc(limit=-2)
    return None


@dataclass(frozen=True)
class Verdict:
    """What both say of a mutant."""

    mutant: Mutant
    ptxas: str | None
    emulator: tuple[str, str] | None

    @property
    def kind(self) -> str:
        """agree, missed (ptxas alone refuses), false-alarm, known (see `KNOWN`), unmodelled or
        internal."""
        if self.emulator and self.emulator[0] == "internal":
            return "internal"
        if self.ptxas:
            return "agree" if self.emulator else "missed"
        if not self.emulator:
            return "agree"
        if any(part in self.emulator[1] for part in KNOWN):
            return "known"
        return "false-alarm" if self.emulator[0] == "malformed" else "unmodelled"

    def __str__(self) -> str:
        made = self.mutant
        return (f"{self.kind}: --seed {made.seed} --only {made.number}, {made.source.name}\n"
                f"{made.change}\n  ptxas: {self.ptxas}\n  emulator: {self.emulator}")  # fmt: skip


def judge(made: Mutant) -> Verdict:
    """Ask both."""
    return Verdict(made, ptxas_refuses(made.text), emulator_refuses(made.text))


def _main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", type=int, help="one mutant by its number")
    parser.add_argument("--show", default="missed,false-alarm,internal")
    options = parser.parse_args()
    numbers = range(options.count) if options.only is None else [options.only]
    counts, refused = Counter(), 0
    for number in numbers:
        verdict = judge(mutant(options.seed, number))
        counts[verdict.kind] += 1
        refused += verdict.ptxas is not None
        if verdict.kind in options.show.split(",") or options.only is not None:
            print(verdict, flush=True)
    print(f"{sum(counts.values())} mutants, {refused} refused by ptxas: {dict(counts)}")


if __name__ == "__main__":
    _main()
