"""Kernels with outputs beside C: every element of each is right after every pass, in every way of
storing."""

import pytest
import torch

from tilewright.compiler.calls.dense.matmul import matmul
from tilewright.compiler.pipeline import DEFAULT_PIPELINE, parse_pipeline
from tilewright.compiler.spec import MatmulSpec
from tilewright.dialects.errors import CompileError

PREFIXES = tuple(call.name for call in parse_pipeline(DEFAULT_PIPELINE))
SPEC = MatmulSpec(70, 40, 40, further=("f32", "f16"))
STAGED_BY_WARPS = (
    "tiling{tile=64x32x32},tma-insertion,swizzle-selection,epilogue-staging{columns=16 buffers=2}"
)
SMALL_TILES = DEFAULT_PIPELINE.replace("tiling", "tiling{tile=64x32x32}")


@pytest.mark.sweep(4)
@pytest.mark.array(prefix=PREFIXES, target=("sm_100a", "sm_90a"), sizes=((200, 72), (130, 51)))
def test_every_prefix_writes_all_outputs(check_matmul, prefix, target, sizes):
    spec = MatmulSpec(*sizes, 72, further=("f32", "f16"))
    check_matmul(spec, pipeline=SMALL_TILES, stop_after=prefix, target=target)


@pytest.mark.sweep(2)
@pytest.mark.parametrize(
    "options",
    [
        {"target": "sm_100a"},
        {"preset": "v6"},
        {"target": "sm_90a"},
        {"target": "sm_80"},
        {"target": "sm_120a"},
        {"preset": "puzzle-shared", "target": "sm_80"},
    ],
    ids=str,
)
def test_default_schedules_and_presets_write_all_outputs(check_matmul, options):
    check_matmul(SPEC, **options)


@pytest.mark.sweep(2)
@pytest.mark.parametrize(
    ("c", "further"), [("f32", ("f16", "e4m3")), ("f16", ("f32",)), ("f16", ("f32", "e4m3"))]
)
@pytest.mark.parametrize("rows", [1, 70])
def test_threads_and_tma_each_store_what_they_can(check_matmul, c, further, rows):
    """Rows of 60 are whole units of 16 bytes in f32 alone."""
    spec = MatmulSpec(rows, 60, 72, c_dtype=c, further=further)
    check_matmul(spec, target="sm_120a", pipeline=STAGED_BY_WARPS)
    check_matmul(spec, target="sm_120a")


HOPPER, BLACKWELL = "sm_90a", "sm_100a"
LOADS = "tma-insertion,swizzle-selection"
LOOPS = "pipelining{stages=3},warp-specialization,persistence{order=m ctas=2}"
TOGETHER = {
    "one buffer": (HOPPER, "64x64x32", "columns=32 buffers=1", LOOPS),
    "two buffers": (HOPPER, "128x64x32", "columns=32 buffers=2", LOOPS),
    "by warpgroup": (HOPPER, "256x128x32", "columns=32 buffers=2 by=warpgroup", LOOPS),
    "in turns": (HOPPER, "64x64x32", "columns=32 buffers=4", f"{LOOPS},ping-pong"),
    "tensor memory": (BLACKWELL, "128x64x32", "columns=32 buffers=2", LOOPS),
}


@pytest.mark.sweep(2)
@pytest.mark.parametrize("way", TOGETHER)
def test_outputs_of_equal_pieces_are_stored_together(check_matmul, way):
    """Each group of copies that TMA reads has a piece of every output."""
    target, tile, staging, loops = TOGETHER[way]
    pipeline = f"tiling{{tile={tile}}},{LOADS},epilogue-staging{{{staging}}},{loops}"
    spec = MatmulSpec(300, 200, 72, further=("f32", "f16"))
    compiled, _ = check_matmul(spec, target=target, pipeline=pipeline)
    stored, groups = (
        compiled.ptx.count(name) for name in ("2d.global.shared::cta", "bulk.commit_group")
    )
    assert stored == 3 * groups


def test_wider_elements_have_pieces_of_their_own_where_a_span_has_no_room(check_matmul):
    pipeline = f"tiling{{tile=64x64x32}},{LOADS},epilogue-staging{{columns=64 buffers=2}}"
    spec = MatmulSpec(130, 128, 72, further=("f32", "f16"))
    compiled, _ = check_matmul(spec, target=HOPPER, pipeline=pipeline)
    assert compiled.ptx.count("2d.global.shared::cta") == 1 + 2 + 1
    assert compiled.ptx.count("bulk.commit_group") == 1 + 2 + 1


def test_stacks_have_several_outputs(check_matmul):
    spec = MatmulSpec(70, 72, 40, batch=3, b_stacked=False, further=("f32",))
    compiled, _ = check_matmul(spec)
    assert [each["shape"] for each in compiled.manifest["tensors"][-2:]] == [[3, 70, 72]] * 2


def test_a_split_k_with_two_outputs_is_refused(check_matmul):
    pipeline = "tiling,tma-insertion,swizzle-selection,split-k{parts=2}"
    with pytest.raises(CompileError, match="must be stored once, got 3 outputs; drop split-k"):
        check_matmul(SPEC, pipeline=pipeline)


def test_a_function_of_two_results_gives_two_tensors():
    torch.manual_seed(3)
    a, b = torch.randn(3, 40, 24).bfloat16(), torch.randn(56, 24).bfloat16()
    bias = torch.randn(56)

    def forward(acc, x):
        z = acc + x
        return torch.nn.functional.silu(z), z.to(torch.float16), acc

    c, z, acc = matmul(a, b, epilogue=forward, operands=[bias])
    wanted = a.float() @ b.float().T
    assert (c.dtype, z.dtype, acc.dtype) == (torch.bfloat16, torch.float16, torch.float32)
    assert torch.allclose(acc, wanted, atol=1e-4)
    assert torch.allclose(z, (wanted + bias).half(), atol=1e-2)
    assert torch.allclose(c, torch.nn.functional.silu(wanted + bias).bfloat16(), atol=2e-2)
    out = tuple(torch.full_like(each, torch.nan) for each in (c, z, acc))
    assert matmul(a, b, epilogue=forward, operands=[bias], out=out) is out
    assert all(torch.equal(*pair) for pair in zip(out, (c, z, acc), strict=True))
