"""What is printed after any pass, read again and gone on from gives the PTX that memory gives.

Hundreds by read_back.py.
"""

import pytest
import read_back


@pytest.mark.sweep(100)
@pytest.mark.parametrize("seed", range(200))
def test_what_is_printed_after_any_pass_gives_the_same_kernel(seed):
    outcome = read_back.judge(seed)
    assert not outcome.is_fault, outcome


BLOCKS = {"m": 136, "n": 64, "k": 128, "a_dtype": "mxfp8", "b_dtype": "mxfp8"}
WRITTEN_OUT = [
    ({**BLOCKS, "c_dtype": "nvfp4"}, "sm_100a"),  # two elements a byte, stored by TMA
    ({**BLOCKS, "c_dtype": "mxfp4"}, "sm_100a"),
]


@pytest.mark.sweep(2)
@pytest.mark.parametrize(("fields", "target"), WRITTEN_OUT)
def test_stores_of_packed_elements_are_read_again(fields, target, monkeypatch):
    monkeypatch.setattr(read_back, "drawn", lambda _: (fields, {"target": target}))
    outcome = read_back.judge(0)
    assert outcome.kind == "right", outcome
