"""Instructions of order in a text of PTX, written as weaker or narrower ones that are legal too."""

from __future__ import annotations

import re
from collections.abc import Iterator

from .tokens import Mutant, instructions

WEAKER = (
    (r"mbarrier\.arrive(?=\.(?:shared|b64))", ("mbarrier.arrive.relaxed.cta",)),
    (r"mbarrier\.arrive\.release\.(\w+)", (r"mbarrier.arrive.relaxed.\1",)),
    (r"mbarrier\.arrive\.expect_tx(?=\.(?:shared|b64))",
     ("mbarrier.arrive.expect_tx.relaxed.cta",)),
    (r"mbarrier\.arrive\.expect_tx\.release\.(\w+)", (r"mbarrier.arrive.expect_tx.relaxed.\1",)),
    (r"mbarrier\.(try|test)_wait(\.parity)?(?=\.(?:shared|b64))",
     (r"mbarrier.\1_wait\2.relaxed.cta",)),
    (r"mbarrier\.(try|test)_wait(\.parity)?\.acquire\.(\w+)", (r"mbarrier.\1_wait\2.relaxed.\3",)),
    (r"barrier\.cluster\.arrive(\.aligned)?(?=;)", (r"barrier.cluster.arrive.relaxed\1",)),
    (r"barrier\.cluster\.arrive\.release", ("barrier.cluster.arrive.relaxed",)),
    (r"fence\.proxy\.async(?=;)",
     ("fence.proxy.async.global", "fence.proxy.async.shared::cta", "fence.proxy.alias")),
    (r"fence\.proxy\.async\.shared::(?:cta|cluster)", ("fence.proxy.async.global",)),
    (r"fence\.mbarrier_init\.release\.cluster", ("fence.acq_rel.cta", "fence.proxy.async")),
    (r"membar\.(?:gl|sys)", ("membar.cta",)),
    (r"fence\.acq_rel\.(\w+)", (r"fence.release.\1", r"fence.acquire.\1")),
    (r"cp\.async\.mbarrier\.arrive(?=\.(?:shared|b64))", ("cp.async.mbarrier.arrive.noinc",)),
    (r"cp\.async\.bulk\.wait_group(?=\s)", ("cp.async.bulk.wait_group.read",)),
    (r"ld\.(?:acquire|relaxed)\.\w+\.", ("ld.", "ld.volatile.")),
    (r"st\.(?:release|relaxed)\.\w+\.", ("st.", "st.volatile.")),
    (r"ld\.global(?=\.)", ("ld.global.nc",)),
    (r"(atom|red)\.(global|shared)", (r"\1.relaxed.cta.\2",)),
    (r"bar\.sync(\s+\w+, \w+);", (r"bar.arrive\1;",)),
    (r"tcgen05\.mma\.cta_group::(\d)\.kind", (r"tcgen05.mma.ws.cta_group::\1.kind",)),
    (r"(?<=\.mma)(\.[\w:.]+)(?=\s)", (r"\1.collector::a::fill", r"\1.collector::a::use")),
)  # fmt: skip
"""What an opcode may become, by a pattern of it."""


def weakened(text: str) -> Iterator[Mutant]:
    """Every instruction that such a pattern finds, with each text that may stand there instead."""
    for line, shown in instructions(text):
        for pattern, others in WEAKER:
            for other in others:
                changed = re.sub(pattern, other, shown, count=1)
                if changed != shown:
                    yield Mutant(line, [changed], text)
