"""Kernels compiled in several processes ahead of the first run."""

from dataclasses import replace

import pytest

from tilewright.compiler.buckets import buckets_for
from tilewright.compiler.calls.kernels import kept_choices
from tilewright.compiler.calls.kernels.kept_choices import kept_buckets
from tilewright.compiler.calls.kernels.kernel_cache import cached_bundle, describe_request, digest
from tilewright.compiler.calls.kernels.lookup import How, pipeline_of
from tilewright.compiler.importers.linalg_text import LinalgText
from tilewright.compiler.inductor import ahead
from tilewright.compiler.spec import BATCH_HINT, ROWS_HINT, MatmulSpec
from tilewright.dialects.errors import CompileError


def jobs_of(*sizes):
    found = {}
    for m in sizes:
        spec = MatmulSpec(m, 64, 64)
        job = spec, "sm_90a", pipeline_of(spec, "sm_90a", How(target="sm_90a")), ""
        found[digest(describe_request(*job))] = job
    return found


@pytest.fixture
def compiled_here(monkeypatch):
    """The jobs that this process compiles, beside reading what others have compiled."""
    found = []

    def bundle(*job):
        key = digest(describe_request(*job))
        if not (ahead.cache_folder() / f"{key}.zip").exists():
            found.append(key)
        return cached_bundle(*job)

    monkeypatch.setattr(ahead, "cached_bundle", bundle)
    return found


def test_processes_share_the_kernels_with_this_one(fresh_cache, compiled_here):
    jobs = jobs_of(64, 65, 66, 67)
    with ahead.Workers(len(jobs), 2) as workers:
        (child,) = workers._children
        bundles = workers.compile_all(jobs)
    assert list(bundles) == list(jobs) and child.returncode == 0
    kept = {path.stem for path in fresh_cache.glob("*.zip")}
    assert len(compiled_here) == 2 and kept >= set(jobs)


def test_what_a_process_leaves_undone_is_compiled_here(fresh_cache, compiled_here, monkeypatch):
    jobs = jobs_of(72, 73)
    with ahead.Workers(ahead.FEW, 2) as workers:
        workers._children[0].kill()
        workers._children[0].wait()
        bundles = workers.compile_all(jobs)
    assert len(compiled_here) == 2 and not any(
        isinstance(e, CompileError) for e in bundles.values()
    )


def test_each_process_has_one_of_the_longest_kernels(fresh_cache, monkeypatch):
    """A kernel with much behind its product takes several times as long as a product alone."""
    given, here = [], []
    texts = [LinalgText("x" * length, "region") for length in (10, 40, 20, 30)]
    monkeypatch.setattr(ahead, "_give", lambda child, jobs: given.extend(jobs))
    monkeypatch.setattr(ahead, "_bundle", here.append)
    with ahead.Workers(ahead.FEW, 2) as workers:
        workers.compile_all({str(n): (each, "", "", "") for n, each in enumerate(texts)})
    lengths = [[len(job[0].text) for job in jobs] for jobs in (here[:2], given)]
    assert lengths == [[40, 20], [30, 10]]


ANY_ROWS = MatmulSpec(ROWS_HINT, 48, 64, dynamic_m=True)


def choices_of(*columns, target="sm_80"):
    """Choices that take no second: one kernel of warps serves all rows."""
    return [ahead.Choice(replace(ANY_ROWS, n=n), target) for n in columns]


@pytest.fixture
def chosen_here(monkeypatch):
    """The specs for which this process chooses kernels."""
    found, choose = [], kept_choices.buckets_for

    def buckets(spec, target):
        found.append(spec)
        return choose(spec, target)

    monkeypatch.setattr(kept_choices, "buckets_for", buckets)
    return found


@pytest.mark.parametrize("target", ["sm_90a", "sm_100a"])
def test_what_a_process_chooses_is_what_this_one_would(target, fresh_cache, chosen_here):
    stack = replace(ANY_ROWS, m=64, dynamic_m=False, batch=BATCH_HINT, dynamic_batch=True)
    chip = "sm_80" if target == "sm_90a" else "sm_89"  # the folder is that of all tests here
    few, more = choices_of(40, 56, target=chip)
    given = [few, ahead.Choice(stack, target), more, few]
    with ahead.Workers(ahead.FEW, 2) as workers:
        workers.choose_all(given)
        assert workers._children[0].poll() is None, "it waits for what is to be compiled"
    assert [each.n for each in chosen_here] == [40, 56], "the second one is the process's"
    found = kept_buckets(stack, target)
    assert len(chosen_here) == 2, "it is read"
    assert found == buckets_for(stack, target) and len(found) > 1


def test_processes_choose_again_and_then_compile(fresh_cache, compiled_here, chosen_here):
    jobs = jobs_of(80, 81)
    with ahead.Workers(ahead.FEW, 2) as workers:
        workers.choose_all(choices_of(8, 16))
        workers.choose_all(choices_of(8, 16, 24, 32))
        bundles = workers.compile_all(jobs)
        assert workers._children[0].returncode == 0
    assert [each.n for each in chosen_here] == [8, 24] and len(compiled_here) == 1
    assert not any(isinstance(each, CompileError) for each in bundles.values())


def test_what_a_process_does_not_choose_is_chosen_where_it_is_asked_for(fresh_cache, chosen_here):
    with ahead.Workers(ahead.FEW, 2) as workers:
        workers._children[0].kill()
        workers._children[0].wait()
        workers.choose_all(choices_of(104, 112))
        assert [each.n for each in chosen_here] == [104]
        assert kept_buckets(*choices_of(112)[0])[0].spec.n == 112
    with ahead.Workers(ahead.FEW, 1) as workers:
        workers.choose_all(choices_of(120))
    assert [each.n for each in chosen_here] == [104, 112]


def test_processes_that_nobody_needs_are_ended(fresh_cache, compiled_here):
    with ahead.Workers(ahead.FEW, 2) as workers:
        (child,) = workers._children
        assert workers.compile_all({}) == {}
    assert child.returncode is not None and compiled_here == []


def test_few_kernels_start_no_process():
    assert ahead.Workers(ahead.FEW - 1, 8)._children == []


@pytest.mark.parametrize(("ranks", "count"), [("", 12), ("4", 3), ("64", 1), ("0", 12), ("x", 12)])
def test_ranks_of_one_machine_share_its_processors(ranks, count, monkeypatch):
    monkeypatch.setattr(ahead.os, "sched_getaffinity", lambda _: range(12), raising=False)
    monkeypatch.setenv("LOCAL_WORLD_SIZE", ranks)
    assert ahead._processors() == count
