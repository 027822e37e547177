"""The table of tiles in a kernel that hands them out on a Hilbert curve, as its PTX has it."""

import itertools
import re
import struct

import pytest

from tilewright.compiler.driver import compile_matmul
from tilewright.compiler.spec import MatmulSpec
from tilewright.dialects.errors import CompileError

PIPELINE = (
    "tiling{tile=64x64x64},tma-insertion,swizzle-selection,CLUSTER"
    "pipelining{stages=2},warp-specialization,persistence{order=hilbert SCHEDULER}"
)


def compile_ptx(spec, target, cluster="", scheduler="scheduler=static"):
    clustering = f"clustering{{shape={cluster}}}," if cluster else ""
    text = PIPELINE.replace("CLUSTER", clustering).replace("SCHEDULER", scheduler)
    return compile_matmul(spec, target=target, pipeline=text, until="ptx").ptx


def table_of(ptx):
    """(along M, along N) of each turn: low and high half of 32-bit words."""
    pattern = r"^\.global .*? hilbert_curve\[(\d+)\](?: = \{(.*)\})?;"
    ((size, values),) = re.findall(pattern, ptx, re.M)
    data = bytes(int(value) for value in values.split(",")).ljust(int(size), b"\0")
    return [(word & 0xFFFF, word >> 16) for (word,) in struct.iter_unpack("<I", data)]


@pytest.mark.array(
    1,
    place=[("sm_90a", "ctas=3"), ("sm_100a", "ctas=3"), ("sm_100a", "scheduler=clc")],
    curve=[
        ((5, 4), "", (5, 4)),
        ((7, 7), "", (7, 7)),
        ((2, 30), "", (2, 30)),
        ((9, 12), "2x1", (5, 12)),
        ((6, 9), "1x2", (6, 5)),
        ((1, 3), "", (1, 3)),
    ],
)
def test_every_cluster_tile_once_and_each_beside_the_one_before(place, curve):
    (target, scheduler), ((m, n), cluster, grid) = place, curve
    spec = MatmulSpec(64 * m - 5, 64 * n - 8, 64)
    table = table_of(compile_ptx(spec, target, cluster, scheduler))
    assert sorted(table) == list(itertools.product(*map(range, grid)))
    pairs = itertools.pairwise(table)
    assert {abs(a - c) + abs(b - d) for (a, b), (c, d) in pairs} == {1}


@pytest.mark.sweep(4)
@pytest.mark.parametrize("target", ["sm_90a", "sm_100a"])
def test_the_longest_table_is_made_and_a_longer_one_refused(target):
    assert len(table_of(compile_ptx(MatmulSpec(64 * 256, 64 * 256, 64), target))) == 65536
    with pytest.raises(CompileError) as caught:
        compile_ptx(MatmulSpec(64 * 256, 64 * 257, 64), target)
    assert str(caught.value) == (
        "error: tile.kernel: persistence: the table of order=hilbert has at most 65536 tiles, "
        "got 256x257; use order=grouped"
    )


def test_other_orders_have_no_table():
    text = PIPELINE.replace("CLUSTER", "").replace("order=hilbert SCHEDULER", "order=grouped")
    compiled = compile_matmul(MatmulSpec(300, 300, 64), pipeline=text, until="ptx")
    assert "hilbert_curve" not in compiled.ptx
