"""The front end's closed list: what it does not read of linalg, arith, math, tensor and func is
refused where it stands, and so is what MLIR's short form does not show."""

import pytest
from linalg_texts import FILL, MAP, PRODUCT, TENSOR, normalized, refusal, returned

from tilewright.compiler.pipeline import run_passes_on_text
from tilewright.dialects.errors import CompileError

TAKES = "attributes must be"
UNKNOWN = (
    "not one of the ops that a kernel is made of (docs/passes/normalize.md); "
    "compute it outside the kernel"
)
REGION = "its region must yield its input as it is; write it as a linalg.generic"


def whole(ops):
    """A function whose result %r the ops give."""
    return returned("%r", ops)


def generic(body, attributes="", iterators='"parallel", "parallel"'):
    """A function that runs `body` on each element %u."""
    return whole(f"""  %r = linalg.generic {{{attributes} indexing_maps = [{MAP}, {MAP}],
    iterator_types = [{iterators}]}} ins(%sum : {TENSOR}) outs(%empty : {TENSOR}) {{
  ^bb0(%u: f32, %o: f32):
    {body}
  }} -> {TENSOR}
""")


def element(body):
    return generic(f"{body}\n    linalg.yield %v : f32")


def product_of(first, second, region):
    """linalg.matmul in its long form, with a region of its own."""
    maps = ", ".join(
        f"affine_map<(d0, d1, d2) -> ({dims})>" for dims in ("d0, d2", "d2, d1", "d0, d1")
    )
    return f""""linalg.matmul"({first}, {second}, %init) <{{
    indexing_maps = [{maps}], operandSegmentSizes = array<i32: 2, 1>}}> ({{{region}
  }}) : (tensor<64x32xbf16>, tensor<32x64xbf16>, {TENSOR}) -> {TENSOR}"""


NARROWED = """
  ^bb0(%p: bf16, %q: bf16, %s: f32):
    %p1 = arith.extf %p : bf16 to f32
    %p2 = arith.truncf %p1 : f32 to f16
    %p3 = arith.extf %p2 : f16 to f32
    %q1 = arith.extf %q : bf16 to f32
    %t = arith.mulf %p3, %q1 : f32
    %v = arith.addf %s, %t : f32
    linalg.yield %v : f32"""
ROUNDED_PRODUCT = """
  ^bb0(%p: bf16, %q: bf16, %s: f32):
    %t = arith.mulf %p, %q : bf16
    %w = arith.extf %t : bf16 to f32
    %v = arith.addf %s, %w : f32
    linalg.yield %v : f32"""
CHANGED_FILL = f""""linalg.fill"(%zero, %empty) <{{operandSegmentSizes = array<i32: 1, 1>}}> ({{
  ^bb0(%p: f32, %q: f32):
    %v = math.exp %p : f32
    linalg.yield %v : f32
  }}) : (f32, {TENSOR}) -> {TENSOR}"""
NEGATED = """  %r = "linalg.transpose"(%sum, %empty) <{permutation = array<i64: 0, 1>}> ({
  ^bb0(%p: f32, %q: f32):
    %v = arith.negf %p : f32
    linalg.yield %v : f32
  }) : (tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<64x64xf32>
"""
OUTPUT_TRANSPOSED = PRODUCT.replace(
    "matmul ins",
    "matmul indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (k, n)>,"
    " affine_map<(m, n, k) -> (n, m)>] ins",
)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            returned("%sum").replace(PRODUCT, OUTPUT_TRANSPOSED),
            "5:10: error: linalg.matmul: the output must be indexed (d0, d1), got (d1, d0); "
            "exchange A and B for the transpose",
        ),
        (
            returned("%sum").replace(PRODUCT, product_of("%a", "%b", NARROWED)),
            "5:10: error: linalg.matmul: A must be extended once, by extf, extsi or extui, got "
            "extf, truncf, extf; extend it by one op",
        ),
        (
            returned("%sum").replace(PRODUCT, product_of("%a", "%b", ROUNDED_PRODUCT)),
            "5:10: error: linalg.matmul: its region must yield the output plus the product of its "
            "inputs",
        ),
        (
            returned("%sum").replace(FILL, CHANGED_FILL),
            f"4:11: error: linalg.fill: {REGION}",
        ),
        (whole(NEGATED), f"6:8: error: linalg.transpose: {REGION}"),
        (
            returned("%sum").replace("0.0", "-0.0"),
            "5:10: error: linalg.matmul: the accumulator must start as linalg.fill of 0; "
            "add C afterwards",
        ),
    ],
    ids=["output-map", "narrowed", "rounded-product", "fill", "transpose", "minus-zero"],
)
def test_maps_and_regions_are_read(text, message):
    assert refusal(text) == f"-:{message}"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            whole(
                f"  %t = arith.truncf %sum upward : {TENSOR} to tensor<64x64xbf16>\n"
                f"  %r = arith.extf %t : tensor<64x64xbf16> to {TENSOR}\n"
            ),
            "6:8: error: arith.truncf: roundingmode must be to_nearest_even, got upward",
        ),
        (
            generic("linalg.yield %u : f32", 'library_call = "gemm",'),
            f"6:8: error: linalg.generic: {TAKES} indexing_maps, iterator_types, doc, "
            'operandSegmentSizes, got library_call = "gemm"; remove it',
        ),
        (
            generic("linalg.yield %u : f32", iterators='"parallel", "reduction"'),
            "6:8: error: linalg.generic: must be elementwise (all iterators parallel); "
            "compute it outside the kernel",
        ),
        (
            element("%v = arith.negf %u {cost = 3 : i32} : f32"),
            f"9:10: error: arith.negf: {TAKES} fastmath, got cost = 3 : i32; remove it",
        ),
        (
            returned("%sum").replace(
                f"%x: {TENSOR}", f"%x: {TENSOR} {{bufferization.writable = true}}"
            ),
            f"1:1: error: func.func: argument 2: {TAKES} bufferization.buffer_layout, got "
            "bufferization.writable = true; remove it",
        ),
        (
            "module attributes {vendor.cost = 1 : i32} {" + returned("%sum") + "}",
            f"1:1: error: builtin.module: {TAKES} tile.target, tile.mma_unit, tile.math, "
            "tile.rows, tile.rows_multiple, sym_name, sym_visibility, got vendor.cost = 1 : i32; "
            "remove it",
        ),
        (
            "module attributes {vendor.lists = [{}, {}]} {" + returned("%sum") + "}",
            f"1:1: error: builtin.module: {TAKES} tile.target, tile.mma_unit, tile.math, "
            "tile.rows, tile.rows_multiple, sym_name, sym_visibility, got vendor.lists = [{}, {}]; "
            "remove it",
        ),
        (
            element("%v = arith.negf %u {cost = [{}]} : f32"),
            f"9:10: error: arith.negf: {TAKES} fastmath, got cost = [{{}}]; remove it",
        ),
    ],
    ids=["rounding", "library-call", "iterators", "discardable", "argument", "module",
         "empty lists of a module", "empty lists of an op"],
)  # fmt: skip
def test_attributes_that_are_not_read_are_refused(text, message):
    assert refusal(text) == f"-:{message}"


@pytest.mark.parametrize(
    ("text", "place", "op"),
    [
        (
            element('%v = arith.negf %u : f32\n    %c = arith.cmpf olt, %u, %u : f32\n'
                    '    cf.assert %c, "negative"'),
            "11:5", "cf.assert",
        ),
        (
            whole("  %m = memref.alloc() : memref<f32>\n"
                  "  memref.store %zero, %m[] : memref<f32>\n").replace("%r", "%sum"),
            "6:8", "memref.alloc",
        ),
        (
            whole(f"  %r = func.call @f(%a, %b, %x) : (tensor<64x32xbf16>, tensor<32x64xbf16>,"
                  f" {TENSOR}) -> {TENSOR}\n").replace("return %r", "return %sum"),
            "6:8", "func.call",
        ),
        (element("%i = linalg.index 0 : index\n    %v = arith.negf %u : f32"), "9:10",
         "linalg.index"),
        (
            whole(f"  %r = linalg.add ins(%sum, %x : {TENSOR}, {TENSOR})"
                  f" outs(%empty : {TENSOR}) -> {TENSOR}\n"),
            "6:8", "linalg.add",
        ),
        (
            whole(f"  %t = tensor.cast %sum : {TENSOR} to tensor<?x64xf32>\n"
                  f"  %r = tensor.cast %t : tensor<?x64xf32> to {TENSOR}\n"),
            "6:8", "tensor.cast",
        ),
        ("memref.global @g : memref<4xf32>\n" + returned("%sum"), "1:1", "memref.global"),
    ],
    ids=["assert", "store", "call", "index", "named", "cast", "global"],
)  # fmt: skip
def test_ops_that_are_not_in_the_list_are_refused_though_nothing_uses_them(text, place, op):
    assert refusal(text) == f"-:{place}: error: {op}: {UNKNOWN}"


@pytest.mark.parametrize(
    ("type_", "rule"),
    [
        (
            'tensor<64x64xf32, "csr">',
            "values must be scalars or tensors without an encoding",
        ),
        ("memref<64x64xf32>", "values must be scalars or tensors without an encoding"),
        (
            "tensor<4x64x?xf32>",
            "shapes must be static and positive, but for a stack's length and rows of matrices",
        ),
    ],
)
def test_types_that_say_more_than_shape_and_elements_are_refused(type_, rule):
    text = returned("%sum").replace(f"%x: {TENSOR}", f"%x: {type_}")
    assert refusal(text) == f"-:1:1: error: func.func: {rule}, got {type_}"


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (
            "%w = arith.extf %u : f32 to f64\n    %e = math.exp %w : f64\n"
            "    %v = arith.truncf %e : f64 to f32",
            "10:10: error: math.exp: must be of f32, bf16, f16 here, got f64",
        ),
        (
            "%c = arith.cmpf olt, %u, %zero : f32\n    %v = arith.sitofp %c : i1 to f32",
            "10:10: error: arith.sitofp: must be of f32, bf16, f16, i64, i32 here, got i1",
        ),
        (
            "%w = arith.truncf %u : f32 to f8E4M3FN\n    %v = arith.extf %w : f8E4M3FN to f32",
            "10:10: error: arith.extf: must be of f32, bf16, f16, f64 here, got f8E4M3FN",
        ),
    ],
)
def test_types_that_an_epilogue_op_is_not_lowered_for_are_refused(body, message):
    assert refusal(element(body)) == f"-:{message}"


def test_a_second_function_is_refused_where_it_stands():
    assert refusal(returned("%sum") + "func.func @g() {\n  return\n}\n") == (
        "-:8:1: error: func.func: must be the one func.func of its module, got 2 of them; "
        "compile it apart"
    )


def test_licences_are_dropped_and_do_not_stop_a_kernel():
    found = normalized(
        generic(
            "%v = arith.addf %u, %zero fastmath<nnan,contract> : f32\n    linalg.yield %v : f32",
            'doc = "adds nothing",',
        )
    )
    assert "arith.addf" in found
    assert "fastmath" not in found


def chain_of(count):
    ops = "".join(f"  %c{i + 1} = arith.addf %c{i}, %x : {TENSOR}\n" for i in range(count))
    return returned(f"%c{count}", ops.replace("%c0,", "%sum,"))


def test_a_chain_of_a_thousand_ops_is_gathered():
    assert normalized(chain_of(1000)).count("arith.addf") == 1000


def test_a_chain_that_would_take_minutes_is_refused():
    found = refusal(chain_of(5001))
    assert found.endswith("linalg.matmul: an epilogue must have at most 5000 ops, got 5002")


def test_a_tensor_that_no_process_can_hold_is_refused():
    text = returned("%sum").replace(
        "%b: tensor<", "%huge: tensor<2147483647x65536xf32>, %b: tensor<"
    )
    assert text.count("huge") == 1
    assert refusal(text) == (
        "-:1:1: error: func.func: a tensor must have at most 140737488355328 bytes, got"
        " 562949953159168 for 2147483647×65536"
    )


def test_a_target_that_is_no_name_is_refused():
    text = "module attributes {tile.target = 100 : i32} {" + returned("%sum") + "}"
    with pytest.raises(CompileError) as caught:
        run_passes_on_text(text, "-", "normalize,tiling")
    rule = "tile.target must be a chip's name, got 100 : i32"
    assert str(caught.value) == f"-:1:1: error: builtin.module: {rule}"


@pytest.mark.parametrize("order", ["%a, %b, %x", "%x, %a, %b", "%b, %a, %x"])
def test_arguments_in_any_order_reach_the_kernel(order):
    types = {"%a": "tensor<64x32xbf16>", "%b": "tensor<32x64xbf16>", "%x": TENSOR}
    arguments = [f"{name}: {types[name]}" for name in ("%a", "%b", "%x")]
    wanted = [f"{name}: {types[name]}" for name in order.split(", ")]
    text = returned("%sum").replace(", ".join(arguments), ", ".join(wanted))
    assert '"tile.kernel"' in run_passes_on_text(text, "-", "normalize,tiling")
