"""Bugs of the tensor core and its memory (ptx-facts 12 to 19, 28 to 32, 39, 40)."""

from .bases import PAIR, PERSISTENT, PLAIN_CLUSTER, ROLES, SEQUENTIAL, SPLIT_CLUSTER
from .edits import chain, delete, insert_after, insert_before, move_before, replace, without_waiting
from .entry import Bug
from .written import BLOCK_SCALED

COMMIT = r"tcgen05\.commit\.cta_group::1"
LOAD_32 = r"(tcgen05\.ld\.sync\.aligned\.)16x32bx2\.x32\.b32 (.*), (\[.*\]), 32;"
WAIT_LD = r"tcgen05\.wait::ld"
BEFORE, AFTER = r"tcgen05\.fence::before_thread_sync", r"tcgen05\.fence::after_thread_sync"
REMOTE_ARRIVE = r"arrive(\.shared::cluster)"
ALLOC = r"tcgen05\.alloc\.cta_group::1"
RELINQUISH = r"tcgen05\.relinquish_alloc_permit"
DEALLOC = r"tcgen05\.dealloc"
CLUSTER_ARRIVE, CLUSTER_WAIT = r"barrier\.cluster\.arrive", r"barrier\.cluster\.wait"
TEMPORARY = "tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [dynamic_shared+16408], "

BUGS = (
    Bug(
        "12",
        "registers of tcgen05.ld are used before tcgen05.wait::ld",
        ROLES,
        move_before(WAIT_LD, BEFORE, 0, 1),
        "early-use",
        warns=True,
        says=r"before tcgen05\.wait::ld$",
    ),
    Bug(
        "12b",
        "registers of tcgen05.ld are used, and no tcgen05.wait::ld follows before the release",
        BLOCK_SCALED,
        replace(r"tcgen05\.wait::ld\.sync\.aligned;", "mov.b32 %d7, %d7;"),
        "unwaited-load",
        warns=True,
        says=r"`mov\.b32 %d7, %d7` uses .* none follows before .* `tcgen05\.fence::before",
    ),
    Bug(
        "13a",
        "the accumulator is released without tcgen05.wait::ld",
        PERSISTENT,
        delete(WAIT_LD),
        "missing-wait or missing-fence",
        says=r"not ordered behind the tcgen05\.ld|tcgen05\.ld .* without .* behind it",
    ),
    Bug(
        "13b",
        "the accumulator is released without fence::before_thread_sync",
        PERSISTENT,
        delete(BEFORE, 1),
        "unfenced",
        warns=True,
        says=r"without tcgen05\.fence::before_thread_sync",
    ),
    Bug(
        "13d",
        "the accumulator is released without fence::before_thread_sync, and relaxed",
        PERSISTENT,
        chain(delete(BEFORE, 1), replace(REMOTE_ARRIVE, r"arrive.relaxed.cluster\1")),
        "missing-fence or race",
        says=r"tensor memory columns",
    ),
    Bug(
        "13c",
        "tensor memory is freed while a load of it is under way",
        ROLES,
        delete(WAIT_LD),
        "missing-wait",
        says=r"tcgen05\.dealloc .* not ordered behind the tcgen05\.ld",
    ),
    Bug(
        "14a",
        "no fence::after_thread_sync before the accumulator is read",
        ROLES,
        delete(AFTER, 1),
        "unfenced",
        warns=True,
        says=r"tcgen05\.ld follows the tcgen05\.mma .*fence::after_thread_sync",
    ),
    Bug(
        "14b",
        "no fence::after_thread_sync before the accumulator is overwritten",
        PERSISTENT,
        chain(delete(AFTER, 3), delete(AFTER, 2)),
        "unfenced",
        warns=True,
        says=r"tcgen05\.mma follows the tcgen05\.ld .*fence::after_thread_sync",
    ),
    Bug(
        "14c",
        "no fence::after_thread_sync behind a wait that is relaxed",
        PERSISTENT,
        chain(
            delete(AFTER, 1),
            replace(r"try_wait\.parity(\.shared)", r"try_wait.parity.relaxed.cta\1", 0),
        ),
        "missing-fence or race",
        says=r"tensor memory columns",
    ),
    Bug(
        "15a",
        "the commit is issued by another lane than the operations",
        ROLES,
        chain(
            delete(COMMIT, -1),
            insert_after(
                r"bar\.warp\.sync",
                "{ .reg .pred %c; setp.eq.u32 %c, %r1, 167; @%c "
                "tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.b64 "
                "[dynamic_shared+196672]; }",
                -1,
            ),
        ),
        "missing-wait or race",
        says=r"tcgen05\.ld .* not ordered behind the (write by )?.*tcgen05\.mma|tensor memory",
    ),
    Bug(
        "15b",
        "the commit is issued by another warp than the operations",
        ROLES,
        chain(
            delete(COMMIT, -1),
            insert_before(
                r"shl\.b32\s+%r\d+, %r5, 7",
                "tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.b64 "
                "[dynamic_shared+196672];",
                -1,
            ),
        ),
        "uninitialised-read or missing-wait or race",
    ),
    Bug(
        "16a",
        "every lane of a warp issues the mma",
        ROLES,
        replace(r"(elect\.sync.*\n.*not\.pred.*\n).*bra.*\n(\tcvt\.u32\.u64)", r"\1\2"),
        "convergence",
        says=r"issued by one thread, got 32 active lanes",
    ),
    Bug(
        "17",
        "the first step adds to what tensor memory holds",
        ROLES,
        replace(r"setp\.ne\.b64(\s+%p\d+, %rd\d+), 0;", r"setp.ne.b64\1, 99;"),
        "uninitialised-read",
        says=r"tcgen05\.mma accumulator: .* never written",
    ),
    Bug(
        "18a",
        "the instruction descriptor has M of one CTA, not of the pair",
        PAIR,
        replace(r"272630928", str(272630928 - (8 << 24))),
        "uninitialised-read",
    ),
    Bug(
        "18b",
        "the instruction descriptor has half of the pair's N",
        PAIR,
        replace(r"272630928", str(272630928 - (16 << 17))),
        "uninitialised-read",
    ),
    Bug(
        "19",
        "an accumulator of M=64 is read as one of M=128",
        SEQUENTIAL,
        replace(LOAD_32, r"\g<1>32x32b.x32.b32 \2, \3;"),
        "uninitialised-read",
    ),
    Bug(
        "28a",
        "tensor memory is not freed",
        SEQUENTIAL,
        delete(DEALLOC),
        "tmem",
        says="exits with tensor memory columns",
    ),
    Bug(
        "28b",
        "tensor memory is freed twice",
        SEQUENTIAL,
        replace(rf"({DEALLOC}.*\n)", r"\1\t\1"),
        "tmem",
        says=r"no live allocation",
    ),
    Bug(
        "28c",
        "tensor memory is freed by halves",
        SEQUENTIAL,
        replace(r"(mov\.b32\s+%r\d+, )64;(\s+tcgen05\.dealloc)", r"\g<1>32;\2"),
        "tmem",
        says=r"allocated with 64 columns, got 32",
    ),
    Bug(
        "29a",
        "a later allocation is larger",
        SEQUENTIAL,
        insert_before(ALLOC, TEMPORARY + "32;"),
        "tmem",
        says=r"may not increase, got 64 after 32",
    ),
    Bug(
        "29b",
        "tensor memory is allocated after the permit was given up",
        SEQUENTIAL,
        insert_after(RELINQUISH, TEMPORARY + "32;"),
        "tmem",
        says=r"after tcgen05\.relinquish_alloc_permit",
    ),
    Bug(
        "29c",
        "more columns are allocated than there are",
        SEQUENTIAL,
        insert_before(ALLOC, TEMPORARY + "512;"),
        "deadlock",
        says=r"waits until that many tensor memory columns are free",
    ),
    Bug(
        "29d",
        "the columns allocated are no power of two",
        SEQUENTIAL,
        replace(r"(mov\.b32\s+%r\d+, )64;(\s+tcgen05\.alloc)", r"\g<1>96;\2"),
        "tmem",
        says=r"a power of two in 32\.\.512, got 96",
    ),
    Bug(
        "30a",
        "a CTA exits while its peer still signals its barriers",
        PLAIN_CLUSTER,
        chain(
            without_waiting(-1),
            delete(CLUSTER_WAIT, -1),
            replace(CLUSTER_ARRIVE + r".*;", "bar.sync 0;", -1),
        ),
        "exited-cta",
    ),
    Bug(
        "30b",
        "no cluster barrier before the pair frees tensor memory",
        PAIR,
        chain(delete(CLUSTER_WAIT, -1), delete(CLUSTER_ARRIVE, -1)),
        "race or out-of-bounds or exited-cta",
    ),
    Bug(
        "30c",
        "a CTA waits for its peer's later commits, and not for an earlier one to another barrier",
        PAIR,
        without_waiting(5),
        "exited-cta",
        says="nothing orders that behind the arrival of an operation that signals mbarrier",
    ),
    Bug(
        "30d",
        "a CTA's peer still reads its shared memory, and arrives relaxed at the last barrier",
        SPLIT_CLUSTER,
        replace(r"cluster\.arrive\.aligned", "cluster.arrive.relaxed.aligned", -1),
        "exited-cta",
        says="only a relaxed arrival orders that behind the access",
    ),
    Bug(
        "30e",
        "a CTA of a pair asks for tensor memory before its peer has been launched",
        PAIR,
        chain(delete(CLUSTER_WAIT, 0), delete(CLUSTER_ARRIVE, 0)),
        "race",
        says=r"tcgen05\.alloc\.cta_group::2 is not ordered behind the start of cta",
    ),
    Bug(
        "31",
        "a warp reads the lanes of another warp's quarter",
        ROLES,
        replace(r"(shl\.b32\s+(%r\d+), )(%r\d+), 21;", r"xor.b32 \2, \3, 1; \1\2, 21;", 0),
        "tmem",
        says=r"tcgen05\.ld: warp \d may access tensor memory lanes \d+\.\.\d+ only",
    ),
    Bug(
        "32a",
        "tcgen05.ld in divergent code",
        ROLES,
        replace(r"(tcgen05\.ld\..*;)", r"{ .reg .pred %d; setp.ne.u32 %d, %r1, 9; @%d \1 }"),
        "convergence",
        says=r"leaves out lanes 9$",
    ),
    Bug(
        "32b",
        "an aligned cluster barrier in divergent code",
        PAIR,
        replace(
            r"(barrier\.cluster\.arrive\S*;)",
            r"{ .reg .pred %d; setp.ne.u32 %d, %r1, 9; @%d \1 }",
            -1,
        ),
        "convergence",
        says=r"leaves out lanes 9$",
    ),
    Bug(
        "32c",
        "tcgen05.alloc by one thread",
        ROLES,
        replace(r"(tcgen05\.alloc\..*;)", r"{ .reg .pred %d; setp.eq.u32 %d, %r1, 0; @%d \1 }"),
        "convergence",
        says=r"leaves out lanes 1-31$",
    ),
    Bug(
        "40",
        "the address of the allocation is read before the barrier",
        SEQUENTIAL,
        move_before(r"ld\.shared\.b32", r"bar\.sync"),
        "uninitialised-read or race",
    ),
)
