"""Bugs of two consumers that alternate: turns, skipped slots, what they must not share."""

from .bases import PING_PONG
from .edits import delete, replace
from .entry import Bug

PONG_TURN = r"\[dynamic_shared\+196688\]"
WAIT = r"mbarrier\.try_wait\.parity\.shared\.b64 (%p\d+), "
ARRIVE = r"mbarrier\.arrive\.shared\.b64\s+%rd\d+, "
SKIP = r"(add\.s32\s+%r\d+, %r\d+, )4(;\n\tsetp\.gt\.u32)"
WRAP = r"(add\.s32\s+%r\d+, %r\d+, -1;\n[^\n]*\n\tselp\.b32\s+%r\d+, )1(, 0)"

BUGS = (
    Bug(
        "61a",
        "a consumer does not wait for its turn",
        PING_PONG,
        replace(WAIT + PONG_TURN + r", %r\d+;", r"setp.eq.u32 \1, 0, 0;"),
        "race or barrier-protocol or uninitialised-read",
    ),
    Bug(
        "61b",
        "a consumer does not hand its turn over",
        PING_PONG,
        delete(ARRIVE + PONG_TURN),
        "deadlock",
        says=r"turns\.full",
    ),
    Bug(
        "61c",
        "a consumer skips a slot too few",
        PING_PONG,
        replace(SKIP, r"\g<1>3\2", 1),
        "uninitialised-read or race or barrier-protocol or deadlock",
    ),
    Bug(
        "61d",
        "the phase does not flip where skipped slots wrap around the ring",
        PING_PONG,
        replace(WRAP, r"\g<1>0\2"),
        "uninitialised-read or race or barrier-protocol or deadlock",
    ),
    Bug(
        "61e",
        "both consumers stage their results in one buffer",
        PING_PONG,
        replace(r"\b16384(;|\])", r"0\1"),
        "race or bulk-group",
    ),
    Bug(
        "61f",
        "both consumers meet at one named barrier",
        PING_PONG,
        replace(r"bar\.sync\s+2, 128;", "bar.sync 1, 128;"),
        "protocol or bulk-group or race",
    ),
)
