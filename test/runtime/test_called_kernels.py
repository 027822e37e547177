"""A loaded bundle as a function: outputs that are made, arrays of any library, refusals."""

import ml_dtypes
import numpy as np
import pytest
import torch
from torch._subclasses.fake_tensor import FakeTensorMode

from tilewright.runtime import Bundle, Kernel, LaunchError, emulator
from tilewright.runtime.bundle import seal


@pytest.fixture
def kernel(manifest, ptx, cubin, monkeypatch):
    """A kernel whose emulated launch writes a[0, 1] · b[1, 0] to c[1, 1] and b's bits nowhere."""

    def launch(ptx, entry, *, params, **keywords):
        a = params[0].array if hasattr(params[0], "array") else params[0].memory
        values = [
            bits[index : index + 1].view(ml_dtypes.bfloat16).astype(np.float32)
            for bits, index in ((a, 1), (params[1], 1))
        ]
        params[2][:] = np.float32(0).view(np.uint32)
        params[2][5:6] = (values[0] * values[1]).view(np.uint32)

    monkeypatch.setattr(emulator, "launch", launch)
    return Kernel(Bundle(seal(manifest, ptx, cubin), ptx, cubin))


def inputs():
    a = torch.arange(96, dtype=torch.float32).reshape(6, 16).to(torch.bfloat16) - 7
    b = torch.arange(64, dtype=torch.float32).reshape(16, 4).to(torch.bfloat16).T + 2
    return a, b


class Foreign:
    """An array of a library that only speaks DLPack."""

    def __init__(self, tensor, versions=True):
        self.tensor, self.versions = tensor, versions

    def __dlpack_device__(self):
        return self.tensor.__dlpack_device__()

    def __dlpack__(self, **keywords):
        if not self.versions and keywords:
            raise TypeError("unexpected keyword")
        return self.tensor.__dlpack__(**keywords)


def test_torch_inputs_give_a_torch_output(kernel):
    a, b = inputs()
    c = kernel(a, b)
    assert (c.shape, c.stride(), c.dtype) == ((6, 4), (4, 1), torch.float32)
    assert c[1, 1] == a[0, 1] * b[1, 0] == -18


def test_numpy_inputs_give_a_numpy_output(kernel):
    a, b = (tensor.float().numpy().astype(ml_dtypes.bfloat16) for tensor in inputs())
    c = kernel(a, b)
    assert isinstance(c, np.ndarray)
    assert (c.dtype, c[1, 1]) == (np.float32, -18)


def test_an_output_of_bf16_is_typed_as_the_input_is(manifest, kernel):
    manifest["tensors"][2]["dtype"] = "bf16"
    from tilewright.runtime.results import new_output

    for like in (np.zeros(1, ml_dtypes.bfloat16), np.zeros(1, np.uint16)):
        assert new_output(manifest["tensors"][2], like).dtype == like.dtype
    made = new_output(manifest["tensors"][2], np.zeros(1, np.float16))
    assert made.dtype == ml_dtypes.bfloat16


@pytest.mark.parametrize("versions", [True, False])
def test_arrays_of_any_library_are_taken_through_dlpack(kernel, versions):
    a, b = (Foreign(tensor, versions) for tensor in inputs())
    given = torch.full((6, 4), torch.nan)
    out = Foreign(given, versions)
    assert kernel(a, b, out=out) is out
    assert given[1, 1] == -18
    assert kernel(a, b)[1, 1] == -18


def test_dlpack_arrays_are_checked_as_the_others_are(kernel):
    a, b = inputs()
    for wrong, message in (
        (Foreign(a.float()), "tensor 'a': must be torch.bfloat16 or numpy bfloat16 or"),
        (Foreign(a[:5]), r"tensor 'a': shape must be \[6, 16\], got \[5, 16\]"),
        (Foreign(a.T.contiguous().T), r"tensor 'a': strides \(in elements\) must be"),
        (Foreign(a.clone().requires_grad_()), "tensor 'a': must export DLPack, got"),
    ):
        with pytest.raises(LaunchError, match=f"^{message}"):
            kernel(wrong, b)


def test_a_read_only_dlpack_output_is_refused(kernel):
    locked = np.zeros((6, 4), np.float32)
    locked.setflags(write=False)
    with pytest.raises(LaunchError, match=r"^tensor 'c': must be writable"):
        kernel(*inputs(), out=Foreign(locked))


def test_out_is_written_and_returned(kernel):
    c = torch.full((6, 4), torch.nan)
    assert kernel(*inputs(), out=c) is c
    assert c[1, 1] == -18


def test_a_wrong_number_of_inputs_is_refused(kernel):
    a, b = inputs()
    with pytest.raises(LaunchError) as refused:
        kernel(a, b, torch.zeros(6, 4))
    assert str(refused.value) == (
        "kernel copy: must be called with 2 inputs, a, b, got 3; the output is passed as out="
    )


def test_an_array_in_the_other_byte_order_is_refused(kernel):
    other = np.dtype(np.float32).newbyteorder("S")
    with pytest.raises(LaunchError) as refused:
        kernel(*inputs(), out=np.zeros((6, 4), other))
    wanted = "must be torch.float32 or numpy float32"
    assert str(refused.value) == f"tensor 'c': {wanted}, got numpy {other}"


def test_an_output_that_does_not_fit_is_refused(kernel):
    with pytest.raises(LaunchError, match=r"^tensor 'c': shape must be \[6, 4\], got \[4, 6\]"):
        kernel(*inputs(), out=torch.zeros(4, 6))


def test_torch_compile_keeps_a_call_in_one_graph(kernel):
    compiled = torch.compile(lambda a, b: kernel(a, b) * 2, backend="aot_eager", fullgraph=True)
    assert compiled(*inputs())[1, 1] == -36


def test_torch_compile_keeps_a_call_that_writes_out(kernel):
    def call(a, b, out):
        return kernel(a, b, out=out) + 1

    out = torch.full((6, 4), torch.nan)
    result = torch.compile(call, backend="aot_eager", fullgraph=True)(*inputs(), out)
    assert (out[1, 1], result[1, 1]) == (-18, -17)


def test_fake_tensors_get_the_operators_fake(kernel):
    a, b = inputs()
    kernel(a, b)
    with FakeTensorMode() as mode:
        c = kernel(mode.from_tensor(a), mode.from_tensor(b))
    assert (tuple(c.shape), c.stride(), c.dtype) == ((6, 4), (4, 1), torch.float32)


def test_a_backend_that_runs_operators_while_it_compiles_gets_the_kernel(kernel, monkeypatch):
    a, b = inputs()
    monkeypatch.setattr("torch.compiler._is_compiling_flag", True)
    assert kernel(a, b)[1, 1] == -18
