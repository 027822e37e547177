"""benchmarks/models.py without a GPU: its arithmetic, its table, what it keeps, and its models."""

import importlib
import json
import os
import sys
from pathlib import Path

import pytest
import torch

from tilewright.compiler.inductor.report import REPORT, Row, reset

FOLDER = Path(__file__).parent.parent.parent / "benchmarks"
NAMES = (
    "models",
    "model_caches",
    "model_list",
    "model_processes",
    "model_rows",
    "model_times",
    "gpt2",
)
COLUMNS = ["eager", "inductor", "ours"]
ROW = {
    "name": "llama prefill 1x8",
    "us": {"eager": 30.0, "inductor": "RuntimeError: no triton", "ours": 20.0},
    "compile_s": {"ours": 2.0},
    "error": {"eager": 2.0, "ours": 1.0},
    "matmul": {"ours": (11.0, 10.0)},
}
BOTH = ["eager", "autotune", "ours", "both"]
OF_BOTH = {
    "name": "vit prefill 1x8",
    "us": {"eager": 30.0, "autotune": 21.0, "ours": 20.0, "both": 14.0},
    "compile_s": {"eager": 0.1, "autotune": 6.0, "ours": 2.0, "both": 8.0},
    "error": {"eager": 2.0, "ours": 1.0, "both": 4.0},
    "matmul": {"ours": (11.0, 10.0), "both": (12.0, 8.0)},
}


@pytest.fixture
def models(monkeypatch):
    monkeypatch.syspath_prepend(str(FOLDER))
    for name in NAMES:
        monkeypatch.delitem(sys.modules, name, raising=False)
    import models

    yield models
    for name in NAMES:
        sys.modules.pop(name, None)


def measured(models, monkeypatch, *arguments):
    """The names that a call of the benchmark measures, each in no time."""
    names = []

    class Measured:
        def __init__(self, case, kept, options):
            self.name, self.kept = case.name, kept

        def measure(self, columns):
            names.append(self.name)
            self.kept.enter({**ROW, "name": self.name})

    monkeypatch.setattr(sys, "argv", ["models.py", *arguments])
    monkeypatch.setattr(models, "Measurement", Measured)
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
    words = models.line_of({**ROW, "spent": {"ours": {"races": 0.5}}}, COLUMNS).split()
    assert words[-8:] == ["1.500", "1.100", "0.500", "nan,", "nan,", "2.0", "(races", "0.5)"]
    models.summary([ROW, {"name": "other", "why": "needs transformers"}], COLUMNS)
    assert capsys.readouterr().out == (
        "geometric means, ours: eager/ours 1.500 (of 1, least 1.500); "
        "best other/ours 1.500 (of 1, least 1.500); matmul 1.100 (of 1, least 1.100)\n"
    )


def test_max_autotune_is_set_beside_ours_and_both(models, capsys):
    words = models.line_of(OF_BOTH, BOTH).split()
    assert words[-10:-4] == ["1.050", "1.100", "0.500", "1.500", "1.500", "2.000"]
    models.summary([OF_BOTH], BOTH)
    ours, both = capsys.readouterr().out.splitlines()
    assert "autotune/ours 1.050 (" in ours and "compile, autotune's 3.000 (" in ours
    assert "autotune/both 1.500 (" in both and "compile, autotune's 0.750 (" in both
    assert "matmul 1.500 (" in both


def test_attention_that_is_not_fused_is_named(models):
    line = models.line_of({**ROW, "attention": "RuntimeError: No available kernel"}, COLUMNS)
    assert line.endswith("; attention is not fused: RuntimeError: No available kernel")


def test_a_second_call_measures_what_the_first_has_not(models, monkeypatch, tmp_path, capsys):
    given = "--json", str(tmp_path / "kept.json"), "--columns", "eager,ours"
    asked = "--only", "vit,bert prefill 16"
    names = ["vit prefill 1x197", "vit prefill 32x197", "bert prefill 16x384"]
    assert measured(models, monkeypatch, *given, "--only", "vit prefill 32") == names[1:2]
    assert measured(models, monkeypatch, *given, *asked) == [names[0], names[2]]
    assert measured(models, monkeypatch, *given, *asked) == []
    assert "eager/ours 1.500 (of 3, least 1.500)" in capsys.readouterr().out
    other = ["--json", str(tmp_path / "kept.json"), "--columns", "eager", *asked]
    assert measured(models, monkeypatch, *other) == names
    assert len(json.loads((tmp_path / "kept.json").read_text())["rows"]) == 6


def test_a_column_that_ends_the_process_twice_is_named_and_left_out(models, tmp_path):
    path = str(tmp_path / "kept.json")
    name = "vit prefill 1x197"
    models.Kept(path, COLUMNS).begin(name, "ours")
    again = models.Kept(path, COLUMNS)
    assert name not in again and not again.is_deadly(name, "ours")
    again.begin(name, "ours")
    third = models.Kept(path, COLUMNS)
    assert [each for each in COLUMNS if third.is_deadly(name, each)] == ["ours"]
    assert json.loads(Path(path).read_text())["begun"] == ""


def test_a_process_that_was_ended_from_outside_counts_against_no_column(models, tmp_path):
    path = str(tmp_path / "kept.json")
    for _ in range(2):
        models.Kept(path, COLUMNS).begin("vit prefill 1x197", "ours")
        models.Kept(path, COLUMNS, interrupted=True)
    assert not models.Kept(path, COLUMNS).is_deadly("vit prefill 1x197", "ours")


def test_processes_keep_a_file_a_model_and_tuned_columns_come_last(models, monkeypatch, tmp_path):
    """One process in place of several, in this one."""
    order = []

    class Measured:
        def __init__(self, case, kept, options):
            self.case, self.kept = case, kept

        def measure(self, columns):
            order.append((self.case.name, columns))
            self.kept.enter({**ROW, "name": self.case.name})

    def share(work, given, names, seconds):
        work(names, *given[0])
        return False

    monkeypatch.setattr(models, "Measurement", Measured)
    monkeypatch.setattr(models, "prepare", lambda *given: None)
    monkeypatch.setattr(models.model_processes, "share", share)
    monkeypatch.setattr(models.model_processes, "iter_left", iter)
    given = ["--processes", "2", "--only", "vit", "--columns", "eager,autotune,ours"]
    monkeypatch.setattr(sys, "argv", ["models.py", *given, "--json", str(tmp_path / "kept")])
    models.main()
    names = ["vit prefill 1x197", "vit prefill 32x197"]
    first, last = ["eager", "ours"], ["autotune"]
    assert order == [(name, columns) for columns in (first, last) for name in names]
    files = sorted(each.name for each in (tmp_path / "kept").iterdir())
    assert files == ["vit-prefill-1x197.json", "vit-prefill-32x197.json"]
    models.main()
    assert len(order) == 4


def test_a_model_whose_making_ends_the_process_twice_is_left_out(models, tmp_path, monkeypatch):
    path = str(tmp_path / "kept.json")
    for _ in range(2):
        models.Kept(path, COLUMNS).begin("vit prefill 1x197", models.BUILDING)
    given = "--json", path, "--columns", ",".join(COLUMNS), "--only", "vit"
    assert measured(models, monkeypatch, *given) == ["vit prefill 32x197"]


def test_what_an_interrupted_call_had_is_kept_and_measured_anew(models, monkeypatch, tmp_path):
    path = tmp_path / "kept.json"
    first = models.Kept(str(path), COLUMNS)
    first.enter({**ROW, "name": "vit prefill 1x197"}, finished=False)
    first.begin("vit prefill 1x197", "ours")
    kept = models.Kept(str(path), COLUMNS)["vit prefill 1x197"]
    assert kept["us"] == ROW["us"] and models.line_of(kept, COLUMNS).endswith("ended here")
    given = "--json", str(path), "--columns", ",".join(COLUMNS), "--only", "vit prefill 1x"
    assert measured(models, monkeypatch, *given) == ["vit prefill 1x197"]
    assert measured(models, monkeypatch, *given) == []


def test_figures_are_kept_after_each_column(models, monkeypatch, tmp_path):
    """The second column ends the process: the file has the first one's error."""
    path = tmp_path / "kept.json"

    def fatal(column, *given):
        if column == "inductor":
            raise KeyboardInterrupt
        return given[0]

    given = "--json", str(path), "--columns", "eager,inductor", "--only", "gpt2 prefill"
    arguments = ["models.py", "--tiny", "--device", "emulator", *given]
    monkeypatch.setattr(sys, "argv", arguments)
    monkeypatch.setattr(models, "contender", fatal)
    with pytest.raises(KeyboardInterrupt):
        models.main()
    kept = json.loads(path.read_text())
    assert list(kept["rows"][0]["error"]) == ["eager"] and kept["rows"][0]["unfinished"]
    assert kept["begun"] == "gpt2 prefill 8x1024, inductor"


def test_each_column_compiles_into_an_empty_folder(models, monkeypatch):
    """Only `both` goes on where `autotune` left."""
    monkeypatch.setenv("TILEWRIGHT_CACHE", "kept")
    found = {}
    with models.Caches(keep=False) as caches:
        for column in ("eager", "inductor", "autotune", "both", "ours"):
            caches.turn_to(column)
            names = "TILEWRIGHT_CACHE", "TORCHINDUCTOR_CACHE_DIR"
            found[column] = [os.environ.get(name) for name in names]
            folder = Path(found[column][0])
            assert column in ("eager", "both") or not list(folder.iterdir())
            if column != "eager":
                (folder / "made").touch()
    assert found["eager"][0] == "kept" and found["both"] == found["autotune"]
    for place in range(2):
        assert len({found[each][place] for each in ("inductor", "autotune", "ours")}) == 3
    assert os.environ["TILEWRIGHT_CACHE"] == "kept"


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

    def measured_twice(*given):
        assert race.measure_in_graphs() and is_held()
        return is_held()

    import model_times

    monkeypatch.setattr(torch.cuda, "synchronize", lambda: None)
    monkeypatch.setattr(race, "measure_in_graphs", is_held)
    monkeypatch.setattr(model_times.Replays, "with_another", measured_twice)
    for module, name, method in model_times.TUNERS:
        tuner = getattr(importlib.import_module(module), name)
        monkeypatch.setattr(tuner, method, is_held)
    model_times.take_turns(str(tmp_path / "turns"))
    assert race.measure_in_graphs() and model_times.Replays().with_another() and not is_held()
    for module, name, method in model_times.TUNERS:
        assert getattr(getattr(importlib.import_module(module), name), method)()
    assert not is_held()


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


@pytest.mark.parametrize(
    "name", ["llama prefill 1x2048", "vit prefill 1x197", "bert prefill 1x384"]
)
def test_torchs_attention_is_called_without_a_mask_also_within_torch_compile(models, name):
    pytest.importorskip("transformers")
    (case,) = (each for each in models.CASES if each.name == name)
    model, given = case.build("cpu", True)
    found = []

    def keep(module, inputs):
        found.extend(node for node in module.graph.nodes if "scaled_dot" in str(node.target))
        return module.forward

    torch._dynamo.reset()
    with torch.no_grad():
        torch.compile(model, backend=keep)(given)
    (call,) = found
    assert call.kwargs["attn_mask"] is None
    assert call.kwargs["is_causal"] is name.startswith("llama")


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
