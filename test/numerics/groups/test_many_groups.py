"""Groups of few rows, more of them than a warp has lanes: which one each row is multiplied with."""

import pytest
import torch
from hypothesis import example, given, settings
from hypothesis import strategies as st

import tilewright
from tilewright.compiler.bundle_writer import as_bundle
from tilewright.compiler.spec import MatmulSpec
from tilewright.runtime.launch.devices import open_device

ROWS, COLUMNS = 40, 16
ALONE = "tiling{tile=64x16x32},tma-insertion,pipelining{stages=2},warp-specialization"
LOOPS = f"{ALONE},persistence{{ctas=3 order=n}}"
CLC = f"{ALONE},persistence{{scheduler=clc}}"
KERNELS = [
    # (target, passes, groups): each lane has one group, two, or more than it looks at at a time
    ("sm_90a", ALONE, 9),
    ("sm_90a", LOOPS, 33),
    ("sm_90a", LOOPS.replace("order=n", "group=2"), 300),
    ("sm_100a", CLC, 32),
    ("sm_100a", LOOPS, 512),
]


@pytest.fixture(scope="module", params=KERNELS, ids=lambda each: f"{each[0]}-{each[2]}")
def kernel(request):
    """A kernel of so many groups, and how many."""
    target, pipeline, groups = request.param
    spec = MatmulSpec(ROWS, COLUMNS, 32, groups=groups, c_dtype="f32")
    return as_bundle(tilewright.compile(spec, target=target, pipeline=pipeline)), groups


def ends_of(groups):
    """Offsets of any kind, most of them in order."""
    some = st.lists(st.integers(0, ROWS + 3), min_size=groups, max_size=groups)
    wild = st.dictionaries(st.integers(0, groups - 1), st.integers(-(2**31), 2**31 - 1), max_size=3)
    return st.tuples(some.map(sorted), wild).map(
        lambda drawn: [drawn[1].get(group, end) for group, end in enumerate(drawn[0])]
    )


def check(kernel, ends):
    bundle, groups = kernel
    torch.manual_seed(len(ends))
    a = torch.randint(-3, 4, (ROWS, 32)).bfloat16()
    b = torch.randint(-3, 4, (groups, COLUMNS, 32)).bfloat16()
    c = torch.full((ROWS, COLUMNS), torch.nan)
    tensors = {"a": a, "b": b, "c": c, "offsets": torch.tensor(ends, dtype=torch.int32)}
    open_device("emulator").launch(bundle, tensors, 0)
    begin = 0
    for group, end in enumerate(ends):
        end = min(max(end, begin), ROWS)
        assert torch.equal(c[begin:end].double(), a[begin:end].double() @ b[group].double().T)
        begin = end
    assert c[begin:].isnan().all()


@pytest.mark.sweep(2)
def test_each_row_is_of_its_group_in_any_sizes(kernel):
    groups = kernel[1]

    @settings(max_examples=1, deadline=None)
    @given(ends_of(groups))
    @example([*[0] * (groups - 1), ROWS])
    def of_sizes(ends):
        check(kernel, ends)

    of_sizes()


def test_groups_of_no_rows_are_passed_over(kernel):
    groups = kernel[1]
    check(kernel, [ROWS * (group // 29) // -(-groups // 29) for group in range(groups)])
