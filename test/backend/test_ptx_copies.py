"""The PTX makes operand tiles visible to the tensor core before an MMA reads them.

Threads that copy with st.shared fence the async proxy and then meet at a barrier; what TMA loads is
waited for on its mbarrier (PTX ISA, "Async proxy"; tcgen05 memory consistency model).
"""

import re

import pytest

from tilewright.compiler.driver import compile_matmul
from tilewright.compiler.pipeline import DEFAULT_PIPELINE
from tilewright.compiler.spec import MatmulSpec

STEPS = {
    "load": r"cp\.async\.bulk\.tensor",
    "copy": r"st\.shared",
    "proxy-fence": r"fence\.proxy\.async",
    "wait": r"mbarrier\.(?:try|test)_wait",
    "barrier": r"bar(?:rier)?\.(?:cta\.)?sync",
    "mma": r"tcgen05\.mma",
}
PREFIXES = ("tiling", "tma-insertion", "swizzle-selection", "warp-specialization", "persistence")
SHAPES = [MatmulSpec(256, 256, 192), MatmulSpec(77, 33, 51), MatmulSpec(128, 64, 16)]


def steps_of(ptx: str) -> list[str]:
    """The steps of the kernel in program order, repeats included."""
    found = []
    for line in ptx.splitlines():
        text = re.sub(r"^\s*(@!?%\w+\s+)?", "", line)
        found += [name for name, pattern in STEPS.items() if re.match(pattern, text)]
    return found


@pytest.fixture(
    params=[(spec, prefix) for spec in SHAPES for prefix in PREFIXES],
    ids=lambda p: f"{p[0].m}x{p[0].n}x{p[0].k}-{p[1]}",
)
def steps(request):
    spec, prefix = request.param
    compiled = compile_matmul(spec, pipeline=DEFAULT_PIPELINE, stop_after=prefix, until="ptx")
    return steps_of(compiled.ptx)


def until_next_mma(steps: list[str], name: str) -> list[list[str]]:
    """What follows each unbroken run of a step, up to the next MMA."""
    ends = [i for i in range(1, len(steps)) if steps[i - 1] == name != steps[i]]
    mmas = [i for i, step in enumerate(steps) if step == "mma"]
    return [
        steps[end : next(mma for mma in mmas if mma >= end)]
        for end in ends
        if any(mma >= end for mma in mmas)
    ]


def test_threads_that_copy_fence_the_async_proxy_and_then_meet(steps):
    for following in until_next_mma(steps, "copy"):
        if "copy" not in following:
            assert following.index("proxy-fence") < following.index("barrier")


def test_every_tma_load_is_waited_for_before_an_mma(steps):
    for following in until_next_mma(steps, "load"):
        assert "wait" in following


def test_a_prefix_copies_as_it_should(steps, request):
    spec, prefix = request.node.callspec.params["steps"]
    by_tma = prefix != "tiling" and spec.k % 8 == 0
    assert ("load" in steps) == by_tma
    assert ("copy" in steps) != by_tma


@pytest.mark.parametrize(
    ("k", "loads", "bytes_each"), [(128, 8, 16), (100, 16, 8), (102, 16, 4), (101, 16, 2)]
)
def test_a_thread_loads_several_units_before_it_stores_one(k, loads, bytes_each):
    spec = MatmulSpec(128, 128, k)
    pipeline = "tiling{tile=128x128x64}"
    ptx = compile_matmul(spec, pipeline=pipeline, until="ptx").ptx
    loop = ptx[ptx.index("ld.global") :]
    before = re.findall(r"ld\.global\S*", loop[: loop.index("st.shared")])
    assert len(before) == loads
    words = {16: r"\.v4\.b32|\.v2\.b64", 8: r"\.v2\.b32|\.b64", 4: r"\.b32", 2: r"\.b16"}
    assert all(re.search(words[bytes_each] + "$", load) for load in before), before[0]
