"""Bugs of two consumers that alternate: turns, skipped slots, what they must not share."""

from .bases import PING_PONG
from .edits import delete, replace
from .entry import Bug

TURN_PARITY = r"selp\.b32\s+%r\d+, %r\d+, %r\d+, %p\d+;\n\$L\w+:\n\t"
WAIT = r"mbarrier\.try_wait\.parity\.shared\.b64 (%p\d+), [^;]*;"
ARRIVE = r"mbarrier\.arrive\.shared\.b64\s+%rd\d+, "
HANDED_OVER = 1  # the arrival between those for a slot of the K loop and for the last one
SKIP = r"(add\.s32\s+%r\d+, %r\d+, )4(;\n\tsetp\.gt\.u32)"
WRAP = r"(add\.s32\s+%r\d+, %r\d+, -1;\n[^\n]*\n\tselp\.b32\s+%r\d+, )1(, 0)"
SELECTED = r"(selp\.b\d\d\s+%rd?\d+, )"

BUGS = (
    Bug(
        "61a",
        "a consumer does not wait for its turn",
        PING_PONG,
        replace(f"({TURN_PARITY}){WAIT}", r"\1setp.eq.u32 \2, 0, 0;"),
        "race or barrier-protocol or uninitialised-read",
    ),
    Bug(
        "61b",
        "a consumer does not hand its turn over",
        PING_PONG,
        delete(ARRIVE, HANDED_OVER),
        "deadlock",
        says=r"turns\.full",
    ),
    Bug(
        "61c",
        "a consumer skips a slot too few",
        PING_PONG,
        replace(SKIP, r"\g<1>3\2"),
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
        replace(SELECTED + "16384, 0", r"\g<1>0, 0"),
        "race or bulk-group",
    ),
    Bug(
        "61f",
        "both consumers meet at one named barrier",
        PING_PONG,
        replace(SELECTED + "2, 1", r"\g<1>1, 1"),
        "protocol or bulk-group or race",
    ),
)
