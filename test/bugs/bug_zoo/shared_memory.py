"""Bugs of shared memory: proxies, bulk stores, rings, swizzles (ptx-facts 8 to 11, 21 to 27)."""

from .bases import BY_THREADS, NARROW, PAIR, PIECES, PLAIN, PLAIN_CLUSTER, SEQUENTIAL, STAGED
from .edits import chain, delete, insert_before, move_before, replace
from .entry import Bug, unchanged

FENCE = r"fence\.proxy\.async\.shared::cta"
WAIT_READ = r"cp\.async\.bulk\.wait_group\.read"
HIGH_WORD = r"1073758272"
"""Of a descriptor: 128-byte swizzle, 1024 bytes between groups of eight rows."""
MASK = r"(mov\.b16\s+%rs\d+, )3;"
MASKED = r"and\.b32\s+(%r\d+), (%r\d+), 16320;"


def swizzled(mode: str):
    """The launch with another swizzle in the tensor map of the first operand."""

    def describe(manifest):
        first, *rest = manifest["parameters"]
        return {**manifest, "parameters": [{**first, "swizzle": mode}, *rest]}

    return describe


def filled_with_nan(manifest):
    """The launch whose tensor maps fill elements outside with NaN."""
    maps = [{**p, "oob_fill": "nan"} if p["kind"] == "tensor_map" else p
            for p in manifest["parameters"]]  # fmt: skip
    return {**manifest, "parameters": maps}


BUGS = (
    Bug(
        "8",
        "no proxy fence between stmatrix and the bulk store",
        STAGED,
        delete(FENCE),
        "proxy-fence",
    ),
    Bug(
        "9a",
        "only the storing thread executes the proxy fence, behind the barrier",
        STAGED,
        chain(
            delete(FENCE),
            insert_before(r"cp\.async\.bulk\.tensor\.2d\.global", "fence.proxy.async.shared::cta;"),
        ),
        "proxy-fence",
        warns=True,
    ),
    Bug(
        "9b",
        "the proxy fence stands before the writes",
        STAGED,
        move_before(FENCE, r"stmatrix"),
        "proxy-fence",
    ),
    Bug(
        "10a",
        "the store buffer is written again without wait_group.read",
        PIECES,
        delete(WAIT_READ, 0),
        "bulk-group",
    ),
    Bug(
        "10b",
        "another thread waits for the bulk group than the one that committed it",
        PIECES,
        replace(
            r"@%p\d+ bra \t\$L\w+;\n(\tcp\.async\.bulk\.wait_group\.read 	1;)",
            "{ .reg .pred %o; setp.eq.u32 %o, %r1, 77; @%o cp.async.bulk.wait_group.read 1; }",
        ),
        "bulk-group",
        says=r"warp 0 lane 0 .* may still read; that thread must",
    ),
    Bug(
        "10c",
        "one bulk group more is left pending than there are buffers",
        PIECES,
        replace(r"wait_group\.read 	1;", "wait_group.read 2;"),
        "bulk-group",
    ),
    Bug(
        "11",
        "exit while a bulk store may still read shared memory",
        STAGED,
        delete(WAIT_READ, -1),
        "bulk-group",
        says=r"the CTA exits while this bulk store",
    ),
    Bug(
        "20a",
        "operand A is said to be M-major but lies K-major",
        SEQUENTIAL,
        replace(r"68158608", str(68158608 | 1 << 15)),
        "descriptor",
        says=r"operand A .* beyond the row's end",
    ),
    Bug(
        "20b",
        "operand B is said to be N-major but lies K-major",
        SEQUENTIAL,
        replace(r"68158608", str(68158608 | 1 << 16)),
        "descriptor",
        says=r"operand B .* beyond the row's end",
    ),
    Bug(
        "21a",
        "the descriptor's swizzle is 64B, the tensor map's 128B",
        SEQUENTIAL,
        replace(HIGH_WORD, str(0x80004040)),
        "swizzle",
        says=r"read with swizzle 64B .* wrote it with 128B",
    ),
    Bug(
        "21b",
        "the descriptor's swizzle is none, the tensor map's 128B",
        SEQUENTIAL,
        replace(HIGH_WORD, str(0x00004040)),
        "swizzle",
        says=r"read with swizzle none .* wrote it with 128B",
    ),
    Bug(
        "21c",
        "the descriptor's swizzle is 128B, the tensor map's none",
        SEQUENTIAL,
        unchanged,
        "swizzle",
        warns=True,
        describe=swizzled("none"),
        says=r"read with swizzle 128B .* wrote it with none",
    ),
    Bug(
        "22",
        "a base offset for a tile that a tensor copy has written",
        SEQUENTIAL,
        replace(HIGH_WORD, str(1073758272 | 1 << 17)),
        "swizzle",
        says=r"base offset 1",
    ),
    Bug(
        "23",
        "leading and stride byte offset (LBO, SBO) exchanged",
        PLAIN,
        chain(replace(r", 8388608;", ", 524288;"), replace(r", 16392;", ", 16512;")),
        "out-of-bounds",
    ),
    Bug(
        "23b",
        "the stride byte offset (SBO) is no multiple of the swizzle's pattern",
        SEQUENTIAL,
        replace(HIGH_WORD, str(1073758272 - 2)),
        "descriptor",
        warns=True,
        says=r"both from row to row and along K, with .* stride offset 992",
    ),
    Bug(
        "24a",
        "the step along K is added in bytes, not in units of 16",
        SEQUENTIAL,
        replace(r"65538;", "65568;", 0),
        "descriptor",
        warns=True,
        says=r"from one tensor's bytes into another's",
    ),
    Bug(
        "24b",
        "the last step along K goes to the next row instead of the next atom",
        SEQUENTIAL,
        replace(r"65542;", "65544;", 0),
        "descriptor",
        warns=True,
        says=r"from one tensor's bytes into another's",
    ),
    Bug(
        "24c",
        "a step along K reaches over the end of the swizzled row",
        SEQUENTIAL,
        replace(r"65542;", "65543;"),
        "descriptor",
        says=r"starts at byte 112 .* along K, beyond",
    ),
    Bug(
        "24d",
        "a step along K is twice as long: one slice is read twice, another never",
        SEQUENTIAL,
        replace(r"65538;", "65540;", 0),
        "unread",
        warns=True,
        says=r"never the rest of it",
    ),
    Bug(
        "25",
        "the cluster rank's bits are left in the descriptor",
        PLAIN_CLUSTER,
        replace(MASKED, r"mov.b32 \1, \2;"),
        "uninitialised-read",
    ),
    Bug(
        "26",
        "a box narrower than its swizzle is taken to be packed",
        NARROW,
        unchanged,
        "race or swizzle",
        describe=swizzled("128B"),
        says=r"read with swizzle 64B .* wrote it with 128B|not ordered behind the write",
    ),
    Bug(
        "27",
        "the second CTA of a pair has its stages at another offset",
        PAIR,
        replace(
            r"(add\.s64\s+(%rd\d+), %rd\d+, %rd\d+;)(\n[^\n]*and\.b64[^\n]*4278190072)",
            r"\1 { .reg .b64 %o; cvt.u64.u32 %o, %r4; shl.b64 %o, %o, 10;"
            r" add.s64 \2, \2, %o; }\3",
        ),
        "uninitialised-read",
    ),
    Bug(
        "38b",
        "the tail of K is filled with NaN",
        SEQUENTIAL,
        unchanged,
        "nan-fill",
        warns=True,
        describe=filled_with_nan,
    ),
    Bug(
        "46",
        "a tensor copy to an address that is no multiple of 128",
        SEQUENTIAL,
        replace(r"\[dynamic_shared\], \[%rd", "[dynamic_shared+64], [%rd"),
        "misaligned",
    ),
    Bug(
        "47a",
        "no proxy fence between stores of operands and the mma",
        BY_THREADS,
        delete(FENCE),
        "proxy-fence",
    ),
    Bug(
        "47b",
        "the proxy fence stands behind the barrier, by the issuing thread",
        BY_THREADS,
        chain(delete(FENCE), insert_before(r"tcgen05\.mma", "fence.proxy.async.shared::cta;", 0)),
        "proxy-fence",
        warns=True,
    ),
    Bug(
        "48",
        "the tensor map's rank is another than the instruction's",
        SEQUENTIAL,
        replace(r"bulk\.tensor\.2d(.*), \{(%r\d+), ", r"bulk.tensor.3d\1, {\2, 0, ", 0),
        "tma",
    ),
    Bug(
        "48b",
        "the address of a tensor map is that of a parameter, not a generic one",
        SEQUENTIAL,
        replace(r"cvta\.param\.u64", "mov.b64", 0),
        "out-of-bounds",
        says=r"mov gives a variable's address in its own space, cvta makes it generic",
    ),
    Bug(
        "54a",
        "a multicast leaves its peer out, which waits for the bytes",
        PLAIN_CLUSTER,
        replace(MASK, r"\g<1>1;", 0),
        "deadlock",
    ),
    Bug(
        "54b",
        "a multicast names a CTA that the cluster does not have",
        PLAIN_CLUSTER,
        replace(MASK, r"\g<1>7;", 0),
        "out-of-bounds",
    ),
    Bug(
        "54c",
        "a ring's slot is released to the own CTA and not to its peer, which fills it too",
        PLAIN_CLUSTER,
        replace(MASK, r"\g<1>1;", 1),
        "deadlock",
    ),
)
