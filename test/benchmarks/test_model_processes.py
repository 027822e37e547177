"""benchmarks/model_processes.py: processes that share a list, and what torch tuned."""

import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

FOLDER = Path(__file__).parent.parent.parent / "benchmarks"
WORKERS = """
import time
from pathlib import Path
from model_processes import iter_left

def count(left, folder, number):
    for name in iter_left(left):
        with open(Path(folder) / name, "a") as file:
            file.write(str(number))

def stay(left, folder, number):
    Path(folder, str(number)).touch()
    time.sleep(600 if number else 0)
"""


@pytest.fixture
def processes(monkeypatch, tmp_path):
    monkeypatch.syspath_prepend(str(FOLDER))
    monkeypatch.syspath_prepend(str(tmp_path))
    (tmp_path / "workers_of_a_test.py").write_text(WORKERS)
    import model_processes

    yield model_processes
    for name in ("model_processes", "workers_of_a_test"):
        sys.modules.pop(name, None)


def test_each_name_goes_to_one_process(processes, tmp_path):
    import workers_of_a_test as workers

    made = tmp_path / "made"
    made.mkdir()
    names = [f"model {number}" for number in range(9)]
    given = [(str(made), number) for number in range(2)]
    assert not processes.share(workers.count, given, names, float("inf"))
    assert sorted(each.name for each in made.iterdir()) == names
    assert all(each.read_text() in ("0", "1") for each in made.iterdir())


def test_what_runs_at_the_end_of_the_time_is_ended(processes, tmp_path):
    import workers_of_a_test as workers

    assert processes.share(workers.stay, [(str(tmp_path), 1)], [], 1.0)


def test_a_kernel_is_known_by_its_source_whatever_its_number(processes, tmp_path):
    def key(text, *names):
        path = tmp_path / "kernel.py"
        path.write_text(text)
        config = SimpleNamespace(kwargs=dict.fromkeys(names, 1))
        return processes._key(SimpleNamespace(filename=path), SimpleNamespace(config=config))

    first = key("def triton_poi_fused_add_3(x): return x + 1", "XBLOCK")
    assert first == key("def triton_poi_fused_add_14(x): return x + 1", "XBLOCK")
    assert first != key("def triton_poi_fused_add_3(x): return x + 2", "XBLOCK")
    assert first != key("def triton_poi_fused_add_3(x): return x + 1", "XBLOCK", "YBLOCK")


def test_a_kernel_without_a_file_is_tuned_by_each_process(processes, tmp_path, monkeypatch):
    from torch._inductor import codecache
    from torch._inductor.runtime import triton_heuristics

    tuner = triton_heuristics.CachingAutotuner
    best = SimpleNamespace(config=SimpleNamespace(kwargs={"XBLOCK": 8}, num_warps=4, num_stages=1))
    monkeypatch.setattr(tuner, "coordinate_descent_tuning", lambda self, *given: best)
    update = codecache.CacheBase.update_local_cache
    monkeypatch.setattr(codecache.CacheBase, "update_local_cache", update)
    folder = tmp_path / "tuned"
    processes.share_tuning(folder)
    without = SimpleNamespace(filename=None)
    assert tuner.coordinate_descent_tuning(without, best) is best
    assert list(folder.iterdir()) == []
    source = tmp_path / "kernel.py"
    source.write_text("def triton_poi_fused_add_3(x): return x + 1")
    assert tuner.coordinate_descent_tuning(SimpleNamespace(filename=source), best) is best
    assert len(list(folder.iterdir())) == 1


def test_products_that_two_processes_measured_are_both_kept(processes):
    first = {"mm": {"a": {"high": 1}, "b": 2}, "bmm": 3}
    second = {"mm": {"a": {"highest": 4}, "b": 5}}
    expected = {"mm": {"a": {"high": 1, "highest": 4}, "b": 5}, "bmm": 3}
    assert processes.merged(first, second) == expected
