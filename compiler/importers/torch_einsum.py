"""torch.einsum of two operands as a matmul.

    mk,nk->mn      a @ b.T          bmk,bnk->bmn    bmm(a, b.mT)
    km,kn->nm      b.T @ a          bmk,nk->bmn     linear(a, b)

torch itself takes it apart into views with dims of one element around a product of stacks, which no
operand of a kernel is read through.
"""

from __future__ import annotations

from typing import Any

import torch


def as_product(*given: Any) -> Any:
    """The product of two matrices, or of two stacks along one letter; NotImplemented of others."""
    if len(given) != 3 or not isinstance(given[0], str):
        return NotImplemented
    equation, a, b = given
    terms, arrow, out = equation.replace(" ", "").partition("->")
    letters = terms.split(",")
    alike = all(isinstance(each, torch.Tensor) and each.dtype == a.dtype for each in (a, b))
    if not arrow or len(letters) != 2 or not alike or not _are_plain(*letters, out):
        return NotImplemented
    left, right = letters
    return _product(left, right, out, a, b) if _sizes_agree(left, right, a, b) else NotImplemented


def _are_plain(*terms: str) -> bool:
    """Whether each letter stands once in a term, and nothing else does."""
    return all(term.isalpha() and len({*term}) == len(term) for term in terms)


def _sizes_agree(left: str, right: str, a: torch.Tensor, b: torch.Tensor) -> bool:
    """Whether a letter of both has one size: torch spreads a size of 1 over others."""
    if (a.dim(), b.dim()) != (len(left), len(right)):
        return False
    both = {*left} & {*right}
    return all(a.shape[left.index(each)] == b.shape[right.index(each)] for each in both)


def _product(left: str, right: str, out: str, a: torch.Tensor, b: torch.Tensor) -> Any:
    shared = [each for each in left if each in right]
    summed = [each for each in shared if each not in out]
    stack = [each for each in shared if each in out]
    rows = [each for each in left if each not in right]
    columns = [each for each in right if each not in left]
    if len(summed) != 1 or len(columns) != 1 or {*out} != {*stack, *rows, *columns}:
        return NotImplemented
    (k,), (n,) = summed, columns
    if not stack and len(rows) == 2 and [left, out] == [f"{''.join(rows)}{k}", f"{out[:2]}{n}"]:
        same = out[:2] == left[:2]
        return (
            torch.nn.functional.linear(a, _ordered(b, right, f"{n}{k}")) if same else NotImplemented
        )
    if len(rows) != 1 or len(stack) > 1 or out[: len(stack)] != "".join(stack):
        return NotImplemented
    (m,), of_all = rows, "".join(stack)
    multiply = torch.bmm if stack else torch.mm
    if out == f"{of_all}{m}{n}":
        return multiply(_ordered(a, left, f"{of_all}{m}{k}"), _ordered(b, right, f"{of_all}{k}{n}"))
    return multiply(_ordered(b, right, f"{of_all}{n}{k}"), _ordered(a, left, f"{of_all}{k}{m}"))


def _ordered(value: torch.Tensor, letters: str, order: str) -> torch.Tensor:
    """The tensor with its dims in the order of these letters; as it is where they are."""
    return value if letters == order else value.permute([letters.index(each) for each in order])
