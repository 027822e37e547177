"""`tilewright explain memory`: where a kernel has everything."""

import re


def test_the_plan_is_a_table(tilewright):
    ran = tilewright("explain", "memory", "--m", 64, "--n", 64, "--k", 64, "--preset", "v1a")
    assert ran.status == 0, ran.err
    assert "32796 bytes of shared memory, 128 tensor-memory columns" in ran.out
    assert re.search(r"byte 0 to 16383 +128x64 bf16, k-major, no swizzle +1", ran.out)
    assert re.search(r"byte 32768 to 32775 +mbarriers operands.full +1 +1", ran.out)
