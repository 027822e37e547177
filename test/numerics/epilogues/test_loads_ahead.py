"""Full operands of an epilogue, brought to shared memory by TMA while the main loop runs."""

import pytest

from tilewright.compiler.driver import compile_matmul
from tilewright.compiler.importers.linalg_text import LinalgText
from tilewright.compiler.spec import MatmulSpec
from tilewright.dialects.errors import CompileError

pytestmark = pytest.mark.pairwise

TMA = "tma-insertion,swizzle-selection"
HOPPER = {
    "roles": "pipelining{stages=3},warp-specialization,persistence{order=m ctas=2}",
    "turns": "pipelining{stages=3},warp-specialization,persistence{order=m ctas=2},ping-pong",
    "a cluster": "clustering{shape=2x1 pair=false},pipelining{stages=2},warp-specialization",
    "one program": "pipelining{stages=2}",
}
BLACKWELL = {
    "roles": "pipelining{stages=3},warp-specialization,persistence{order=m ctas=2}",
    "claims": "pipelining{stages=3},warp-specialization,persistence{scheduler=clc}",
    "a pair": "clustering{shape=2x1},pipelining{stages=2},warp-specialization,persistence",
    "one program": "persistence{ctas=2}",
}


def residuals(m, n, k, types=("bf16",), c_dtype="bf16", vectors=()):
    """`c = … e1 - (e0 - sum)` in f32, with operands of these types; `vectors` are of columns."""
    spec = MatmulSpec(m, n, k, c_dtype=c_dtype)
    text, result = [], "%in0"
    for number, dtype in enumerate(types, 1):
        wide = f"%in{number}"
        if dtype != "f32":
            text.append(f"    %w{number} = arith.extf %in{number} : {dtype} to f32")
            wide = f"%w{number}"
        text.append(f"    %s{number} = arith.subf {wide}, {result} : f32")
        result = f"%s{number}"
    if c_dtype != "f32":
        text.append(f"    %last = arith.truncf {result} : f32 to {c_dtype}")
        result = "%last"
    axes = ["m, n", *("n" if at in vectors else "m, n" for at in range(len(types))), "m, n"]
    maps = ", ".join(f"affine_map<(m, n) -> ({each})>" for each in axes)
    rows = ["" if at in vectors else f"{m}x" for at in range(len(types))]
    views = [f"tensor<{row}{n}x{dtype}>" for row, dtype in zip(rows, types, strict=True)]
    arguments = "".join(f", %e{number}: {view}" for number, view in enumerate(views))
    of_c = f"tensor<{m}x{n}x{c_dtype}>"
    sums = f"tensor<{m}x{n}xf32>"
    block = ", ".join(
        ["%in0: f32", *(f"%in{number}: {dtype}" for number, dtype in enumerate(types, 1))]
    )
    beside = "".join(f", %e{number}" for number in range(len(types)))
    lines = "\n".join(text)
    a, b = f"tensor<{m}x{k}x{spec.a_dtype}>", f"tensor<{n}x{k}x{spec.b_dtype}>"
    return LinalgText(
        f"""
func.func @f(%a: {a}, %b: {b}{arguments}) -> {of_c} {{
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : {sums}
  %init = linalg.fill ins(%zero : f32) outs(%empty : {sums}) -> {sums}
  %sum = linalg.matmul indexing_maps = [affine_map<(i, j, k) -> (i, k)>,
      affine_map<(i, j, k) -> (j, k)>, affine_map<(i, j, k) -> (i, j)>]
    ins(%a, %b : {a}, {b}) outs(%init : {sums}) -> {sums}
  %into = tensor.empty() : {of_c}
  %c = linalg.generic {{indexing_maps = [{maps}], iterator_types = ["parallel", "parallel"]}}
    ins(%sum{beside} : {", ".join([sums, *views])}) outs(%into : {of_c}) {{
  ^bb0({block}, %out: {c_dtype}):
{lines}
    linalg.yield {result} : {c_dtype}
  }} -> {of_c}
  return %c : {of_c}
}}
""",
        "f",
    )


def tensor_maps(compiled):
    return [
        each["tensor"] for each in compiled.manifest["parameters"] if each["kind"] == "tensor_map"
    ]


@pytest.mark.sweep(6)
@pytest.mark.array(1, rest=HOPPER, slots=(2, 4, 8), columns=(16, 32), n=(64, 136))
def test_hopper_brings_pieces_whatever_the_slots(check_matmul, rest, slots, columns, n, seed=1):
    staging = f"epilogue-staging{{columns={columns} buffers=2 ahead={slots}}}"
    text = f"tiling{{tile=64x64x64}},{TMA},{staging},{HOPPER[rest]}"
    compiled, _ = check_matmul(residuals(136, n, 72), target="sm_90a", pipeline=text, seed=seed)
    assert tensor_maps(compiled) == ["a", "b", "e0", "c"]


@pytest.mark.sweep(6)
@pytest.mark.array(1, rest=BLACKWELL, slots=(1, 2, 5), write=("rows", "matrices"), n=(64, 136))
def test_blackwell_brings_pieces_whatever_the_slots(check_matmul, rest, slots, write, n, seed=1):
    staging = f"epilogue-staging{{columns=16 buffers=2 ahead={slots} write={write}}}"
    text = f"tiling{{tile=128x64x64}},{TMA},{staging},{BLACKWELL[rest]}"
    compiled, _ = check_matmul(residuals(264, n, 72), target="sm_100a", pipeline=text, seed=seed)
    assert tensor_maps(compiled) == ["a", "b", "e0", "c"]


@pytest.mark.sweep(4)
@pytest.mark.parametrize("target", ["sm_90a", "sm_100a"])
@pytest.mark.parametrize("write", ["rows", "matrices"])
@pytest.mark.parametrize(
    ("types", "c_dtype"),
    [(("f32",), "bf16"), (("bf16",), "f32"), (("f32", "f16"), "f16"), (("bf16", "f32"), "f32")],
)
def test_operands_have_types_of_their_own(check_matmul, target, write, types, c_dtype):
    write = "rows" if c_dtype == "f32" else write
    staging = f"epilogue-staging{{columns=32 buffers=2 ahead=2 write={write}}}"
    text = f"tiling{{tile=64x64x64}},{TMA},{staging},pipelining{{stages=2}},warp-specialization"
    source = residuals(72, 72, 64, types, c_dtype)
    compiled, _ = check_matmul(source, target=target, pipeline=text)
    assert len(tensor_maps(compiled)) == 3 + len(types)


@pytest.mark.sweep(4)
@pytest.mark.array(1, type_=("bf16", "f32"), columns=(24, 56), rest=HOPPER)
def test_pieces_may_be_an_odd_number_of_units(check_matmul, type_, columns, rest):
    """Of 3 and 7 units of 16 bytes, in a tile of 168 columns; operands of f32 have even ones."""
    staging = f"epilogue-staging{{columns={columns} buffers=2 ahead=2 vectors=ahead}}"
    text = f"tiling{{tile=64x168x64}},{TMA},{staging},{HOPPER[rest]}"
    source = residuals(136, 184, 72, (type_, "bf16"), vectors=(1,))
    compiled, _ = check_matmul(source, target="sm_90a", pipeline=text, seed=columns)
    assert tensor_maps(compiled) == ["a", "b", "e0", "e1", "c"]
    assert "stmatrix.sync.aligned.m8n8.x2" in compiled.ptx


@pytest.mark.sweep(4)
@pytest.mark.parametrize(
    ("target", "rest"),
    [("sm_90a", rest) for rest in HOPPER] + [("sm_100a", rest) for rest in BLACKWELL],
)
@pytest.mark.parametrize("n", [64, 136])
def test_columns_of_a_bias_are_brought_once_a_tile(check_matmul, target, rest, n, seed=1):
    """Of two operands, the second with an element for each column: `e1`."""
    staging = "epilogue-staging{columns=32 buffers=2 ahead=2 vectors=ahead}"
    tile, passes = ("64", HOPPER) if target == "sm_90a" else ("128", BLACKWELL)
    text = f"tiling{{tile={tile}x64x64}},{TMA},{staging},{passes[rest]}"
    source = residuals(136, n, 72, ("bf16", "f32"), vectors=(1,))
    compiled, _ = check_matmul(source, target=target, pipeline=text, seed=seed)
    assert tensor_maps(compiled) == ["a", "b", "e0", "e1", "c"]


APART = {
    "roles": "pipelining{stages=2},warp-specialization,persistence{order=m ctas=2}",
    "a cluster": "clustering{shape=2x1 pair=false},pipelining{stages=2},warp-specialization",
    "one program": "pipelining{stages=2}",
}


@pytest.mark.sweep(4)
@pytest.mark.array(
    1,
    rest=APART,
    tile=("256x128x32", "192x128x32"),
    types=(("bf16",), ("f32", "bf16")),
    n=(136, 264),
)
def test_columns_come_to_each_warpgroup_that_stores_by_itself(
    check_matmul, rest, tile, types, n, seed=1
):
    staging = "epilogue-staging{columns=16 buffers=2 vectors=ahead by=warpgroup}"
    text = f"tiling{{tile={tile}}},{TMA},{staging},{APART[rest]}"
    source = residuals(520, n, 72, types, vectors=range(len(types)))
    compiled, _ = check_matmul(source, target="sm_90a", pipeline=text, seed=seed)
    assert tensor_maps(compiled) == ["a", "b", *(f"e{at}" for at in range(len(types))), "c"]


def test_pieces_ahead_are_for_all_warpgroups_together():
    staging = "epilogue-staging{columns=16 ahead=2 by=warpgroup}"
    text = f"tiling{{tile=256x128x32}},{TMA},{staging}"
    with pytest.raises(CompileError, match="pieces ahead are for all warpgroups together, got"):
        compile_matmul(residuals(512, 256, 64), target="sm_90a", pipeline=text)


LEFT_TILES = {"sm_90a": ("128x32x64", "64x48x64"), "sm_100a": ("128x32x64", "64x64x64")}


def left_pipeline(tile, stages, swap=False, own=False):
    transposed = " swap=true" if swap else ""
    pieces = int(tile.split("x")[1]) // 16
    staged = f"epilogue-staging{{columns=16 ahead={pieces if own else 1}}}"
    roles = f"pipelining{{stages={stages}}},warp-specialization,slot-reuse"
    return f"tiling{{tile={tile}{transposed}}},{TMA},{staged},{roles}"


@pytest.mark.sweep(8)
@pytest.mark.array(
    1,
    target=LEFT_TILES,
    number=(0, 1),
    stages=(3, 4),
    k=(256, 328, 448, 576),
    dtype=("bf16", "f32"),
    swap=(False, True),
    own=(False, True),
)
def test_a_residual_in_left_slots_is_added(
    check_matmul, target, number, stages, k, dtype, swap, own, seed=1
):
    """The first slots and later ones, with and without what L2 is asked for; and in slots of its
    own, by steps where there are enough."""
    text = left_pipeline(LEFT_TILES[target][number], stages, swap, own)
    check_matmul(residuals(136, 72, k, (dtype,)), target=target, pipeline=text, seed=seed)


def test_operands_that_threads_copy_leave_no_slots():
    """Rows of 648 bytes, which TMA cannot address."""
    text = left_pipeline("64x64x64", 3)
    with pytest.raises(CompileError, match="as often as the kernel says, got copies by threads"):
        compile_matmul(residuals(136, 72, 324), target="sm_90a", pipeline=text, until="mlir")


def test_a_residual_in_left_slots_is_added_where_steps_begin_elsewhere(check_matmul, seed=1):
    """Loops that are cut where L2 is asked for pieces count the same steps together."""
    text = f"{left_pipeline('64x48x64', 3)},k-rotation{{together=1 by=3}}"
    compiled, _ = check_matmul(residuals(64, 72, 576), target="sm_90a", pipeline=text, seed=seed)
    assert compiled.ptx.count("prefetch.tensor.") == 1


def test_a_residual_comes_by_steps_to_slots_of_its_own(check_matmul, seed=1):
    """A piece in each of the three steps 3 to 5 of nine."""
    text = left_pipeline("64x48x64", 3, own=True)
    compiled, _ = check_matmul(residuals(64, 72, 576), target="sm_90a", pipeline=text, seed=seed)
    assert compiled.ptx.count("shared::cta.global.tile") == 3 * 2 + 1


def test_l2_is_asked_for_pieces_where_steps_are_left():
    """One piece a step of the eight in the middle; 10 steps are too few for 3 slots and 8."""
    text = left_pipeline("128x128x64", 3)
    for k, asked in ((1024, 1), (640, 0)):
        compiled = compile_matmul(residuals(256, 256, k), target="sm_90a", pipeline=text)
        assert compiled.ptx.count("prefetch.tensor.") == asked


def test_a_chosen_schedule_of_one_tile_loads_early_and_late():
    """Operands before the CTA meets, as the load role alone loads; the residual with all others."""
    compiled = compile_matmul(residuals(1024, 4096, 4096), target="sm_90a")
    assert compiled.pipeline.endswith("warp-specialization,slot-reuse,lower-to-nvvm")
    first, *roles = compiled.ptx.split("setmaxnreg")
    loads = [part.count("shared::cta.global.tile") for part in (first, *roles)]
    assert loads == [2, 0, 3 * 2 + 8]  # steps before those that ask L2, these, and behind them


def test_a_chosen_schedule_brings_pieces_by_steps_where_the_ring_stays_deep():
    """512x4096x4096 in tiles of 128x128, whose 4 pieces leave a ring of 5 stages."""
    compiled = compile_matmul(residuals(512, 4096, 4096), target="sm_90a", until="mlir")
    assert "ahead=4}" in compiled.pipeline and "stages=5}" in compiled.pipeline


@pytest.mark.parametrize(
    ("sizes", "target"),
    [
        ((2048, 4096, 1024), "sm_90a"),  # CTAs with several tiles
        ((1024, 4096, 4096), "sm_100a"),  # which no GPU has timed
        ((256, 1024, 8192), "sm_90a"),  # K in parts, whose sums threads store
    ],
)
def test_other_schedules_have_pieces_of_their_own(sizes, target):
    compiled = compile_matmul(residuals(*sizes), target=target, until="mlir")
    assert "slot-reuse" not in compiled.pipeline
