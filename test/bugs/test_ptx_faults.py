"""Whatever a rule takes away from one of our kernels is seen, but for what makes no difference."""

import pytest
from ptx_faults.harmless import HARMLESS
from ptx_faults.kernels import KERNELS, compiled, verdict
from ptx_faults.rules import RULES, sites

SEEDS, MAX_STEPS = 3, 400_000


@pytest.mark.parametrize("name", KERNELS)
@pytest.mark.sweep(32)
def test_the_kernel_without_a_fault_is_right(name):
    for seed in range(SEEDS):
        assert verdict(name, compiled(name).ptx, seed) is None


def seen(name: str, faulty: str) -> str | None:
    """The first verdict of some orders of events."""
    found = (verdict(name, faulty, seed, MAX_STEPS) for seed in range(SEEDS))
    return next((each for each in found if each), None)


@pytest.mark.sweep(256)
@pytest.mark.parametrize("rule", RULES, ids=[rule.what for rule in RULES])
@pytest.mark.parametrize("name", KERNELS)
def test_a_fault_is_seen_at_every_place(name, rule):
    found = {
        site.title: seen(name, site.faulty)
        for site in sites(compiled(name).ptx)
        if site.rule is rule
    }
    unseen = [title for title, how in found.items() if how is None]
    harmless = HARMLESS[rule.what].kernels.get(name, 0) if rule.what in HARMLESS else 0
    assert len(unseen) == harmless, unseen
    assert "unmodelled" not in found.values(), found


def test_every_rule_fits_somewhere_and_every_exception_is_one():
    what = [rule.what for rule in RULES]
    assert len(set(what)) == len(what) and set(HARMLESS) <= set(what)
    assert all(each.kernels.keys() <= KERNELS.keys() for each in HARMLESS.values())
    fitting = {site.rule.what for name in KERNELS for site in sites(compiled(name).ptx)}
    assert set(what) == fitting
