"""The PTX keeps the order that the kernel's synchronisation needs.

LLVM does not know that a tcgen05.mma reads shared memory, nor that tcgen05.wait::ld completes a
load, so nothing but this test says that it left them in place.
"""

import re

import pytest

from tilewright.compiler.driver import compile_matmul
from tilewright.compiler.pipeline import DEFAULT_PIPELINE
from tilewright.compiler.spec import MatmulSpec

SEQUENTIAL = ("tiling", "tma-insertion", "swizzle-selection")
PREFIXES = (*SEQUENTIAL, "clustering", "pipelining", "warp-specialization", "persistence")
EVENTS = {
    "try_wait": r"mbarrier\.try_wait",
    "meet": r"bar(rier)?\.(cta\.)?sync",
    "fence": r"tcgen05\.fence::after_thread_sync",
    "mma": r"tcgen05\.mma",
    "commit": r"tcgen05\.commit",
    "ld": r"tcgen05\.ld",
    "wait_ld": r"tcgen05\.wait::ld",
}


def ptx_of(prefix, **fields):
    spec = MatmulSpec(**{"m": 300, "n": 256, "k": 1000, **fields})
    pipeline = DEFAULT_PIPELINE.replace("epilogue-staging,", "")
    return compile_matmul(spec, pipeline=pipeline, stop_after=prefix, until="ptx").ptx


def events(ptx):
    pattern = re.compile("|".join(f"(?P<{name}>{text})" for name, text in EVENTS.items()))
    return [match.lastgroup for match in pattern.finditer(ptx)]


@pytest.mark.array(1, prefix=PREFIXES, k=[64, 1000])
def test_wait_fence_mma_commit_stay_in_order(prefix, k):
    found = events(ptx_of(prefix, k=k))
    runs = re.findall(r"(?:try_wait|meet) fence(?: mma)+(?: commit)+", " ".join(found))
    assert runs
    assert sum(run.count("mma") for run in runs) == found.count("mma")
    assert sum(run.count("commit") for run in runs) == found.count("commit")
    waited_on_tma = "meet fence mma" if prefix == "tiling" else "try_wait fence mma"
    assert all(run.startswith(waited_on_tma) for run in runs)


@pytest.mark.parametrize("prefix", SEQUENTIAL)
def test_the_accumulator_is_read_after_its_wait_and_fence(prefix):
    found = " ".join(events(ptx_of(prefix)))
    assert re.search(r"try_wait fence( ld wait_ld)+ meet fence$", found)


@pytest.mark.parametrize("m_tile", [64, 128])
@pytest.mark.parametrize("n", [256, 250, 33])
def test_loaded_registers_are_used_only_after_wait_ld(m_tile, n):
    spec = MatmulSpec(200, n, 128)
    ptx = compile_matmul(spec, pipeline=f"tiling{{tile={m_tile}x64x64}}", until="ptx").ptx
    loaded: set[str] = set()
    for line in ptx.splitlines():
        if "tcgen05.ld" in line:
            loaded |= set(re.findall(r"%r\d+", line[line.index("{") : line.index("}")]))
            continue
        if "tcgen05.wait::ld" in line:
            loaded.clear()
        used = loaded & set(re.findall(r"%r\d+\b", line))
        assert not used, f"{line.strip()} uses {used} before tcgen05.wait::ld"
