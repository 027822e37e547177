"""A launch that a program describes with a dict instead of a file."""

import json
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest

from tilewright.runtime import run_launch_file
from tilewright.runtime.emulator import LaunchError

EXAMPLES = Path(__file__).parent / "examples"
PTX, FILE = EXAMPLES / "scaled_rows.ptx", EXAMPLES / "scaled_rows.json"


def example():
    return json.loads(FILE.read_text())


def test_a_dict_is_the_same_launch_as_its_file():
    expected = run_launch_file(PTX, FILE, seed=3)
    found = run_launch_file(PTX, example(), seed=3)
    assert found.report.as_dict() == expected.report.as_dict()
    for name, array in expected.outputs.items():
        np.testing.assert_array_equal(found.outputs[name], array)


def test_contents_may_be_an_array_and_numbers_numpys():
    launch = example()
    (tensor,) = [each for each in launch["tensors"] if each.get("contents")][:1]
    shape = tensor["shape"]
    tensor["contents"] = np.random.default_rng(1).integers(0, 9, shape).astype(ml_dtypes.bfloat16)
    tensor["shape"] = np.array(shape)
    first = run_launch_file(PTX, launch)
    tensor["contents"] = tensor["contents"] + ml_dtypes.bfloat16(1)
    second = run_launch_file(PTX, launch, max_seconds=60)
    assert any((first.outputs[name] != second.outputs[name]).any() for name in first.outputs)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"block": [0]}, "launch: block[0]: must be"),
        ({"grid": {1, 2}}, "launch: must hold what JSON holds, got: a set, {1, 2}"),
        ({"unheard": 1}, "launch: "),
    ],
)
def test_a_wrong_dict_is_told_as_a_wrong_file_is(change, message):
    with pytest.raises(LaunchError) as caught:
        run_launch_file(PTX, example() | change)
    assert str(caught.value).startswith(message)
    assert "/tmp" not in str(caught.value)
