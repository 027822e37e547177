"""What the functions of `tilewright` cannot take as it is meant, they refuse in one line."""

import numpy as np
import pytest
import torch
from torch.torch_version import TorchVersion

import tilewright
import tilewright.compiler.calls.dense.matmul_operator  # the operator, called by itself below
from tilewright import (
    compile_module,
    grouped_mm,
    matmul,
    scaled_grouped_mm,
    scaled_mm,
    weight_only_mm,
)
from tilewright.dialects.epilogue import NO_FUNCTION
from tilewright.dialects.errors import CompileError, OptionError
from tilewright.nn import WeightOnlyLinear, quantize_weights
from tilewright.runtime.errors import LaunchError

pytestmark = pytest.mark.usefixtures("fresh_cache", "ptxas_for_a_share")
A, B = torch.ones(8, 32, dtype=torch.bfloat16), torch.ones(16, 32, dtype=torch.bfloat16)
STACK, NARROW = B[None].mT, torch.ones(16, 32, dtype=torch.int8)
LINEAR = torch.nn.Linear(32, 16, dtype=torch.bfloat16)
NESTED = torch.nested.nested_tensor([A, A])
OF_F32 = "matmul: precision must come with operands of f32"
ONE, ENDS = torch.tensor(1.0), torch.tensor([8], dtype=torch.int32)


def summed(acc, *others):
    return sum(others, acc)


def of_groups(**options):
    recipes = ONE, "TensorWise", ONE, "TensorWise"
    return scaled_grouped_mm(A, STACK, *recipes, offs=ENDS, **options)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: matmul(A, B, pipeline=3), "pipeline must be a text, got 3"),
        (lambda: matmul(A, B, target=90), "target must be a text, got 90"),
        (lambda: matmul(A, B, precision=["tf32"]), "precision must be a text, got ['tf32']"),
        (lambda: matmul(A, B, target=""), "matmul: target must be a text, got ''; leave it out"),
        (lambda: matmul(A, B, out_dtype=""), "matmul: out_dtype must name a type, got ''"),
        (
            lambda: tilewright.compile(tilewright.MatmulSpec(8, 16, 32), until="sass"),
            "compile: until must be one of mlir, llvm, ptx, cubin, got 'sass'",
        ),
        (lambda: compile_module(LINEAR, A, pipeline=3), "pipeline must be a text, got 3"),
        (lambda: compile_module(LINEAR, A, preset=""), "preset must be a text, got ''"),
        (
            lambda: grouped_mm(A, STACK, offs=ENDS, check_offsets="no"),
            "grouped_mm: check_offsets must be True or False, got 'no'",
        ),
        (lambda: grouped_mm(A, None, offs=ENDS), "mat_b must be a torch tensor, got NoneType"),
        (lambda: grouped_mm(A, STACK, offs=ENDS, rows=[1]), "rows must be a torch tensor, got"),
        (lambda: matmul(A, B, out_dtype=["bf16"]), "out_dtype must be the name of a type"),
        (lambda: grouped_mm(A, STACK, offs=ENDS, preset=["v6"]), "preset must be a text"),
        (
            lambda: scaled_mm(A, B.T, ONE, "TensorWise", ONE, "TensorWise", target=["sm_90a"]),
            "scaled_mm: target must be a text, got ['sm_90a']",
        ),
        (lambda: weight_only_mm(A, NARROW, pipeline=[]), "pipeline must be a text, got []"),
        (lambda: weight_only_mm(A, NARROW, epilogue=3), "epilogue must be a function"),
        (
            lambda: weight_only_mm(A, NARROW, torch.ones(16, 1), group_size=-32),
            "group_size must be a number of elements of K, got -32",
        ),
        (lambda: quantize_weights(B, "int8", 0), "group must be a number of elements of K"),
        (lambda: quantize_weights(B[0]), "weight must be a matrix of floats, got"),
        (lambda: quantize_weights(NARROW), "weight must be a matrix of floats, got torch.int8"),
        (
            lambda: WeightOnlyLinear(*quantize_weights(B, "int8", None), B[0], "int8"),
            "bias must be [16], one number for each row of weight, got [32]",
        ),
        (lambda: WeightOnlyLinear(NARROW, None, dtype="int3"), "got 'int3'"),
        (lambda: matmul(A, B, epilogue=summed, operands=None), "got NoneType"),
        (lambda: matmul(A, B, epilogue=summed, operands=torch.ones(1, 16)), "got Tensor"),
        (lambda: grouped_mm(A, STACK, offs=ENDS, epilogue=summed, operands=ONE), "got Tensor"),
        (lambda: weight_only_mm(A, NARROW, epilogue=summed, operands=None), "got NoneType"),
        (lambda: weight_only_mm(A, NARROW, operands=[ONE]), "those of an epilogue, got none"),
        (
            lambda: matmul(A, B, epilogue=summed, operands=[torch.ones(8, 16).to_sparse()]),
            "operands[0] must be dense, got torch.sparse_coo",
        ),
        (
            lambda: matmul(A, B, epilogue=summed, out=(torch.empty(8, 16),)),
            "out must be one array for a function of one result, got a tuple",
        ),
        (
            lambda: matmul(A, B, epilogue=lambda acc: (acc, acc), out=(torch.empty(16, 8).T,) * 2),
            "out must be row-major with an epilogue, got column-major; copy the result there",
        ),
        (
            lambda: matmul(A, B, out=torch.empty(129)[1:].view(8, 16)),
            "out must be [8, 16] of torch.bfloat16, got [8, 16] of torch.float32; pass another",
        ),
        (lambda: grouped_mm([A], STACK, offs=ENDS), "mat_a must be a torch tensor, got list"),
        (lambda: grouped_mm(A, STACK, offs=[8]), "offs must be a torch tensor, got list"),
        (lambda: scaled_mm(A, B.T, 1.0, "TensorWise", ONE, "TensorWise"), "scale_a must be a"),
        (lambda: scaled_mm(A.tolist(), B.T, ONE, "TensorWise", ONE, "TensorWise"), "got list"),
        (
            lambda: scaled_mm(A, B.T, None, "TensorWise", ONE, "TensorWise"),
            "scaled_mm: scale_a must be a torch tensor, got NoneType",
        ),
        (
            lambda: scaled_mm(A, B.T, ONE, "TensorWise", ONE, "TensorWise", use_fast_accum=1),
            "scaled_mm: use_fast_accum must be True or False, got 1",
        ),
        (
            lambda: scaled_mm(A, B.T, ONE, "TensorWise", ONE, "TensorWise", contraction_dim=None),
            "scaled_mm: contraction_dim must be (), got None",
        ),
        (lambda: of_groups(contraction_dim=(1,)), "contraction_dim must be (), got (1,)"),
        (lambda: of_groups(check_offsets=None), "check_offsets must be True or False, got None"),
        (lambda: of_groups(use_fast_accum="x"), "use_fast_accum must be True or False, got 'x'"),
        (lambda: of_groups(rows=3), "scaled_grouped_mm: rows must be a torch tensor, got int"),
        (
            lambda: scaled_grouped_mm(A, STACK, 2, "TensorWise", ONE, "TensorWise", offs=ENDS),
            "scale_a must be a torch tensor, got int",
        ),
        (lambda: weight_only_mm(A, NARROW, [1.0] * 16), "scales must be a torch tensor, got list"),
        (lambda: matmul(A, B, precision="ieee"), f"{OF_F32}, got bf16; leave it out"),
        (lambda: matmul(A[:0], B, precision="tf32"), f"{OF_F32}, got bf16"),
        (lambda: matmul(A, B, precision="bf16x9", m="dynamic"), f"{OF_F32}, got bf16"),
        (lambda: matmul(A, (B, B), precision="3xtf32", epilogue=torch.add), f"{OF_F32}, got bf16"),
        (lambda: matmul(*[A.half().numpy()] * 2, precision="tf32"), f"{OF_F32}, got f16"),
        (
            lambda: torch.ops.tilewright.product(A, B, *[""] * 8, "ieee"),
            f"{OF_F32}, got bf16",
        ),
        (
            lambda: matmul(A.float(), B.float(), precision="tf32", pipeline="tiling{mma=fma}"),
            "precision='tf32' must come with passes for a tensor core, got tiling{mma=fma}",
        ),
        (
            lambda: matmul(A.float(), B.float(), precision="tf32", preset="puzzle-tiled"),
            "precision='tf32' must come with passes for a tensor core, got tiling{mma=fma}",
        ),
        (lambda: matmul(NESTED, B), "matmul: a must be dense, got a nested tensor; convert it"),
        (lambda: matmul(A, NESTED, batch="dynamic"), "b must be dense, got a nested tensor"),
        (lambda: matmul(A, B, out=NESTED), "out must be dense, got a nested tensor"),
        (
            lambda: matmul(A, B, epilogue=summed, operands=[NESTED]),
            "operands[0] must be dense, got",
        ),
        (lambda: grouped_mm(NESTED, STACK, offs=ENDS), "grouped_mm: mat_a must be dense, got a "),
        (lambda: weight_only_mm(NESTED, NARROW), "weight_only_mm: a must be dense, got a nested"),
        (lambda: matmul(None, B), "a must be an array of torch, numpy or DLPack, got NoneType"),
        (lambda: matmul(A, B.tolist()), "b must be an array of torch, numpy or DLPack, got list"),
        (lambda: matmul(A, (B, 2), epilogue=torch.add), "b must be an array of torch, numpy or "),
        (
            lambda: matmul(A, B, epilogue=summed, operands=[np.float32(2)]),
            "operands[0] must be a tensor of torch or numpy, got float32; let the function close ",
        ),
        (lambda: matmul(A, B, math="fast"), NO_FUNCTION),
        (lambda: matmul(A, B.repeat(2, 1), math="exact", out_dtype="mxfp8"), NO_FUNCTION),
        (lambda: matmul(A, B, math="exact", epilogue=torch.relu), NO_FUNCTION),
        (lambda: matmul(A, B, math="fast", epilogue=torch.abs, m="dynamic"), NO_FUNCTION),
        (lambda: compile_module(LINEAR, A, math="exact"), NO_FUNCTION),
        (
            lambda: matmul(A.float(), B.repeat(2, 1).float(), out_dtype="mxfp8", precision="ieee"),
            "a C of mxfp8 must be of what tensor cores multiply, got f32",
        ),
    ],
)
def test_arguments_that_are_not_read_as_they_are_meant(call, message):
    with pytest.raises(OptionError) as refused:
        call()
    assert message in str(refused.value)


@pytest.mark.parametrize(
    "inputs, message",
    [
        (
            ((A,),),
            "Linear: input 0 must be a torch.Tensor, got tuple; pass its tensors as arguments of "
            "their own",
        ),
        ((A, None), "Linear: input 1 must be a torch.Tensor, got NoneType"),
    ],
)
def test_inputs_of_a_module_that_are_no_tensors(inputs, message):
    with pytest.raises(CompileError) as refused:
        compile_module(LINEAR, *inputs)
    assert str(refused.value).endswith(message)


NOTHING = A[:0]
OF_NOTHING = {
    "product": lambda **how: matmul(NOTHING, B, **how),
    "function": lambda **how: matmul(A[:, :0], B[:, :0], epilogue=summed, **how),
    "any rows": lambda **how: matmul(NOTHING, B, m="dynamic", **how),
    "recorded": lambda **how: matmul(NOTHING.clone().requires_grad_(), B, **how),
    "groups": lambda **how: grouped_mm(NOTHING, STACK, offs=ENDS - 8, **how),
    "groups of k": lambda **how: grouped_mm(A[:, :0], B.T[:0], offs=ENDS - 8, **how),
    "weights": lambda **how: weight_only_mm(NOTHING, NARROW, **how),
    "blocks": lambda **how: of_blocks(**how),
    "blocks of groups": lambda **how: of_blocks(offs=ENDS - 8, **how),
}


def of_blocks(**how):
    """A product without rows, of scales of 32 elements."""
    one = torch.ones(16, 1).to(torch.float8_e8m0fnu)
    a, b = (each.to(torch.float8_e4m3fn) for each in (NOTHING, B))
    recipe = "BlockWise1x32"
    if "offs" in how:
        return scaled_grouped_mm(a, b[None].mT, one[:0], recipe, one[None], recipe, **how)
    return scaled_mm(a, b.T, one[:0], recipe, one, recipe, **how)


@pytest.mark.parametrize("name", OF_NOTHING)
@pytest.mark.parametrize(
    ("how", "message"),
    [
        ({"target": "sm_1"}, "target: unknown chip 'sm_1'"),
        ({"pipeline": "tilling"}, "pipeline: unknown pass 'tilling'"),
        ({"preset": "v99"}, "preset: unknown name 'v99'"),
    ],
)
def test_products_of_nothing_refuse_chips_and_passes_that_there_are_none_of(name, how, message):
    with pytest.raises(OptionError, match=message):
        OF_NOTHING[name](**how)


def test_an_output_may_not_require_gradients_where_torch_records_them():
    out = torch.empty(8, 16, dtype=torch.bfloat16, requires_grad=True)
    with pytest.raises(OptionError, match="out must not require gradients"):
        matmul(A, B, out=out)
    with torch.no_grad():
        assert matmul(A, B, out=out) is out


@pytest.mark.parametrize(
    ("out", "message"),
    [
        (torch.empty(2, 8, 16, dtype=torch.bfloat16), "out must be [8, 16] of torch.bfloat16"),
        (torch.empty(8, 16), "got [8, 16] of torch.float32"),
        ((torch.empty(8, 16, dtype=torch.bfloat16),), "got a tuple"),
    ],
)
@pytest.mark.parametrize("k", [0, 32])
def test_an_output_is_not_broadcast_or_converted_where_torch_sees_the_product(out, message, k):
    b = B[:, :k].clone().requires_grad_()
    with pytest.raises(OptionError) as refused:
        matmul(A[:, :k], b, out=out)
    assert message in str(refused.value)


@pytest.mark.parametrize("k", [0, 32])
def test_functions_that_no_kernel_takes_are_refused_where_torch_computes_them(k):
    b = B[:, :k].clone().requires_grad_(k > 0)
    for function in (lambda acc: acc.sum(0), lambda acc: (acc, acc.T), lambda acc: None):
        with pytest.raises(CompileError, match=r"epilogue: the (result|function) must"):
            matmul(A[:, :k], b, epilogue=function)
    c, sums = matmul(A[:, :k], b, epilogue=lambda acc: (acc, acc.sum(-1)))
    assert c.eq(k).all() and sums.eq(16 * k).all()


def test_subclasses_are_taken_as_operands_of_functions():
    class TileCosts(torch.Tensor):
        pass

    own = torch.arange(16.0).as_subclass(TileCosts)
    c = matmul(A, B, epilogue=summed, operands=[own])
    assert torch.equal(c, (torch.arange(16.0) + 32).bfloat16().expand(8, 16))


def test_torch_knows_that_an_output_has_changed():
    weight, out = torch.ones(8, 16, requires_grad=True), torch.ones(8, 16)
    used = (weight * out).sum()
    matmul(A, B, out=out, out_dtype="f32")
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        used.backward()


@pytest.mark.parametrize("shape", [(1, 8, 1), (2, 1, 16)])
def test_operands_of_groups_are_refused_alike_where_torch_records_gradients(shape):
    for wanted in (False, True):
        a = A.clone().requires_grad_(wanted)
        with pytest.raises(CompileError, match="of three dims must have one"):
            grouped_mm(a, STACK, offs=ENDS, epilogue=summed, operands=[torch.ones(shape)])


@pytest.mark.parametrize("second", [0, 1])
def test_outputs_of_several_are_no_operands(second):
    """Each is stored when all before it are, and the function is computed again for it."""
    held, other = torch.ones(8, 16), torch.ones(8, 16)
    outs = (other, held) if second else (held, other)
    with pytest.raises(LaunchError, match="must share no memory with 'e0', as several outputs"):
        matmul(
            *(A, B),
            epilogue=lambda acc, held: (acc + held, acc - held),
            operands=[held],
            out=outs,
            out_dtype="f32",
        )


@pytest.mark.parametrize("rows", [0, 3])
def test_a_narrow_product_of_no_k_is_what_the_function_makes_of_zeros(rows):
    a, b = torch.ones(rows, 0, dtype=torch.bfloat16), torch.ones(16, 0, dtype=torch.int8)
    assert weight_only_mm(a, b).equal(torch.zeros(rows, 16, dtype=torch.bfloat16))
    found = weight_only_mm(a, b, epilogue=lambda acc, x: (acc + x, acc - x), operands=[ONE])
    assert found[0].equal(torch.ones(rows, 16, dtype=torch.bfloat16))
    assert found[1].equal(-torch.ones(rows, 16))
    assert weight_only_mm(A, b[:0].new_ones(0, 32)).shape == (8, 0)


@pytest.mark.parametrize(
    ("epilogue", "operands", "message"),
    [
        (lambda acc: acc * acc.shape[0], [], "must not depend on the number of rows"),
        (lambda acc: acc * (acc.shape[0] > 5000), [], "must not depend on the number of rows"),
        (lambda acc, x: acc * x, [torch.ones(16, 1)], "or one for each column where m is dynamic"),
    ],
)
def test_a_narrow_product_of_any_rows_refuses_functions_of_their_number(
    epilogue, operands, message
):
    a = torch.ones(16, 32, dtype=torch.bfloat16)
    with pytest.raises(CompileError, match=message):
        tilewright.weight_only_mm(a, NARROW, m="dynamic", epilogue=epilogue, operands=operands)


def traced(*row):
    """Of an error whose constructor dynamo follows itself."""
    old = torch.__version__ < TorchVersion("2.12")
    return pytest.param(*row, marks=pytest.mark.skipif(old, reason="torch 2.12 first says it"))


@pytest.mark.parametrize(
    "call, message",
    [
        traced(lambda a, b: matmul(a, b, precision="ieee"), f"{OF_F32}, got bf16; leave it out"),
        traced(lambda a, b: matmul(a, b, math="fast"), f"matmul: {NO_FUNCTION}"),
        traced(lambda a, b: matmul(a, b, epilogue=summed, operands=a), "operands must be a tuple"),
        traced(lambda a, b: matmul(a, (b, b)), "two b are for an epilogue of both sums, got none"),
        traced(lambda a, b: weight_only_mm(a, b, b), "weight_only_mm: b must be int8, float8_e4m3"),
    ],
)
def test_a_graph_that_must_be_whole_shows_what_was_refused(call, message):
    """Dynamo traces the constructor of an error, and shows a message that it could follow."""
    with pytest.raises(torch._dynamo.exc.Unsupported) as refused:
        torch.compile(call, backend="eager", fullgraph=True)(A, B)
    assert message in str(refused.value)


@pytest.mark.parametrize(
    ("a", "message"),
    [
        (torch.ones(16, 32).to_sparse_csr(), "a must be dense, got torch.sparse_csr"),
        (np.ma.array(np.ones((16, 32), np.float32), mask=True), "must have no mask, got a masked"),
    ],
)
def test_operands_that_are_no_matrix_in_memory_are_refused(a, message):
    with pytest.raises(CompileError, match=message):
        tilewright.matmul(a, torch.ones(16, 32), precision="ieee")
