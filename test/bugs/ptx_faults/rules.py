"""Rules that make faults: each fits lines of PTX, and says what stands there instead.

A rule knows PTX, and nothing of the kernels. It is applied at every line where it fits.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

GUARD = r"(@!?%p\d+ )?"


class Rule(NamedTuple):
    """What is wrong; the instruction it fits, as a regular expression behind a guard; what stands
    there instead, in which `\\1` is the guard; ahead: what must follow, else there is no fault."""

    what: str
    fits: str
    instead: str
    ahead: str = ""


class Site(NamedTuple):
    """A rule at a line of a text, counted from 1."""

    rule: Rule
    line: int
    text: str

    @property
    def faulty(self) -> str:
        """The whole text with the fault."""
        lines = self.text.splitlines()
        lines[self.line - 1] = self._instead()
        return "\n".join(lines) + "\n"

    def _instead(self) -> str:
        return pattern(self.rule).sub(self.rule.instead, self.instruction)

    @property
    def instruction(self) -> str:
        """What stands there without the fault."""
        return _spaced(self.text.splitlines()[self.line - 1])

    @property
    def title(self) -> str:
        """As a test calls it: registers are left out, which another version may number anew."""
        shown = re.sub(r"%(r|rd|p|f|rs)\d+", r"%\1", self.instruction)[:60]
        return f"{self.rule.what}, line {self.line}: {shown}"


def pattern(rule: Rule) -> re.Pattern:
    return re.compile(rf"^{GUARD}{rule.fits}")


def _spaced(line: str) -> str:
    return line.strip().replace("\t", " ")


def _dropped(*names: str) -> Iterator[Rule]:
    for name in names:
        yield Rule(f"{name} is left out", rf"{re.escape(name)}\b[^;]*;", "")


RULES = (
    *_dropped(
        *("wgmma.fence", "wgmma.commit_group", "wgmma.wait_group", "fence.proxy.async"),
        *("cp.async.bulk.wait_group", "cp.async.bulk.commit_group", "cp.async.wait_group"),
        *("cp.async.commit_group", "bar.sync", "barrier.cluster.wait", "mbarrier.arrive"),
        *("mbarrier.init", "griddepcontrol.wait", "tcgen05.commit", "tcgen05.wait"),
        *("tcgen05.fence", "tcgen05.dealloc", "fence.acq_rel", "setmaxnreg", "st.shared"),
        *("stmatrix", "atom.global"),
    ),
    Rule("a fence reaches its CTA alone", r"fence\.acq_rel\.gpu;", r"\1fence.acq_rel.cta;"),
    Rule(
        "lanes do not meet before one of them goes on for all",
        r"bar\.warp\.sync[^;]*;",
        "",
        r"elect\.sync|@!?%p\d+ (?:mbarrier\.arrive|st\.|red\.|atom\.|cp\.async\.bulk)",
    ),
    Rule(
        "nobody waits for an mbarrier",
        r"mbarrier\.try_wait\.parity\S* +(%p\d+), [^;]*;",
        r"\1mov.pred \2, -1;",
    ),
    Rule(
        "nobody looks at the answer of a wait",
        r"(mbarrier\.try_wait\.parity\S* +)(%p\d+)(, [^;]*;)",
        r"\1{ .reg .pred %odd; \2%odd\4 mov.pred \3, -1; }",
    ),
    Rule(
        "a wait is for the other phase",
        r"(mbarrier\.try_wait\.parity\S* +%p\d+, \[[^\]]+\], )(%r\d+|\d+);",
        r"\1{ .reg .b32 %odd; xor.b32 %odd, \3, 1; \2%odd; }",
    ),
    Rule(
        "a barrier expects 16 bytes more",
        r"(mbarrier\.(?:arrive\.)?expect_tx\S* +[^;]*, )(%r\d+);",
        r"\1{ .reg .b32 %odd; add.s32 %odd, \3, 16; \2%odd; }",
    ),
    Rule(
        "a barrier counts one arrival more",
        r"(mbarrier\.init\S* +\[[^\]]+\], )(%r\d+|\d+);",
        r"\1{ .reg .b32 %odd; add.u32 %odd, \3, 1; \2%odd; }",
    ),
    Rule(
        "a named barrier counts a warp more",
        r"((?:bar|barrier)\.(?:cta\.)?(?:sync|arrive)\S* +[^,;]+, )(%r\d+|\d+);",
        r"\1{ .reg .b32 %odd; add.u32 %odd, \3, 32; \2%odd; }",
    ),
    Rule(
        "a named barrier counts a warp less",
        r"((?:bar|barrier)\.(?:cta\.)?(?:sync|arrive)\S* +[^,;]+, )(%r\d+|\d+);",
        r"\1{ .reg .b32 %odd; sub.u32 %odd, \3, 32; \2%odd; }",
    ),
    *(
        Rule(
            f"{count + 1} operations may be under way instead of {count}",
            rf"((?:wgmma|cp\.async|cp\.async\.bulk)\.wait_group\S* +){count};",
            rf"\1\g<2>{count + 1};",
        )
        for count in range(3)
    ),
    Rule(
        "a multicast has another mask",
        r"(cp\.async\.bulk\.tensor\S*multicast\S* +.*, )(%rs\d+);",
        r"\1{ .reg .b16 %odd; xor.b16 %odd, \3, 1; \2%odd; }",
    ),
)  # fmt: skip


def sites(text: str) -> list[Site]:
    """Every place of a text where a rule fits."""
    found = []
    lines = [_spaced(line) for line in text.splitlines()]
    for number, line in enumerate(lines, 1):
        for rule in RULES:
            if pattern(rule).match(line) and re.match(rule.ahead, _next(lines[number:])):
                found.append(Site(rule, number, text))
    return found


def _next(lines: list[str]) -> str:
    """The next instruction."""
    return next((line for line in lines if line and not line.startswith(("//", "$", "{"))), "")
