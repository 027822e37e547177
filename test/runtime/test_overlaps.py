"""Outputs have memory to themselves, but for what the epilogue reads element by element."""

import pytest
import torch

from tilewright import matmul
from tilewright.runtime.errors import LaunchError
from tilewright.runtime.operands.overlaps import check_no_overlap

GENERATOR = torch.Generator().manual_seed(23)


def tensor(name, role, shape, strides, dtype="f32"):
    return {"name": name, "role": role, "shape": shape, "strides": strides, "dtype": dtype}


C = tensor("c", "output", [8, 16], [16, 1])
MANIFESTS = {  # of one more tensor, with addresses at which it shares an element with C, and not
    "operand": (tensor("a", "input", [8, 16], [16, 1]), (4096, 4592), (3584, 4608)),
    "same": (tensor("e0", "input", [8, 16], [16, 1]), (4100, 4592, 4064), (4096, 3584)),
    "row": (tensor("e0", "input", [16], [1]), (4096, 4544), (4032, 4608)),
    "slice": (tensor("e0", "input", [8, 4], [16, 1]), (4096, 4108, 3664), (4608, 3616)),
    "bytes": (tensor("scales", "input", [3], [1], "u8"), (4094, 4607), (4093, 4608)),
    "turned": (tensor("e0", "input", [8, 8], [1, 8]), (4096, 4352), (3840,)),
    "output": (tensor("c1", "output", [8, 16], [16, 1]), (4096, 4100), (3584, 4608)),
}


@pytest.mark.parametrize("case", MANIFESTS)
def test_an_output_shares_no_memory(case):
    other, shared, apart = MANIFESTS[case]
    manifest = {"tensors": [other, C]}
    for address in apart:
        check_no_overlap(manifest, {"c": 4096, other["name"]: address})
    for address in shared:
        with pytest.raises(LaunchError, match="must share no memory with"):
            check_no_overlap(manifest, {"c": 4096, other["name"]: address})


def test_columns_of_one_array_are_apart_where_they_interleave():
    halves = [tensor("a", "input", [8, 16], [32, 1]), tensor("c", "output", [8, 16], [32, 1])]
    check_no_overlap({"tensors": halves}, {"a": 4096, "c": 4096 + 64})
    with pytest.raises(LaunchError, match="must share no memory with 'a'"):
        check_no_overlap({"tensors": halves}, {"a": 4096, "c": 4096 + 60})


def test_a_row_may_be_changed_in_place_whatever_its_dims():
    row = [tensor("e0", "input", [16], [1]), tensor("c", "output", [1, 16], [64, 1])]
    check_no_overlap({"tensors": row}, {"e0": 4096, "c": 4096})


@pytest.mark.parametrize("which", ["a", "b"])
def test_a_product_does_not_go_where_its_operand_is(which):
    given = {name: torch.ones(32, 32, dtype=torch.bfloat16) for name in "ab"}
    with pytest.raises(LaunchError, match=f"tensor 'c': must share no memory with '{which}'"):
        matmul(given["a"], given["b"], out=given[which])
    assert given[which].eq(1).all()


@pytest.mark.parametrize("reads", ["the operand", "its transpose", "both"])
@pytest.mark.parametrize("given", ["output", "transpose"])
def test_an_epilogue_may_read_the_output_in_any_order(reads, given):
    """What it reads elsewhere than it writes is copied first."""
    a, b = (torch.randint(-3, 4, (40, 24), generator=GENERATOR).bfloat16() for _ in "ab")
    out = torch.randint(-9, 10, (40, 40), generator=GENERATOR).float()
    read = out if given == "output" else out.T
    functions = {
        "the operand": lambda acc, e: acc + e,
        "its transpose": lambda acc, e: acc + e.T,
        "both": lambda acc, e: acc + e.T - 2 * e,
    }
    expected = functions[reads](a.double() @ b.double().T, read.double().clone())
    assert (
        matmul(a, b, epilogue=functions[reads], operands=(read,), out=out, out_dtype="f32") is out
    )
    assert out.double().equal(expected)
