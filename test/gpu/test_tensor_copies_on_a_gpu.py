"""Where a tensor copy may start along the contiguous dimension: what docs/hopper.md says of it.

A copy that starts inside 16 bytes ends the process's use of the GPU, so each runs in its own.
"""

import subprocess
import sys

import pytest

pytestmark = pytest.mark.usefixtures("gpu")
COPY = {
    "load": "cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes"
    " [%r3], [%d2, {%r1, %r2}], [%r4];",
    "store": "cp.async.bulk.tensor.2d.global.shared::cta.bulk_group [%d2, {%r1, %r2}], [%r3];",
    "reduce": "cp.reduce.async.bulk.tensor.2d.global.shared::cta.add.bulk_group"
    " [%d2, {%r1, %r2}], [%r3];",
    "prefetch": "cp.async.bulk.prefetch.tensor.2d.L2.global [%d2, {%r1, %r2}];",
}
BARRIER = """
  mbarrier.init.shared::cta.b64 [%r4], 1;
  fence.mbarrier_init.release.cluster;
  mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r4], 1024;
"""
ARRIVED = """
wait: mbarrier.try_wait.parity.shared::cta.b64 %p1, [%r4], 0;
  @!%p1 bra wait;
"""
KERNEL = """
.version 8.6
.target sm_90a
.address_size 64
.visible .entry copy(.param .align 64 .b8 map[128], .param .u32 x)
{{
  .reg .b32 %r<5>; .reg .b64 %d<3>; .reg .pred %p<2>;
  .shared .align 1024 .b8 box[1024];
  .shared .align 8 .b8 barrier[8];
  ld.param.u32 %r1, [x];
  mov.u32 %r2, 0; mov.u32 %r3, box; mov.u32 %r4, barrier;
  mov.b64 %d1, map; cvta.param.u64 %d2, %d1;
  {before}
  {copy}
  {after}
  cp.async.bulk.commit_group;
  cp.async.bulk.wait_group 0;
  ret;
}}
"""
LAUNCH = """
import ctypes, sys
import torch
from cuda.bindings import driver as cuda

def check(result):
    status, *values = result
    if int(status):
        sys.exit(status.name)
    return values[0] if values else None

tensor = torch.zeros(16, 96, dtype=torch.int32, device="cuda")
sizes, ones = (cuda.cuuint64_t, cuda.cuuint32_t)
map_ = check(cuda.cuTensorMapEncodeTiled(
    cuda.CUtensorMapDataType.CU_TENSOR_MAP_DATA_TYPE_INT32, 2, tensor.data_ptr(),
    [sizes(96), sizes(16)], [sizes(384)], [ones(32), ones(8)], [ones(1), ones(1)],
    cuda.CUtensorMapInterleave(0), cuda.CUtensorMapSwizzle(0),
    cuda.CUtensorMapL2promotion(0), cuda.CUtensorMapFloatOOBfill(0)))
module = check(cuda.cuModuleLoadData(sys.argv[1].encode() + bytes(1)))
function = check(cuda.cuModuleGetFunction(module, b"copy"))
arguments = ((map_, int(sys.argv[2])), (None, ctypes.c_int32))
check(cuda.cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, 0, arguments, 0))
check(cuda.cuCtxSynchronize())
"""


def said(kind: str, x: int) -> str:
    """What the driver says of one copy that starts at word `x`; nothing if it is done."""
    before, after = (BARRIER, ARRIVED) if kind == "load" else ("", "")
    ptx = KERNEL.format(before=before, copy=COPY[kind], after=after)
    command = [sys.executable, "-c", LAUNCH, ptx, str(x)]
    return subprocess.run(command, capture_output=True, text=True, timeout=60).stderr.strip()


@pytest.mark.parametrize("kind", COPY)
def test_a_tensor_copy_must_start_at_a_multiple_of_16_bytes(kind):
    assert [said(kind, x) for x in (0, 4, 84)] == ["", "", ""]
    stopped = "CUDA_ERROR_ILLEGAL_INSTRUCTION"
    assert [said(kind, x) for x in (-1, 1, 2, 5)] == [stopped] * 4


@pytest.mark.parametrize("kind", ["store", "reduce"])
def test_what_writes_must_not_start_before_the_tensor(kind):
    assert said(kind, -4) == "CUDA_ERROR_ILLEGAL_INSTRUCTION"
    assert said("load", -4) == ""
