"""Bugs of mbarriers: parities, phases, counts, transactions, initialisation (ptx-facts 1 to 7)."""

from .bases import PAIR, PERSISTENT, PLAIN_CLUSTER, ROLES
from .edits import chain, delete, flip_parity, insert_after, insert_before, replace, without_waiting
from .entry import Bug

EXPECT = r"mbarrier\.arrive\.expect_tx"
LOAD = r"cp\.async\.bulk\.tensor\.2d\.shared"
FLIP = r"(selp\.b32\s+%r\d+, 1, 0, %p\d+;\s+xor\.b32\s+(%r\d+), \2, )%r\d+;"
OVER = (
    r"@%p\d+ bra \t\$L__BB0_\d+;\n(\tmbarrier\.arrive\.shared\.b64 \t%rd\d+, \[dynamic_shared.*\n)"
)
LATE = """{ .reg .b32 %left; .reg .pred %rest;
    mov.u32 %left, %cluster_ctarank; xor.b32 %left, %left, 1; mul.lo.u32 %left, %left, 999;
DELAY: sub.u32 %left, %left, 1; setp.gt.s32 %rest, %left, 0; @%rest bra DELAY; }"""
"""Keeps the CTA of rank 0 busy."""

BUGS = (
    Bug(
        "1a",
        "the consumer's first wait asks for parity 1",
        ROLES,
        flip_parity(3),
        "uninitialised-read or race or barrier-protocol or deadlock",
    ),
    Bug(
        "1b",
        "the producer's first wait asks for parity 0",
        ROLES,
        flip_parity(1),
        "deadlock",
        says=r"operands\.empty\[0\]: waits for parity 0",
    ),
    Bug(
        "2a",
        "the producer's parity does not flip with the ring",
        ROLES,
        replace(FLIP, r"\g<1>0;", 0),
        "barrier-protocol or deadlock or race",
        says=r"arrival of 1 exceeds|operands\.empty|was waited for by no thread|not ordered behind",
    ),
    Bug(
        "2b",
        "the consumer's parity does not flip with the ring",
        ROLES,
        replace(FLIP, r"\g<1>0;", 1),
        "barrier-protocol or deadlock or race",
        says=r"operands\.full|waited for by no thread|not ordered behind",
    ),
    Bug(
        "3",
        "the producer does not wait and laps its consumer",
        ROLES,
        without_waiting(1),
        "barrier-protocol or race",
        says=r"arrival of 1 exceeds|was waited for by no thread|not ordered behind",
    ),
    Bug(
        "4a",
        "the bytes expected are more than are copied",
        ROLES,
        replace(r"49152", "49168"),
        "deadlock",
        says=r"operands\.full\[0\].* tx 16\)",
    ),
    Bug(
        "4b",
        "the bytes expected are fewer than are copied",
        ROLES,
        replace(r"49152", "49136"),
        "barrier-protocol",
        says=r"16 bytes more were delivered than expected",
    ),
    Bug(
        "4c",
        "the bytes expected are those of one CTA of a pair",
        PAIR,
        replace(r"65536;(\n[^\n]*expect_tx)", r"32768;\1"),
        "uninitialised-read or race",
    ),
    Bug(
        "5",
        "the bytes are expected behind the arrival that completes the phase",
        ROLES,
        chain(
            insert_after(
                r"cp\.async\.bulk\.tensor\.2d\.shared",
                "mbarrier.expect_tx.relaxed.cta.shared::cta.b64 [%rd21+-32], 49152;",
                1,
            ),
            replace(
                r"mbarrier\.arrive\.expect_tx\.shared\.b64 (%rd\d+), (\[.*\]), %r\d+;",
                r"mbarrier.arrive.shared.b64 \1, \2;",
            ),
        ),
        "uninitialised-read or race",
    ),
    Bug(
        "6a",
        "every lane arrives where one is counted",
        ROLES,
        replace(OVER, r"\1"),
        "barrier-protocol",
        says=r"arrival of 32 exceeds|waited for by no thread",
    ),
    Bug(
        "6b",
        "one warp of four arrives",
        PERSISTENT,
        replace(
            r"(mbarrier\.arrive\.shared::cluster\.b64 .*;)",
            r"{ .reg .pred %w; setp.lt.u32 %w, %r1, 32; @%w \1 }",
            0,
        ),
        "deadlock",
        says=r"accumulator\.empty\[0\].* pending 6 of 8",
    ),
    Bug(
        "7a",
        "no cluster barrier before the peer signals a barrier, and its CTA is late",
        PLAIN_CLUSTER,
        chain(
            insert_before(r"mbarrier\.init", LATE, 0),
            delete(r"fence\.mbarrier_init"),
            delete(r"barrier\.cluster\.wait\.aligned", 0),
            delete(r"barrier\.cluster\.arrive", 0),
        ),
        "barrier-protocol",
        says=r"no mbarrier object at .* of cta",
    ),
)
