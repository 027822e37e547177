"""The PTX of every prefix keeps the order that tcgen05 needs.

LLVM does not know that tcgen05.mma reads shared memory, nor that commit tracks earlier MMAs (PTX
ISA, tcgen05 memory consistency model), so this order is checked where it ends up.
"""

import re

import pytest
from tilewright.compiler.driver import compile_matmul
from tilewright.compiler.spec import MatmulSpec

STEPS = {
    "load": r"cp\.async\.bulk\.tensor",
    "copy": r"st\.shared",
    "proxy-fence": r"fence\.proxy\.async",
    "wait": r"mbarrier\.(?:try|test)_wait",
    "barrier": r"bar(?:rier)?\.(?:cta\.)?sync",
    "fence": r"tcgen05\.fence::after_thread_sync",
    "mma": r"tcgen05\.mma",
    "commit": r"tcgen05\.commit",
    "tmem-load": r"tcgen05\.ld",
    "tmem-wait": r"tcgen05\.wait::ld",
}
SHAPES = [MatmulSpec(256, 256, 192), MatmulSpec(77, 33, 51), MatmulSpec(128, 64, 16)]


def steps_of(ptx: str) -> list[str]:
    """The steps of the kernel in program order, repeats included."""
    found = []
    for line in ptx.splitlines():
        text = re.sub(r"^\s*(@!?%\w+\s+)?", "", line)
        found += [name for name, pattern in STEPS.items() if re.match(pattern, text)]
    return found


@pytest.fixture(
    params=[(spec, prefix) for spec in SHAPES for prefix in ("tiling", "tma-insertion", None)],
    ids=lambda p: f"{p[0].m}x{p[0].n}x{p[0].k}-{p[1] or 'all'}",
)
def steps(request):
    spec, prefix = request.param
    return steps_of(compile_matmul(spec, stop_after=prefix, until="ptx").ptx)


def runs_of(steps: list[str], name: str) -> list[tuple[int, int]]:
    """(first, after last) of every unbroken run of a step: loops may be peeled or unrolled."""
    starts = [i for i, s in enumerate(steps) if s == name and steps[max(i - 1, 0)] != name]
    return [(i, next(j for j in range(i, len(steps)) if steps[j] != name)) for i in starts]


def test_every_run_of_mmas_stands_between_wait_and_fence_and_commit(steps):
    for first, end in runs_of(steps, "mma"):
        assert steps[first - 1] == "fence"
        assert steps[first - 2] in ("wait", "barrier")
        assert steps[end] == "commit"


def test_threads_that_copy_fence_the_async_proxy_before_the_barrier_before_the_mma(steps):
    mmas = [first for first, _ in runs_of(steps, "mma")]
    for _, end in runs_of(steps, "copy"):
        following = next((first for first in mmas if first > end), None)
        if following and "copy" not in steps[end:following]:
            between = steps[end:following]
            assert between.index("proxy-fence") < between.index("barrier")
            assert "load" not in between or "wait" in between


def test_every_tma_load_is_waited_for_before_an_mma(steps):
    mmas = [first for first, _ in runs_of(steps, "mma")]
    for _, end in runs_of(steps, "load"):
        following = next((first for first in mmas if first > end), len(steps))
        assert "wait" in steps[end:following]


def test_tensor_memory_is_read_after_a_wait_and_a_fence(steps):
    first = steps.index("tmem-load")
    assert steps[first - 2 : first] == ["wait", "fence"]
    assert steps[first + 1] == "tmem-wait"
