"""Tensors that a prerequisite grid works on until griddepcontrol.wait."""

import pytest

from tilewright.runtime.emulator import Trap

WAITING = "mov.u32 %r2, %tid.x; griddepcontrol.wait;"


@pytest.mark.parametrize("number", [0, 1])
def test_a_tensor_that_is_awaited_may_be_used_behind_the_wait_only(run, copying, number):
    ptx, launch = copying
    launch["tensors"][number]["awaited"] = True
    with pytest.raises(Trap) as caught:
        run(ptx, launch)
    name = launch["tensors"][number]["name"]
    assert (caught.value.category, f"tensor '{name}'" in str(caught.value)) == (
        "dependent-launch",
        True,
    )
    result = run(ptx.replace("mov.u32 %r2, %tid.x;", WAITING), launch)
    assert result.outputs["bytes"].tolist() == [n for i in range(12) for n in (i, 0)]


def test_other_tensors_need_no_wait(run, copying):
    ptx, launch = copying
    for tensor in launch["tensors"]:
        tensor["awaited"] = False
    assert run(ptx, launch).outputs["bytes"][2] == 1
