"""The PTX makes operand tiles visible to the tensor core before an MMA reads them.

Threads that copy fence the async proxy and then meet at a barrier, or arrive at the slot's, of a
pair at the leader CTA's with release at cluster scope; before the fence they wait for what cp.async
has under way. What TMA loads is waited for on its mbarrier (PTX ISA, "Async proxy"; tcgen05 memory
consistency model).
"""

import functools
import re

import pytest

from tilewright.compiler.driver import compile_matmul
from tilewright.compiler.pipeline import DEFAULT_PIPELINE
from tilewright.compiler.spec import MatmulSpec

STEPS = {
    "load": r"cp\.async\.bulk\.tensor",
    "copy": r"st\.shared|cp\.async\.c[ag]\.shared",
    "copied": r"cp\.async\.wait_group",
    "proxy-fence": r"fence\.proxy\.async",
    "wait": r"mbarrier\.(?:try|test)_wait",
    "barrier": r"bar(?:rier)?\.(?:cta\.)?sync|mbarrier\.arrive(?:\.release\.cluster)?\.shared",
    "mma": r"tcgen05\.mma",
}
PREFIXES = ("tiling", "tma-insertion", "swizzle-selection", "warp-specialization", "persistence")
SHAPES = [
    MatmulSpec(256, 256, 192),
    MatmulSpec(77, 33, 51),
    MatmulSpec(77, 33, 52),
    MatmulSpec(128, 128, 16),
]


def steps_of(ptx: str) -> list[str]:
    """The steps of the kernel in program order, repeats included."""
    found = []
    for line in ptx.splitlines():
        text = re.sub(r"^\s*(@!?%\w+\s+)?", "", line)
        found += [name for name, pattern in STEPS.items() if re.match(pattern, text)]
    return found


@pytest.fixture(
    scope="module",
    params=[(spec, prefix) for spec in SHAPES for prefix in PREFIXES],
    ids=lambda p: f"{p[0].m}x{p[0].n}x{p[0].k}-{p[1]}",
)
def steps(request):
    spec, prefix = request.param
    pipeline = DEFAULT_PIPELINE.replace("tiling", "tiling{tile=64x64x64}", 1)
    compiled = compile_matmul(spec, pipeline=pipeline, stop_after=prefix, until="ptx")
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


@pytest.mark.sweep(2)
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
    ("k", "loads", "bytes_each"), [(128, 8, 16), (100, 16, 8), (102, 16, 4), (101, 12, 16)]
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


COPYING = "tiling{tile=128x128x64},tma-insertion,swizzle-selection,pipelining{stages=STAGES}"


@functools.cache
def copying_loop(k: int, stages: int, target: str) -> str:
    """The PTX of the load role from its copies on, where all operands are copied by threads."""
    pipeline = COPYING.replace("STAGES", str(stages)) + ",warp-specialization"
    spec = MatmulSpec(128, 128, k)
    ptx = compile_matmul(spec, pipeline=pipeline, target=target, until="ptx").ptx
    return ptx[re.search(r"cp\.async\.c[ag]\.shared|ld\.global", ptx).start() :]


@pytest.mark.array(1, k=[1100, 1102], target=["sm_90a", "sm_100a"])
def test_the_load_role_copies_as_many_bytes_at_once_as_rows_allow(target, k):
    size = {1100: 8, 1102: 4}[k]
    loop = copying_loop(k, 3, target)
    found = re.findall(r"cp\.async\.(c[ag])\.shared\.global \[.*?\], \[.*?\], (\d+)(, %r)?", loop)
    assert set(found) == {("ca", str(size), ", %r")}
    assert "st.shared.v4" not in loop and "ld.global" not in loop


@pytest.mark.parametrize("target", ["sm_90a", "sm_100a"])
def test_rows_of_odd_length_are_loaded_by_aligned_units_and_shifted(target):
    loop = copying_loop(1101, 3, target)
    loads = loop[: loop.index("st.shared")]
    assert len(re.findall(r"ld\.global\.(?:v4\.b32|v2\.b64)", loads)) == 24  # 3 for 2 units a row
    assert "ld.global.b16" not in loads
    assert "shf.r.wrap.b32" in loads
    assert not re.search(r"cp\.async\.c[ag]\.shared", loop)


@pytest.mark.parametrize(("m", "shifted"), [(128, True), (2**20, False)])
def test_offsets_of_more_than_31_bits_are_left_to_loads_by_element(m, shifted):
    ptx = compile_matmul(
        MatmulSpec(m, 131072, 2049, b_major="n"),
        pipeline=COPYING.replace("STAGES", "2") + ",warp-specialization",
        target="sm_90a",
        until="ptx",
    ).ptx
    assert ("shf.r.wrap.b32" in ptx) == shifted


@pytest.mark.array(1, stages=[1, 2, 3, 6], target=["sm_90a", "sm_100a"])
def test_slots_stay_under_way_as_long_as_the_ring_has_others(target, stages):
    under_way = {1: [0], 2: [0], 3: [1, 0], 6: [2, 0]}[stages]
    waits = re.findall(r"cp\.async\.wait_group \s*(\d+)", copying_loop(1100, stages, target))
    assert [int(each) for each in waits] == under_way
