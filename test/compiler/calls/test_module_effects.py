"""A module that does more than compute its result is refused: a kernel would not do the rest."""

import pytest
import torch

from tilewright import compile_module
from tilewright.compiler.calls.dense import module
from tilewright.compiler.importers.torch_module import import_module
from tilewright.dialects.errors import CompileError


class Layer(torch.nn.Module):
    """A product, and what `effect` makes of it."""

    def __init__(self, effect):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.zeros(24, 32), requires_grad=False)
        self.register_buffer("seen", torch.zeros(16, 24))
        self.calls = 0
        self.effect = effect

    def forward(self, x, residual):
        return self.effect(self, torch.nn.functional.linear(x, self.weight), x, residual)


def counted(layer, product, *_):
    layer.calls += 1
    return product * layer.calls


def assigned(layer, product, *_):
    layer.seen = product
    return product


def added(layer, product, *_):
    layer.seen.add_(product)
    return product


def overwritten(layer, product, x, residual):
    return residual.add_(product)


KEPT = "must keep nothing between calls, got a new value of {}; return it, or keep it outside"
CHANGED = "must change no tensor in place, got a new value of {}; compute another tensor"
RESULT = "must return a tensor, or several in a tuple, got {}; return them so"
INPUTS = torch.zeros(16, 32), torch.zeros(16, 24)


@pytest.mark.parametrize(
    ("effect", "rule"),
    [
        (counted, KEPT.format("'calls'")),
        (assigned, KEPT.format("'seen'")),
        (added, CHANGED.format("'seen'")),
        (overwritten, CHANGED.format("'input 1'")),
        (lambda _, product, *__: {"y": product}, RESULT.format("a dict")),
        (lambda _, product, *__: [product, product], RESULT.format("a list")),
        (lambda _, product, *__: (product,), RESULT.format("a tuple of 1")),
    ],
)
def test_what_a_module_does_beside_its_result_is_refused(effect, rule):
    with pytest.raises(CompileError) as caught:
        compile_module(Layer(effect), *INPUTS)
    assert caught.value.message == f"Layer: {rule}"


def test_a_submodule_is_named_by_its_path():
    outer = torch.nn.ModuleDict({"inner": Layer(counted)})
    outer.forward = lambda *values: outer["inner"](*values)
    with pytest.raises(CompileError, match=r"got a new value of 'inner\.calls'"):
        compile_module(outer, *INPUTS)


def test_what_the_product_becomes_in_place_is_the_result():
    inputs = [each.bfloat16() for each in INPUTS]
    layer = Layer(lambda _, product, *__: product.add_(1)).bfloat16()
    kernel = compile_module(layer, *inputs)
    assert torch.equal(kernel(*inputs), torch.ones(16, 24, dtype=torch.bfloat16))


def test_a_file_is_taken_for_its_tensors_however_they_are_returned():
    layer = Layer(lambda _, product, *__: {"y": product})
    assert import_module(layer, *INPUTS, result_as_it_is=False).arguments[0] == "input 0"


def test_options_reach_the_compiler(monkeypatch):
    seen = {}

    def compile_matmul(source, **options):
        seen.update(options)
        raise CompileError("seen")

    monkeypatch.setattr(module, "compile_matmul", compile_matmul)
    with pytest.raises(CompileError, match="seen"):
        compile_module(
            torch.nn.Linear(32, 24, dtype=torch.bfloat16),
            torch.zeros(16, 32, dtype=torch.bfloat16),
            **(asked := {"target": "sm_90a", "preset": "v5", "math": "fast"}),
        )
    assert seen == asked | {"pipeline": None}
