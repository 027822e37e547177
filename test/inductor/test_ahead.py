"""Kernels compiled in several processes ahead of the first run."""

import pytest

from tilewright.compiler.calls.kernel_cache import cached_bundle, describe_request, digest
from tilewright.compiler.calls.kernels import How, pipeline_of
from tilewright.compiler.importers.linalg_text import LinalgText
from tilewright.compiler.inductor import ahead
from tilewright.compiler.spec import MatmulSpec
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
    assert len(compiled_here) == 2 and len(list(fresh_cache.glob("*.zip"))) == 4


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
