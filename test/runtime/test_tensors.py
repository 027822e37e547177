"""Binding: nothing is copied, and a tensor that does not fit the manifest is refused by name."""

import ml_dtypes
import numpy as np
import pytest
import torch

from tilewright.runtime import LaunchError
from tilewright.runtime.operands.tensors import bind_all


def tensors():
    return {
        "a": torch.arange(96, dtype=torch.float32).reshape(6, 16).to(torch.bfloat16),
        "b": np.arange(64).reshape(16, 4).astype(ml_dtypes.bfloat16).T,
        "c": np.zeros((6, 4), np.float32),
    }


def refusal(manifest, **changed) -> str:
    with pytest.raises(LaunchError) as refused:
        bind_all(manifest, {**tensors(), **changed})
    return str(refused.value)


def test_bound_memory_is_the_callers(manifest):
    given = tensors()
    bound = bind_all(manifest, given)
    bound["a"].memory[17] = 0x4049
    bound["c"].memory[5] = np.float32(2.5).view(np.uint32)
    assert given["a"][1, 1].item() == 3.140625
    assert given["c"][1, 1] == 2.5


def test_memory_runs_in_storage_order_from_first_to_last_element(manifest):
    given = tensors()
    memory = bind_all(manifest, given)["b"].memory
    assert memory.shape == (64,)
    # b[n, k] with strides [1, 4]: element (n=3, k=2) lies at 3 + 2*4
    assert memory[11:12].view(ml_dtypes.bfloat16)[0] == given["b"][3, 2] == 11


def test_torch_bits_and_ml_dtypes_bits_are_the_same(manifest):
    given = tensors()
    same = given["a"].float().numpy().astype(ml_dtypes.bfloat16)
    from_torch = bind_all(manifest, given)["a"].memory
    from_numpy = bind_all(manifest, {**given, "a": same})["a"].memory
    assert np.array_equal(from_torch, from_numpy)
    assert len(set(from_torch.tolist())) == 96


def test_raw_bits_are_taken_for_bf16(manifest):
    bits = np.full((6, 16), 0x3F80, np.uint16)
    assert bind_all(manifest, {**tensors(), "a": bits})["a"].memory[0] == 0x3F80


def test_a_torch_tensor_that_wants_gradients_is_bound(manifest):
    wanting = tensors()["a"].requires_grad_()
    assert bind_all(manifest, {**tensors(), "a": wanting})["a"].memory.size == 96


def test_missing_and_unknown_names_are_refused(manifest):
    given = tensors()
    given["bias"] = given.pop("b")
    with pytest.raises(LaunchError) as refused:
        bind_all(manifest, given)
    assert str(refused.value) == (
        "tensors: must be exactly ['a', 'b', 'c'], got missing ['b'] and unknown ['bias'];"
        " pass each by name"
    )


def test_a_wrong_shape_is_refused(manifest):
    assert refusal(manifest, c=np.zeros((4, 6), np.float32)) == (
        "tensor 'c': shape must be [6, 4], got [4, 6]"
    )


def test_wrong_strides_are_refused(manifest):
    row_major = np.ascontiguousarray(tensors()["b"])
    assert refusal(manifest, b=row_major) == (
        "tensor 'b': strides (in elements) must be [1, 4], got [16, 1]"
    )


def test_strides_of_a_single_row_do_not_matter(manifest):
    manifest["tensors"][2].update(shape=[1, 4], strides=[4, 1])
    row = np.zeros((3, 9), np.float32)[:1, :4]
    assert bind_all(manifest, {**tensors(), "c": row})["c"].memory.shape == (4,)


@pytest.mark.parametrize(
    ("value", "got"),
    [
        (np.zeros((6, 4)), "numpy float64"),
        (torch.zeros(6, 4, dtype=torch.float16), "torch.float16"),
        ([[0.0] * 4] * 6, "list"),
        (None, "NoneType"),
    ],
)
def test_a_wrong_type_is_refused(value, got, manifest):
    assert refusal(manifest, c=value) == (
        f"tensor 'c': must be torch.float32 or numpy float32, got {got}"
    )


def test_a_misaligned_view_is_refused(manifest):
    storage = np.zeros(100, np.float32)
    assert refusal(manifest, c=storage[4:28].reshape(6, 4)) == (
        "tensor 'c': must start a multiple of 32 bytes into its allocation, got 16; pass a copy"
    )
    assert bind_all(manifest, {**tensors(), "c": storage[8:32].reshape(6, 4)})


def test_a_misaligned_torch_view_is_refused(manifest):
    shifted = torch.zeros(100, dtype=torch.bfloat16)[4:].narrow(0, 0, 96).view(6, 16)
    assert refusal(manifest, a=shifted) == (
        "tensor 'a': must start a multiple of 16 bytes into its allocation, got 8; pass a copy"
    )


def test_a_read_only_output_is_refused(manifest):
    c = np.zeros((6, 4), np.float32)
    c.setflags(write=False)
    assert refusal(manifest, c=c) == (
        "tensor 'c': must be writable, got a read-only array; pass a copy"
    )


def test_a_read_only_input_is_bound_and_stays_read_only(manifest):
    a = np.zeros((6, 16), np.uint16)
    a.setflags(write=False)
    assert not bind_all(manifest, {**tensors(), "a": a})["a"].memory.flags.writeable


@pytest.mark.parametrize(
    ("make", "cure"),
    [
        (torch._neg_view, "resolve_neg"),
        (lambda a: torch._efficientzerotensor(a.shape, dtype=a.dtype), "torch.zeros_like"),
    ],
)
def test_a_tensor_whose_memory_lacks_its_values_is_refused(manifest, make, cure):
    said = refusal(manifest, a=make(tensors()["a"]))
    assert said.startswith("tensor 'a': must hold its values") and cure in said


@pytest.mark.parametrize("left", [0, 2 * 95])
def test_a_torch_tensor_whose_storage_was_freed_is_refused(left, manifest):
    given = tensors()["a"].clone()
    given.untyped_storage().resize_(left)
    assert refusal(manifest, a=given) == (
        "tensor 'a': must have memory for its 96 elements, got a storage of"
        f" {left} bytes where they end at byte 192; it has been freed or made smaller"
    )
