"""Choices of kernels that share all sizes: what finds one that was kept, and what chooses anew."""

import json
import stat
from dataclasses import replace

import pytest

from tilewright.compiler.buckets import buckets_for
from tilewright.compiler.calls.kernels import kept_choices
from tilewright.compiler.calls.kernels.kept_choices import kept_buckets
from tilewright.compiler.calls.kernels.kernel_cache import VARIABLE
from tilewright.compiler.schedule import tuned_schedules
from tilewright.compiler.schedule.any_size.buckets import Bucket
from tilewright.compiler.spec import MatmulSpec

SPEC = MatmulSpec(4096, 64, 48, dynamic_m=True)
PASSES = "tiling{tile=64x32x64},tma-insertion"


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.setenv(VARIABLE, str(tmp_path / "cache"))
    return tmp_path / "cache" / kept_choices.FOLDER


@pytest.fixture
def chosen(monkeypatch):
    """What was chosen anew, by two kernels that take no second to choose."""
    asked = []

    def choose(spec, target):
        asked.append((spec, target))
        few = replace(spec, m=16, least_m=1, most_m=100)
        many = replace(spec, m=4096, least_m=101, most_m=2**20)
        ranges = (101, 300, 1, 2), (401, 2**20, 1, 2)
        return [
            Bucket(few, PASSES, ((1, 100, 1, 2), (301, 400, 1, 2))),
            Bucket(many, PASSES + "{box=3d}", ranges),
        ]

    monkeypatch.setattr(kept_choices, "buckets_for", choose)
    return asked


@pytest.mark.parametrize(
    "spec",
    [SPEC, replace(SPEC, m=64, dynamic_m=False, batch=2, dynamic_batch=True)],
    ids=["rows", "stacks"],
)
def test_what_is_kept_is_what_is_chosen(spec, folder):
    first = kept_buckets(spec, "sm_100a")
    assert kept_buckets(spec, "sm_100a") == first == buckets_for(spec, "sm_100a")
    assert len(list(folder.iterdir())) == 1


def test_a_choice_is_made_once(folder, chosen):
    assert kept_buckets(SPEC, "sm_90a") == kept_buckets(SPEC, "sm_90a")
    assert chosen == [(SPEC, "sm_90a")]
    (entry,) = folder.iterdir()
    assert stat.S_IMODE(entry.stat().st_mode) == 0o600


def test_all_that_a_choice_follows_from_is_in_the_key(folder, chosen, tmp_path, monkeypatch):
    def choices():
        kept_buckets(SPEC, "sm_90a")
        return len(chosen)

    assert choices() == 1
    kept_buckets(replace(SPEC, epilogue_instructions=9), "sm_90a")
    kept_buckets(SPEC, "h100")
    assert len(chosen) == 3
    monkeypatch.setenv(tuned_schedules.VARIABLE, str(tmp_path))
    assert choices() == 3, "a folder without tables changes nothing"
    (tmp_path / "sm_90a.json").write_text('{"schema": 1, "entries": []}')
    assert choices() == 4
    (tmp_path / "sm_90a.json").write_text('{"schema": 1, "entries": [ ]}')
    assert choices() == 5
    monkeypatch.setattr(kept_choices, "source_digest", lambda: "other sources")
    assert choices() == 6
    assert choices() == 6


DAMAGES = {
    "torn": lambda entry: json.dumps(entry)[:-9],
    "no kernel": lambda entry: "[]",
    "a size missing": lambda entry: json.dumps([{**entry[0], "sizes": {"m": 16}}]),
    "a range without an end": lambda entry: json.dumps([{**entry[0], "ranges": [[[1, 5], [2]]]}]),
    "rows below 0": lambda entry: json.dumps([{**entry[0], "ranges": [[[-1, 5]]]}]),
    "unknown passes": lambda entry: json.dumps([{**entry[0], "pipeline": "tilling"}]),
    "sizes that no spec has": lambda entry: json.dumps(
        [{**entry[0], "sizes": {**entry[0]["sizes"], "least_m": 7, "most_m": 3}}]
    ),
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damaged_entry_is_chosen_again_and_replaced(damage, folder, chosen):
    first = kept_buckets(SPEC, "sm_90a")
    (path,) = folder.iterdir()
    path.write_text(DAMAGES[damage](json.loads(path.read_text())))
    assert kept_buckets(SPEC, "sm_90a") == first
    assert len(chosen) == 2
    assert kept_buckets(SPEC, "sm_90a") == first
    assert len(chosen) == 2


def test_an_entry_that_others_can_write_is_not_believed(folder, chosen):
    kept_buckets(SPEC, "sm_90a")
    (path,) = folder.iterdir()
    path.chmod(0o666)
    kept_buckets(SPEC, "sm_90a")
    assert len(chosen) == 2


def test_without_a_folder_choices_are_made_anew(folder, chosen):
    folder.parent.write_text("a file in its place")
    assert kept_buckets(SPEC, "sm_90a") == kept_buckets(SPEC, "sm_90a")
    assert len(chosen) == 2
