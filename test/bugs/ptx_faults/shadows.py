"""Whether a changed instruction computes what the instruction computes, as often as it runs."""

from __future__ import annotations

import re

COMPUTES = re.compile(
    r"^\s*(?P<guard>@!?%\w+\s+)?(?P<opcode>(?:add|sub|mul|mul24|mad|and|or|xor|not|shl|shr|shf|selp|mov|"
    r"cvt|min|max|lop3|bfe|bfi|prmt|setp|cvta|neg|mul\.wide|rem|div)\.[\w.:]+)\s+"
    r"(?P<result>%\w+),\s*(?P<operands>[^;]*);\s*$"
)
WIDTH = {"rd": 64, "r": 32, "rs": 16, "f": 32, "fd": 64, "h": 16}


def beside(text: str, faulty: str) -> str | None:
    """The text, which traps where the instruction that differs in `faulty` gives another value.

    None where the two differ in more than an instruction with a register as its only result.
    """
    right, wrong = text.splitlines(), faulty.splitlines()
    different = [at for at, pair in enumerate(zip(right, wrong, strict=True)) if len({*pair}) > 1]
    if len(different) != 1:
        return None
    at = different[0]
    old, new = (COMPUTES.match(lines[at].partition("//")[0].rstrip()) for lines in (right, wrong))
    if not old or not new or old["result"] != new["result"]:
        return None
    result, guard = old["result"], new["guard"] or ""
    kind = re.sub(r"\d+$", "", result.lstrip("%"))
    if kind not in WIDTH and kind != "p":
        return None
    if kind == "p":
        declared, compared = ".reg .pred %odd, %differs;", "xor.pred"
    else:
        declared = f".reg .b{WIDTH[kind]} %odd; .reg .pred %differs;"
        compared = f"setp.ne.b{WIDTH[kind]}"
    lines = [*right]
    lines[at] = (
        f"{{ {declared} mov.pred %differs, 0; {guard}{new['opcode']} %odd, {new['operands']}; "
        f"{right[at].partition('//')[0].strip()} {guard}{compared} %differs, %odd, {result}; "
        "@%differs trap; }"
    )
    return "\n".join(lines) + "\n"
