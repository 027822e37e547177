"""What comparisons of kernels with torch share: bundles by name, exit status, graphs in turns."""

import json
import sys
from contextlib import contextmanager, nullcontext
from pathlib import Path
from types import SimpleNamespace

import pytest

from tilewright.compiler.spec import MatmulSpec

ROOT = Path(__file__).parent.parent.parent


@pytest.fixture
def contenders(monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT / "benchmarks"))
    import contenders

    yield contenders
    del sys.modules["contenders"]


def test_kernels_are_found_again_by_the_parts_of_their_names(contenders, tmp_path, capsys):
    spec = MatmulSpec(16, 16, 16)
    paths = [tmp_path / f"16x16x16.{name}.zip" for name in ("fast.chosen", "fast.a.b", "exact.x")]
    assert all(contenders.write_bundle(spec, path, "sm_90a") for path in paths)
    assert capsys.readouterr().err.count("tiling{") == 3
    found = contenders.loaded(tmp_path, parts=2)
    names = {("16x16x16", "exact"): ["x"], ("16x16x16", "fast"): ["a.b", "chosen"]}
    assert {key: sorted(kernels) for key, kernels in found.items()} == names
    assert list(contenders.loaded(tmp_path)) == [("16x16x16",)]


def test_a_refused_kernel_is_named_and_writes_nothing(contenders, tmp_path, capsys):
    path = tmp_path / "16x16x16.wide.zip"
    assert not contenders.write_bundle(MatmulSpec(16, 16, 16), path, "sm_90a", "tiling{tile=8x8x8}")
    assert capsys.readouterr().err.startswith("16x16x16.wide ")
    assert not path.exists()


def test_one_wrong_row_makes_the_status_1(contenders, tmp_path):
    rows = [{"right": True}, {"right": False, "us": 2.5}]
    assert contenders.reported(rows, tmp_path / "rows.json") == 1
    assert json.loads((tmp_path / "rows.json").read_text()) == rows
    assert contenders.reported(rows[:1], None) == 0


class Clock:
    """A GPU on which each call takes as many milliseconds as it says."""

    def __init__(self, monkeypatch):
        self.now, self.order, clock = 0.0, [], self

        class Graph:
            def replay(self):
                clock.order.append(self.calls[0][0])
                clock.now += sum(ms for _, ms in self.calls)

        class Event:
            def __init__(self, enable_timing):
                assert enable_timing

            def record(self):
                self.at = clock.now

            def elapsed_time(self, end):
                return end.at - self.at

            def synchronize(self):
                pass

        @contextmanager
        def graph(made, stream):
            clock.calls = []
            yield
            made.calls, clock.calls = clock.calls, []

        fakes = {"CUDAGraph": Graph, "Event": Event, "Stream": lambda: None, "graph": graph}
        fakes |= {"stream": lambda _: nullcontext(), "synchronize": lambda: None}
        monkeypatch.setitem(sys.modules, "torch", SimpleNamespace(cuda=SimpleNamespace(**fakes)))
        self.calls = []

    def call(self, name, ms):
        return lambda: self.calls.append((name, ms))


def test_contenders_take_turns_and_times_are_of_one_call(contenders, monkeypatch):
    clock = Clock(monkeypatch)
    graphs = {
        "one": contenders.captured(clock.call("one", 3.0)),
        "several": contenders.captured(clock.call("several", 1.0), clock.call("several", 2.0)),
    }
    assert [count for _, count in graphs.values()] == [contenders.CALLS, 2]
    clock.order.clear()
    assert contenders.timed(graphs, 3) == {"one": 3000.0, "several": 1500.0}
    assert clock.order == ["one", "several"] * 3


def test_every_comparison_takes_the_shared_arguments(contenders):
    options = contenders.comparison_parser("Doc.\n\nMore.", "1x2x3", rounds=7).parse_args(
        ["run", "folder"]
    )
    assert (options.shapes, options.rounds, options.target) == ("1x2x3", 7, "sm_90a")
    assert (options.folder, options.json) == (Path("folder"), None)
