"""Products that one lane issues in a row: executed as one, and nobody can tell."""

import numpy as np
import pytest

from tilewright.runtime.emulator import Trap, launch

ROUNDS = 48
"""Twice as many as it takes until the loop is compiled."""
ISSUE = "tcgen05.mma.cta_group::1.kind::f16 [%r12], %rd10, %rd11, %r11, %p3;"
SLICES = f"""
  mov.u64 %rd10, %rd2; mov.u64 %rd11, %rd3;
  {ISSUE}
  add.u64 %rd10, %rd2, 2; add.u64 %rd11, %rd3, 2; setp.eq.u32 %p3, 0, 0;
  {ISSUE}
  add.u64 %rd10, %rd2, 4; add.u64 %rd11, %rd3, 4; selp.b64 %rd11, %rd12, %rd11, %p5;
  {ISSUE} // third
  add.u64 %rd10, %rd2, 6; add.u64 %rd11, %rd3, 6;
  {ISSUE}
"""


def loop(last: str = "add.u64 %rd12, %rd3, 4;") -> str:
    """Thread 0 adds A[128, 64] . B[32, 64]^T ``ROUNDS`` times; in the last round the third slice of
    B is where ``last`` says."""
    return f"""
  mov.u32 %r20, 0; mov.u32 %r21, 0; setp.ne.u32 %p3, 0, 0; {last}
  @!%p0 bra OTHERS;
AGAIN:
  setp.eq.u32 %p5, %r20, {ROUNDS - 1};
  {SLICES}
  tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.b64 [%r1];
ASK:
  mbarrier.try_wait.parity.shared::cta.b64 %p7, [%r1], %r21;
  @!%p7 bra ASK;
  xor.b32 %r21, %r21, 1; add.u32 %r20, %r20, 1; setp.lt.u32 %p6, %r20, {ROUNDS};
  @%p6 bra AGAIN;
OTHERS:
  bar.sync 0;
  tcgen05.fence::after_thread_sync;
"""


def run(tc, body: str, **options):
    a, b, image, *words = tc.accumulating_case()
    dump, out = tc.dump_d(128, 32)
    image = np.frombuffer(bytes(image), np.uint8)
    how = {"grid": 1, "block": 128, "shared_bytes": tc.SHARED_BYTES, **options}
    params = [image, len(image), out, *words]
    report = launch(tc.kernel(with_fences(body) + dump), "k", params=params, **how)
    return report, tc.read_d(out, 128, 32).view(np.float32), tc.product(a, b)


def with_fences(body: str) -> str:
    return body.replace("bar.sync 0;", "tcgen05.fence::before_thread_sync;\n  bar.sync 0;")


@pytest.mark.parametrize("check", ["full", "off"])
def test_products_in_a_row_are_those_one_by_one(tc, check):
    body = loop()
    report, sums, product = run(tc, body, check=check)
    alone, expected, _ = run(tc, body, check=check, profile=True)
    assert (sums == expected).all()
    assert (sums == ROUNDS * product).all()
    assert report.engines == alone.engines
    assert report.engines["mma count"] == 4 * ROUNDS
    asks = report.instructions.pop("mbarrier.try_wait.parity.shared::cta.b64")
    assert report.instructions.pop("bra") - alone.instructions.pop("bra") == asks - (
        alone.instructions.pop("mbarrier.try_wait.parity.shared::cta.b64")
    )
    assert report.instructions == alone.instructions


def test_a_verdict_is_about_the_product_that_reads_what_nobody_wrote(tc):
    unwritten = tc.descriptor(40960, 16, 1024, tc.swizzle.B128)
    body = loop(f"mov.u64 %rd12, {unwritten};")
    with pytest.raises(Trap) as caught:
        run(tc, body)
    assert caught.value.category == "uninitialised-read"
    assert "operand B" in str(caught.value)
    lines = tc.kernel(with_fences(body)).splitlines()
    assert "third" in lines[caught.value.line - 1]
