"""Kernels of `kernels/` on a GPU of compute capability 9.0; the same bundles on the emulator."""

import importlib.util
import json
import shutil
import subprocess
import sys
import threading
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from tilewright.runtime import Bundle, DeviceError, Kernel, LaunchError
from tilewright.runtime.bundles.bundle import seal
from tilewright.runtime.launch.devices import open_device

KERNELS = Path(__file__).parent / "kernels"
VARIANTS = ("plain", "pair", "dependent")
M, N, K, TILE = 128, 64, 64, 64


def find_ptxas() -> str | None:
    """One on PATH, as on a machine with a CUDA toolkit, else that of the wheel."""
    package = importlib.util.find_spec("nvidia")
    folders = list(package.submodule_search_locations or ()) if package else []
    wheels = [str(found) for folder in folders for found in Path(folder).glob("cu1*/bin/ptxas")]
    return shutil.which("ptxas") or next(iter(wheels), None)


def tensor(name, role, rows, columns):
    layout = {"shape": [rows, columns], "strides": [columns, 1]}
    return {"name": name, "role": role, "dtype": "bf16", **layout}


def manifest_of(variant):
    return {
        "spec": None,
        "target": "sm_90a",
        "pipeline": "by hand",
        "schedule": {"programmatic_dependent_launch": variant == "dependent"},
        "entry": "matmul",
        "grid": [M // TILE, N // TILE, 1],
        "cluster": [1 if variant == "plain" else 2, 1, 1],
        "block": [128, 1, 1],
        "dynamic_shared_bytes": 65_536,
        "workspace_bytes": 0,
        "tensors": [
            tensor("a", "input", M, K),
            tensor("b", "input", N, K),
            tensor("c", "output", M, N),
        ],
        "parameters": [
            {
                "kind": "tensor_map",
                "tensor": "a",
                "dtype": "bf16",
                "dims": [K, M],
                "strides_bytes": [2 * K],
                "box": [TILE, TILE],
                "element_strides": [1, 1],
                "interleave": "none",
                "swizzle": "none",
                "l2_promotion": "128B",
                "oob_fill": "zero",
            },
            {"kind": "pointer", "tensor": "b", "alignment_bytes": 2},
            {"kind": "pointer", "tensor": "c", "alignment_bytes": 2},
        ],
        "epilogue": {
            "arguments": [{"tensor": None, "axes": ["m", "n"]}],
            "operations": [],
            "result": 0,
        },
        "resources": dict.fromkeys(
            ("registers", "spill_store_bytes", "spill_load_bytes", "static_shared_bytes"), 0
        ),
        "tools": {},
    }


@pytest.fixture
def bundle_of(tmp_path):
    """bundle_of(variant, **manifest fields that differ)"""
    ptxas = find_ptxas()
    if ptxas is None:
        pytest.skip("no ptxas on PATH or from nvidia-cuda-nvcc")

    def make(variant="plain", **changed):
        source, cubin = KERNELS / f"matmul.{variant}.ptx", tmp_path / f"{variant}.cubin"
        subprocess.run([ptxas, "-arch=sm_90a", "-o", cubin, source], check=True)
        ptx, image = source.read_text(), cubin.read_bytes()
        return Bundle(seal({**manifest_of(variant), **changed}, ptx, image), ptx, image)

    return make


@pytest.fixture
def gpu(gpu):
    """The first GPU; skips where it doesn't run sm_90a."""
    target = open_device("cuda").target
    if target != "sm_90a":
        pytest.skip(f"these kernels are for sm_90a, the GPU is {target}")
    return gpu


def operands(place, seed=3):
    """Small integers, whose products are exact in any order."""
    generator = torch.Generator().manual_seed(seed)
    shapes = ((M, K), (N, K))
    numbers = [torch.randint(-4, 5, shape, generator=generator) for shape in shapes]
    return [number.to(torch.bfloat16).to(place) for number in numbers]


def product(a, b):
    return (a.double() @ b.double().T).to(torch.bfloat16)


def poisoned(place):
    return torch.full((M, N), torch.nan, dtype=torch.bfloat16, device=place)


def check_product(bundle, place):
    """What is returned where the kernel makes its output."""
    a, b = operands(place)
    made = Kernel(bundle)(a, b)
    assert (made.device, made.dtype) == (a.device, torch.bfloat16)
    assert made.equal(product(a, b))


def check_out(bundle, place):
    """What is written where the output is given."""
    (a, b), out = operands(place), poisoned(place)
    assert Kernel(bundle)(a, b, out=out) is out
    assert out.equal(product(a, b))


@pytest.mark.parametrize("variant", VARIANTS)
def test_every_variant_gives_the_exact_product(bundle_of, gpu, variant):
    check_product(bundle_of(variant), gpu)
    check_out(bundle_of(variant), gpu)


@pytest.mark.sweep(6)  # each of the launches takes seconds
@pytest.mark.parametrize("variant", VARIANTS)
def test_every_variant_gives_the_exact_product_on_the_emulator(bundle_of, variant):
    check_product(bundle_of(variant), "cpu")


def test_a_launch_is_on_torchs_current_stream(bundle_of, gpu):
    kernel, (a, b), stream = Kernel(bundle_of()), operands(gpu), torch.cuda.Stream()
    late, out = torch.zeros_like(a), poisoned(gpu)
    kernel(a, b)
    torch.cuda.synchronize()
    with torch.cuda.stream(stream):
        torch.cuda._sleep(50_000_000)
        late.copy_(a)
        kernel(late, b, out=out)
        copied = out.clone()
    stream.synchronize()
    assert copied.equal(product(a, b))


def test_dependent_launches_in_a_row_read_what_the_one_before_wrote(bundle_of, gpu):
    kernel, (_, b) = Kernel(bundle_of("dependent")), operands(gpu)
    inputs = [operands(gpu, seed)[0] for seed in range(20)]
    a, results = torch.zeros_like(inputs[0]), []
    for each in inputs:
        a.copy_(each)
        results.append(kernel(a, b))
        a.zero_()
    torch.cuda.synchronize()
    pairs = zip(results, inputs, strict=True)
    assert all(result.equal(product(each, b)) for result, each in pairs)


@pytest.mark.parametrize("variant", VARIANTS)
def test_a_cuda_graph_takes_even_the_first_call(bundle_of, gpu, variant):
    a, b = operands(gpu)
    kernel, out, graph = Kernel(bundle_of(variant)), poisoned(gpu), torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        kernel(a, b, out=out)
    for seed in (4, 5):
        a.copy_(operands(gpu, seed)[0])
        out.fill_(torch.nan)
        graph.replay()
        torch.cuda.synchronize()
        assert out.equal(product(a, b))


def test_torch_compile_and_its_cuda_graphs_keep_the_call(bundle_of, gpu):
    kernel, (a, b) = Kernel(bundle_of()), operands(gpu)
    compiled = torch.compile(lambda a, b: kernel(a, b) + 1, backend="cudagraphs", fullgraph=True)
    for seed in range(4):
        a = operands(gpu, seed)[0]
        assert compiled(a, b).equal(product(a, b) + 1)


def test_a_thread_that_never_used_the_gpu_launches(bundle_of, gpu):
    kernel, (a, b), out = Kernel(bundle_of()), operands(gpu), poisoned(gpu)
    thread = threading.Thread(target=lambda: kernel(a, b, out=out, stream=0))
    torch.cuda.synchronize()
    thread.start()
    thread.join()
    torch.cuda.synchronize()
    assert out.equal(product(a, b))


def test_a_kernel_follows_its_tensors_to_each_gpu(bundle_of, gpu):
    if torch.cuda.device_count() < 2:
        pytest.skip("one GPU here, this needs two")
    kernel = Kernel(bundle_of("pair"))
    for place in ("cuda:1", gpu, "cuda:1"):
        a, b = operands(place)
        assert kernel(a, b).equal(product(a, b))
    a, b = operands("cuda:1")
    with pytest.raises(LaunchError, match=r"^tensor 'b': must be on cuda:1, got cuda:0"):
        kernel(a, b.to(gpu))


def test_arrays_of_cupy_are_taken(bundle_of, gpu):
    cupy = pytest.importorskip("cupy", reason="cupy is not installed")
    a, b = operands(gpu)
    arrays = [cupy.asarray(each.view(torch.int16)).view(cupy.uint16) for each in (a, b)]
    c = Kernel(bundle_of())(*arrays)
    torch.cuda.synchronize()
    assert c.equal(product(a, b))


def test_arrays_of_jax_are_taken(bundle_of, gpu):
    jax = pytest.importorskip("jax", reason="jax is not installed")
    a, b = operands(gpu)
    jax.devices()  # its start leaves the last of several GPUs current
    with torch.cuda.device(gpu):
        c = Kernel(bundle_of())(*(jax.dlpack.from_dlpack(each) for each in (a, b)))
        torch.cuda.synchronize()
    assert c.equal(product(a, b))


WITHOUT_TORCH = """
import sys
sys.modules["torch"] = None
import cupy
from tilewright.runtime import load

a, b = (cupy.asarray([[0x3F80] * 64] * rows, cupy.uint16) for rows in (128, 64))
c = cupy.zeros((128, 64), cupy.uint16)
kernel = load(sys.argv[1])
for _ in range(2):
    assert kernel(a, b, out=c) is c
    assert (c == 0x4280).all(), c
    c.fill(0)
"""


def test_a_kernel_runs_without_torch(bundle_of, gpu, tmp_path):
    pytest.importorskip("cupy", reason="cupy is not installed")
    bundle = bundle_of("pair")
    (tmp_path / "bundle").mkdir()
    contents = {"kernel.ptx": bundle.ptx.encode(), "kernel.cubin": bundle.cubin}
    contents["manifest.json"] = json.dumps(bundle.manifest).encode()
    for name, content in contents.items():
        (tmp_path / "bundle" / name).write_bytes(content)
    command = [sys.executable, "-c", WITHOUT_TORCH, tmp_path / "bundle"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_tensors_that_do_not_fit_are_refused(bundle_of, gpu):
    kernel, (a, b) = Kernel(bundle_of()), operands(gpu)
    shifted = torch.empty(M * K + 8, dtype=torch.bfloat16, device=gpu)[4 : 4 + M * K].view(M, K)
    for wrong, message in (
        (shifted, "tensor 'a': address must be a multiple of 16 bytes, got 0x"),
        (a.T.contiguous().T, r"tensor 'a': strides \(in elements\) must be \[64, 1\], got"),
        (a[:100], r"tensor 'a': shape must be \[128, 64\], got \[100, 64\]"),
        (a.half(), "tensor 'a': must be torch.bfloat16 or numpy .*, got torch.float16"),
    ):
        with pytest.raises(LaunchError, match=f"^{message}"):
            kernel(wrong, b)
    with pytest.raises(LaunchError, match=r"^tensor 'b': must be on cuda:0, got the CPU; move"):
        kernel(a, b.cpu())


def test_a_bundle_of_another_architecture_is_refused(bundle_of, gpu):
    a, b = operands(gpu)
    with pytest.raises(DeviceError) as refused:
        Kernel(bundle_of(target="sm_100a"))(a, b)
    assert str(refused.value).startswith("kernel matmul on cuda:0 (NVIDIA H")
    assert str(refused.value).endswith(
        "): GPU must have compute capability 10.0 for a bundle of sm_100a, got 9.0; compile it for"
        " sm_90a"
    )


def test_what_the_driver_refuses_names_the_code_and_the_launch(bundle_of, gpu):
    a, b = operands(gpu)
    good = bundle_of()
    wrong = replace(good, manifest={**good.manifest, "block": [2048, 1, 1]})
    with pytest.raises(DeviceError) as failed:
        Kernel(wrong)(a, b)
    assert "launch: must succeed, got CUDA_ERROR_INVALID_VALUE (1), invalid" in str(failed.value)
    assert str(failed.value).endswith("block 2048x1x1, 65536 shared bytes")
    assert Kernel(bundle_of())(a, b).equal(product(a, b))


def test_a_run_says_where_it_ran(bundle_of, gpu):
    a, b = operands(gpu)
    report = Kernel(bundle_of()).run({"a": a, "b": b, "c": poisoned(gpu)})
    assert report.as_dict()["capability"] == "9.0"
