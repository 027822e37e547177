"""The names that the compiler gives its barriers and warps reach the emulator's reports."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tilewright.compiler.bundle_writer import as_bundle
from tilewright.compiler.driver import compile_matmul
from tilewright.compiler.spec import MatmulSpec
from tilewright.runtime.emulator import Deadlock
from tilewright.runtime.launch.devices import open_device
from tilewright.tools.runs.inputs import make_tensors


@pytest.fixture(scope="module")
def stuck():
    """The report of a warp-specialised kernel whose MMA role never says that it is done."""
    bundle = as_bundle(compile_matmul(MatmulSpec(256, 256, 512), preset="v5"))
    lines = [line for line in bundle.ptx.splitlines() if "tcgen05.commit" not in line]
    assert len(lines) < len(bundle.ptx.splitlines())
    broken = replace(bundle, ptx="\n".join(lines))
    with pytest.raises(Deadlock) as caught:
        open_device("emulator").launch(broken, make_tensors(bundle.manifest, 0))
    return caught.value.as_dict()


def test_every_barrier_that_somebody_waits_for_has_a_name(stuck):
    waits = [agent["waits_for"] for agent in stuck["agents"]]
    names = {wait["name"] for wait in waits if wait["kind"] == "mbarrier"}
    assert "accumulator.full" in names and "operands.empty[0]" in names
    assert None not in names


def test_every_waiting_warp_has_a_role(stuck):
    waiting = {
        agent["role"]: agent["waits_for"]["name"]
        for agent in stuck["agents"]
        if agent["waits_for"]["kind"] == "mbarrier"
    }
    assert waiting["load"] == "operands.empty[0]"
    assert waiting["epilogue"] == "accumulator.full"
