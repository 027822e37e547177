"""torch.einsum of two operands as a product: what torch gives, for every order of letters."""

import itertools

import pytest
import torch

from tilewright.compiler.importers.torch_einsum import as_product

SIZES = {"b": 2, "m": 3, "n": 4, "k": 5}
TAKEN = [("mk", "nk", "mn"), ("bmk", "bnk", "bmn")]


@pytest.mark.parametrize("left, right, out", TAKEN)
def test_every_order_of_letters_gives_what_torch_gives(left, right, out):
    """A letter of both results stands first, as the matrices of a stack do."""
    torch.manual_seed(0)
    taken = 0
    for letters in itertools.product(
        *(itertools.permutations(each) for each in (left, right, out))
    ):
        a_of, b_of, c_of = ("".join(each) for each in letters)
        a, b = (torch.randn([SIZES[each] for each in of]).double() for of in (a_of, b_of))
        found = as_product(f"{a_of}, {b_of} -> {c_of}", a, b)
        first = "b" not in c_of or c_of[0] == "b"
        assert (found is not NotImplemented) == first
        if first:
            taken += 1
            torch.testing.assert_close(found, torch.einsum(f"{a_of},{b_of}->{c_of}", a, b))
    assert taken == (8 if left == "mk" else 72)


@pytest.mark.parametrize(
    "equation",
    [
        "mk,nk->m",
        "mk,nk",
        "mk,mk->mk",
        "mm,mk->mk",
        "mk,nkk->mn",
        "mmk,nk->mn",
        "...k,nk->...n",
        "mk,nl->mn",
        "mk->km",
        "bmk,nk->mbn",
    ],
)
def test_others_are_left_to_torch(equation):
    terms = equation.partition("->")[0].split(",")
    given = [torch.ones([3] * len(each.replace("...", "b"))) for each in terms]
    assert as_product(equation, *given) is NotImplemented


def test_a_size_of_one_is_not_spread():
    assert as_product("mk,nk->mn", torch.ones(3, 1), torch.ones(4, 5)) is NotImplemented
