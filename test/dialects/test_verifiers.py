"""What one op can know is wrong: whole messages, with the op's place."""

import pytest

from tilewright.compiler.pipeline import run_passes_on_text
from tilewright.dialects.errors import CompileError

SMEM_A = '!tile.smem<tensor<128x64xbf16>, "k", "none">'
SMEM_B = '!tile.smem<tensor<64x64xbf16>, "k", "none">'
RING = f"!pipe.ring<1 : i64, [{SMEM_A}]>"
SLOT = f"!pipe.slot<[{SMEM_A}]>"
ACC = "!tile.acc<tensor<128x64xf32>>"
SUMS = f"!pipe.ring<1 : i64, [{ACC}]>"
VIEW = "memref<256x128xbf16, 1>"


def kernel(*ops, threads=128, names='["a"]'):
    body = "\n  ".join(ops)
    return f"""
"tile.kernel"() ({{
^bb0(%v: {VIEW}):
  %i, %j = "tile.cta_tile"() : () -> (index, index)
  {body}
}}) {{arg_names = {names}, cluster = [1, 1, 1], grid = [1, 1, 1], sym_name = "f",
      threads = {threads} : i64}} : () -> ()
"""


def load(smem):
    return f'%t = "tile.load"(%v, %i, %j) : ({VIEW}, index, index) -> {smem}'


def tensor_map(text):
    return f'%m = "tile.tensor_map"(%v) : ({VIEW}) -> !tile.map<bf16, {text}>'


def acquire(slot):
    return f'%s = "pipe.acquire"(%r) : ({RING}) -> {slot}'


def together(body):
    return f'"tile.copy_together"() ({{ {body} }}) : () -> ()'


CREATE = f'%r = "pipe.create"() : () -> {RING}'


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            kernel(load('!tile.smem<tensor<128x64xbf16>, "row", "none">')),
            "tile.load: major must be one of ('k', 'mn'), got 'row'",
        ),
        (
            kernel(load('!tile.smem<tensor<128x64xbf16>, "k", "96B">')),
            "tile.load: swizzle must be one of ('none', '32B', '64B', '128B', 'linear', "
            "'blocked', 'shifted', 'halved'), got '96B'",
        ),
        (
            kernel(load('!tile.smem<tensor<128x48xbf16>, "k", "128B">')),
            "tile.load: contiguous extent must be a multiple of 128 bytes for swizzle 128B, "
            "got 96 bytes along K",
        ),
        (
            kernel(load('!tile.smem<tensor<128x64xf16>, "k", "none">')),
            "tile.load: view and tile must have one element type, got bf16 and f16",
        ),
        (
            kernel(tensor_map('[128, 256], [], [64, 128], "128B"')),
            "tile.tensor_map: dims and box must have one rank of 1 to 5 and strides one less, "
            "got 2, 2 and 0",
        ),
        (
            kernel(tensor_map('[128, 256], [256], [64, 257], "128B"')),
            "tile.tensor_map: box extents must be 1 to 256 elements, got [64, 257]",
        ),
        (
            kernel(tensor_map('[128, 256], [200], [64, 128], "128B"')),
            "tile.tensor_map: strides must be multiples of 16 bytes below 2^40, got [200]",
        ),
        (
            kernel(tensor_map('[128, 256], [256], [4, 128], "none"')),
            "tile.tensor_map: box rows must be a multiple of 16 bytes, got 8",
        ),
        (
            kernel(tensor_map('[128, 256], [256], [64, 128], "64B"')),
            "tile.tensor_map: box rows must be at most 64 bytes, got 128",
        ),
        (
            kernel(
                CREATE,
                acquire(SLOT),
                f'%t = "pipe.tile"(%s) {{index = 0 : i64}} : ({SLOT}) -> {SMEM_A}',
                tensor_map('[128, 256], [256], [64, 128], "128B"'),
                f'"tile.tma_load"(%m, %t, %i, %j) : (!tile.map<bf16, [128, 256], [256], [64, 128],'
                f' "128B">, {SMEM_A}, index, index) -> ()',
            ),
            "tile.tma_load: tile and tensor map must have one swizzle, got none and 128B",
        ),
        (
            kernel(
                CREATE,
                acquire(SLOT),
                f'%t = "pipe.tile"(%s) {{index = 0 : i64}} : ({SLOT}) -> {SMEM_A}',
                tensor_map('[128, 256], [256], [8, 1], "none"'),
                f'"tile.tma_gather"(%m, %t, %i, %j) : (!tile.map<bf16, [128, 256], [256], [8, 1],'
                f' "none">, {SMEM_A}, index, index) -> ()',
            ),
            "tile.tma_gather: 4 rows must be a multiple of 128 bytes, got 64",
        ),
        (
            kernel(
                f'%acc = "tile.accumulator"() : () -> {ACC}',
                load(SMEM_A),
                "%p = arith.constant true",
                f'"tile.mma"(%acc, %t, %t, %p) : ({ACC}, {SMEM_A}, {SMEM_A}, i1) -> ()',
            ),
            "tile.mma: acc must be (128, 128), got (128, 64)",
        ),
        (
            kernel('%r = "pipe.create"() : () -> !pipe.ring<0 : i64, []>'),
            "pipe.create: stages must be at least 1, got 0",
        ),
        (
            kernel(f'%r = "pipe.create"() {{shared_columns = 64 : i64}} : () -> {SUMS}'),
            "pipe.create: shared_columns must be columns of the one accumulator of one slot, fewer "
            "than all 64, got 64 : i64 of 1 slots",
        ),
        (
            kernel(CREATE, acquire(SLOT), f'%o = "pipe.parity"(%s) : ({SLOT}) -> i32'),
            f"pipe.parity: must be of an accumulator's slot, got {SLOT}",
        ),
        (
            kernel(CREATE, acquire(f"!pipe.slot<[{SMEM_B}]>")),
            f"pipe.acquire: must give a slot of {RING}, got !pipe.slot<[{SMEM_B}]>",
        ),
        (
            kernel(
                CREATE,
                acquire(SLOT),
                f'%t = "pipe.tile"(%s) {{index = 1 : i64}} : ({SLOT}) -> {SMEM_A}',
            ),
            "pipe.tile: index must be below 1, got 1",
        ),
        (
            kernel(together('%l = "tile.thread_lanes"() : () -> i32')),
            "tile.copy_together: the body must hold tile.copy alone, got tile.thread_lanes",
        ),
        (
            kernel(together("^bb0:")),
            "tile.copy_together: the body must hold tile.copy alone, got nothing",
        ),
        (
            kernel(together("^bb0(%x: i32):")),
            "tile.copy_together: the body must be one block without arguments",
        ),
        (kernel(threads=100), "tile.kernel: threads must be whole warps, 32 to 1024, got 100"),
        (
            kernel(names='["a", "b"]'),
            "tile.kernel: arg_names must name 1 arguments, got 2",
        ),
    ],
)
def test_an_op_that_does_not_verify_is_refused(tmp_path, text, message):
    path = tmp_path / "m.mlir"
    path.write_text(text)
    with pytest.raises(CompileError) as caught:
        run_passes_on_text(text, str(path), "swizzle-selection{force=none}")
    assert caught.value.message == message
    assert caught.value.location.startswith(f"{path}:")


MATMUL = """
func.func @f(%a: tensor<64x32xbf16>, %b: tensor<48x32xbf16>, %e: tensor<48xf32>)
    -> tensor<64x48xf32> {{
  %c = "tile.matmul"(%a, %b) ({{
  ^bb0(%x: {argument}):
    {body}
  }}) {{a_major = "{major}", b_major = "k"}}
    : (tensor<64x32xbf16>, tensor<48x32xbf16>) -> tensor<64x48xf32>
  return %c : tensor<64x48xf32>
}}
"""


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        (
            {"major": "row"},
            "tile.matmul: a_major and b_major must be 'k' or 'mn', got ('row', 'k')",
        ),
        ({"major": "mn"}, "tile.matmul: a and b must have the same K, got 64 and 32"),
        (
            {
                "argument": "f16",
                "body": '%y = arith.extf %x : f16 to f32\n "tile.yield"(%y) : (f32) -> ()',
            },
            "tile.matmul: the epilogue must take one f32, got ['f16']",
        ),
        (
            {"body": '%y = arith.truncf %x : f32 to bf16\n "tile.yield"(%y) : (bf16) -> ()'},
            "tile.matmul: the epilogue must end in a tile.yield of f32",
        ),
        (
            {
                "body": '%y = "tile.element"(%e) {axes = "mn"} : (tensor<48xf32>) -> f32\n'
                '"tile.yield"(%y) : (f32) -> ()'
            },
            "tile.element: the source must have rank 2 for 'mn', got tensor<48xf32>",
        ),
    ],
)
def test_a_matmul_that_does_not_verify_is_refused(fields, message):
    defaults = {"argument": "f32", "major": "k", "body": '"tile.yield"(%x) : (f32) -> ()'}
    with pytest.raises(CompileError) as caught:
        run_passes_on_text(MATMUL.format(**{**defaults, **fields}), "-", "tiling")
    assert caught.value.message == message


SCALED = """
func.func @f(%a: tensor<64x{k}x{element}>, %b: tensor<48x{k}x{element}>,
             %s: tensor<{a_scales}xf8E8M0FNU>, %t: tensor<1x1x32x4x4xf8E8M0FNU>)
    -> tensor<64x48xf32> {{
  %c = "tile.scaled_matmul"(%a, %b, %s, %t) ({{
  ^bb0(%x: f32): "tile.yield"(%x) : (f32) -> ()
  }}) {{a_major = "k", b_major = "k", block = {block} : i64}}
    : (tensor<64x{k}x{element}>, tensor<48x{k}x{element}>, tensor<{a_scales}xf8E8M0FNU>,
       tensor<1x1x32x4x4xf8E8M0FNU>) -> tensor<64x48xf32>
  return %c : tensor<64x48xf32>
}}
"""


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"k": 80}, "K must be a multiple of the 32 elements that share a scale, got 80; pad K"),
        (
            {"a_scales": "64x8"},
            "a_scales must be blocked, [1, 1, 32, 4, 4], or linear, [64, 3], for 64 rows of 3 "
            "blocks, got as many as padded ones, [64, 8]; use tilewright.scales.to_blocked",
        ),
        (
            {"a_scales": "64x3x1"},
            "a_scales must be blocked, [1, 1, 32, 4, 4], or linear, [64, 3], for 64 rows of 3 "
            "blocks, got as many as linear ones, [64, 3, 1]; use tilewright.scales.to_blocked",
        ),
        (
            {"a_scales": "2x1x32x4x4"},
            "a_scales must be blocked, [1, 1, 32, 4, 4], or linear, [64, 3], for 64 rows of 3 "
            "blocks, got others, [2, 1, 32, 4, 4]; use tilewright.scales.to_blocked",
        ),
        (
            {"block": 16},
            "no MMA takes such operands and scales, got f8E4M3FN and f8E4M3FN with f8E8M0FNU by 16",
        ),
        (
            {"element": "bf16"},
            "no MMA takes such operands and scales, got bf16 and bf16 with f8E8M0FNU by 32",
        ),
    ],
)
def test_a_product_with_block_scales_that_does_not_verify_is_refused(fields, message):
    defaults = {"k": 96, "element": "f8E4M3FN", "a_scales": "1x1x32x4x4", "block": 32}
    with pytest.raises(CompileError) as caught:
        run_passes_on_text(SCALED.format(**{**defaults, **fields}), "-", "tiling")
    assert caught.value.message == f"tile.scaled_matmul: {message}"


SCALES_A = '!tile.smem<tensor<128x4xf8E8M0FNU>, "k", "blocked">'
BYTES_A = '!tile.smem<tensor<128x128xf8E4M3FN>, "k", "none">'


def scaled_mma(a_scales=SCALES_A, b_scales=SCALES_A, a_type="e4m3", kind="mxf8f6f4", **fields):
    types = (ACC.replace("64", "128"), BYTES_A, BYTES_A, "i1", a_scales, b_scales)
    values = [f"%v{number}" for number in range(len(types))]
    casts = [
        f"{value} = builtin.unrealized_conversion_cast to {type_}"
        for value, type_ in zip(values, types, strict=True)
    ]
    numbers = {"block": 32, "extent": 256, **fields}
    fields = (
        f'a_type = "{a_type}", b_type = "e4m3", kind = "{kind}", '
        f"block = {numbers['block']} : i64, extent = {numbers['extent']} : i64, "
        "operandSegmentSizes = array<i32: 1, 1, 1, 1, 1, 1, 1, 1, 0>"
    )
    mma = f'"tile.scaled_mma"({", ".join(values)}, %i, %j) {{{fields}}} '
    return [*casts, f"{mma}: ({', '.join(types)}, index, index) -> ()"]


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"a_scales": BYTES_A}, "scales must be 'blocked', got 'none'"),
        (
            {"a_scales": SCALES_A.replace("128x4", "128x6")},
            "scales must be of a multiple of 32 rows and of 4 blocks, got 128x6",
        ),
        (
            {"a_scales": SCALES_A.replace("128x4", "128x8")},
            "scales must be of [(128, 8), (128, 8)] rows and blocks, got [(128, 8), (128, 4)]",
        ),
        (
            {"a_type": "bf16"},
            "no MMA takes such tiles, got bf16 and e4m3 with f8E8M0FNU, f8E8M0FNU by 32 in kind "
            "mxf8f6f4",
        ),
        (
            {"block": 16},
            "no MMA takes such tiles, got e4m3 and e4m3 with f8E8M0FNU, f8E8M0FNU by 16 in kind "
            "mxf8f6f4",
        ),
        (
            {"kind": "mxf4"},
            "no MMA takes such tiles, got e4m3 and e4m3 with f8E8M0FNU, f8E8M0FNU by 32 in kind "
            "mxf4",
        ),
        ({"extent": 0}, "extent must be at least 1, got 0"),
    ],
)
def test_an_mma_with_block_scales_that_does_not_verify_is_refused(fields, message):
    with pytest.raises(CompileError) as caught:
        run_passes_on_text(kernel(*scaled_mma(**fields)), "-", "swizzle-selection")
    assert caught.value.message == f"tile.scaled_mma: {message}"
