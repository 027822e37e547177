"""The other side of the zoo: kernels that are right raise nothing, whatever the order of events."""

import pytest
from bug_zoo.bases import Matmul
from bug_zoo.block_scales import NEXT_ID
from bug_zoo.edits import chain, delete, insert_before, move_before, replace
from bug_zoo.hand_over import ARRIVAL, FENCE
from bug_zoo.written import (
    BLOCK_SCALED,
    COPY_OUT,
    CP_ASYNC,
    LANE_RELEASE,
    ONE_FACTOR,
    RELAYED_SCALES,
    RING,
)

from tilewright.compiler.presets import PRESETS


@pytest.mark.sweep(8)
@pytest.mark.slow
@pytest.mark.array(1, preset=PRESETS, seed=range(20))
def test_presets_are_right_and_raise_nothing(preset, seed):
    tile = 128 if preset.startswith("v") or preset >= "kernel5" else 64
    kernel = Matmul(preset, (tile + 8, tile + 8, 136))
    report, passed = kernel.run(kernel.ptx, seed)
    assert passed and not report.warnings


NEIGHBOURS = {
    "a proxy fence of all memory": (COPY_OUT, replace(FENCE, "fence.proxy.async")),
    "a proxy fence of the cluster": (
        RELAYED_SCALES,
        replace(FENCE, "fence.proxy.async.shared::cluster"),
    ),
    "a proxy fence by who stores, behind the barrier": (
        COPY_OUT,
        move_before(FENCE, "@!%stores"),
    ),
    "wait_all in place of the group": (
        COPY_OUT,
        replace(r"cp\.async\.wait_group 0", "cp.async.wait_all"),
    ),
    "an arrival of every lane, without bar.warp.sync": (
        LANE_RELEASE,
        chain(
            replace(r"@%first mbarrier", "mbarrier"),
            replace(r"\[%full\], 1;", "[%full], 32;"),
            delete(r"bar\.warp\.sync"),
        ),
    ),
    "a fence of one lane behind bar.warp.sync, and its relaxed arrival": (
        LANE_RELEASE,
        replace(
            r"@%first mbarrier\.arrive\.", "fence.acq_rel.cta; @%first mbarrier.arrive.relaxed.cta."
        ),
    ),
    "two lanes of one instruction that store the same value to one place": (
        LANE_RELEASE,
        insert_before(r"st\.shared", "st.shared.u32 [row], 7; bar.warp.sync -1;"),
    ),
    "a fence of the cluster before an arrival of the CTA": (
        RELAYED_SCALES,
        replace(ARRIVAL, "fence.acq_rel.cluster; mbarrier.arrive.shared::cluster"),
    ),
    "one scale factor for all of K, and padding that no product uses": (
        ONE_FACTOR,
        delete(NEXT_ID),
    ),
    "a wait without a scope": (
        RELAYED_SCALES,
        replace(r"try_wait\.parity\.acquire\.cluster", "try_wait.parity"),
    ),
}
"""Right kernels that look like bugs of the zoo: what they are, the kernel, and the change to it."""


@pytest.mark.parametrize("name", NEIGHBOURS)
def test_a_right_kernel_beside_a_bug_raises_nothing(name):
    kernel, edit = NEIGHBOURS[name]
    for seed in range(4):
        report, passed = kernel.run(edit(kernel.ptx), seed)
        assert passed and not report.warnings, f"seed {seed}"


RIGHT = {
    "of a parity bit 0 counts": (BLOCK_SCALED, replace(
        r"(.*\[multiplied\], )0;", r"{ .reg .b32 %parity; mov.b32 %parity, -2;\n\1%parity; }"),
                                 {"parity"}),
    "factors that no product uses are not loaded": (BLOCK_SCALED, replace(", 5632", ", 5248"),
                                                    set()),
    "the target is named twice": (RING, replace(r"(\.target .*\n)", r"\1\1"), set()),
    "a block has names of its own": (CP_ASYNC, replace(
        r"(?m)^(\s*)ret;", r"\1{ .reg .b32 %thread; inner: mov.u32 %thread, 1; }\n"
        r"\1{ .reg .b64 %thread; inner: mov.u64 %thread, 1; }\n\1ret;"), set()),
}  # fmt: skip


@pytest.mark.parametrize("what", RIGHT)
def test_what_hardware_takes_is_taken(what):
    base, edit, warnings = RIGHT[what]
    for seed in range(3):
        report, passed = base.run(edit(base.ptx), seed)
        assert passed and {each.category for each in report.warnings} == warnings
