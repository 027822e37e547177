"""Epilogues that read operands beside the rows of a group, where A and B are exchanged."""

import pytest
import torch

import tilewright

ROLES = (
    "tiling{{tile=64x64x64 swap=true}},tma-insertion,swizzle-selection{staged},"
    "pipelining{{stages=2}},warp-specialization{level}"
)


@pytest.mark.parametrize("level", ["", ",level-groups"])
@pytest.mark.parametrize("staged", ["", ",epilogue-staging{columns=16 buffers=2}"])
def test_an_epilogue_reads_the_rows_of_its_group(staged, level):
    generator = torch.Generator().manual_seed(0)
    a = torch.randint(-3, 4, (96, 64), generator=generator).bfloat16()
    b = torch.randint(-3, 4, (4, 64, 72), generator=generator).bfloat16()
    offs = torch.tensor([11, 11, 40, 96], dtype=torch.int32)
    of_row, of_column = torch.arange(96.0)[:, None], torch.arange(72.0)[None]
    rest = torch.arange(96.0 * 72).reshape(96, 72) % 5
    found = tilewright.grouped_mm(
        a,
        b,
        offs=offs,
        out_dtype=torch.float32,
        target="sm_90a",
        pipeline=ROLES.format(staged=staged, level=level),
        epilogue=lambda acc, scale, more, column: acc * scale + more + column,
        operands=[of_row, rest, of_column],
    )
    begin, wanted = 0, torch.empty(96, 72)
    for group, end in enumerate(offs.tolist()):
        wanted[begin:end] = a[begin:end].float() @ b[group].float()
        begin = end
    assert torch.equal(found, wanted * of_row + rest + of_column)
