"""benchmarks/models.py without a GPU: its arithmetic, its table, and models that can be built."""

import sys
from pathlib import Path

import pytest
import torch

from tilewright.compiler.inductor.report import REPORT, Row, reset

FOLDER = Path(__file__).parent.parent.parent / "benchmarks"


@pytest.fixture
def models(monkeypatch):
    monkeypatch.syspath_prepend(str(FOLDER))
    monkeypatch.setitem(sys.modules, "models", None)
    monkeypatch.delitem(sys.modules, "models")
    import models

    return models


def test_a_product_that_is_left_counts_the_same_for_both(models):
    reset()
    REPORT.rows += [
        Row("a", "mm", (1, 1, 1), "bf16", taken=True, ours_us=2.0, inductor_us=3.0),
        Row("b", "mm", (1, 1, 1), "bf16", taken=False, ours_us=9.0, inductor_us=4.0, count=2),
        Row("c", "mm", (1, 1, 1), "bf16", taken=True),
    ]
    assert models.matmul_times() == (11.0, 10.0)
    reset()


def test_the_table_has_the_best_of_the_others_over_ours(models, capsys):
    columns = ["eager", "inductor", "ours"]
    row = {
        "name": "llama run 1x8",
        "us": {"eager": 30.0, "inductor": "RuntimeError: no triton", "ours": 20.0},
        "compile_s": {"ours": 2.0},
        "error": {"eager": 2.0, "ours": 1.0},
        "matmul": (11.0, 10.0),
    }
    words = models.line_of(row, columns).split()
    assert words[-6:] == ["1.500", "1.100", "0.500", "nan,", "nan,", "2.0"]
    models.summary([row], columns)
    assert capsys.readouterr().out == "geometric means: eager/ours 1.500, matmul 1.100\n"


def test_every_model_runs_in_eager_torch_in_tiny_sizes(models):
    """Groups and scales of e4m3 have products on the CPU, too."""
    for case in {case.model: case for case in models.CASES}.values():
        model, given = case.build("cpu", True)
        made = models.step_of(case, model, given)()
        assert torch.isfinite(made).all(), case.name
