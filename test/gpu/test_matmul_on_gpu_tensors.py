"""`tilewright.matmul` on tensors of a GPU: layouts, types, sizes, outputs, streams, refusals."""

import itertools
import os
import subprocess
import sys
import threading

import pytest
import torch

from tilewright import matmul
from tilewright.dialects.errors import CompileError
from tilewright.runtime import DeviceError
from tilewright.runtime.launch.devices import open_device

pytestmark = pytest.mark.usefixtures("gpu")
OTHER_TARGET = {"sm_90a": "sm_100a", "sm_100a": "sm_90a"}
RAGGED = [(1, 1, 1), (77, 33, 51), (129, 264, 72), (16, 520, 1096), (300, 1000, 1100)]


@pytest.mark.parametrize("out_dtype", [None, "f32"])
@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
@pytest.mark.parametrize("a_kind", ["normal", "transposed"])
@pytest.mark.parametrize("b_kind", ["normal", "transposed"])
def test_every_layout_and_type_is_multiplied(
    draws, assert_product, dtype, out_dtype, a_kind, b_kind
):
    a = getattr(draws, a_kind)(304, 264, dtype=dtype)
    b = getattr(draws, b_kind)(520, 264, dtype=dtype)
    for _ in range(2):
        c = matmul(a, b, out_dtype=out_dtype)
        assert c.dtype == (torch.float32 if out_dtype else dtype)
        assert_product(c, a, b)


@pytest.mark.parametrize("name", ["float32", "float8_e4m3fn", "float8_e5m2", "int8", "uint8"])
def test_types_of_other_widths_multiply_integers_exactly(draws, name):
    a, b = draws.integers(136, 96), draws.integers(200, 96)
    if name == "uint8":
        a, b = a.abs(), b.abs()
    dtype = getattr(torch, name)
    c = matmul(a.to(dtype), b.to(dtype))
    assert c.equal((a.double() @ b.double().T).to(c.dtype))


@pytest.mark.parametrize("sizes", RAGGED)
def test_ragged_sizes_are_written_whole_and_nothing_else(draws, poisoned, assert_product, sizes):
    m, n, k = sizes
    a, b, c = draws.normal(m, k), draws.transposed(n, k), poisoned(m, n)
    assert matmul(a, b, out=c.tensor) is c.tensor
    c.check()
    assert_product(c.tensor, a, b)


def test_integers_are_exact_and_as_on_the_emulator(draws):
    a, b = draws.integers(100, 200), draws.integers(136, 200)
    c = matmul(a, b)
    assert c.equal((a.double() @ b.double().T).to(torch.bfloat16))
    assert c.cpu().equal(matmul(a.cpu(), b.cpu()))


def test_views_that_no_kernel_can_read_are_copied(draws, assert_product):
    strided, b = draws.normal(72, 528)[:, ::2], draws.normal(64, 264)
    shifted = draws.normal(65 * 264).narrow(0, 4, 64 * 264).view(64, 264)
    assert shifted.data_ptr() % 16 == 8
    for a, other in ((strided, b), (strided, shifted), (b, shifted), (shifted, b)):
        for _ in range(2):
            assert_product(matmul(a, other), a, other)
    transposed = shifted.view(264, 64).T
    assert_product(matmul(b, transposed), b, transposed)


def test_operands_that_come_again_are_told_from_those_that_only_look_alike(draws, assert_product):
    a, b, square = draws.normal(64, 64), draws.normal(64, 64), draws.transposed(64, 64)
    operands = (a, b, square, a.half(), a.clone().requires_grad_())
    pairs = [(x, y) for x, y in itertools.product(operands, repeat=2) if x.dtype == y.dtype]
    for x, y in pairs * 3:
        assert_product(matmul(x, y), x, y)
    with torch.no_grad():
        assert not matmul(operands[-1], b).requires_grad
    assert matmul(operands[-1], b).requires_grad


def test_a_launch_is_on_torchs_current_stream(draws, assert_product):
    a, b, stream = draws.normal(256, 128), draws.normal(192, 128), torch.cuda.Stream()
    late = torch.zeros_like(a)
    torch.cuda.synchronize()
    for _ in range(2):
        with torch.cuda.stream(stream):
            late.zero_()
            torch.cuda._sleep(50_000_000)
            late.copy_(a)
            c = matmul(late, b).clone()
        stream.synchronize()
        assert_product(c, a, b)


def test_graphs_of_a_kernel_for_any_m_keep_the_m_of_their_capture(draws, assert_product):
    """One kernel, captured with several M: each replay has the grid and the maps of its own."""
    b, captured = draws.normal(200, 72), []
    for m in (9, 16, 1, 200, 130):
        a, graph = draws.normal(m, 72), torch.cuda.CUDAGraph()
        matmul(a, b, m="dynamic")
        with torch.cuda.graph(graph):
            c = matmul(a, b, m="dynamic")
        captured.append((a, c, graph))
    for a, c, graph in captured + captured[::-1]:
        a.copy_(draws.normal(*a.shape))
        c.fill_(torch.nan)
        graph.replay()
        torch.cuda.synchronize()
        assert_product(c, a, b)


def test_graphs_of_a_kernel_for_any_m_and_batch_keep_the_sizes_of_their_capture(
    draws, assert_product
):
    """One kernel for some rows: each replay has the matrices and the rows of its own capture."""
    how, captured = {"m": "dynamic", "batch": "dynamic"}, []
    for batch, m in ((1, 9), (3, 16), (5, 1), (2, 200), (3, 130)):
        a, b = draws.normal(batch, m, 72), draws.normal(batch, 200, 72)
        graph = torch.cuda.CUDAGraph()
        matmul(a, b, **how)
        with torch.cuda.graph(graph):
            c = matmul(a, b, **how)
        captured.append((a, b, c, graph))
    for a, b, c, graph in captured + captured[::-1]:
        a.copy_(draws.normal(*a.shape))
        b.copy_(draws.normal(*b.shape))
        c.fill_(torch.nan)
        graph.replay()
        torch.cuda.synchronize()
        assert len(c) == len(a)
        for each in zip(c, a, b, strict=True):
            assert_product(*each)
    for batch, m in ((0, 9), (4, 0)):
        c = matmul(draws.normal(batch, m, 72), draws.normal(batch, 200, 72), **how)
        assert c.shape == (batch, m, 200)


def test_a_cuda_graph_takes_even_the_call_that_compiles(draws, assert_product):
    a, b, graph = draws.normal(136, 72), draws.normal(200, 72), torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        c = matmul(a, b)
    for _ in range(2):
        a.copy_(draws.normal(136, 72))
        c.fill_(torch.nan)
        graph.replay()
        torch.cuda.synchronize()
        assert_product(c, a, b)


def test_threads_may_call_at_the_same_time(draws, assert_product):
    operands = [(draws.normal(64 + 8 * i, 96), draws.normal(72, 96)) for i in range(4)] * 2
    results = [None] * len(operands)

    def work(i):
        results[i] = matmul(*operands[i])

    threads = [threading.Thread(target=work, args=(i,)) for i in range(len(operands))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    torch.cuda.synchronize()
    for c, (a, b) in zip(results, operands, strict=True):
        assert_product(c, a, b)


def test_calls_keep_no_memory_of_their_tensors(draws):
    a, b = draws.normal(512, 512), draws.normal(512, 512)
    matmul(a, b)
    before = torch.cuda.memory_allocated()
    for _ in range(3):
        x, y = a.clone(), b.clone()
        matmul(x, y)
        del x, y
    assert torch.cuda.memory_allocated() == before


def test_arrays_of_other_libraries_stay_on_the_gpu(draws, assert_product):
    cupy = pytest.importorskip("cupy", reason="cupy is not installed")
    a, b = draws.normal(72, 40, dtype=torch.float16), draws.normal(56, 40, dtype=torch.float16)
    c = matmul(cupy.asarray(a), cupy.asarray(b))
    assert_product(c, a, b)


def refused(a, b, **options):
    with pytest.raises((CompileError, DeviceError)) as error:
        matmul(a, b, **options)
    return str(error.value)


def test_operands_that_do_not_go_together_are_refused(draws):
    a, b = draws.normal(40, 72), draws.normal(56, 72)
    rule = "matmul: a and b must be [m, k] and [n, k], got"
    assert refused(a, b.T).startswith(f"error: {rule} [40, 72] and [72, 56]; pass b.T")
    assert refused(a[0], b).startswith(f"error: {rule} [72] and [56, 72]; pass b.T")
    for other in (a.double(), a.half()):
        assert "a_dtype and b_dtype must be one type" in refused(other, b)
    assert refused(a, b.cpu()) == "tensor 'b': must be on cuda:0, got the CPU; move it there"
    assert refused(a.cpu(), b) == "tensor 'b': must be on the CPU for this device, got cuda:0"


def test_outputs_that_do_not_fit_are_refused_and_the_next_call_works(draws, assert_product):
    a, b = draws.normal(40, 72), draws.normal(56, 72)
    for out, message in (
        (draws.normal(40, 57), "shape must be [40, 56], got [40, 57]"),
        (draws.normal(40, 56).float(), "must be torch.bfloat16 or numpy"),
        (draws.normal(40, 56).cpu(), "must be on cuda:0, got the CPU; move it there"),
    ):
        assert refused(a, b, out=out).startswith(f"tensor 'c': {message}")
    assert_product(matmul(a, b), a, b)


def test_an_output_at_any_address_and_strides_gets_the_result(draws, assert_product):
    a, b = draws.normal(40, 72), draws.normal(56, 72)
    shifted = draws.normal(41 * 56).narrow(0, 4, 40 * 56).view(40, 56)
    assert shifted.data_ptr() % 16 == 8
    for out in (shifted, draws.normal(40, 112)[:, ::2]):
        assert matmul(a, b, out=out) is out
        assert_product(out, a, b)


def test_a_kernel_for_another_chip_names_both(draws):
    a, b = draws.normal(40, 72), draws.normal(56, 72)
    own = open_device("cuda").target
    message = refused(a, b, target=OTHER_TARGET[own])
    assert message.startswith("kernel matmul_bf16_40x56x72 on cuda:0 (NVIDIA ")
    assert f"for a bundle of {OTHER_TARGET[own]}, got " in message
    assert message.endswith(f"; compile it for {own}")


WITHOUT_GPU = """
import torch
from tilewright import matmul
from tilewright.runtime import DeviceError
from tilewright.runtime.launch.devices import open_device

a = torch.ones(64, 64, dtype=torch.bfloat16)
assert (matmul(a, a) == 64).all()
try:
    open_device("cuda")
except DeviceError as error:
    print(error)
"""


def test_hidden_gpus_are_told_by_the_drivers_name_for_it():
    done = subprocess.run(
        [sys.executable, "-c", WITHOUT_GPU],
        env={**os.environ, "CUDA_VISIBLE_DEVICES": ""},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("cuda: must succeed, got CUDA_ERROR_NO_DEVICE (100), ")
