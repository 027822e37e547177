"""Views around the product of a torch module: which are read in place, which are copies, and which
are refused, with the line of Python."""

from types import SimpleNamespace

import pytest
import torch
from torch import nn
from torch.nn import functional as F

from tilewright import compile_module
from tilewright.compiler.calls.dense.module import _tied
from tilewright.compiler.importers.torch_view_ops import read_view
from tilewright.compiler.importers.view_chains import Chain
from tilewright.dialects.errors import CompileError
from tilewright.runtime.errors import CopyWarning, LaunchError

BF16, F32 = torch.bfloat16, torch.float32


class Applied(nn.Module):
    def __init__(self, function):
        super().__init__()
        self.function = function

    def forward(self, *inputs):
        return self.function(*inputs)


def integers(*shape, seed=0):
    """Small integers, of which products and sums are exact."""
    made = torch.Generator().manual_seed(seed)
    return torch.randint(-2, 3, shape, generator=made).to(BF16)


def compiled(function, *inputs):
    return compile_module(Applied(function), *inputs)


def test_views_of_operands_are_read_where_they_lie():
    def attended(q, k, r):
        sums = q.transpose(0, 1) @ k.view(40, 2, 32).transpose(0, 1).mT
        return sums * r[:, 8:].unsqueeze(0)

    values = integers(48, 2, 32), integers(40, 64, seed=1), integers(48, 48, seed=2)
    kernel = compiled(attended, *values)
    assert kernel.tensors == {
        "a": "input 0.permute(1, 0, 2)",
        "b": "input 1.reshape(40, 2, 32).permute(1, 0, 2)",
        "e0": "input 2[:, 8:48]",
    }
    strides = [each["strides"] for each in kernel.compiled.manifest["tensors"]]
    assert strides == [[32, 64, 1], [32, 64, 1], [48, 1], [1920, 40, 1]]
    assert torch.equal(kernel(*values), attended(*values))


def test_a_fused_projection_is_returned_as_the_heads_of_one_result():
    def projected(x, w):
        qkv = F.linear(x, w).reshape(2, 12, 3, 2, 8)
        return qkv.permute(2, 0, 3, 1, 4).unbind(0)

    values = integers(2, 12, 32), integers(48, 32, seed=1)
    kernel = compiled(projected, *values)
    found, given = kernel(*values), projected(*values)
    assert len({each.untyped_storage().data_ptr() for each in found}) == 1
    assert [each.stride() for each in found] == [each.stride() for each in given]
    assert all(map(torch.equal, found, given))


def test_a_part_that_a_function_is_of_is_all_that_is_computed():
    def scaled(x, w, b, r):
        q = F.linear(x, w, b).view(2, 12, 3, 2, 8)[:, :, 1]
        return q.transpose(1, 2) * r

    values = integers(2, 12, 32), integers(48, 32, seed=1), integers(48, seed=2)
    values += (integers(2, 1, 8, seed=3),)
    kernel = compiled(scaled, *values)
    assert kernel.compiled.manifest["tensors"][-1]["shape"] == [2, 12, 16]
    assert kernel.tensors["b"] == "input 1.reshape(3, 2, 8, 32)[1:2].reshape(16, 32)"
    assert torch.equal(kernel(*values), scaled(*values))


@pytest.mark.parametrize("stacked", [False, True])
def test_a_product_keeps_the_wider_type_that_it_is_asked_for(stacked):
    def product(x, y):
        several = torch.bmm if stacked else torch.mm
        x, y = (x, y) if stacked else (x[0], y[0])
        return several(x.mT, y.transpose(1, 2) if stacked else y.T, out_dtype=F32).flatten()

    values = integers(2, 32, 8), integers(2, 24, 32, seed=1)
    if not stacked:
        values = tuple(torch.cat([each, each]) for each in values)
    wanted = (values[0].double().mT @ values[1].double().mT)[: 2 if stacked else 1].flatten()
    found = compiled(product, *values)(*values)
    assert found.dtype == F32 and torch.equal(found.double(), wanted)


def test_inputs_may_lie_otherwise_than_examples_that_repeat_elements():
    def product(x, w, r):
        return (F.linear(x.flatten(0, 1), w) + r).view(2, 8, 24)

    values = integers(2, 8, 32), integers(24, 32, seed=1), integers(16, 24, seed=2)
    examples = values[0][:1].expand(2, 8, 32), values[1], values[2][:1].expand(16, 24)
    kernel = compiled(product, *examples)
    assert torch.equal(kernel(*values), product(*values))


def test_views_are_of_tensors_of_the_examples_shapes_alone():
    values = integers(2, 8, 32), integers(24, 32, seed=1)
    kernel = compiled(lambda x, w: F.linear(x[:, -4:], w).view(2, 4, 4, 6), *values)
    with pytest.raises(LaunchError, match=r"'input 0': shape must be \[2, 8, 32\], got \[2, 9, 32"):
        kernel(integers(2, 9, 32), values[1])


def test_one_weight_by_two_names_must_stay_one():
    module = nn.Sequential(nn.Linear(32, 24, bias=False, dtype=BF16)).requires_grad_(False)
    module.again = module[0].weight
    module.forward = lambda x: F.linear(x, module[0].weight) * F.linear(x, module.again)
    kernel, x = compile_module(module, integers(8, 32)), integers(8, 32)
    assert torch.equal(kernel(x), module(x))
    module.again = nn.Parameter(integers(24, 32, seed=1), requires_grad=False)
    with pytest.raises(CompileError, match=r"again and 0\.weight must be one tensor"):
        kernel(x)
    for name in ("one", "two"):
        module.register_buffer(name, x)
    assert ("one", "two") in _tied(module)


def test_a_large_copy_is_told_of():
    def product(x, w):
        return F.linear(x.transpose(0, 1).reshape(-1, 4096), w)

    x, w = integers(16, 16, 4096), integers(8, 4096, seed=1)
    said = r"input 0\.permute\(1, 0, 2\)\.reshape.* is copied in each such call, 2 MiB: no strides"
    with pytest.warns(CopyWarning, match=said):
        compiled(product, x, w)


REFUSED = {
    "twice": (
        lambda x, w: F.linear(x, w).view(4, 4, 8) + F.linear(x, w).view(4, 8, 4).mT,
        "aten.add: all that it reads of the product must be the same elements in one shape",
    ),
    "rows and columns mixed": (
        lambda x, w: F.linear(x, w).view(32, 4)[4:].relu(),
        "aten.relu: must read whole rows or columns of the product",
    ),
    "another function": (
        lambda x, w: F.linear(x, w).view(8, 2, 8).cumsum(-1),
        "aten.cumsum: must be elementwise where it reads the product",
    ),
    "another product": (
        lambda x, w: F.linear(x, w).view(8, 16).flatten() @ w.view(128, 1),
        "aten.matmul: a product must be of what is given, got one of another product",
    ),
    "bits of the product": (
        lambda x, w: (F.linear(x, w).view(torch.int16) + 1).view(BF16).view(8, 2, 8),
        "aten.view: must be elementwise where it reads the product",
    ),
    "bits of an input": (
        lambda x, w: F.linear(x, w).view(8, 2, 8) * x.view(torch.int16)[:, None],
        "aten.view: must be a view, or elementwise, of arguments",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_no_view_of_rows_and_columns_is_refused_at_its_line(name):
    function, rule = REFUSED[name]
    with pytest.raises(CompileError, match=rule.replace(".", r"\.")) as caught:
        compiled(function, integers(8, 8), integers(16, 8, seed=1))
    line = Applied.forward.__code__.co_firstlineno + 1
    assert caught.value.location == f"{__file__}:{line}"


def test_an_output_of_the_caller_is_refused_where_results_are_views():
    values = integers(8, 32), integers(24, 32, seed=1)
    kernel = compiled(lambda x, w: F.linear(x, w).view(8, 2, 12).transpose(0, 1), *values)
    with pytest.raises(CompileError, match="out must be None where a module returns views"):
        kernel(*values, out=torch.empty(2, 8, 12, dtype=BF16))


CHAINS = {
    "heads and back": Chain((6, 8)).reshape((6, 2, 4)).permute((1, 0, 2)),
    "two slices": Chain((4, 6)).slice((1, 1, 2, 2)).slice((0, 1, 1, 2)),
    "spread and turned": Chain((1, 3)).expand((2, 4, 3)).permute((2, 0, 1)),
    "a slice of turned dims": Chain((4, 6)).permute((1, 0)).slice((0, 2, 1, 3)),
}


@pytest.mark.parametrize("name", CHAINS)
def test_a_chain_gives_the_shape_that_it_says_and_is_undone(name):
    chain = CHAINS[name]
    value = torch.arange(torch.Size(chain.shape).numel()).reshape(chain.shape)
    assert tuple(chain.of(value).shape) == chain.result
    inverse = chain.inverse()
    assert (inverse is None) == chain.picks
    if inverse is not None:
        assert chain.then(inverse).steps == ()
        assert torch.equal(inverse.of(chain.of(value)), value)


VIEWS = [
    lambda x: x.view(3, 8), lambda x: x.flatten(1), lambda x: x.unflatten(2, (2, 2)),
    lambda x: x.unsqueeze(1), lambda x: x[None].squeeze(0), lambda x: x.permute(2, 0, 1),
    lambda x: x.transpose(0, 2), lambda x: x.mT, lambda x: x.movedim(0, 1), lambda x: x[:, 1:, ::2],
    lambda x: x[-1], lambda x: x[:, :-1], lambda x: x.select(1, -1), lambda x: x.narrow(2, 1, 2),
    lambda x: x.narrow(2, -3, 2), lambda x: x.chunk(2, -1)[1], lambda x: x.split([1, 3], 2)[-1],
    lambda x: x.split(3, -1)[1], lambda x: x.tensor_split(3, 2)[1], lambda x: x.unbind(1)[-1],
    lambda x: x[:1].expand(5, 2, 4), lambda x: x[..., None].expand(-1, -1, -1, 2),
    lambda x: x.swapaxes(0, 1).contiguous(), lambda x: x.moveaxis((0, 1), (1, 2)),
]  # fmt: skip


def test_every_view_of_torch_is_read_as_torch_makes_it():
    value = torch.arange(24).reshape(3, 2, 4)
    for number, function in enumerate(VIEWS):
        graph = torch.export.export(Applied(function), (value,)).graph
        (output,) = graph.find_nodes(op="output")
        node, chain = output.args[0][0], None
        while node.op != "placeholder":
            node, found = read_view(node)
            chain = found if chain is None else found.then(chain)
        assert torch.equal(chain.of(value), function(value)), number


def test_a_view_of_what_is_no_tensor_is_none():
    assert read_view(SimpleNamespace(target=len, args=())) is None
