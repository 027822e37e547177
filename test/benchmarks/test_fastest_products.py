"""The bound of fused kernels by the fastest product of any tool."""

import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent.parent


@pytest.fixture
def fastest_products(monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT / "benchmarks"))
    import fastest_products

    yield fastest_products
    for name in ("fastest_products", "epilogues", "epilogue_functions", "contenders"):
        sys.modules.pop(name, None)


def test_a_bound_takes_the_least_time_of_any_product_or_of_the_case_itself(fastest_products):
    """Eager takes 12 beside cublasLt's 10, and 18 beside a fused kernel of 9; no shape, no row."""
    rows = [{"shape": "8x8x8", "us": {"plain": 11.0, "product": 12.0, "cublaslt3": 10.0}}]
    case = {"shape": "8x8x8", "plain": 11.0, "product": 11.5}
    fused = [
        case | {"fused": 11.0, "eager": 12.0, "inductor": 30.0},
        case | {"fused": 9.0, "eager": 18.0},
        {"shape": "9x9x9", "plain": 1.0, "product": 1.0, "fused": 1.0, "eager": 5.0},
    ]
    mean = (12 / 10 * 18 / 9) ** 0.5
    said = f"best / fastest product of 2: geometric mean {mean:.3f}"
    assert fastest_products.bound(rows, fused) == said
    assert "no case" in fastest_products.bound(rows, fused[2:])


def test_every_product_of_a_shape_takes_its_turns_and_a_wrong_one_is_named(
    fastest_products, monkeypatch, tmp_path, capsys
):
    import torch

    right = torch.eye(8) / 8**0.5  # weights have a share of K in them
    calls = {"product": lambda _: right, "plain": lambda _: right, "cublaslt0": lambda _: 2 * right}
    monkeypatch.setattr(fastest_products, "products", lambda *_: calls)
    monkeypatch.setattr(torch, "randn", lambda *_, **__: torch.eye(8))

    def measured(launches, sets, rounds, clocks, rest):
        assert (sets, rounds, clocks, rest) == (1, 3, ("apart",), 2)
        return {"apart": dict(zip(launches, (4.0, 5.0, 3.0), strict=True))}

    monkeypatch.setattr("tilewright.runtime.gpu.graphs.measure_in_graphs", measured)
    monkeypatch.setattr("sys.argv", f"x run {tmp_path} --rounds 3 --rest 2".split())
    row = fastest_products.measure("8x8x8", fastest_products.parse_options())
    assert row["us"]["cublaslt0"] == 3.0 and not row["right"]
    said = capsys.readouterr().out
    assert "cublaslt0 / plain 0.600" in said and said.endswith("WRONG: cublaslt0\n")
