"""Every instruction of a list with its types, modifiers and operands changed, one at a time.

`python test/fuzz/ptx_grid.py --kinds types,operands` prints where ptxas and the emulator's decoder
disagree. ptxas judges hundreds of instructions in one run, so this is much quicker than whole
mutants (ptx_mutants.py), and systematic.
"""

from __future__ import annotations

import argparse
import re
import subprocess
import tempfile
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

from ptx_mutants import emulator_refuses

from tilewright.compiler.backend import find_ptxas

HEAD = """.version {version}
.target {target}
.address_size 64
.visible .entry k(.param .align 64 .b8 pm[128]) {{
.shared .align 16 .b8 tile[1024];
.reg .b8 %c<8>; .reg .b16 %h<16>; .reg .b32 %r<32>; .reg .b64 %d<16>; .reg .f32 %f<16>;
.reg .f64 %g<8>; .reg .pred %p<8>; .reg .b128 %q<4>; .reg .u32 %u<8>;
"""
TYPES = ("b8 b16 b32 b64 b128 u8 u16 u32 u64 s8 s16 s32 s64 f16 bf16 f32 f64 pred f16x2 bf16x2"
         " tf32").split()  # fmt: skip
IMMEDIATES = "0 -1 3 33 256 4096 65536 1.5 0f3F800000".split()
REGISTERS = "%h0 %r0 %d0 %f0 %g0 %p0 %q0 %c0 %u0 _ tile".split()
MODIFIERS = ("rn rz sat ftz wide lo hi global shared shared::cta shared::cluster local param v2 v4"
             " volatile relaxed acquire release cta gpu cluster sys aligned sync uni and nc approx"
             " weak relu satfinite noftz").split()  # fmt: skip
CHUNK = 400
SECONDS = 30
TYPE = re.compile(r"[busf]\d+(x2)?|bf16(x2)?|tf32|pred")
OPERAND = re.compile(r"%[a-z]+\d+\b|(?<![\w.%:\[+])-?\b\d+(?![\w.])")
ERROR = re.compile(r"line (\d+); (?:error|fatal)\s*:\s*(.*)")


LINES = """
add.s32 %r0, %r1, 5|mad.wide.u16 %r0, %h0, %h1, %r1|add.cc.u32 %r0, %r1, %r2
sad.u32 %r0, %r1, %r2, %r3|fma.rn.f32 %f0, %f1, %f2, %f3|fma.rn.f32x2 %d0, %d1, %d2, %d3
div.rn.f32 %f0, %f1, %f2|neg.s32 %r0, %r1|sqrt.rn.f32 %f0, %f1|rcp.approx.ftz.f32 %f0, %f1
mul24.lo.s32 %r0, %r1, %r2|cvt.rzi.s32.f32 %r0, %f0|cvt.rn.f32.s32 %f0, %r1
cvt.sat.s8.s32 %r0, %r1|cvt.f32.f16 %f0, %h1|cvt.rn.bf16x2.f32 %r0, %f0, %f1
slct.f32.s32 %f0, %f1, %f2, %r3|selp.b32 %r0, %r1, %r2, %p0|bfe.u32 %r0, %r1, 3, 4
bfi.b32 %r0, %r1, %r2, 3, 4|fns.b32 %r0, %r1, %r2, %r3|szext.wrap.s32 %r0, %r1, %r2
bmsk.wrap.b32 %r0, %r1, %r2|bfind.u32 %r0, %r1|mov.b64 {%r0, %r1}, %d0|mov.b64 %d0, {%r0, %r1}
mov.u32 %r0, %tid.x|cvta.shared.u64 %d0, %d1|mapa.shared::cluster.u32 %r0, %r1, %r2
getctarank.shared::cluster.u32 %r0, %r1|ld.global.v4.b32 {%r0, %r1, %r2, %r3}, [%d0]
ld.acquire.gpu.global.b32 %r0, [%d0]|ld.param.b64 %d0, [pm+8]
st.shared.v2.b32 [tile+8], {%r0, %r1}|st.release.gpu.global.b32 [%d0], %r0|st.local.b32 [%d0], %r0
atom.shared.add.u32 %r0, [%r1], %r2|red.shared.max.s32 [%r1], %r2
red.global.add.noftz.f16x2 [%d0], %r0|prefetch.global.L2 [%d0]|discard.global.L2 [%d0], 128
nanosleep.u32 %r0|activemask.b32 %r0|createpolicy.fractional.L2::evict_first.b64 %d0, 1.0
match.all.sync.b64 %r0|%p0, %d0, -1|mbarrier.init.shared::cta.b64 [%r0], 1
mbarrier.arrive.release.cta.shared::cta.b64 %d0, [%r0], 2
mbarrier.try_wait.parity.shared::cta.b64 %p0, [%r0], %r1|bar.red.popc.u32 %r0, 1, %p0
bar.arrive 1, 64|tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [%r0], 64
fence.proxy.async.shared::cta|barrier.cluster.arrive.relaxed.aligned|membar.gl
"""
LINES = [each for each in re.split(r"\n|\|(?=[a-z])", LINES.strip()) if each]


def types(line: str) -> Iterator[str]:
    """Each type replaced."""
    opcode, _, rest = line.partition(" ")
    pieces = opcode.split(".")
    for at, piece in enumerate(pieces):
        for type_ in TYPES if at and TYPE.fullmatch(piece) else ():
            yield ".".join([*pieces[:at], type_, *pieces[at + 1 :]]) + " " + rest


def modifiers(line: str) -> Iterator[str]:
    """Each modifier taken away, doubled or replaced, and others put in."""
    opcode, _, rest = line.partition(" ")
    pieces = opcode.split(".")
    for at in range(1, len(pieces)):
        for new in ([], [pieces[at]] * 2, *([each] for each in MODIFIERS)):
            yield ".".join([*pieces[:at], *new, *pieces[at + 1 :]]) + " " + rest
        for each in MODIFIERS:
            yield ".".join([*pieces[:at], each, *pieces[at:]]) + " " + rest


def operands(line: str) -> Iterator[str]:
    """Each register and constant replaced by others."""
    opcode, _, rest = line.partition(" ")
    for match in OPERAND.finditer(rest):
        for new in (*IMMEDIATES, *REGISTERS):
            yield f"{opcode} {rest[: match.start()]}{new}{rest[match.end() :]}"


def counts(line: str) -> Iterator[str]:
    """An operand taken away, doubled or added."""
    opcode, _, rest = line.partition(" ")
    given = re.split(r",\s*(?![^\[{(]*[\]})])", rest) if rest else []
    for at in range(len(given)):
        yield f"{opcode} {', '.join(given[:at] + given[at + 1 :])}"
        yield f"{opcode} {', '.join(given[:at] + given[at : at + 1] + given[at:])}"
    for extra in ("%r0", "%d0", "%p0", "0"):
        yield f"{opcode} {', '.join([*given, extra])}"


KINDS: dict[str, Callable[[str], Iterator[str]]] = {
    each.__name__: each for each in (types, modifiers, operands, counts)
}


def ptxas_refusals(lines: list[str], target: str, version: str, head: str = HEAD) -> dict[str, str]:
    """What ptxas says of each line that it refuses; those are taken out until the rest is legal."""
    found: dict[str, str] = {}
    for start in range(0, len(lines), CHUNK):
        found |= _refusals(lines[start : start + CHUNK], target, version, head)
    return found


def only_refused(line: str, target: str, version: str, head: str = HEAD) -> str | None:
    """What ptxas says of one line without others beside it."""
    return _refusals([line], target, version, head).get(line)


def _refusals(lines: list[str], target: str, version: str, head: str) -> dict[str, str]:
    found: dict[str, str] = {}
    left = lines
    while left:
        log = _assemble(left, target, version, head)
        if log is None:
            return found
        first = head.count("\n") + 1
        hits = [(int(number) - first, text) for number, text in ERROR.findall(log)]
        said = {left[at]: text for at, text in hits if 0 <= at < len(left)}
        if not said:
            return found | _halved(left, log, target, version, head)
        found |= said
        left = [line for line in left if line not in said]
    return found


def _halved(lines: list[str], log: str, target: str, version: str, head: str) -> dict[str, str]:
    """Of errors without a line."""
    if len(lines) == 1:
        return {lines[0]: log.strip()}
    middle, rest = len(lines) // 2, (target, version, head)
    return _refusals(lines[:middle], *rest) | _refusals(lines[middle:], *rest)


def _assemble(lines: list[str], target: str, version: str, head: str) -> str | None:
    """What ptxas prints, None if it assembles the lines."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "grid.ptx"
        path.write_text(text_of(lines, target, version, head))
        command = [find_ptxas(), f"-arch={target}", "-O0", path, "-o", Path(folder) / "out"]
        try:
            done = subprocess.run(command, capture_output=True, text=True, timeout=SECONDS)
        except subprocess.TimeoutExpired:
            return "no answer in time"
    return done.stderr + done.stdout if done.returncode else None


def text_of(lines: Iterable[str], target: str, version: str, head: str = HEAD) -> str:
    """A kernel of these instructions."""
    start = head.format(target=target, version=version)
    return start + "".join(f"{line};\n" for line in lines) + "ret; }\n"


def compare(
    lines: Iterable[str], target: str = "sm_100a", version: str = "9.0"
) -> tuple[dict[str, str], dict[str, str]]:
    """(missed, false alarms): what ptxas or the emulator says, by the line that it alone refuses.

    What the emulator does not model is no false alarm.
    """
    lines = list(dict.fromkeys(lines))
    refused = ptxas_refusals(lines, target, version)
    missed, alarms = {}, {}
    for line in lines:
        here = emulator_refuses(text_of([line], target, version))
        if line in refused and here is None and only_refused(line, target, version):
            missed[line] = refused[line]  # beside others ptxas blames lines that are legal alone
        if here is not None and (here[0] == "internal" or line not in refused):
            if here[0] != "unmodelled":
                alarms[line] = here[1]
    return missed, alarms


def _main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kinds", default=",".join(KINDS))
    parser.add_argument("--target", default="sm_100a")
    options = parser.parse_args()
    for kind in options.kinds.split(","):
        changed = [each for line in LINES for each in KINDS[kind](line)]
        missed, alarms = compare(changed, options.target)
        for what, found in (("missed", missed), ("false-alarm", alarms)):
            for line, message in found.items():
                print(f"{what}: {line}\n  {message}")
        print(
            f"{kind}: {len(set(changed))} lines, {len(missed)} missed, {len(alarms)} false alarms"
        )


if __name__ == "__main__":
    _main()
