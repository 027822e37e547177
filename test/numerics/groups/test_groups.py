"""Groups of rows: every prefix, groups that end anywhere, what no group has is not written."""

from dataclasses import replace

import pytest
import torch

import tilewright
from tilewright.compiler.bundle_writer import as_bundle
from tilewright.compiler.driver import choose_pipeline
from tilewright.compiler.spec import MatmulSpec
from tilewright.dialects.errors import CompileError, OptionError
from tilewright.runtime.group_sizes import heavy_first
from tilewright.runtime.launch.devices import open_device
from tilewright.tools.runs.inputs import make_tensors

BOTH = ["sm_90a", "sm_100a"]
LADDER = (
    "tiling{tile=64x32x32}",
    "tma-insertion{box=3d}",
    "swizzle-selection",
    "epilogue-staging",
    "clustering{shape=2x1}",
    "pipelining{stages=2}",
    "warp-specialization",
    "persistence{ctas=4}",
)
SPEC = MatmulSpec(200, 40, 72, groups=5, b_major="n", c_dtype="f32")


@pytest.mark.sweep(4)
@pytest.mark.array(1, passes=[1, 2, 4, 5, 7, 8], target=BOTH)
def test_every_prefix_keeps_groups_apart(check_matmul, passes, target):
    text = ",".join(LADDER[:passes])
    compiled, _ = check_matmul(SPEC, pipeline=text, target=target)
    # Tiles of five groups that have 200 rows between them, by ones and by twos.
    places = (200 + 5 * 63) // 64 if passes < 5 else (200 + 5 * 127) // 128 * 2
    assert compiled.manifest["grid"] == ([places, 2, 1] if passes < 8 else [4, 1, 1])


@pytest.mark.sweep(4)
@pytest.mark.parametrize(
    ("order", "groups"),  # 20 are more than a walk looks at in one pass
    [*((order, 20) for order in ("scheduler=clc", "order=m", "order=n", "order=hilbert")),
     ("group=2", 20), ("group=1", 2)],
)  # fmt: skip
def test_tiles_of_groups_are_walked_in_every_order(check_matmul, order, groups):
    many = replace(SPEC, groups=groups)
    check_matmul(many, pipeline=",".join(LADDER[:7]) + f",persistence{{{order}}}")


def test_ping_pong_consumers_take_tiles_of_different_groups(check_matmul):
    text = "tiling{tile=64x32x64},tma-insertion,swizzle-selection,epilogue-staging,pipelining,"
    text += "warp-specialization,persistence{ctas=2},ping-pong"
    compiled, _ = check_matmul(SPEC, pipeline=text, target="sm_90a")
    assert compiled.assembled.stack_bytes == 0  # where walks go on is kept in registers


@pytest.mark.parametrize(
    ("target", "text"),
    [
        ("sm_100a", "tiling{tile=64x48x64},tma-insertion,pipelining,warp-specialization"),
        ("sm_80", "tiling{tile=32x32x32},copy-insertion,swizzle-selection,epilogue-staging"),
        ("sm_80", "tiling{tile=16x16x32 mma=fma operands=global}"),
    ],
)
def test_groups_of_rows_that_lie_anywhere_are_copied_by_threads(check_matmul, target, text):
    compiled, _ = check_matmul(
        MatmulSpec(66, 17, 35, groups=3, c_dtype="f32"), pipeline=text, target=target
    )
    assert {each["kind"] for each in compiled.manifest["parameters"]} == {"pointer"}


GATHERED = MatmulSpec(200, 40, 72, groups=5, gathered=77, b_major="n", c_dtype="f32")


@pytest.mark.sweep(4)
@pytest.mark.array(1, passes=[1, 2, 4, 5, 6, 7, 8], target=BOTH, pair=[True, False])
def test_every_prefix_gathers_rows(check_matmul, passes, target, pair):
    pairs = pair and target == "sm_100a"
    cluster = f"clustering{{shape=2x1 pair={'true' if pairs else 'false'}}}"
    text = ",".join((*LADDER[:4], cluster, *LADDER[5:])[:passes])
    text = text.replace("64x32x32", "128x64x32") if pairs else text
    check_matmul(GATHERED, pipeline=text, target=target)


@pytest.mark.parametrize(
    ("target", "text"),
    [
        ("sm_90a", "tiling{tile=64x48x64},tma-insertion,pipelining,warp-specialization"),
        ("sm_80", "tiling{tile=32x32x32},copy-insertion,swizzle-selection,pipelining{stages=3}"),
        ("sm_80", "tiling{tile=16x16x32 mma=fma operands=global}"),
        ("sm_90a", ",".join((*LADDER[:4], *LADDER[5:], "ping-pong"))),
    ],
)
def test_rows_are_gathered_wherever_they_lie(check_matmul, target, text):
    odd = "ping-pong" not in text
    spec = replace(GATHERED, m=66, n=9, k=19, b_major="k") if odd else GATHERED
    check_matmul(replace(spec, gathered=300), pipeline=text, target=target)


@pytest.mark.sweep(4)
@pytest.mark.array(1, passes=[1, 2, 4, 6, 7, 8], target=BOTH)
def test_every_prefix_gathers_rows_for_two_products(check_matmul, passes, target):
    spec = replace(GATHERED, m=150, groups=3, products=2, c_dtype="bf16")
    check_matmul(spec, pipeline=",".join(LADDER[:passes]), target=target)


@pytest.mark.sweep(4)
@pytest.mark.array(1, passes=[2, 5, 7, 8], sums=["", "two-level"], axis="mk", more=[True, False])
def test_groups_have_outputs_behind_c_and_sums_of_two_levels(
    check_matmul, passes, sums, axis, more
):
    types = ("f16", "f16") if axis == "k" else ("e4m3", "e5m2")
    majors = {"a_major": "m", "b_major": "n", "group_axis": "k"} if axis == "k" else {}
    spec = MatmulSpec(200, 48, 144, *types, groups=5, further=("f32",), sums=sums, **majors)
    if more:
        spec = replace(spec, **({"ordered": True} if axis == "k" else {"gathered": 77}))
    text = ",".join(("tiling{tile=64x32x64}", *LADDER[1:passes]))
    compiled, _ = check_matmul(spec, pipeline=text, target="sm_90a")
    assert [each["name"] for each in compiled.manifest["tensors"]][-2:] == ["c", "c1"]


def test_a_split_k_of_groups_is_refused():
    text = ",".join(LADDER[:3]) + ",split-k{parts=2}"
    with pytest.raises(CompileError, match="split-k: rows must be of one group, got groups"):
        tilewright.compile(SPEC, pipeline=text, until="ptx")


def operands_of(rows, n, k, groups):
    torch.manual_seed(rows)
    a = torch.randint(-3, 4, (rows, k)).bfloat16()
    return a, torch.randint(-3, 4, (groups, k, n)).bfloat16()


@pytest.mark.parametrize(
    "ends",
    [
        [10, 10, 40, 41, 41, 77, 90, 96],  # empty groups, none aligned
        [0, 0, 96, 96, 96, 96, 96, 96],  # one has all
        [3, 6, 9, 12, 15, 18, 21, 24],  # a few rows each, and rows that no group has
        [0] * 8,  # no group has any
    ],
)
def test_a_product_of_groups_is_that_of_torch(ends):
    a, b = operands_of(96, 24, 64, len(ends))
    offs = torch.tensor(ends, dtype=torch.int32)
    found = tilewright.grouped_mm(a, b, offs=offs, target="sm_90a", check_offsets=True)
    assert torch.equal(found[: ends[-1]], torch._grouped_mm(a, b, offs=offs)[: ends[-1]])


def test_offsets_out_of_order_or_beyond_the_rows_count_as_the_nearest():
    a, b = operands_of(96, 24, 64, 8)
    wild = [30, -7, 40, 40, 40, 2**31 - 1, 50, -(2**31)]
    tame = [30, 30, 40, 40, 40, 96, 96, 96]
    found, wanted = (
        tilewright.grouped_mm(a, b, offs=torch.tensor(ends, dtype=torch.int32), target="sm_90a")
        for ends in (wild, tame)
    )
    assert torch.equal(found, wanted)


@pytest.mark.parametrize(
    ("order", "rule"),
    [
        ("light", "order must be 'heavy', got 'light'; leave it out"),
        ("heavy", "order must be None for two stacks, whose products take equally long, got"),
    ],
)
def test_an_order_of_nothing_is_refused(order, rule):
    _, b = operands_of(8, 24, 64, 3)
    a = torch.ones(3, 8, 64).bfloat16()
    with pytest.raises(OptionError, match=rule):
        tilewright.grouped_mm(a, b, order=order)


def test_two_stacks_are_multiplied_one_by_one():
    _, b = operands_of(8, 24, 64, 3)
    a = torch.randint(-3, 4, (3, 8, 64)).bfloat16()
    assert torch.equal(tilewright.grouped_mm(a, b), torch._grouped_mm(a, b))


def test_grouped_columns_are_the_transpose_of_grouped_rows():
    rows, stack = operands_of(96, 24, 64, 4)
    a, b = stack.mT.contiguous(), rows.T
    offs = torch.tensor([10, 10, 40, 96], dtype=torch.int32)
    found = tilewright.grouped_mm(a, b, offs=offs, target="sm_90a")
    assert torch.equal(found, torch._grouped_mm(a, b.contiguous(), offs=offs))


def test_an_epilogue_reads_the_rows_of_its_group():
    a, b = operands_of(96, 24, 64, 4)
    offs = torch.tensor([10, 10, 40, 96], dtype=torch.int32)
    of_row = torch.arange(96.0)[:, None]
    rest = torch.arange(96.0 * 24).reshape(96, 24) % 5
    found = tilewright.grouped_mm(
        a,
        b,
        offs=offs,
        out_dtype=torch.float32,
        target="sm_90a",
        epilogue=lambda acc, scale, more: acc * scale + more,
        operands=[of_row, rest],
    )
    begin, wanted = 0, torch.empty(96, 24)
    for group, end in enumerate(offs.tolist()):
        wanted[begin:end] = a[begin:end].float() @ b[group].float()
        begin = end
    assert torch.equal(found, wanted * of_row + rest)


def test_gradients_are_those_of_torch_and_0_behind_the_last_group():
    a, b = (each.requires_grad_() for each in operands_of(96, 64, 64, 8))
    offs = torch.tensor([10, 10, 40, 41, 41, 77, 90, 90], dtype=torch.int32)
    upstream = torch.randint(-3, 4, (96, 64)).bfloat16()
    wanted = torch._grouped_mm(a, b, offs=offs)[:90]
    wanted = torch.autograd.grad(wanted, (a, b), upstream[:90])
    found = tilewright.grouped_mm(a, b, offs=offs, target="sm_90a")
    found = torch.autograd.grad(found, (a, b), upstream)
    assert torch.equal(found[0][:90], wanted[0][:90]) and not found[0][90:].any()
    assert torch.equal(found[1], wanted[1])


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"offs": None}, "mat_a, mat_b and offs must be torch tensors, got Tensor, Tensor, "),
        ({"offs": torch.tensor([1, 2])}, "offs must be int32, one for each of 2 groups, got "),
        (
            {"offs": torch.tensor([9, 5], dtype=torch.int32), "check_offsets": True},
            "offs[1] must be from 9, the end of the group before, to 16 rows, got 5; sort and",
        ),
        (
            {"offs": torch.tensor([9, 17], dtype=torch.int32), "check_offsets": True},
            "offs[1] must be from 9, the end of the group before, to 16 rows, got 17; sort and",
        ),
        ({"mat_a": torch.ones(16, 9).bfloat16()}, "mat_a and mat_b must have the same k, got 9 "),
        ({"mat_a": torch.ones(8).bfloat16()}, "mat_a and mat_b must be [rows, k] and [groups, "),
    ],
)
def test_operands_that_are_no_groups_are_refused(change, message):
    given = {
        "mat_a": torch.ones(16, 8).bfloat16(),
        "mat_b": torch.ones(2, 8, 8).bfloat16(),
        "offs": torch.tensor([9, 16], dtype=torch.int32),
    }
    with pytest.raises(OptionError) as refused:
        tilewright.grouped_mm(**(given | change))
    assert str(refused.value).startswith(f"error: grouped_mm: {message}")


DEPTH = MatmulSpec(200, 40, 300, a_major="m", b_major="n", groups=6, group_axis="k", c_dtype="f32")


@pytest.mark.sweep(4)
@pytest.mark.array(1, passes=[1, 2, 4, 5, 6, 7, 8], target=BOTH)
def test_every_prefix_keeps_groups_of_k_apart(check_matmul, passes, target):
    compiled, _ = check_matmul(DEPTH, pipeline=",".join(LADDER[:passes]), target=target)
    # Four tiles of 64 rows, of 40 columns two, for each of six groups.
    assert compiled.manifest["grid"] == ([24, 2, 1] if passes < 8 else [4, 1, 1])


@pytest.mark.sweep(4)
@pytest.mark.array(1, passes=[1, 5, 7, 8], target=BOTH, order=["m", "n"])
def test_every_prefix_computes_groups_of_k_in_an_order(check_matmul, passes, target, order):
    tiling = LADDER[0].replace("}", f" order={order}}}" if passes < 8 else "}")
    check_matmul(
        replace(DEPTH, ordered=True), pipeline=",".join((tiling, *LADDER[1:passes])), target=target
    )


@pytest.mark.parametrize("scheduler", ["clc", "static"])
def test_persistent_kernels_take_groups_of_k_in_an_order(check_matmul, scheduler):
    spec = replace(DEPTH, m=100, n=20, k=150, ordered=True)
    ctas = " ctas=4" if scheduler == "static" else ""
    text = ",".join((*LADDER[:4], *LADDER[5:7])) + f",persistence{{scheduler={scheduler}{ctas}}}"
    check_matmul(spec, pipeline=text, target="sm_100a")


def test_the_choice_hands_out_tiles_of_ordered_groups_where_the_chip_does():
    spec = replace(DEPTH, m=2048, n=1536, k=65536, groups=16, c_dtype="bf16")
    for target, scheduler in (("sm_100a", "scheduler=clc "), ("sm_90a", "")):
        plain, ordered = (
            choose_pipeline(replace(spec, ordered=each), target) for each in (False, True)
        )
        assert ordered == plain.replace("persistence{", f"persistence{{{scheduler}")


def test_a_group_that_an_order_leaves_out_is_not_computed():
    spec = replace(DEPTH, m=64, n=16, k=96, groups=4, ordered=True)
    compiled = tilewright.compile(spec, target="sm_90a", pipeline="tiling{tile=64x16x32 order=n}")
    bundle = as_bundle(compiled)
    tensors = make_tensors(bundle.manifest, 0)
    tensors["order"].copy_(torch.tensor([2, 2, 77, 0]))  # 77 counts as the last one
    open_device("emulator").launch(bundle, tensors, 0)
    found = tensors["c"].isnan().flatten(1)
    assert found[1].all() and not found[[0, 2, 3]].any()


@pytest.mark.parametrize(
    "ends",
    [
        [10, 10, 40, 41, 41, 77, 90, 90],
        [0, 0, 96, 96, 96, 96, 96, 96],
        [30, -7, 40, 20, 2**31 - 1, 50, -(2**31), 10],
    ],
)
def test_the_heaviest_groups_of_k_come_first_and_all_are_as_without_an_order(ends):
    a, b = torch.randint(-3, 4, (96, 16)).bfloat16(), torch.randint(-3, 4, (96, 24)).bfloat16()
    offs = torch.tensor(ends, dtype=torch.int32)
    plain, heavy = (
        tilewright.grouped_mm(a.T, b, offs=offs, target="sm_90a", order=order)
        for order in (None, "heavy")
    )
    assert torch.equal(plain, heavy)
    begins = torch.tensor([0, *ends[:-1]]).clamp(0, 96)
    counts = (torch.tensor(ends).clamp(0, 96) - begins).clamp(min=0)
    order = heavy_first(offs, 96)
    assert order.dtype == torch.int32 and sorted(order.tolist()) == list(range(8))
    assert counts[order].tolist() == sorted(counts.tolist(), reverse=True)


@pytest.mark.sweep(2)
@pytest.mark.parametrize(
    ("target", "text"),
    [
        ("sm_100a", "tiling{tile=64x48x64},tma-insertion,pipelining,warp-specialization"),
        ("sm_80", "tiling{tile=32x32x32},copy-insertion,swizzle-selection,pipelining{stages=3}"),
        ("sm_80", "tiling{tile=16x16x32 mma=fma}"),
    ],
)
def test_groups_of_k_whose_rows_lie_anywhere_are_copied_by_threads(check_matmul, target, text):
    majors = {"a_major": "m", "b_major": "n", "group_axis": "k"}
    spec = MatmulSpec(66, 17, 70, groups=3, c_dtype="f32", **majors)
    compiled, _ = check_matmul(spec, pipeline=text, target=target)
    assert {each["kind"] for each in compiled.manifest["parameters"]} == {"pointer"}


def test_a_split_k_of_groups_of_k_is_refused():
    with pytest.raises(CompileError, match="split-k: K must be of one group, got groups; drop"):
        text = f"{LADDER[0]},tma-insertion,split-k{{parts=2}}"
        tilewright.compile(DEPTH, target="sm_90a", pipeline=text, until="ptx")


@pytest.mark.parametrize(
    "ends",
    [[10, 10, 40, 41, 41, 77, 90, 90], [0, 0, 96, 96, 96, 96, 96, 96], [0] * 8],
)
def test_a_product_of_groups_of_k_is_that_of_torch(ends):
    rows, _ = operands_of(96, 24, 64, 1)
    a, b = rows.T, (rows.flip(1) - 1)[:, :24].contiguous()
    offs = torch.tensor(ends, dtype=torch.int32)
    found = tilewright.grouped_mm(a, b, offs=offs, target="sm_90a", check_offsets=True)
    assert torch.equal(found, torch._grouped_mm(a, b, offs=offs))
    assert torch.equal(found, tilewright.grouped_mm(a.contiguous(), b, offs=offs, target="sm_90a"))


def test_offsets_of_k_out_of_order_or_beyond_it_count_as_the_nearest():
    a, b = torch.ones(8, 96).bfloat16(), torch.ones(96, 8).bfloat16()
    ends = [30, -7, 40, 20, 2**31 - 1, 50, -(2**31), 10]
    offs = torch.tensor(ends, dtype=torch.int32)
    found = tilewright.grouped_mm(a, b, offs=offs, target="sm_90a")
    counts = torch.tensor([30, 0, 40, 0, 76, 0, 0, 10]).bfloat16()
    assert torch.equal(found, counts[:, None, None].expand(8, 8, 8))


def test_nan_of_one_group_of_k_gets_into_no_other():
    a, b = torch.ones(8, 96).bfloat16(), torch.ones(96, 8).bfloat16()
    b[40:50] = torch.nan
    offs = torch.tensor([40, 50, 51, 96], dtype=torch.int32)
    found = tilewright.grouped_mm(a.T.contiguous().T, b, offs=offs, target="sm_90a")
    assert found[1].isnan().all() and torch.equal(
        found[[0, 2, 3], 0, 0].float(), torch.tensor([40.0, 1, 45])
    )


def test_gradients_of_groups_of_k_are_those_of_torch():
    a, b = torch.randint(-3, 4, (16, 96)).bfloat16(), torch.randint(-3, 4, (96, 24)).bfloat16()
    a, b = a.T.contiguous().T.requires_grad_(), b.requires_grad_()
    offs = torch.tensor([10, 10, 40, 90], dtype=torch.int32)
    upstream = torch.randint(-3, 4, (4, 16, 24)).bfloat16()
    found = tilewright.grouped_mm(a, b, offs=offs, target="sm_90a")
    found = torch.autograd.grad(found, (a, b), upstream)
    for group, (begin, end) in enumerate([(0, 10), (10, 10), (10, 40), (40, 90)]):
        of_a = upstream[group].float() @ b[begin:end].float().T
        of_b = a[:, begin:end].float().T @ upstream[group].float()
        assert torch.equal(found[0][:, begin:end], of_a.bfloat16())
        assert torch.equal(found[1][begin:end], of_b.bfloat16())
    assert not found[0][:, 90:].any() and not found[1][90:].any()
