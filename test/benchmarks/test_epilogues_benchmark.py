"""The epilogues that are compared with torch are what torch computes."""

import sys
from pathlib import Path

import pytest
import torch

ROOT = Path(__file__).parent.parent.parent


@pytest.fixture
def epilogues(monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT / "benchmarks"))
    import epilogues

    yield epilogues
    del sys.modules["epilogues"]


@pytest.mark.parametrize("name", ["gelu_gradient", "gelu_tanh_gradient"])
def test_the_gradients_of_gelu_are_torchs(epilogues, name):
    acc, x = torch.randn(2, 1000)
    kind = epilogues.GRADIENTS[name]
    expected = torch.ops.aten.gelu_backward(acc, x, approximate=kind)
    torch.testing.assert_close(epilogues.epilogues()[name](acc, x), expected)


def test_every_epilogue_runs_beside_torchs_own_operators(epilogues):
    x, w = torch.randn(8, 16), torch.randn(4, 16)
    for name, function in epilogues.epilogues().items():
        beside = [torch.randn(size) for size in epilogues.sizes_of(name, 8, 4)]
        torch.testing.assert_close(
            epilogues.torchs(name)(x, w, *beside), function(x @ w.T, *beside)
        )


def test_a_row_of_each_clock_says_what_the_others_take_beside_the_fused_kernel(
    epilogues, monkeypatch, capsys, tmp_path
):
    """Plain 10, fused 12 and eager 15 or 18 microseconds; a wrong one is marked."""
    taken = {"chain": (10.0, 12.0, 15.0), "apart": (11.0, 12.0, 18.0)}

    def measured(launches, sets, rounds, clocks, rest):
        assert (sets, rounds, rest) == (1, 3, 2) and launches["eager"](0) == "eager"
        return {clock: dict(zip(launches, taken[clock], strict=True)) for clock in clocks}

    monkeypatch.setattr("tilewright.runtime.gpu.graphs.measure_in_graphs", measured)
    monkeypatch.setattr("sys.argv", f"x run {tmp_path} --rounds 3 --rest 2".split())
    options = epilogues.parse_options()
    calls = {name: lambda name=name: name for name in ("plain", "fused", "eager")}
    rows = epilogues.measure(epilogues.Built("8x8x8", "relu", calls, False), options)
    for row in rows:
        epilogues.summarize(row["clock"], [row])
    said = capsys.readouterr().out
    assert [row["best"] for row in rows] == [15.0, 18.0]
    assert said.count("WRONG") == 2 and "chain: eager / fused of 1: geometric mean 1.250" in said
    assert "apart: plain / fused of 1: geometric mean 0.917, least 0.917" in said
    assert "at no cost 1.636" in said and "apart: best / plain of 1: geometric mean 1.636" in said
