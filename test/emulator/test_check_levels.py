"""What each level of `check=` looks at, and that no level changes what a right kernel computes."""

from __future__ import annotations

import numpy as np
import pytest

from tilewright.compiler.bundle_writer import as_bundle
from tilewright.compiler.driver import compile_matmul
from tilewright.compiler.spec import MatmulSpec
from tilewright.runtime.emulator import LaunchError, Trap, launch
from tilewright.runtime.launch.devices import open_device
from tilewright.tools.runs.inputs import make_tensors

KERNEL = """.version 8.8
.target sm_100a
.address_size 64
.shared .align 128 .b8 cells[256];
.visible .entry k(.param .u64 out) {{
  .reg .pred %p, %zero; .reg .b32 %tid, %at, %x; .reg .b64 %out;
  ld.param.u64 %out, [out]; mov.u32 %tid, %tid.x; setp.eq.u32 %zero, %tid, 0;
  mov.u32 %at, cells; mad.lo.u32 %at, %tid, 4, %at;
  {body}
  ret; }}"""
UNWRITTEN = "ld.shared.u32 %x, [%at]; st.global.u32 [%out], %x;"
UNFENCED = """st.shared.u32 [%at], %tid; bar.sync 0;
  @%zero cp.async.bulk.global.shared::cta.bulk_group [%out], [cells], 128;
  cp.async.bulk.commit_group; cp.async.bulk.wait_group 0;"""
UNWAITED = """st.shared.u32 [%at], %tid; fence.proxy.async; bar.sync 0;
  @%zero cp.async.bulk.global.shared::cta.bulk_group [%out], [cells], 128;
  cp.async.bulk.commit_group; st.shared.u32 [%at], %tid;"""
RACING = "st.shared.u32 [cells], %tid;"
OUTSIDE = "st.shared.u32 [%at+256], %tid;"
MISALIGNED = "st.shared.u32 [%at+2], %tid;"
LEFT = """st.shared.u32 [%at], %tid; fence.proxy.async; bar.sync 0;
  @%zero cp.async.bulk.global.shared::cta.bulk_group [%out], [cells], 128;
  cp.async.bulk.commit_group;"""
UNINITIALISED = "@%zero mbarrier.arrive.shared::cta.b64 _, [cells];"

EARLY = """@%zero mbarrier.init.shared::cta.b64 [cells], 64; bar.sync 0;
  mbarrier.arrive.shared::cta.b64 _, [cells]; bar.sync 0;
  @%zero mbarrier.arrive.shared::cta.b64 _, [cells]; bar.sync 0;
  LOOK: mbarrier.try_wait.parity.shared::cta.b64 %p, [cells], 0; @!%p bra LOOK;"""


def verdict(body: str, check: str) -> str | None:
    """The category of the Trap, None if there is none."""
    try:
        launch(
            KERNEL.format(body=body),
            "k",
            grid=1,
            block=64,
            params=[np.zeros(64, np.uint32)],
            check=check,
        )
    except Trap as trap:
        return trap.category
    return None


@pytest.mark.parametrize(
    ("body", "full", "shipped", "fast", "off"),
    [
        (UNWRITTEN, *["uninitialised-read"] * 3, None),
        (UNFENCED, *["proxy-fence"] * 3, None),
        (UNWAITED, *["bulk-group"] * 3, None),
        (LEFT, "bulk-group", None, "bulk-group", None),
        (EARLY, "barrier-protocol", None, *["barrier-protocol"] * 2),
        (RACING, "race", "race", None, None),
        (OUTSIDE, *["out-of-bounds"] * 4),
        (MISALIGNED, *["misaligned"] * 4),
        (UNINITIALISED, *["barrier-protocol"] * 4),
    ],
)
def test_a_level_sees_what_it_says(body, full, shipped, fast, off):
    found = {level: verdict(body, level) for level in ("full", "shipped", "fast", "off")}
    assert found == {"full": full, "shipped": shipped, "fast": fast, "off": off}


def test_full_is_the_default():
    with pytest.raises(Trap) as caught:
        launch(KERNEL.format(body=RACING), "k", grid=1, block=64, params=[np.zeros(64, np.uint32)])
    assert caught.value.category == "race"


def test_an_unknown_level_is_refused():
    with pytest.raises(LaunchError, match="off, fast, shipped, full, got 'some'"):
        verdict("", "some")


@pytest.fixture(scope="module")
def bundle():
    return as_bundle(compile_matmul(MatmulSpec(256, 320, 192), preset="v6"))


@pytest.mark.parametrize("seed", range(3))
def test_no_level_changes_a_right_result_or_but_shipped_its_order(bundle, seed):
    results, reports = {}, {}
    for level in ("off", "fast", "shipped", "full"):
        tensors = make_tensors(bundle.manifest, seed)
        report = open_device("emulator").launch(bundle, tensors, seed, check=level)
        results[level], reports[level] = tensors["c"].tolist(), report.as_dict()
    assert all(each == results["full"] for each in results.values())
    assert reports["off"] == reports["fast"] == reports["full"]
    assert reports["shipped"]["engines"] == reports["full"]["engines"]


def test_without_checks_missing_tensor_memory_waits_and_fences_pass(bundle):
    names = ("tcgen05.wait::ld", "tcgen05.fence", "tcgen05.wait::st")
    lines = [line for line in bundle.ptx.splitlines() if not any(n in line for n in names)]
    broken = type(bundle)(bundle.manifest, "\n".join(lines), bundle.cubin)
    with pytest.raises(Trap):
        open_device("emulator").launch(broken, make_tensors(bundle.manifest, 0), check="fast")
    open_device("emulator").launch(broken, make_tensors(bundle.manifest, 0), check="off")
