"""Threads that call the same kernel at the same time."""

import sys
from concurrent.futures import ThreadPoolExecutor

import pytest
import torch

from tilewright.compiler.bundle_writer import as_bundle
from tilewright.compiler.driver import compile_matmul
from tilewright.compiler.spec import MatmulSpec
from tilewright.runtime.launch.loading import open_kernel

PARTS = (
    "tiling{tile=64x32x64},tma-insertion,swizzle-selection,split-k{parts=3 over=grid},pipelining"
)


@pytest.fixture
def turns_of_a_microsecond():
    kept = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(kept)


@pytest.mark.usefixtures("turns_of_a_microsecond")
@pytest.mark.parametrize("pipeline", [PARTS, PARTS.replace(",split-k{parts=3 over=grid}", "")])
def test_they_get_their_own_products(pipeline):
    """Also of a kernel whose parts of K meet in a workspace that its launches share."""
    spec = MatmulSpec(100, 72, 392, c_dtype="f32")
    kernel = open_kernel(as_bundle(compile_matmul(spec, target="sm_90a", pipeline=pipeline)))
    draw = torch.Generator().manual_seed(7)
    pairs = [
        tuple(torch.randint(-4, 5, (rows, 392), generator=draw).bfloat16() for rows in (100, 72))
        for _ in range(6)
    ]
    kernel(*pairs[0])  # what the first call alone does, which threads would wait for
    with ThreadPoolExecutor(len(pairs)) as threads:
        products = list(threads.map(lambda pair: kernel(*pair), pairs))
    for c, (a, b) in zip(products, pairs, strict=True):
        assert torch.equal(c, a.float() @ b.float().T)
