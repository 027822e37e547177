"""Kernels with two outputs whose epilogues read the same operands, brought ahead of both."""

import pytest
import torch

from tilewright.compiler.driver import compile_matmul
from tilewright.compiler.importers.epilogue_function import Frame, import_epilogue
from tilewright.compiler.importers.linalg_text import LinalgText
from tilewright.compiler.importers.traced_function import TensorLike
from tilewright.compiler.spec import MatmulSpec

TMA = "tma-insertion,swizzle-selection"
LOOPS = "pipelining{stages=3},warp-specialization,persistence{order=m ctas=2}"
PAIR = "clustering{shape=2x1},pipelining{stages=2},warp-specialization,persistence"
WAYS = {
    "roles": ("sm_90a", "64x64x32", "", LOOPS),
    "turns": ("sm_90a", "64x64x32", "", f"{LOOPS},ping-pong"),
    "by warpgroup": ("sm_90a", "256x128x32", " by=warpgroup", LOOPS),
    "a cluster": ("sm_90a", "64x64x32", "", "clustering{shape=2x1 pair=false},pipelining"),
    "tensor memory": ("sm_100a", "128x64x32", "", LOOPS),
    "a pair": ("sm_100a", "128x64x32", "", PAIR),
}


def source(m, n, k, second=torch.bfloat16, full=True, stack=()):
    """`(silu(z), z)` of z = acc + bias, and + residual if `full`; `stack` is how many matrices."""

    def epilogue(acc, bias, *residual):
        z = acc + bias + residual[0] if residual else acc + bias
        return torch.nn.functional.silu(z), z.to(second)

    likes = [TensorLike((n,), torch.bfloat16)] + [TensorLike((*stack, m, n), torch.bfloat16)] * full
    spec, frame = MatmulSpec(m, n, k, batch=sum(stack)), Frame.of([*stack, m, n], len(stack))
    spec, made, *_ = import_epilogue(spec, frame, epilogue, likes)
    names = ("a", "b", *(f"e{number}" for number in range(len(likes))))
    return LinalgText(spec.mlir_text(made), "matmul", names)


def tensor_maps(compiled):
    """The operands that TMA brings or stores."""
    parameters = compiled.manifest["parameters"]
    return [each["tensor"] for each in parameters if each["kind"] == "tensor_map"]


@pytest.mark.sweep(4)
@pytest.mark.pairwise
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("vectors", ["ahead", "registers"])
@pytest.mark.parametrize("second", [torch.bfloat16, torch.float32])
def test_what_two_outputs_read_comes_once(check_matmul, way, vectors, second):
    target, tile, by, rest = WAYS[way]
    ahead = "" if by else " ahead=2"
    staging = f"epilogue-staging{{columns=32 buffers=2{ahead} vectors={vectors}{by}}}"
    pipeline = f"tiling{{tile={tile}}},{TMA},{staging},{rest}"
    rows = 300 if way in ("by warpgroup", "a pair") else 150  # several tiles of rows
    two = source(rows, 136, 72, second, full=not by)
    compiled, _ = check_matmul(two, target=target, pipeline=pipeline)
    brought = ["e0"] * (vectors == "ahead") + ["e1"] * (not by)
    assert sorted(tensor_maps(compiled)) == sorted(["a", "b", *brought, "c", "c1"])


@pytest.mark.parametrize("target", ["sm_90a", "sm_100a"])
def test_two_outputs_read_the_same_matrix_of_a_stack_once(check_matmul, target):
    tile = "64x64x32" if target == "sm_90a" else "128x64x32"
    staging = "epilogue-staging{columns=32 buffers=2 ahead=2}"
    stacks = source(150, 72, 72, stack=(2,))
    pipeline = f"tiling{{tile={tile}}},{TMA},{staging},{LOOPS}"
    compiled, _ = check_matmul(stacks, target=target, pipeline=pipeline)
    assert sorted(tensor_maps(compiled)) == ["a", "b", "c", "c1", "e1"]


def test_what_an_output_of_other_pieces_reads_too_comes_by_threads():
    staging = "epilogue-staging{columns=64 buffers=2 ahead=2 vectors=ahead}"
    pipeline = f"tiling{{tile=64x64x32}},{TMA},{staging},{LOOPS}"
    two = source(300, 136, 72, torch.float32)
    compiled = compile_matmul(two, target="sm_90a", pipeline=pipeline)
    assert sorted(tensor_maps(compiled)) == ["a", "b", "c", "c1"]
    reason = "is read by threads: another output that is stored by itself reads it"
    assert sum(reason in each for each in compiled.remarks) == 4  # two operands of two stores
