"""Twenty random modules, and those that were once compiled wrongly; a few random specs.

Thousands by fuzz_linalg.py and fuzz_specs.py.
"""

from pathlib import Path

import fuzz_specs
import pytest
from fuzz_linalg import judge, judge_problem
from random_linalg import Problem, random_problem

FOUND = sorted((Path(__file__).parent / "found").glob("*.mlir"))
SEEDS = range(20)


@pytest.mark.sweep(4)
@pytest.mark.parametrize("seed", SEEDS)
def test_a_random_module_is_refused_or_right(seed):
    outcome = judge(seed)
    assert not outcome.is_fault, outcome


def test_a_seed_gives_the_same_module_again_and_others_give_others():
    texts = [random_problem(seed).text for seed in SEEDS]
    assert texts == [random_problem(seed).text for seed in SEEDS]
    assert len(set(texts)) == len(SEEDS)


@pytest.mark.parametrize("path", FOUND, ids=lambda path: path.stem)
@pytest.mark.parametrize("target", ["sm_90a", "sm_100a"])
def test_a_module_that_was_wrong_once_is_right(path, target):
    outcome = judge_problem(Problem(path.read_text(), target), seed=1)
    assert outcome.kind == "right", outcome


@pytest.mark.parametrize("seed", range(4))
def test_a_random_spec_and_pipeline_is_refused_or_right(seed):
    outcome = fuzz_specs.judge(seed)
    assert not outcome.is_fault, outcome


@pytest.mark.covers(24, of=fuzz_specs.scaled_properties)
@pytest.mark.parametrize("product", fuzz_specs.SCALED_PRODUCTS)
@pytest.mark.parametrize("seed", range(10))
def test_a_random_block_scaled_spec_is_refused_or_right(product, seed):
    """Of 120 cases the forty that meet most pairs of their properties: formats, layouts, tails,
    tiles, passes, chips. All of them with `--all`."""
    case = fuzz_specs.small_scaled_case(*product, seed)
    outcome = fuzz_specs.judge_case(seed, *case)
    assert not outcome.is_fault, (outcome, case)
