"""The samples of `sweep` and `pairwise` families: what they hold, and that they are samples."""

import itertools
from types import SimpleNamespace

import sampling


def family(**axes):
    """Items of a full product of parameters."""
    return [
        SimpleNamespace(callspec=SimpleNamespace(params=dict(zip(axes, values, strict=True))))
        for values in itertools.product(*axes.values())
    ]


def settings(items, names):
    return {tuple(item.callspec.params[name] for name in names) for item in items}


def test_every_two_values_of_two_parameters_meet_in_a_pairwise_cover():
    items = family(a=range(4), b="xyz", c=[[1], [2]], d=(True, None))
    kept = sampling.pairwise_cover(items)
    assert len(kept) < len(items) / 2
    kept_names, all_names = ([str(i.callspec.params) for i in each] for each in (kept, items))
    assert len(set(kept_names)) == len(kept) and set(kept_names) <= set(all_names)
    for names in itertools.combinations("abd", 2):
        assert settings(kept, names) == settings(items, names)


def test_one_parameter_alone_loses_no_value():
    assert len(sampling.pairwise_cover(family(a=range(9)))) == 9


def test_an_eighth_is_never_none():
    assert [len(sampling.every_eighth(family(a=range(n)))) for n in (1, 8, 9, 80)] == [1, 1, 2, 10]


def test_without_a_marker_every_test_runs(pytestconfig):
    plain = SimpleNamespace(get_closest_marker=lambda name: None)
    assert sampling.choose([plain, plain]) == [plain, plain]
