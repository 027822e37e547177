"""benchmarks/models.py without a GPU: its arithmetic, its table, what it keeps, and its models."""

import json
import sys
from pathlib import Path

import pytest
import torch

from tilewright.compiler.inductor.report import REPORT, Row, reset

FOLDER = Path(__file__).parent.parent.parent / "benchmarks"
COLUMNS = ["eager", "inductor", "ours"]
ROW = {
    "name": "llama prefill 1x8",
    "us": {"eager": 30.0, "inductor": "RuntimeError: no triton", "ours": 20.0},
    "compile_s": {"ours": 2.0},
    "error": {"eager": 2.0, "ours": 1.0},
    "matmul": (11.0, 10.0),
}


@pytest.fixture
def models(monkeypatch):
    monkeypatch.syspath_prepend(str(FOLDER))
    for name in ("models", "model_list", "model_rows", "gpt2"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    import models

    yield models
    for name in ("models", "model_list", "model_rows", "gpt2"):
        sys.modules.pop(name, None)


def measured(models, monkeypatch, *arguments):
    """The names that a call of the benchmark measures, each in no time."""
    names = []

    def measure(case, columns, options):
        names.append(case.name)
        return {**ROW, "name": case.name}

    monkeypatch.setattr(sys, "argv", ["models.py", *arguments])
    monkeypatch.setattr(models, "measure", measure)
    models.main()
    return names


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
    words = models.line_of({**ROW, "spent": {"races": 0.5}}, COLUMNS).split()
    assert words[-8:] == ["1.500", "1.100", "0.500", "nan,", "nan,", "2.0", "(races", "0.5)"]
    models.summary([ROW, {"name": "other", "why": "needs transformers"}], COLUMNS)
    said = "geometric means of 1: eager/ours 1.500, best other/ours 1.500 (least 1.500), "
    assert capsys.readouterr().out == said + "matmul 1.100\n"


def test_a_second_call_measures_what_the_first_has_not(models, monkeypatch, tmp_path, capsys):
    given = "--json", str(tmp_path / "kept.json"), "--columns", "eager,ours"
    asked = "--only", "vit,bert prefill 16"
    names = ["vit prefill 1x197", "vit prefill 32x197", "bert prefill 16x384"]
    assert measured(models, monkeypatch, *given, "--only", "vit prefill 32") == names[1:2]
    assert measured(models, monkeypatch, *given, *asked) == [names[0], names[2]]
    assert measured(models, monkeypatch, *given, *asked) == []
    assert "geometric means of 3" in capsys.readouterr().out
    other = ["--json", str(tmp_path / "kept.json"), "--columns", "eager", *asked]
    assert measured(models, monkeypatch, *other) == names
    assert len(json.loads((tmp_path / "kept.json").read_text())["rows"]) == 6


def test_a_model_that_kills_the_process_is_named_and_left_out(models, monkeypatch, tmp_path):
    path = tmp_path / "kept.json"
    models.Kept(str(path), COLUMNS).begin("vit prefill 1x197")
    again = models.Kept(str(path), COLUMNS)
    assert again["vit prefill 1x197"]["why"] == "the process died while it was measured"
    assert json.loads(path.read_text())["begun"] == ""
    given = "--json", str(path), "--columns", ",".join(COLUMNS), "--only", "vit"
    assert measured(models, monkeypatch, *given) == ["vit prefill 32x197"]


def test_a_slice_ends_before_its_time_is_over(models, monkeypatch, capsys):
    assert measured(models, monkeypatch, "--only", "vit", "--seconds", "-1") == []
    assert "vit prefill 1x197        not measured: -1 s are over" in capsys.readouterr().out


def test_calls_that_share_a_gpu_measure_one_at_a_time(models, monkeypatch, tmp_path):
    import fcntl

    from tilewright.compiler.inductor import race

    def is_held(*given):
        with open(tmp_path / "turns", "w") as file:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                return True
            return False

    monkeypatch.setattr(torch.cuda, "synchronize", lambda: None)
    monkeypatch.setattr(race, "measure_in_graphs", is_held)
    for name in ("times_of", "exact"):
        step = lambda *given: is_held()  # noqa: E731
        step.__name__ = name
        monkeypatch.setattr(models, name, step)
    models.take_turns(str(tmp_path / "turns"))
    assert race.measure_in_graphs() and models.times_of() and models.exact() and not is_held()


def test_an_unknown_column_is_refused(models, monkeypatch, capsys):
    with pytest.raises(SystemExit):
        measured(models, monkeypatch, "--columns", "eager,mine")
    assert "--columns must be of eager, inductor, autotune, ours, both, got mine" in (
        capsys.readouterr().err
    )


def test_without_transformers_its_models_are_named_and_others_measured(models, monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, "transformers", None)
    asked = ["--tiny", "--device", "emulator", "--columns", "eager"]
    monkeypatch.setattr(sys, "argv", ["models.py", *asked, "--only", "vit prefill 1x,gpt2"])
    models.main()
    said = capsys.readouterr().out
    assert "vit prefill 1x197        not measured: needs transformers (" in said
    assert "); pip install transformers\n" in said
    assert said.count("not measured") == 1 and "\ngpt2 train 8x1024 " in said


def test_our_own_model_runs_in_eager_torch_in_tiny_sizes(models):
    cases = [case for case in models.CASES if case.model == "gpt2"]
    for case in cases:
        close_to_float64(models, case)
    assert [case.trains for case in cases] == [False, True]


def test_every_model_of_transformers_runs_in_eager_torch_in_tiny_sizes(models):
    """Groups and scales of e4m3 have products on the CPU, too."""
    pytest.importorskip("transformers")
    ways = {(case.model, case.how): case for case in models.CASES if case.model != "gpt2"}
    for case in ways.values():
        close_to_float64(models, case)


def test_a_decoded_token_is_what_all_tokens_together_give(models):
    """The cache of the benchmark, filled by the model itself, stands for the tokens before."""
    pytest.importorskip("transformers")
    import model_list

    decoding, _ = models.Case("llama", 2, 1, "decode").build("cpu", True)
    wide = decoding.double()
    past = model_list.TINY_PAST
    tokens = torch.randn(2, past + 1, wide.model.config.hidden_size, dtype=torch.float64)
    cache = __import__("transformers").DynamicCache(config=wide.model.config)
    whole = wide.model(inputs_embeds=tokens, past_key_values=cache, use_cache=True)
    for name in ("keys", "values"):
        kept = getattr(wide, f"{name}0")
        kept[:, :, :past] = getattr(cache.layers[0], name)[:, :, :past]
    made = wide(tokens[:, -1:])
    torch.testing.assert_close(made, whole.last_hidden_state[:, -1:])


def close_to_float64(models, case):
    model, given = case.build("cpu", True)
    made = models.step_of(case, model, given)()
    wide = models.exact(case, model, given)
    bound = 0.05 * float(wide.square().mean().sqrt())
    assert 0 < models.distance(made, wide) < bound, case.name
