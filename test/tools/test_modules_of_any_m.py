"""torch modules with rows that only a call says: by compile_module, and from a .pt2 file."""

import pytest
import torch
from torch.export import Dim, export

from tilewright import compile_module
from tilewright.compiler.importers.torch_module import import_module
from tilewright.compiler.importers.torch_rows import rows_of_program
from tilewright.dialects.errors import CompileError

N, K = 40, 72
M = Dim("m")


class Layer(torch.nn.Module):
    """A linear layer, a residual, and a factor for each row."""

    def __init__(self):
        super().__init__()
        torch.manual_seed(3)
        self.linear = torch.nn.Linear(K, N, dtype=torch.bfloat16)

    def forward(self, x, residual, factor):
        return torch.relu(self.linear(x)) + residual * factor


def inputs(m: int) -> tuple[torch.Tensor, ...]:
    draw = torch.Generator().manual_seed(m)
    return tuple(torch.randn(m, each, generator=draw).bfloat16() for each in (K, N, 1))


def is_right(found: torch.Tensor, wanted: torch.Tensor) -> bool:
    bound = 2**-6 * wanted.double().abs() + 2e-2
    close = (found.double() - wanted.double()).abs() <= bound
    return found.shape == wanted.shape and bool(close.all())


@pytest.mark.parametrize("target", ["sm_90a", "sm_100a"])
def test_kernels_of_a_module_share_any_number_of_rows(target):
    layer, rows = Layer(), {0: M}
    with torch.no_grad():
        kernel = compile_module(layer, *inputs(6), target=target, dynamic_shapes=(rows, rows, rows))
        for m in (1, 6, 0, 70):
            assert is_right(kernel(*inputs(m)), layer(*inputs(m)))


def test_one_kernel_has_the_passes_that_are_named():
    layer = Layer().linear
    passes = "tiling{tile=64x16x64},tma-insertion,swizzle-selection"
    with torch.no_grad():
        kernel = compile_module(
            layer, inputs(9)[0], target="sm_90a", pipeline=passes, dynamic_shapes=({0: M},)
        )
        assert kernel.compiled.manifest["schedule"]["tile"] == [64, 16, 64]
        assert is_right(kernel(inputs(65)[0]), layer(inputs(65)[0]))


class Products(torch.nn.Module):
    """Of two stacks, with a bias for each column and a residual."""

    def __init__(self, product):
        super().__init__()
        self.product, self.bias = product, torch.nn.Parameter(inputs(1)[1][0])

    def forward(self, a, b, residual):
        return torch.nn.functional.gelu(self.product(a, b) + self.bias) + residual


def stacks(count: int) -> tuple[torch.Tensor, ...]:
    draw = torch.Generator().manual_seed(count)
    shapes = (24, K), (N, K), (24, N)
    return tuple(torch.randn(count, *each, generator=draw).bfloat16() for each in shapes)


WAYS = {
    "bmm": lambda a, b: torch.bmm(a, b.mT),
    "matmul": lambda a, b: a @ b.transpose(1, 2),
}
BATCH = {0: Dim("batch")}


@pytest.mark.parametrize("target", ["sm_90a", "sm_100a"])
@pytest.mark.parametrize("way", ["bmm", "matmul"])
def test_one_kernel_of_a_module_takes_any_number_of_matrices(way, target):
    module = Products(WAYS[way])
    passes = "tiling{tile=64x16x64},tma-insertion,swizzle-selection,warp-specialization"
    how = {"target": target, "pipeline": passes, "dynamic_shapes": (BATCH,) * 3}
    with torch.no_grad():
        kernel = compile_module(module, *stacks(3), **how)
        for count in (1, 3, 0, 5):
            assert is_right(kernel(*stacks(count)), module(*stacks(count)))


@pytest.mark.slow
@pytest.mark.parametrize("target", ["sm_90a", "sm_100a"])
def test_kernels_of_a_module_share_any_number_of_matrices(target):
    module = Products(WAYS["bmm"])
    with torch.no_grad():
        kernel = compile_module(module, *stacks(3), target=target, dynamic_shapes=(BATCH,) * 3)
        for count in (1, 2, 0, 19):
            assert is_right(kernel(*stacks(count)), module(*stacks(count)))


def test_a_program_of_torch_export_keeps_its_matrices_open():
    program = export(Products(WAYS["bmm"]), stacks(4), dynamic_shapes=(BATCH,) * 3)
    sizes = rows_of_program(program) or ()
    text = import_module(program.module(), *stacks(4), dynamic=sizes).text
    assert f"linalg.batch_matmul ins(%arg0, %transposed : tensor<?x24x{K}xbf16>" in text
    assert "cf.assert" not in text and "index_cast" not in text


@pytest.mark.slow
def test_a_file_of_torch_export_keeps_its_rows_open(tilewright, tmp_path):
    layer, path, bundle = Layer().linear, tmp_path / "any.pt2", tmp_path / "any.zip"
    torch.export.save(export(layer, (inputs(6)[0],), dynamic_shapes=({0: M},)), path)
    refused = tilewright("compile", path, "-o", bundle)
    assert refused.status == 1 and "give --trust" in refused.err
    made = tilewright("compile", path, "--trust", "--target", "sm_90a", "-o", bundle)
    assert made.status == 0, made.err
    ran = tilewright("run", bundle, "--m-dynamic", "9", "--json")
    assert ran.status == 0 and ran.json["comparison"]["elements"] == 9 * N
    ran = tilewright("run", path, "--trust", "--m-dynamic", "33", "--target", "sm_90a", "--json")
    assert ran.status == 0, ran.err
    assert "torch's own run" in ran.json["reference"]


def test_an_exported_program_of_known_sizes_has_no_open_rows():
    assert rows_of_program(export(Layer(), inputs(4))) is None
    program = export(Layer(), inputs(4), dynamic_shapes=({0: M}, {0: M}, {0: M}))
    sizes = [each or {} for each in rows_of_program(program) or ()]
    assert [list(each) for each in sizes] == [[0]] * 3
    assert all(each[0] is sizes[0][0] for each in sizes)


@pytest.mark.parametrize(
    ("shapes", "said"),
    [
        (({0: M}, {0: M}), "must be a tuple with {0: Dim} or None for each input, got"),
        ({"x": {0: M}}, "must be a tuple with {0: Dim} or None for each input, got"),
        ((M, None, None), "must be a tuple with {0: Dim} or None for each input, got"),
        (({0: M, 1: Dim("k")}, {0: M}, {0: M}), "input 0: the first of two or three dims alone"),
        (
            ({1: Dim("k")}, None, None),
            "input 0: the first of two or three dims alone may be dynamic",
        ),
        (({0: M}, {0: Dim("other")}, {0: M}), "must be one number, got m, other"),
    ],
)
def test_other_sizes_than_one_number_of_rows_are_refused(shapes, said):
    with pytest.raises(CompileError) as caught:
        import_module(Layer(), *inputs(6), dynamic=shapes)
    assert said in str(caught.value)


def test_matrices_that_share_a_weight_are_rows_of_one():
    x = torch.randn(2, 6, K).bfloat16()
    rule = "input 0: matrices of a stack may be dynamic in a product of two stacks, got another of"
    with pytest.raises(CompileError, match=rule):
        import_module(Layer().linear, x, dynamic=({0: M},))


def test_one_size_of_a_stack_alone_is_open():
    for shapes, got in (({0: M, 1: Dim("k")}, r"dims \[0, 1\]"), ({1: Dim("k")}, r"dims \[1\]")):
        with pytest.raises(CompileError, match=f"three dims alone may be dynamic, got {got} of"):
            import_module(Products(WAYS["bmm"]), *stacks(2), dynamic=(shapes, shapes, shapes))
