"""The samples of `sweep` and `pairwise` families: what they hold, and that they are samples."""

import itertools
from types import SimpleNamespace

import pytest
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


@pytest.mark.parametrize("strength", [1, 2, 3])
def test_an_array_of_a_strength_holds_that_many_values_together(strength):
    axes = {"a": "pqrst", "b": [0, 1, 2], "c": (True, False), "d": ["x", "y", "z"]}
    rows = sampling.covering_array(axes, strength)
    for names in itertools.combinations(range(4), strength):
        wanted = itertools.product(*(list(axes.values())[axis] for axis in names))
        assert {tuple(row[axis] for axis in names) for row in rows} == set(wanted)
    assert len(rows) <= {1: 5, 2: 17, 3: 55}[strength]


def test_an_array_of_fewer_axes_than_its_strength_is_the_full_product():
    assert sampling.covering_array({"a": [1, 2]}, 2) == [(1,), (2,)]
    assert len(sampling.covering_array({"a": "xyz", "b": [1, 2]}, 3)) == 6


@pytest.mark.array(digit=[0, 1, 2], letter="ab")
def test_the_marker_gives_a_test_the_rows_of_its_array(digit, letter, request):
    assert request.node.callspec.params == {"digit": digit, "letter": letter}


def swept(count, *share):
    mark = SimpleNamespace(args=share)
    return [SimpleNamespace(get_closest_marker={"sweep": mark}.get) for _ in range(count)]


def test_a_sixteenth_or_another_share_is_never_none():
    assert [len(sampling.every_nth(swept(n))) for n in (1, 16, 17, 160)] == [1, 1, 2, 10]
    assert [len(sampling.every_nth(swept(n, 32))) for n in (1, 33, 640)] == [1, 2, 20]


def test_drawn_cases_that_are_kept_have_more_pairs_of_properties_than_the_first_ones():
    cases = family(case=range(40))
    mark = SimpleNamespace(args=(6,), kwargs={"of": lambda case: {"a": case // 10, "b": case % 3}})
    for each in cases:
        each.get_closest_marker = {"covers": mark}.get
    kept = [item.callspec.params["case"] for item in sampling.covering(cases)]
    assert len({(case // 10, case % 3) for case in kept}) == len(kept) == 6
    assert [item.callspec.params["case"] for item in sampling.covering(cases)] == kept
    mark.args = (60,)
    assert len(sampling.covering(cases)) == 40


def test_without_a_marker_every_test_runs():
    plain = SimpleNamespace(get_closest_marker=lambda name: None)
    assert sampling.choose([plain, plain]) == [plain, plain]
