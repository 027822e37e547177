"""Bugs of handing data over between proxies and between the CTAs of a cluster.

63a to 63c are the three faults of NVIDIA's CuTe example `2cta_mma_blockscale_m128`
(https://github.com/NVIDIA/cutlass/issues/3643) in a kernel of our own; docs/cutlass-3643.md.
"""

from .bases import STAGED
from .edits import chain, delete, move_before, replace
from .entry import Bug
from .written import COPY_OUT, RELAYED_SCALES

FENCE = r"fence\.proxy\.async\.shared::cta"
ARRIVAL = r"mbarrier\.arrive\.release\.cluster\.shared::cluster"
WITHOUT_FACTORS = chain(
    delete(r"mbarrier\.try_wait\S* %done, \[factors\]"), delete("@!%done bra scaled")
)
WITHOUT_FENCE = delete(FENCE)
WITH_NARROW_SCOPE = replace(ARRIVAL, "mbarrier.arrive.release.cta.shared::cluster")

BUGS = (
    Bug(
        "62a",
        "the proxy fence stands before the wait for the copies that it should cover",
        COPY_OUT,
        move_before(FENCE, r"cp\.async\.wait_group"),
        "proxy-fence",
        says=r"one before the wait for the copy does not cover it",
    ),
    Bug(
        "62b",
        "the proxy fence in front of a bulk store is one of global memory",
        STAGED,
        replace(FENCE, "fence.proxy.async.global"),
        "proxy-fence",
        says=r"restricted to global memory; it takes fence\.proxy\.async\.shared::cta",
    ),
    Bug(
        "63a",
        "the leader of a pair copies scale factors that nobody has waited for (cutlass#3643, 1)",
        RELAYED_SCALES,
        WITHOUT_FACTORS,
        "race or uninitialised-read",
        says=r"tcgen05\.cp",
    ),
    Bug(
        "63b",
        "no proxy fence between cp.async and the leader's tcgen05.cp (cutlass#3643, 2)",
        RELAYED_SCALES,
        WITHOUT_FENCE,
        "proxy-fence",
        says=r"tcgen05\.cp .* the write by cp\.async",
    ),
    Bug(
        "63c",
        "the relay's arrival at the leader has the scope of its CTA (cutlass#3643, 3)",
        RELAYED_SCALES,
        WITH_NARROW_SCOPE,
        "race",
        says=r"arrival of scope \.cta at the mbarrier of another CTA",
    ),
    Bug(
        "63d",
        "all three faults of cutlass#3643",
        RELAYED_SCALES,
        chain(WITHOUT_FACTORS, WITHOUT_FENCE, WITH_NARROW_SCOPE),
        "race or uninitialised-read or proxy-fence",
        says=r"tcgen05\.cp",
    ),
    Bug(
        "63e",
        "an arrival at the leader without a scope, which is that of its CTA",
        RELAYED_SCALES,
        replace(ARRIVAL, "mbarrier.arrive.shared::cluster"),
        "race",
        says=r"arrive with \.release\.cluster",
    ),
)
