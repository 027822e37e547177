"""`tilewright.matmul` of slices, transposes and heads: read and written where they lie."""

import warnings

import numpy as np
import pytest
import torch

from tilewright import matmul
from tilewright.compiler.calls.kernels import lookup
from tilewright.compiler.calls.operands.placement import Placement, placement
from tilewright.runtime.errors import CopyWarning, DeviceError
from tilewright.runtime.operands import copies

pytestmark = pytest.mark.usefixtures("fresh_cache", "ptxas_for_a_share")
GENERATOR = torch.Generator().manual_seed(17)


def integers(*shape, dtype=torch.bfloat16):
    """Values whose products and sums every order of additions gets exactly."""
    return torch.randint(-3, 4, shape, generator=GENERATOR).to(dtype)


def strides_taken():
    return [each["strides"] for each in list(lookup._kernels.values())[-1].manifest["tensors"]]


@pytest.mark.parametrize(
    ("shape", "strides", "found"),
    [
        ((4, 6), (6, 1), Placement(1)),
        ((4, 6), (9, 1), Placement(1, 9)),
        ((4, 6), (1, 4), Placement(0)),
        ((4, 6), (1, 5), Placement(0, 5)),
        ((1, 6), (99, 1), Placement(1)),
        ((4, 1), (7, 5), Placement(1, 7)),
        ((3, 4, 6), (24, 6, 1), Placement(1)),
        ((3, 4, 6), (30, 6, 1), Placement(1, 0, 30)),
        ((3, 4, 6), (6, 18, 1), Placement(1, 18, 6)),
        ((4, 6), (6, 2), None),
        ((4, 6), (0, 1), None),
        ((4, 6), (3, 1), None),
        ((4, 6), (-6, 1), None),
        ((3, 4, 6), (0, 6, 1), None),
        ((3, 4, 6), (5, 18, 1), None),
        ((3, 4, 6), (23, 6, 1), None),  # the last element of a matrix is the first of the next
        ((3, 4, 8), (8, 24, 1), Placement(1, 24, 8)),
        ((3, 4, 8), (8, 20, 1), None),  # of three matrices in 20 columns the last one hangs over
    ],
)
def test_a_matrix_is_read_in_place_where_its_elements_are_apart(shape, strides, found):
    assert placement(shape, strides) == found


@pytest.mark.parametrize("library", ["torch", "numpy"])
def test_slices_are_read_and_written_in_place(library):
    tensors = [integers(*shape, dtype=torch.float16) for shape in ((40, 96), (96, 64), (40, 80))]
    a, b, out = tensors if library == "torch" else [each.numpy() for each in tensors]
    kept = tensors[2].clone()
    matmul(a[:, 8:72], b[:64, 16:56].T, out=out[:, 32:72])
    assert strides_taken() == [[96, 1], [1, 64], [80, 1]]
    kept[:, 32:72] = tensors[0][:, 8:72].float() @ tensors[1][:64, 16:56].float()
    assert tensors[2].equal(kept)


def test_an_output_may_be_column_major():
    a, b, out = integers(40, 64), integers(56, 64), torch.full((56, 48), torch.nan)
    place = out[:, :40].T
    assert matmul(a, b, out=place, out_dtype="f32") is place
    assert place.equal(a.float() @ b.float().T)
    assert out[:, 40:].isnan().all()


def test_heads_of_attention_are_products_without_copies():
    both = integers(33, 3, 2, 32)
    q, k = (both[:, :, part].transpose(0, 1) for part in (0, 1))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert matmul(q, k, out_dtype="f32").equal(q.float() @ k.float().mT)
    assert strides_taken()[0] == [64, 192, 1]


@pytest.mark.parametrize("columns", [56, 53])
def test_c_may_be_what_the_epilogue_reads(columns):
    """Also beyond the last column, where threads must not read what others write."""
    a, b, wide = integers(40, 64), integers(columns, 64), integers(40, 80)
    c, kept = wide[:, 8 : 8 + columns], wide.clone()
    matmul(a, b, epilogue=lambda acc, c: 2 * c - acc, operands=[c], out=c)
    expected = 2 * kept[:, 8 : 8 + columns].float() - a.float() @ b.float().T
    assert c.equal(expected.bfloat16())
    assert wide[:, :8].equal(kept[:, :8]) and wide[:, 8 + columns :].equal(kept[:, 8 + columns :])


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda wide: wide[:, ::2], r"a \[128x128\] .* strides \[256, 2\] leave no dim"),
        (lambda wide: wide[:, 1:129], r"a \[128x128\] .* its address is no multiple of 16"),
        (lambda wide: wide.flatten()[: 128 * 129].view(128, 129)[:, :128], "got 258"),
    ],
)
def test_copies_of_large_operands_are_told_of(make, message, monkeypatch):
    """Large are those over 1 MiB, here for the sake of time over 16 KiB."""
    assert copies.SILENT_BYTES == 2**20
    monkeypatch.setattr(copies, "SILENT_BYTES", 2**14)
    a, b = make(integers(128, 256)), integers(8, 128)
    with pytest.warns(CopyWarning, match=message) as told:
        c = matmul(a, b, out_dtype="f32")
    assert told[0].filename == __file__
    assert c.equal(a.float() @ b.float().T)


def test_arrays_of_numpy_are_copied_where_they_start_at_an_odd_address():
    memory = np.frombuffer(bytearray(24 * 80 * 4 + 4), np.uint8)
    b = integers(40, 64, dtype=torch.float32).numpy()
    for start, columns in ((4, 64), (1, 80)):  # of rows with gaps, too
        a = memory[start : start + 24 * columns * 4].view(np.float32).reshape(24, columns)[:, :64]
        a[:] = integers(24, 64, dtype=torch.float32).numpy()
        assert np.array_equal(matmul(a, b), a @ b.T)


OUTPUTS = {
    "an odd address": lambda: torch.full((24 * 40 + 1,), 7, dtype=torch.bfloat16)[1:].view(24, 40),
    "gaps along rows": lambda: torch.full((48, 80), 7, dtype=torch.bfloat16)[::2, ::2],
    "columns": lambda: torch.full((40, 24), 7, dtype=torch.bfloat16).T,
}


@pytest.mark.parametrize("place", list(OUTPUTS))
def test_an_output_that_no_kernel_writes_gets_a_copy_of_the_result(place, monkeypatch):
    """Also in the place of what the epilogue reads; what lies between its elements stays."""
    monkeypatch.setattr(copies, "SILENT_BYTES", 0)
    a, b, c = integers(24, 64), integers(40, 64), OUTPUTS[place]()
    before = c.clone()
    options = {"epilogue": lambda acc, c: acc + c, "operands": [c]}
    with pytest.warns(CopyWarning, match=r"matmul: out \[24x40\] is copied in each such call"):
        assert matmul(a, b, out=c, **options) is c
    assert c.double().equal(a.double() @ b.double().T + before.double())
    if place != "columns":  # which kernels without an epilogue write
        matmul(a, b, out=c)
    assert place == "columns" or c.double().equal(a.double() @ b.double().T)
    base = c._base
    assert base is not None
    assert int((base == 7).sum()) >= base.numel() - c.numel()


def test_an_output_whose_elements_share_memory_is_refused():
    with pytest.raises(
        DeviceError, match=r"strides \(in elements\) must be \[40, 1\], got \[0, 1\]"
    ):
        matmul(integers(24, 64), integers(40, 64), out=integers(40).expand(24, 40))
