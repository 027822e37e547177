"""torch modules with rows that only a call says: by compile_module, and from a .pt2 file."""

from dataclasses import replace

import pytest
import torch
from torch.export import Dim, export

from tilewright import compile_module
from tilewright.compiler import buckets
from tilewright.compiler.driver import read_spec
from tilewright.compiler.importers.torch_module import import_module
from tilewright.compiler.importers.torch_rows import rows_of_program
from tilewright.compiler.schedule.any_size.buckets import Bucket
from tilewright.compiler.spec import ROWS_MOST
from tilewright.dialects.errors import CompileError
from tilewright.runtime.errors import DeviceError

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


def test_kernels_of_a_module_share_any_number_of_rows():
    layer, rows = Layer(), {0: M}
    how = {"target": "sm_100a", "dynamic_shapes": (rows, rows, rows)}
    with torch.no_grad():
        kernel = compile_module(layer, *inputs(6), **how)
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


@pytest.mark.parametrize(("way", "target"), [("bmm", "sm_90a"), ("matmul", "sm_100a")])
def test_one_kernel_of_a_module_takes_any_number_of_matrices(way, target):
    module = Products(WAYS[way])
    passes = "tiling{tile=64x16x64},tma-insertion,swizzle-selection,warp-specialization"
    how = {"target": target, "pipeline": passes, "dynamic_shapes": (BATCH,) * 3}
    with torch.no_grad():
        kernel = compile_module(module, *stacks(3), **how)
        for count in (1, 3, 0, 5):
            assert is_right(kernel(*stacks(count)), module(*stacks(count)))


@pytest.mark.slow
def test_kernels_of_a_module_share_any_number_of_matrices():
    module = Products(WAYS["bmm"])
    with torch.no_grad():
        kernel = compile_module(module, *stacks(3), target="sm_90a", dynamic_shapes=(BATCH,) * 3)
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
        (
            ({0: M, 1: Dim("k")}, {0: M}, {0: M}),
            "input 0: matrices must be the first of three dims",
        ),
        (
            ({1: Dim("k")}, None, None),
            "input 0: the first of two or three dims alone may be dynamic",
        ),
        (({0: M}, {0: Dim("other")}, {0: M}), "by two Dims, got m, other"),
        (({0: 2 * M}, {0: M}, {0: M}), "input 0: a dynamic size must be a Dim of its own name"),
        (({0: Dim.AUTO}, None, None), "input 0: a dynamic size must be a Dim of its own name"),
        (({0: 6}, None, None), "a dynamic size must be a Dim of its own name, got 6;"),
    ],
)
def test_other_sizes_than_one_number_of_rows_are_refused(shapes, said):
    with pytest.raises(CompileError) as caught:
        import_module(Layer(), *inputs(6), dynamic=shapes)
    assert said in str(caught.value)


def test_matrices_that_share_a_weight_are_rows_of_one():
    x = torch.randn(2, 6, K).bfloat16()
    rule = "matrices of a stack may be dynamic in a product of two stacks, got a layer of"
    with pytest.raises(CompileError, match=rule):
        import_module(Layer().linear, x, dynamic=({0: M},))


def test_rows_alone_of_a_known_number_of_matrices_are_refused():
    with pytest.raises(CompileError, match=r"three dims alone may be dynamic, got dims \[1\] of"):
        import_module(Products(WAYS["bmm"]), *stacks(2), dynamic=({1: M},) * 3)


ANY = {0: Dim("batch"), 1: M}
SIZES = ((2, 16), (2, 17), (3, 17))


class Both(Products):
    """Of stacks of any rows, with a residual that all matrices share, and a factor of each row."""

    def forward(self, a, b, residual, factor):
        return torch.relu(self.product(a, b) + self.bias) * factor + residual


def of_both(count: int, m: int) -> tuple[torch.Tensor, ...]:
    draw = torch.Generator().manual_seed(count + m)
    shapes = (count, m, K), (count, N, K), (m, N), (count, m, 1)
    return tuple(torch.randn(*each, generator=draw).bfloat16() for each in shapes)


@pytest.mark.parametrize(("target", "way"), [("sm_90a", "bmm"), ("sm_100a", "matmul")])
def test_one_kernel_of_a_module_takes_any_rows_of_any_number_of_matrices(way, target):
    module = Both(WAYS[way])
    passes = "tiling{tile=64x16x64},tma-insertion,swizzle-selection,warp-specialization"
    how = {"target": target, "pipeline": passes, "dynamic_shapes": (ANY, {0: ANY[0]}, {0: M}, ANY)}
    with torch.no_grad():
        kernel = compile_module(module, *of_both(3, 24), **how)
        for sizes in ((1, 1), (3, 24), (2, 70), (0, 5), (4, 0)):
            assert is_right(kernel(*of_both(*sizes)), module(*of_both(*sizes)))
        with pytest.raises(DeviceError):
            kernel(*of_both(2, 9)[:2], *of_both(2, 8)[2:])


def test_kernels_of_a_module_are_for_bands_of_matrices(monkeypatch):
    def two_kernels(source, _target):
        spec = read_spec(source, "sm_90a")
        first, second = ((1, 16, 1, 2), (1, ROWS_MOST, 3, ROWS_MOST)), ((17, ROWS_MOST, 1, 2),)
        return [
            Bucket(
                replace(spec, m=64, least_m=ranges[0][0], most_m=ROWS_MOST),
                f"tiling{{tile={tile}}},tma-insertion,swizzle-selection",
                ranges,
            )
            for tile, ranges in (("64x16x64", first), ("64x32x64", second))
        ]

    monkeypatch.setattr(buckets, "buckets_for", two_kernels)
    module = Both(WAYS["bmm"])
    how = {"target": "sm_90a", "dynamic_shapes": (ANY, {0: ANY[0]}, {0: M}, ANY)}
    with torch.no_grad():
        kernel = compile_module(module, *of_both(3, 24), **how)
        for sizes in SIZES:
            assert is_right(kernel(*of_both(*sizes)), module(*of_both(*sizes)))
    bundle = kernel._kernel.bundle
    tiles = [bundle.at(m, n).manifest["schedule"]["tile"][1] for n, m in SIZES]
    assert tiles == [16, 32, 16]


@pytest.mark.slow
def test_kernels_of_a_module_share_any_rows_of_any_number_of_matrices():
    module, shapes = Products(WAYS["matmul"]), (ANY, {0: ANY[0]}, ANY)

    def operands(*sizes):
        a, b, shared, _ = of_both(*sizes)
        return a, b, shared.expand(sizes[0], *shared.shape).clone()

    with torch.no_grad():
        kernel = compile_module(module, *operands(3, 24), target="sm_100a", dynamic_shapes=shapes)
        for sizes in ((1, 1), (3, 100), (2, 17)):
            assert is_right(kernel(*operands(*sizes)), module(*operands(*sizes)))


def test_a_program_of_torch_export_keeps_rows_and_matrices_open():
    values, shapes = of_both(4, 24), (ANY, {0: ANY[0]}, {0: M}, ANY)
    program = export(Both(WAYS["bmm"]), values, dynamic_shapes=shapes)
    sizes = rows_of_program(program) or ()
    assert [sorted(each or ()) for each in sizes] == [[0, 1], [0], [0], [0, 1]]
    text = import_module(program.module(), *values, dynamic=sizes).text
    assert f"linalg.batch_matmul ins(%arg0, %transposed : tensor<?x?x{K}xbf16>" in text
    assert "cf.assert" not in text and "index_cast" not in text


@pytest.mark.parametrize(
    ("shapes", "said"),
    [
        (({0: M, 1: M}, {0: M}, {0: M}, {0: M, 1: M}), "and their rows, by two Dims, got m"),
        ((ANY, {0: M}, {0: M}, ANY), "input 1: matrices must be the first of three dims, and rows"),
        ((ANY, {0: ANY[0]}, {0: ANY[0]}, ANY), "input 2: matrices must be the first of three dims"),
        ((ANY, {0: Dim("c")}, {0: M}, ANY), "by two Dims, got batch, c, m"),
        ((ANY, {0: ANY[0], 2: M}, {0: M}, ANY), "input 1: matrices must be the first of three"),
    ],
)
def test_other_sizes_than_rows_and_matrices_are_refused(shapes, said):
    with pytest.raises(CompileError) as caught:
        import_module(Both(WAYS["bmm"]), *of_both(3, 24), dynamic=shapes)
    assert said in str(caught.value)
