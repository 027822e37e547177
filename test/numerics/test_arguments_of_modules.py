"""Kernels of torch modules and of linalg are called with the source's own arguments."""

import numpy as np
import pytest
import torch
from torch import nn

from tilewright import compile_module
from tilewright.compiler.bundle_writer import as_bundle
from tilewright.compiler.driver import compile_matmul
from tilewright.dialects.errors import CompileError
from tilewright.runtime import Kernel

M, N, K = 24, 40, 32
SIZES = {"m": M, "n": N, "k": K, "1": 1}
BF16, F32 = torch.bfloat16, torch.float32
FORMS = {
    "a @ b": (lambda a, b: a @ b, "mk", "kn"),
    "a.T @ b": (lambda a, b: a.T @ b, "km", "kn"),
    "a @ b.T": (lambda a, b: a @ b.T, "mk", "nk"),
    "a.T @ b.T": (lambda a, b: a.T @ b.T, "km", "nk"),
    "b @ a": (lambda a, b: b @ a, "kn", "mk"),
    "mm": (torch.mm, "mk", "kn"),
    "matmul": (torch.matmul, "mk", "kn"),
    "addmm": (lambda c, a, b: torch.addmm(c, a, b, beta=2, alpha=0.5), "n", "mk", "kn"),
    "linear": (nn.functional.linear, "mk", "nk", "n"),
    "idle": (lambda idle, b, a: (a @ b).relu(), "k", "kn", "mk"),
    "gram": (lambda a: a @ a.T, "mk"),
    "square": (lambda a: a @ a, "mm"),
    "operand twice": (lambda a, b: a.T @ b + b, "mm", "mn"),
    "one row": (lambda a, b, c: a @ b + c, "1k", "kn", "1n"),
    "one column": (lambda a, b, c: a @ b + c, "mk", "k1", "m1"),
}


class Applied(nn.Module):
    def __init__(self, function):
        super().__init__()
        self.function = function

    def forward(self, *arguments):
        return self.function(*arguments)


def integers(axes, seed, dtype=BF16):
    """Small integers, of which products and sums are exact."""
    generator = torch.Generator().manual_seed(seed)
    shape = [SIZES[axis] for axis in axes]
    return torch.randint(-2, 3, shape, generator=generator).to(dtype)


def expected(function, values):
    return function(*(value.double() for value in values))


FEW = [("a.T @ b", BF16), ("addmm", BF16), ("idle", BF16), ("gram", BF16), ("square", BF16)]
FEW += [("operand twice", BF16), ("one row", BF16), ("a @ b", F32), ("square", F32)]
EVERY = [(name, dtype) for dtype in (BF16, F32) for name in FORMS]


def named(cases):
    return [pytest.param(*case, id=f"{case[0]}-{str(case[1])[6:]}") for case in cases]


@pytest.mark.sweep(4)
@pytest.mark.parametrize(("name", "dtype"), named(FEW))
def test_a_call_takes_the_modules_own_inputs(name, dtype):
    function, *axes = FORMS[name]
    values = [integers(each, seed, dtype) for seed, each in enumerate(axes)]
    kernel = compile_module(Applied(function), *values)
    assert torch.equal(kernel(*values).double(), expected(function, values))


@pytest.mark.sweep
@pytest.mark.parametrize(("name", "dtype"), named([c for c in EVERY if c not in FEW]))
def test_a_call_takes_the_modules_own_inputs_in_every_form(name, dtype):
    test_a_call_takes_the_modules_own_inputs(name, dtype)


def test_the_kernel_of_a_module_reads_operands_as_the_examples_lie():
    function = FORMS["a @ b"][0]
    a, b = integers("km", 0).T, integers("nk", 1).T
    tensors = compile_module(Applied(function), a, b).compiled.manifest["tensors"]
    assert [each["strides"] for each in tensors] == [[1, M], [K, 1], [N, 1]]
    assert [each.get("argument") for each in tensors] == [
        {"index": 0, "transposed": False}, {"index": 1, "transposed": True}, None,
    ]  # fmt: skip
    split = compile_module(Applied(function), a.float(), b.float()).compiled.manifest["tensors"]
    assert [each["strides"] for each in split] == [[1, M], [K, 1], [N, 1]]
    before = torch.get_float32_matmul_precision()
    torch.set_float32_matmul_precision("high")
    try:
        tf32 = compile_module(Applied(function), a.float(), b.float()).compiled.manifest["tensors"]
        with pytest.raises(CompileError, match="B must have K contiguous for tf32"):
            compile_module(Applied(lambda a: a @ a), integers("mm", 0, F32))
    finally:
        torch.set_float32_matmul_precision(before)
    assert [each["strides"] for each in tf32] == [[K, 1], [K, 1], [N, 1]]


def layouts(value):
    """The same values with strides and starts of every kind."""
    rows, columns = value.shape
    padded = value.new_full((rows, columns + 3), torch.nan)[:, :columns]
    tall = value.new_full((columns, rows + 8), torch.nan)[:, 8:].T
    moved = value.new_full((rows * columns + 1,), torch.nan)[1:].view(rows, columns)
    spread = value.new_full((2 * rows, 2 * columns), torch.nan)[::2, 1::2]
    for view in (padded, tall, moved, spread, torch.empty_like(value.T).T):
        yield view.copy_(value)
    yield value.clone().requires_grad_()


@pytest.fixture(scope="module")
def with_a_residual():
    """A kernel for a @ b + c + d, and what it should give."""
    axes = ("mk", "kn", "mn", "n")
    values = [integers(each, seed) for seed, each in enumerate(axes)]
    kernel = compile_module(Applied(lambda a, b, c, d: a @ b + c + d), *values)
    return kernel, values, expected(kernel.module.function, values)


@pytest.mark.parametrize("which", range(3))
def test_inputs_of_every_layout_are_taken(with_a_residual, which):
    kernel, values, result = with_a_residual
    with torch.no_grad():
        for view in layouts(values[which]):
            given = [*values[:which], view, *values[which + 1 :]]
            assert torch.equal(kernel(*given).double(), result), (view.stride(), view.data_ptr())


def test_expanded_inputs_and_one_tensor_twice_are_taken(with_a_residual):
    kernel, (a, b, c, d), _ = with_a_residual
    a, b, c, d = a[:1].expand(M, K), b[:, :1].expand(K, N), d.expand(M, N), d[3].expand(N)
    wanted = expected(kernel.module.function, (a, b, c, d))
    assert torch.equal(kernel(a, b, c, d).double(), wanted)
    both = compile_module(Applied(lambda a, b: a.T @ b), a, a)
    assert torch.equal(both(a, a).double(), a.T.double() @ a.double())


class Shared(nn.Module):
    """A parameter with two names that lies transposed, and buffers beside it."""

    def __init__(self):
        super().__init__()
        self.first = nn.Parameter(integers("kn", 5).T)
        self.second = self.first
        self.register_buffer("scale", integers("mn", 6)[0, ::2].repeat_interleave(2))
        self.register_buffer("count", torch.tensor(3), persistent=False)

    def forward(self, x):
        return nn.functional.linear(x, self.second) * self.scale


def test_shared_parameters_and_buffers_are_taken_as_they_lie():
    module, x = Shared(), integers("mk", 7)
    kernel = compile_module(module, x)
    assert kernel.tensors == {"a": "input 0", "b": "first", "e0": "scale"}
    with torch.no_grad():
        module.first.data = module.first.detach() + 1  # now with the other axis contiguous
        module.scale.mul_(2)
        wanted = (x.double() @ module.first.double().T) * module.scale.double()
        assert torch.equal(kernel(x).double(), wanted)


def test_a_bundle_is_called_as_the_module():
    function, *axes = FORMS["idle"]
    values = [integers(each, seed) for seed, each in enumerate(axes)]
    bundle = as_bundle(compile_module(Applied(function), *values).compiled)
    assert bundle.manifest["arguments"] == ["input 0", "input 1", "input 2"]
    assert torch.equal(Kernel(bundle)(*values).double(), expected(function, values))


LINALG = """
func.func @f(%s: tensor<40xf32>, %y: tensor<32x40xf16>, %idle: tensor<7xf64>,
             %x: tensor<32x24xf16>) -> tensor<24x40xf32> {
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<24x40xf32>
  %init = linalg.fill ins(%zero : f32) outs(%empty : tensor<24x40xf32>) -> tensor<24x40xf32>
  %sum = linalg.matmul indexing_maps = [affine_map<(m, n, k) -> (k, m)>,
    affine_map<(m, n, k) -> (k, n)>, affine_map<(m, n, k) -> (m, n)>]
    ins(%x, %y : tensor<32x24xf16>, tensor<32x40xf16>)
    outs(%init : tensor<24x40xf32>) -> tensor<24x40xf32>
  %r = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (j)>,
    affine_map<(i, j) -> (i, j)>], iterator_types = ["parallel", "parallel"]}
    ins(%sum, %s : tensor<24x40xf32>, tensor<40xf32>) outs(%empty : tensor<24x40xf32>) {
  ^bb0(%u: f32, %v: f32, %o: f32):
    %w = arith.subf %v, %u : f32
    linalg.yield %w : f32
  } -> tensor<24x40xf32>
  return %r : tensor<24x40xf32>
}
"""


def test_a_kernel_of_linalg_takes_the_functions_arguments(tmp_path):
    (tmp_path / "f.mlir").write_text(LINALG)
    compiled = compile_matmul(tmp_path / "f.mlir", pipeline="tiling{tile=64x64x64}")
    assert compiled.manifest["arguments"] == [f"argument {number}" for number in range(4)]
    generator = np.random.default_rng(4)
    s, y, x = (generator.integers(-4, 5, shape) for shape in ((40,), (32, 40), (32, 24)))
    kernel = Kernel(as_bundle(compiled))
    result = kernel(s.astype(np.float32), y.astype(np.float16), None, x.astype(np.float16))
    assert np.array_equal(result, s - x.T @ y)
