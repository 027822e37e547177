"""A function of the sums converts to the types that torch converts to, before it computes.

The expectation is what eager torch makes of the same sums, bit for bit.
"""

import pytest
import torch

from tilewright import CompileError, compile_module, matmul

pytestmark = pytest.mark.usefixtures("fresh_cache", "ptxas_for_a_share")
BF16, F16, F32, S32 = torch.bfloat16, torch.float16, torch.float32, torch.int32
NAMES = {BF16: "bf16", F16: "f16", F32: "f32"}
ROWS = torch.tensor([0, 1, -1, 2, -2, 3, 60, -100] * 3)
BETWEEN = torch.tensor(2.0078)  # which bf16 rounds to 2
ONE_BF16 = BETWEEN.to(BF16)
TIE = torch.tensor([16842753, -16842753, 33685505, 257, -7, 0, 7, 9], dtype=S32)
"""Of which f32 makes a tie of bf16, and bf16 itself something else."""


def chosen(condition):
    return torch.where(condition, 1.0, 2.0)


def found(function, operands, of_bytes, c_type, target):
    """What a kernel and what eager torch make of sums that are the numbers of ROWS in each row."""
    a_type = torch.int8 if of_bytes else BF16
    a = ROWS[:, None].to(a_type).contiguous()
    a = torch.nn.functional.pad(a.float(), (0, 15)).to(a_type)
    b = torch.nn.functional.pad(torch.ones(8, 1), (0, 15)).to(a_type)
    sums = ROWS[:, None].expand(-1, 8).to(S32 if of_bytes else F32).contiguous()
    options = {"out_dtype": NAMES[c_type], "target": target}
    c = matmul(a, b, epilogue=function, operands=operands, **options)
    return c, function(sums, *operands).to(c_type)


CASES = {
    "one f32 beside bf16": (lambda acc, s: acc.to(BF16) + s, [BETWEEN], False, F32),
    "less one f32": (lambda acc, s: s - acc.to(BF16), [BETWEEN], False, F32),
    "times one f32": (lambda acc, s: acc.to(BF16) * s, [BETWEEN], False, BF16),
    "over one f32": (lambda acc, s: acc.to(BF16) / s, [BETWEEN], False, BF16),
    "one f32 over": (lambda acc, s: s / (acc.to(BF16) + 0.7), [BETWEEN], False, BF16),
    "below one f32": (
        lambda acc, s: torch.where(acc.to(BF16) < s, 1.0, 2.0),
        [BETWEEN],
        False,
        F32,
    ),
    "largest beside one f32": (
        lambda acc, s: torch.maximum(torch.fmin(acc.to(BF16), s) * 1.5, s),
        [BETWEEN],
        False,
        F32,
    ),
    "largest beside a row of f32": (
        lambda acc, r: torch.minimum(acc.to(BF16), r) + torch.logaddexp(acc, r.to(BF16)),
        [torch.linspace(-3, 3, 8)],
        False,
        BF16,
    ),
    "where of bf16": (
        lambda acc, s: torch.where(acc > s, acc.to(BF16), (acc + 3).to(BF16)),
        [BETWEEN],
        False,
        BF16,
    ),
    "is one f32": (lambda acc, s: torch.where(acc.to(BF16) == s, 1.0, 2.0), [BETWEEN], False, F32),
    "s32 in bf16": (lambda acc, v: (acc + v).to(BF16), [TIE], True, BF16),
    "s32 in f16": (lambda acc, v: (acc + v).to(F16), [TIE], True, F16),
    "s32 beside one bf16": (
        lambda acc, v, s: (acc + v) * s,
        [TIE, ONE_BF16],
        True,
        F32,
    ),
    "s32 beside bf16": (lambda acc, v: acc.to(BF16) + v, [TIE], False, F32),
    "vectors turned": (lambda acc, v: acc + v.t() + v.T, [torch.arange(8.0)], False, F32),
    "one turned": (
        lambda acc, s: acc + s.mT if s.dim() else acc + s.transpose(0, -1),
        [BETWEEN],
        False,
        F32,
    ),
}


@pytest.mark.sweep(2)
@pytest.mark.parametrize("target", ["sm_100a", "sm_80"])
@pytest.mark.parametrize("name", CASES)
def test_operands_are_promoted_as_torch_does(name, target):
    function, operands, of_bytes, c_type = CASES[name]
    c, expected = found(function, operands, of_bytes, c_type, target)
    assert c.dtype == expected.dtype and c.equal(expected)


class OfSums(torch.nn.Module):
    """A product in bf16, and a function of it and other operands."""

    def __init__(self, function):
        super().__init__()
        self.function = function

    def forward(self, a, b, *operands):
        return self.function(a @ b.T, *operands)


OF_MODULES = {
    "one f32 beside bf16": (lambda acc, s: (acc + s).float(), [BETWEEN]),
    "times one f32": (lambda acc, s: acc * s, [BETWEEN]),
    "over one f32": (lambda acc, s: acc / s, [BETWEEN]),
    "below one f32": (lambda acc, s: chosen(acc < s), [BETWEEN]),
    "is one f32": (lambda acc, s: chosen(acc == s), [BETWEEN]),
    "s32 in bf16": (lambda acc, v: acc + v.to(BF16), [TIE]),
    "s32 beside bf16": (lambda acc, v: acc * v, [TIE]),
    "f32 beside bf16": (lambda acc, v: acc + v, [torch.arange(8) + 0.3]),
    "largest beside f32": (lambda acc, v: torch.maximum(acc, v), [torch.arange(8) + 0.3]),
}


@pytest.mark.sweep(2)
@pytest.mark.parametrize("name", OF_MODULES)
def test_operands_in_a_module_are_promoted_as_torch_does(name):
    function, operands = OF_MODULES[name]
    a = torch.nn.functional.pad(ROWS[:, None].to(BF16), (0, 15))
    b = torch.nn.functional.pad(torch.ones(8, 1, dtype=BF16), (0, 15))
    module = OfSums(function)
    c, expected = compile_module(module, a, b, *operands)(a, b, *operands), module(a, b, *operands)
    assert c.dtype == expected.dtype and c.equal(expected)


@pytest.mark.parametrize("dtype", [torch.int8, torch.uint8])
def test_a_product_that_keeps_bytes_is_refused(dtype):
    a, b = (torch.ones(rows, 16, dtype=dtype) for rows in (24, 8))
    with pytest.raises(CompileError, match="OfSums: a product must not keep 8 bits of its sums"):
        compile_module(OfSums(lambda sums: sums), a, b)


class OfGroups(torch.nn.Module):
    def forward(self, a, b, offs):
        return torch.nn.functional.relu(torch._grouped_mm(a, b, offs=offs))


def test_a_module_with_a_product_of_groups_says_what_has_one():
    a, b = torch.zeros(24, 16, dtype=BF16), torch.zeros(2, 16, 8, dtype=BF16)
    offs = torch.tensor([10, 24], dtype=torch.int32)
    rule = "OfGroups: a product must be of matrices or of stacks of them, got one of groups; call "
    with pytest.raises(CompileError, match=f"{rule}tilewright.grouped_mm"):
        compile_module(OfGroups(), a, b, offs)


class OfOurs(torch.nn.Module):
    def forward(self, a, b):
        return torch.relu(matmul(a, b))


def test_a_module_that_calls_our_operators_is_told_so_at_its_line():
    a, b = torch.zeros(24, 16, dtype=BF16), torch.zeros(8, 16, dtype=BF16)
    rule = r"OfOurs: tilewright.matmul: must be an operator of torch, got one .*; write the product"
    with pytest.raises(CompileError, match=rule) as raised:
        compile_module(OfOurs(), a, b)
    assert __file__ in str(raised.value)
