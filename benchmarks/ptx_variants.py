"""Forms of a kernel's PTX that leave out a part of what it costs, or ask L2 for something else.

    operands_l2      loads of A and B take the first rows of each, which are in L2
    operands_kept    loads of A and B only in the first steps of a tile; what shared memory then has
                     is multiplied again
    beside_l2        loads of another operand of the epilogue take its first piece
    beside_unadded   the other operand is loaded, and -0 is added
    c_l2             every tile of C is stored over the first one
    c_first, beside_first, operands_last
                     hints for L2: lines of C or of the other operand are the first to leave, those
                     of A and B the last
    hinted_polls     a thread that waits for a barrier may sleep as long as a millisecond
    back_and_forth   a CTA loads every second tile from the end of K to its start, so that it begins
                     with what L2 was asked for last

The first five make a wrong C. Loads are those by TMA of two-dimensional tensors.
"""

from __future__ import annotations

import re
from collections.abc import Callable

OPERANDS, BESIDE, C = "operands", "beside", "c"
LOAD = re.compile(
    r"^\tcp\.async\.bulk\.tensor\.2d\.shared::\S+ \[[^\]]*\], "
    r"\[(?P<map>%rd\d+), \{(?P<inner>%\w+), (?P<outer>%\w+)\}\], "
    r"(?P<barrier>\[[^\]]*\])(?P<mask>, %rs\d+)?;$",
    re.M,
)
STORE = re.compile(
    r"^\tcp\.async\.bulk\.tensor\.2d\.global\S+ "
    r"\[(?P<map>%rd\d+), \{(?P<inner>%\w+), (?P<outer>%\w+)\}\], \[[^\]]*\];$",
    re.M,
)
MATRICES = re.compile(r"^\tldmatrix\.sync\.aligned\.m8n8\.x4\.shared\.b16 \{(.*)\}, \[.*\];$", re.M)
WAIT = re.compile(r"(mbarrier\.try_wait\.parity\.shared\.b64 %p\d+, \[[^\]]*\], %r\d+);")
EXPECTED = re.compile(
    r"mov\.b32 \t%r\d+, (?P<bytes>\d+);\n"
    r"\tmbarrier\.arrive\.expect_tx\.shared\.b64 %rd\d+, (?P<barrier>\[[^\]]*\]), %r\d+;"
)
STEPS = re.compile(r"setp\.ne\.b64 \t%p\d+, %rd\d+, (\d+);")
"""Where a loop along K ends."""
STEP_ELEMENTS = 64
KEPT_ELEMENTS, SLEEP_NS, MINUS_ZEROS = 256, 1_000_000, "0x80008000"
POLICIES = {"first": "0x12F0000000000000", "last": "0x14F0000000000000"}
"""What `createpolicy` makes for whole tensors."""
NONE = "\t.reg .b32 %none;\n\tmov.b32 %none, 0;\n"
PERMUTED = (
    "\t.reg .pred %begins;\n\t.reg .pred %back;\n"
    "\t.reg .b32 %odd;\n\t.reg .b32 %turned;\n\tmov.b32 %odd, 1;\n"
)
Match = re.Match[str]


def form_of(ptx: str, form: str) -> str:
    """The PTX in one of `FORMS`; ValueError where nothing of it would change."""
    rewrite, declared = FORMS[form]
    changed = rewrite(ptx)
    if changed == ptx:
        raise ValueError(f"the kernel has nothing that the form '{form}' changes")
    head = re.search(r"\.reg \.b64 \t%rd<\d+>;\n", changed)
    assert head
    return changed[: head.end()] + declared + changed[head.end() :]


def kinds_of(ptx: str) -> dict[str, str]:
    """What each register with a tensor map is of: A and B are the first two parameters."""
    numbers = dict(re.findall(r"mov\.b64 \t(%rd\d+), \w+_param_(\d+);", ptx))
    maps = re.findall(r"cvta\.param\.u64 \t(%rd\d+), (%rd\d+);", ptx)
    stored = {match["map"] for match in STORE.finditer(ptx)}
    return {
        each: C if each in stored else OPERANDS if int(numbers[name]) < 2 else BESIDE
        for each, name in maps
        if name in numbers
    }


def _of_kind(kind: str, rewrite: Callable[[Match], str]) -> Callable[[str], str]:
    """Rewrites loads of a kind, or the stores of C."""

    def rewritten(ptx: str) -> str:
        kinds, pattern = kinds_of(ptx), STORE if kind == C else LOAD
        return pattern.sub(lambda m: rewrite(m) if kinds[m["map"]] == kind else m[0], ptx)

    return rewritten


def _elsewhere(inner: str, outer: str) -> Callable[[Match], str]:
    """The same copy at other coordinates; "" keeps one."""

    def moved(match: Match) -> str:
        old = f"{{{match['inner']}, {match['outer']}}}"
        new = f"{{{inner or match['inner']}, {outer or match['outer']}}}"
        return match[0].replace(old, new)

    return moved


def _hinted(policy: str) -> Callable[[Match], str]:
    def hinted(match: Match) -> str:
        name, rest = match[0].split(" ", 1)
        return f"{name}.L2::cache_hint {rest[:-1]}, %policy_{policy};"

    return hinted


def _kept(ptx: str) -> str:
    """The last load of a step also says that all of its bytes are there where none is loaded."""
    kinds = kinds_of(ptx)
    loads = [match for match in LOAD.finditer(ptx) if kinds[match["map"]] == OPERANDS]
    if not loads or any(match["mask"] for match in loads):
        return ptx  # of a cluster each CTA waits for the loads of others
    barrier = loads[-1]["barrier"]
    expected = [each["bytes"] for each in EXPECTED.finditer(ptx) if each["barrier"] == barrier][-1]

    def early(match: Match) -> str:
        text = f"\tsetp.lt.u32 %early, {match['inner']}, {KEPT_ELEMENTS};\n\t@%early {match[0][1:]}"
        if match[0] != loads[-1][0]:
            return text
        done = f"mbarrier.complete_tx.relaxed.cta.shared::cta.b64 {barrier}, {expected};"
        return f"{text}\n\t@!%early {done}"

    return _of_kind(OPERANDS, early)(ptx)


def _transposed(ptx: str) -> str:
    """At the first load of a step, which is the one of A: a tile begins where it is the first."""
    kinds, step = kinds_of(ptx), ""
    last = (max(map(int, STEPS.findall(ptx)), default=1) - 1) * STEP_ELEMENTS

    def transposed(match: Match) -> str:
        nonlocal step
        if kinds[match["map"]] != OPERANDS:
            return match[0]
        k, load = match["inner"], _elsewhere("%turned", "")(match)
        if step == k:
            step = ""
            return load
        step = k
        return (
            f"\tsetp.eq.u32 %begins, {k}, 0;\n\t@%begins xor.b32 %odd, %odd, 1;\n"
            f"\tsetp.ne.u32 %back, %odd, 0;\n\tsub.u32 %turned, {last}, {k};\n"
            f"\tselp.b32 %turned, %turned, {k}, %back;\n{load}"
        )

    return LOAD.sub(transposed, ptx)


def _unadded(ptx: str) -> str:
    def zeros(match: Match) -> str:
        return "\n".join(f"\tmov.b32 {each}, {MINUS_ZEROS};" for each in match[1].split(", "))

    return MATRICES.sub(zeros, ptx)


def _declared(policy: str) -> str:
    return f"\t.reg .b64 %policy_{policy};\n\tmov.b64 %policy_{policy}, {POLICIES[policy]};\n"


FORMS: dict[str, tuple[Callable[[str], str], str]] = {
    "operands_l2": (_of_kind(OPERANDS, _elsewhere("", "%none")), NONE),
    "operands_kept": (_kept, "\t.reg .pred %early;\n"),
    "beside_l2": (_of_kind(BESIDE, _elsewhere("%none", "%none")), NONE),
    "beside_unadded": (_unadded, ""),
    "c_l2": (_of_kind(C, _elsewhere("%none", "%none")), NONE),
    "c_first": (_of_kind(C, _hinted("first")), _declared("first")),
    "beside_first": (_of_kind(BESIDE, _hinted("first")), _declared("first")),
    "operands_last": (_of_kind(OPERANDS, _hinted("last")), _declared("last")),
    "hinted_polls": (lambda ptx: WAIT.sub(rf"\1, {SLEEP_NS};", ptx), ""),
    "back_and_forth": (_transposed, PERMUTED),
}
"""How each form rewrites the text, and what it declares."""
RIGHT = ("c_first", "beside_first", "operands_last", "hinted_polls", "back_and_forth")
"""Forms whose C is right."""
