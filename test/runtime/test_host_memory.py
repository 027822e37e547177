"""What surely does not fit into memory is refused before it is made."""

import pytest

from tilewright.runtime import LaunchError, host_memory


def tensors(m, n, k):
    shapes = {"a": (m, k), "b": (n, k), "c": (m, n)}
    return [
        {
            "name": name,
            "role": "output" if name == "c" else "input",
            "dtype": "bf16",
            "shape": shape,
        }
        for name, shape in shapes.items()
    ]


def test_inputs_have_a_copy_in_float64_and_outputs_an_interval():
    assert host_memory.needed_bytes(tensors(3, 5, 7)) == (21 + 35) * (2 + 8) + 15 * (2 + 32)


def test_what_does_not_fit_is_refused_with_both_sizes(monkeypatch):
    monkeypatch.setattr(host_memory, "available_bytes", lambda: 2**34)
    needed = (2**30 * 64 + 64 * 64) * 10 + 2**30 * 64 * 34
    with pytest.raises(LaunchError) as refused:
        host_memory.refuse_large(tensors(2**30, 64, 64))
    assert "must fit into 17179869184 bytes (16.0 GiB), which are available" in str(refused.value)
    assert f"got {needed} (2816.0 GiB); make the matmul smaller" in str(refused.value)


def test_what_fits_is_not_refused():
    assert 2**20 < host_memory.available_bytes() < 2**63
    host_memory.refuse_large(tensors(64, 64, 64))
