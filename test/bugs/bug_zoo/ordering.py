"""Bugs of memory order that a lucky schedule hides: races, scopes, and what publishes barriers."""

from .bases import BY_THREADS, PAIR, PERSISTENT, PIECES, PLAIN_CLUSTER, ROLES
from .edits import chain, delete, insert_before, replace, without_waiting
from .entry import Bug
from .written import CP_ASYNC, LANE_RELEASE, RING, SPLIT_K, WARP_REVERSE

CLUSTER_ARRIVE, CLUSTER_WAIT = r"barrier\.cluster\.arrive", r"barrier\.cluster\.wait"
RELAXED = "bar.sync 0; barrier.cluster.arrive.relaxed.aligned;"

BUGS = (
    Bug(
        "7b",
        "barriers are not published to the cluster by fence.mbarrier_init",
        PAIR,
        chain(
            delete(r"fence\.mbarrier_init"),
            replace(CLUSTER_ARRIVE + r"\.relaxed\.aligned;", RELAXED, 0),
        ),
        "missing-fence",
        says=r"whose mbarrier\.init is not ordered before it",
    ),
    Bug(
        "7c",
        "no cluster barrier before the peer signals a barrier",
        PLAIN_CLUSTER,
        chain(
            delete(CLUSTER_WAIT, 0),
            replace(CLUSTER_ARRIVE + r"\.relaxed\.aligned;", "bar.sync 0;", 0),
        ),
        "missing-fence or barrier-protocol",
    ),
    Bug(
        "50a",
        "a ring's slot is filled again before its reader has released it",
        ROLES,
        without_waiting(1),
        "race or barrier-protocol",
    ),
    Bug(
        "50b",
        "the consumer's arrival is relaxed",
        RING,
        replace(
            r"mbarrier\.arrive\.shared::cta\.b64 _, \[%empty\]",
            "mbarrier.arrive.relaxed.cta.shared::cta.b64 _, [%empty]",
        ),
        "race",
    ),
    Bug(
        "50c",
        "the consumer's wait is relaxed",
        RING,
        replace(r"try_wait\.parity\.shared", "try_wait.parity.relaxed.cta.shared", 0),
        "race",
    ),
    Bug(
        "51a",
        "no bar.warp.sync between the stores and the loads of other lanes",
        WARP_REVERSE,
        delete(r"bar\.warp\.sync"),
        "race",
    ),
    Bug(
        "51b",
        "no barrier before a slot that other threads read is written again",
        CP_ASYNC,
        delete(r"bar\.sync 1"),
        "race or uninitialised-read",
    ),
    Bug(
        "51c",
        "one lane arrives for what the others stored, without bar.warp.sync",
        LANE_RELEASE,
        delete(r"bar\.warp\.sync"),
        "race",
        says=r"another lane of that warp has released since",
    ),
    Bug(
        "51d",
        "lanes fence, and one of them arrives relaxed without bar.warp.sync",
        LANE_RELEASE,
        chain(
            replace(r"bar\.warp\.sync -1", "fence.acq_rel.cta"),
            replace(r"mbarrier\.arrive\.", "mbarrier.arrive.relaxed.cta."),
        ),
        "race",
        says=r"another lane of that warp has released since",
    ),
    Bug(
        "51e",
        "two lanes of one instruction store different values to one place",
        LANE_RELEASE,
        insert_before(r"st\.shared", "and.b32 %mine, %mine, -8;"),
        "race",
        says=r"lanes 0 and 1 meet at one address",
    ),
    Bug(
        "52a",
        "no fence between the parts of a split K and its semaphore",
        SPLIT_K,
        delete(r"fence\.acq_rel", 0),
        "race",
        says=r"parameter 1 \(parts\) is not ordered behind the write",
    ),
    Bug(
        "52b",
        "no fence between the semaphore of a split K and the sum of its parts",
        SPLIT_K,
        delete(r"fence\.acq_rel", 1),
        "race",
        says=r"parameter 1 \(parts\) is not ordered behind the write",
    ),
    Bug(
        "52c",
        "the semaphore of a split K does not wait for the CTA's other warps",
        SPLIT_K,
        delete(r"bar\.sync", 0),
        "race",
        says=r"parameter 1 \(parts\) is not ordered behind the write",
    ),
    Bug(
        "52d",
        "the semaphore of a split K is no atomic",
        SPLIT_K,
        replace(
            r"atom\.add\.relaxed\.gpu\.global\.u32 %came, \[%semaphore\], 1;",
            "ld.global.u32 %came, [%semaphore]; add.u32 %index, %came, 1;"
            " st.global.u32 [%semaphore], %index;",
        ),
        "race",
        says=r"parameter 2 \(semaphore\)",
    ),
    Bug(
        "52e",
        "every CTA writes the whole result",
        SPLIT_K,
        delete(r"@%others bra done"),
        "race",
    ),
    Bug(
        "52f",
        "a fence of a split K has the scope of a CTA",
        SPLIT_K,
        replace(r"fence\.acq_rel\.gpu", "fence.acq_rel.cta", 0),
        "race",
        says=r"parameter 1 \(parts\) is not ordered behind the write",
    ),
    Bug(
        "52g",
        "the semaphore of a split K has the scope of a CTA",
        SPLIT_K,
        replace(r"atom\.add\.relaxed\.gpu", "atom.add.relaxed.cta"),
        "race",
        says=r"parameter 2 \(semaphore\) .* the scope of one does not include the other",
    ),
    Bug(
        "52h",
        "threads fence before the barrier, and the one that counts them does not",
        SPLIT_K,
        chain(delete(r"fence\.acq_rel", 0), insert_before(r"bar\.sync", "fence.acq_rel.gpu;", 0)),
        "race",
        says=r"parameter 1 \(parts\) is not ordered behind the write",
    ),
    Bug(
        "53a",
        "the next tile's products do not wait until the accumulator is free",
        PERSISTENT,
        without_waiting(-2),
        "missing-wait or missing-fence or race",
    ),
    Bug(
        "53b",
        "the epilogue does not wait for the accumulator",
        ROLES,
        without_waiting(0),
        "uninitialised-read or missing-wait or race",
    ),
    Bug(
        "53c",
        "no barrier between the wait for the store buffer and the other warps' writes",
        PIECES,
        delete(r"bar\.sync", 1),
        "race or bulk-group",
    ),
    Bug(
        "53d",
        "no barrier between the other warps' writes and the bulk store",
        PIECES,
        delete(r"bar\.sync", 2),
        "race or uninitialised-read or bulk-group",
    ),
    Bug(
        "53e",
        "no barrier between the threads that copy an operand and the mma",
        BY_THREADS,
        delete(r"bar\.sync", 1),
        "race or uninitialised-read",
    ),
)
