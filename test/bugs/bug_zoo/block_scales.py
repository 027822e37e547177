"""Bugs of block scales: ids, halves of N, packed bytes, descriptors of their copies (64),
and results in such formats (65)."""

from .bases import QUANTISED, SCALED, SCALED_PAIR
from .edits import chain, delete, insert_before, replace, without_waiting
from .entry import Bug
from .written import RELAYED_SCALES, SCALED_HALVES, SCALED_STEPS

NEXT_ID = r"add\.u32 %idesc"
OWN_HALF = """mul.wide.u32 %offset, %rank, 128;
    add.u64 %image, %image, %offset;"""
"""Eight rows of factors further on in the second CTA: those of its own columns of B."""
SCALES_BY_BULK = r"cp\.async\.bulk\S* \[tile\+5120\]"

BUGS = (
    Bug(
        "64a",
        "the scale factor id is not advanced along K",
        SCALED_STEPS,
        delete(NEXT_ID),
        "scale-id",
        warns=True,
        says="byte 0 .* has scaled 4 parts .* byte 1",
    ),
    Bug(
        "64b",
        "the last step along K keeps the scale factor id of the step before it",
        SCALED_STEPS,
        delete(NEXT_ID, -1),
        "scale-id",
        warns=True,
        says="byte 2 .* has scaled 2 parts .* byte 3",
    ),
    Bug(
        "64c",
        "the scale factor id of B alone is advanced",
        SCALED_STEPS,
        replace("0x20000010", "0x00000010"),
        "scale-id",
        warns=True,
        says="byte 0 .* has scaled 4 parts .* byte 1",
    ),
    Bug(
        "64d",
        "a barrier expects packed elements of 6 bits as the bytes that they fill in shared memory",
        SCALED_STEPS,
        replace("14848", "19456"),
        "deadlock",
        says="4608 bytes",
    ),
    Bug(
        "64e",
        "leading and stride byte offset of the copy of scale factors are exchanged",
        SCALED_STEPS,
        replace(r"(or\.b64 %sfa, %start, )0x400800010000", r"\g<1>0x400100080000"),
        "unread",
        warns=True,
    ),
    Bug(
        "64f",
        "a pair with M = 128 has the factors of the first half of N in all lanes",
        SCALED_HALVES,
        replace(r"64x128b\.warpx2::01_23", "32x128b.warpx4"),
        "scale-half",
        warns=True,
    ),
    Bug(
        "64g",
        "a pair with M = 128 has the halves of N in quarters 0 and 2, and in 1 and 3",
        SCALED_HALVES,
        replace("01_23", "02_13"),
        "tmem",
        says="the same in the first two and in the last two",
    ),
    Bug(
        "64h",
        "each CTA of a pair has the factors of its own half of N alone",
        RELAYED_SCALES,
        insert_before(SCALES_BY_BULK, OWN_HALF),
        "scale-half",
        warns=True,
        says="differ between the CTAs of a pair",
    ),
    Bug(
        "64i",
        "the leader of a pair does not wait for its peer's factors",
        SCALED_HALVES,
        chain(
            replace(r"\[ready\], 2;", "[ready], 1;"),
            replace(r"mbarrier\.arrive\.release\.cluster", r"@!%follows \g<0>"),
        ),
        "race or uninitialised-read",
    ),
    Bug(
        "64j",
        "scale factors are replaced while the products that read them are under way",
        SCALED,
        chain(
            without_waiting(-1),
            delete(r"tcgen05\.commit\S*shared::cluster\.b64"),
        ),
        "unlisted-order",
        warns=True,
    ),
    Bug(
        "64k",
        "threads that copied a pair's scale factors arrive in the wrong CTA",
        SCALED_PAIR,
        replace(r"(mapa\.shared::cluster\.u64\s+%rd\d+, %rd\d+), 0", r"\1, 1"),
        "deadlock",
    ),
    Bug(
        "64l",
        "no proxy fence between the threads that copy scale factors and tcgen05.cp",
        SCALED_PAIR,
        delete(r"fence\.proxy\.async"),
        "proxy-fence",
    ),
    Bug(
        "65a",
        "no proxy fence between the threads that write packed elements and their store by TMA",
        QUANTISED,
        delete(r"fence\.proxy\.async"),
        "proxy-fence",
    ),
    Bug(
        "65b",
        "packed elements are written while TMA still stores those before them",
        QUANTISED,
        delete(r"cp\.async\.bulk\.wait_group\.read \t?1"),
        "bulk-group",
    ),
    Bug(
        "65c",
        "the word of a row's scales begins in the middle of one",
        QUANTISED,
        replace(r"(st\.global\.b32 \t\[%rd\d+)\]", r"\g<1>+2]"),
        "misaligned",
    ),
)
