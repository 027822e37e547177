"""The emulator device: what of the manifest reaches the emulator's launch."""

import numpy as np
import pytest

from tilewright.runtime import Bundle, Kernel, LaunchError, emulator
from tilewright.runtime.bundles.bundle import seal


@pytest.fixture
def launched(monkeypatch):
    """Replaces the emulator's launch; keeps its arguments and writes one element of c."""
    calls = []

    def launch(ptx, entry, *, params, **keywords):
        calls.append({"ptx": ptx, "entry": entry, "params": params, **keywords})
        params[2][5] = np.float32(-7.5).view(np.uint32)
        return "report"

    monkeypatch.setattr(emulator, "launch", launch)
    return calls


@pytest.fixture
def kernel(manifest, ptx, cubin):
    manifest["grid"], manifest["cluster"] = [3, 2, 1], [1, 2, 1]
    return Kernel(Bundle(seal(manifest, ptx, cubin), ptx, cubin))


@pytest.fixture
def tensors():
    return {
        "a": np.arange(96, dtype=np.uint16).reshape(6, 16),
        "b": np.arange(64, dtype=np.uint16).reshape(16, 4).T,
        "c": np.zeros((6, 4), np.float32),
    }


def test_the_launch_is_the_manifests(launched, kernel, tensors, ptx):
    assert kernel.run(tensors, seed=11) == "report"
    (call,) = launched
    assert (call["ptx"], call["entry"], call["seed"]) == (ptx, "copy", 11)
    assert (call["grid"], call["cluster"], call["block"]) == ((3, 2, 1), (1, 2, 1), (128, 1, 1))
    assert call["shared_bytes"] == 4096


def test_a_pointer_parameter_is_the_callers_memory_in_storage_order(launched, kernel, tensors):
    kernel.run(tensors)
    b, c = launched[0]["params"][1:]
    assert b.tolist() == list(range(64))
    assert c.size == 24
    assert tensors["c"][1, 1] == -7.5


def test_a_tensor_map_parameter_has_the_encode_arguments(launched, kernel, tensors, monkeypatch):
    seen = {}

    def record(array, **arguments):
        seen.update(array=array, **arguments)
        return "map"

    monkeypatch.setattr(emulator, "TensorMap", record)
    kernel.run(tensors)
    assert launched[0]["params"][0] == "map"
    assert np.shares_memory(seen.pop("array"), tensors["a"])
    assert seen == {
        "dtype": "bf16",
        "dims": [16, 6],
        "strides": [32],
        "box": [8, 6],
        "element_strides": [1, 1],
        "interleave": "none",
        "swizzle": "none",
        "l2_promotion": "none",
        "oob_fill": "zero",
    }


def test_tensors_that_do_not_fit_never_reach_the_emulator(launched, kernel, tensors):
    tensors["b"] = tensors["b"].copy()
    with pytest.raises(LaunchError, match="tensor 'b': strides"):
        kernel.run(tensors)
    assert launched == []
