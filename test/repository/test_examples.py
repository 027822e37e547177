"""The examples do what they say: one whole, the models as far as eager torch."""

import importlib
import sys
from pathlib import Path

import pytest
import torch

FOLDER = Path(__file__).parent.parent.parent / "examples"


@pytest.fixture
def example(monkeypatch, tmp_path):
    """example(name): one of them, imported; what it compiles is kept apart."""
    monkeypatch.syspath_prepend(str(FOLDER))
    monkeypatch.setenv("TILEWRIGHT_CACHE", str(tmp_path))
    yield importlib.import_module
    for path in FOLDER.glob("*.py"):
        sys.modules.pop(path.stem, None)


def test_one_product_is_right_and_shows_its_kernel(example, capsys):
    example("one_product").main("tma-insertion")
    said = capsys.readouterr().out
    assert said.count("all 6912 elements are right") == 2
    assert "tile.tma_load" in said and "pipe.commit" in said


def test_one_product_raises_for_a_wrong_element(example, monkeypatch):
    made = example("one_product")
    right = made.tilewright.matmul
    monkeypatch.setattr(made.tilewright, "matmul", lambda *a, **b: right(*a, **b) * 1.02)
    with pytest.raises(AssertionError, match="not close"):
        made.main()


@pytest.fixture
def own_pass(example):
    """The example whose pass is known for the time of a test."""
    made = example("own_pass")
    yield made
    for own in (made.ReverseK, made.MistakenK):
        del made.PASSES[own.name]


def test_a_pass_of_ones_own_leaves_a_right_kernel_after_every_later_pass(own_pass, capsys):
    assert own_pass.main() == 0
    said = capsys.readouterr().out
    assert said.count(" 0 of 6912 elements are wrong") == 4
    assert "+      %1 = arith.subi %0, %k : index" in said


def test_a_mistaken_pass_of_ones_own_is_seen(own_pass, capsys):
    assert own_pass.main(own_pass.MistakenK) == 1
    assert " 0 of 6912" not in capsys.readouterr().out


def test_a_pass_of_ones_own_says_what_it_needs(own_pass):
    with pytest.raises(own_pass.tilewright.CompileError, match="run tma-insertion first"):
        own_pass.ir_of("tiling{tile=64x16x64},reverse-k")


@pytest.mark.parametrize("name", ["gpt2", "llama_block"])
def test_a_model_is_there_without_memory_as_its_check_asks_for_it(example, name):
    model, inputs = example(name).model()
    assert {each.device.type for each in (*model.parameters(), *inputs)} == {"meta"}
    assert model(*inputs).device.type == "meta"


def test_the_layer_of_llama_looks_back_only(example):
    made = example("llama_block")
    torch.manual_seed(0)
    layer, x = made.Block(made.TINY), torch.randn(1, 8, made.TINY.hidden)
    with torch.no_grad():
        before = layer(x)
        x[:, 5:] += 1.0
        assert torch.equal(layer(x)[:, :5], before[:, :5])


def test_gpt2_learns_what_it_is_shown(example):
    made = example("gpt2")
    torch.manual_seed(0)
    model = made.GPT(made.TINY)
    tokens = torch.randint(made.TINY.vocabulary, (2, made.TINY.tokens))
    first, _, last = made.losses(model, list(model.parameters()), tokens)
    assert last < first


@pytest.mark.parametrize("losses", [[4.0, 3.0, 2.0 * 1.2], [4.0, 3.0, float("nan")]])
def test_gpt2_fails_where_a_loss_is_far_from_eagers(example, losses):
    made = example("gpt2")
    made.check([4.02, 2.98, 2.01], [4.0, 3.0, 2.0])
    with pytest.raises(SystemExit, match="FAIL"):
        made.check(losses, [4.0, 3.0, 2.0])
