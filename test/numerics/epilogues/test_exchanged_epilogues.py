"""A and B exchanged with what epilogues read, further outputs, stacks, operands of any major."""

import pytest

from tilewright.compiler.importers.linalg_text import LinalgText
from tilewright.compiler.spec import MatmulSpec

TARGETS = ("sm_90a", "sm_100a")
RING = "pipelining{stages=3},warp-specialization"
STAGED = "epilogue-staging{columns=8 buffers=2}"
ENDS = {
    "tiling": "",
    "threads": f",{RING}",
    "staged": f",{STAGED}",
    "roles": f",{STAGED},{RING}",
    "ahead": f",epilogue-staging{{columns=8 buffers=2 ahead=2}},{RING}",
    "vectors": f",epilogue-staging{{buffers=1 ahead=3 vectors=ahead}},{RING},persistence",
    "registers": f",epilogue-staging{{columns=8 vectors=registers}},{RING},persistence",
    "a cluster": f",{STAGED},clustering{{shape=1x2 pair=false}},{RING}",
    "split": f",split-k{{parts=2}},{RING}",
    "split over the grid": f",split-k{{parts=2 over=grid}},{RING}",
}
OPERATIONS = "mulf", "subf"
SHAPE = (83, 136, 200)


def pipeline(tile, end):
    return f"tiling{{tile={tile} swap=true}},tma-insertion,swizzle-selection{ENDS[end]}"


def beside(m, n, k, operands):
    """`… e2 * (e1 - e0 * sum)` in f32, of operands by what of C they are indexed by, and types."""
    sizes = {"": "", "m": f"{m}x", "n": f"{n}x", "mn": f"{m}x{n}x"}
    views = [f"tensor<{sizes[axes]}{dtype}>" for axes, dtype in operands]
    lines, result = [], "%x"
    for number, ((axes, dtype), view) in enumerate(zip(operands, views, strict=True)):
        wide = f"%e{number}"
        read = f'"tile.element"(%arg{number}) {{axes = "{axes}"}} : ({view}) -> {dtype}'
        lines.append(f"    {wide} = {read}")
        if dtype != "f32":
            lines.append(f"    %w{number} = arith.extf {wide} : {dtype} to f32")
            wide = f"%w{number}"
        lines.append(f"    %s{number} = arith.{OPERATIONS[number % 2]} {wide}, {result} : f32")
        result = f"%s{number}"
    a, b, c = (f"tensor<{rows}x{columns}xbf16>" for rows, columns in ((m, k), (n, k), (m, n)))
    arguments = "".join(f", %arg{number}: {view}" for number, view in enumerate(views))
    epilogue = "\n".join(lines)
    return LinalgText(
        f"""
func.func @f(%a: {a}, %b: {b}{arguments}) -> {c} {{
  %c = "tile.matmul"(%a, %b) ({{
  ^bb0(%x: f32):
{epilogue}
    %t = arith.truncf {result} : f32 to bf16
    "tile.yield"(%t) : (bf16) -> ()
  }}) {{a_major = "k", b_major = "k"}} : ({a}, {b}) -> {c}
  return %c : {c}
}}
""",
        "f.mlir",
    )


EVERY = (("m", "f32"), ("mn", "bf16"), ("n", "f32"), ("", "f32"), ("mn", "f32"))


@pytest.mark.sweep(30)
@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("end", ENDS)
@pytest.mark.parametrize(
    ("tile", "shape"),
    [("64x24x64", SHAPE), ("128x80x64", (130, 264, 72)), ("64x16x64", (64, 64, 128))],
)
def test_epilogues_read_what_lies_beside_the_sum(check_matmul, target, end, tile, shape):
    """Square in the last case, where a transposed read would go unnoticed by extents."""
    source = beside(*shape, EVERY)
    compiled, _ = check_matmul(source, pipeline=pipeline(tile, end), target=target)
    assert compiled.manifest["schedule"]["swapped"] is True


def maps_of(compiled):
    return [
        each["tensor"] for each in compiled.manifest["parameters"] if each["kind"] == "tensor_map"
    ]


@pytest.mark.parametrize("target", TARGETS)
def test_tma_brings_what_is_as_large_as_c_and_its_rows(check_matmul, target, seed=1):
    """e2 has an element for each column of C, which is a row of the sums: threads read it."""
    compiled, _ = check_matmul(
        beside(*SHAPE, EVERY), pipeline=pipeline("64x24x64", "vectors"), target=target, seed=seed
    )
    assert maps_of(compiled) == ["a", "b", "e0", "e1", "e4", "c"]


def test_a_manifest_names_what_of_c_an_operand_is_indexed_by(check_matmul):
    compiled, _ = check_matmul(
        beside(19, 72, 64, EVERY), pipeline=pipeline("64x24x64", "roles"), target="sm_90a"
    )
    arguments = compiled.manifest["epilogue"]["arguments"]
    assert ["".join(each["axes"]) for each in arguments] == ["mn", *(axes for axes, _ in EVERY)]


SPECS = {
    "m-major": {"a_major": "m"},
    "n-major": {"b_major": "n"},
    "both": {"a_major": "m", "b_major": "n"},
    "stacks": {"batch": 3, "a_stacked": False},
    "gaps": {"batch": 2, "lda": 152, "ldb": 160, "ldc": 144},
    "outputs": {"further": ("f32", "f16")},
    "e4m3": {"a_dtype": "e4m3", "b_dtype": "e4m3"},
    "tf32": {"a_dtype": "tf32", "b_dtype": "tf32"},
}


@pytest.mark.sweep(16)
@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize(
    ("fields", "end"),
    [
        (fields, end)
        for fields in SPECS
        for end in ("threads", "roles", "a cluster", "split")
        if (fields, end) != ("outputs", "split")  # a split K has one output
    ],
)
def test_other_specs_are_exchanged(check_matmul, fields, end, target):
    depth = 32 if fields == "tf32" else 64
    spec = MatmulSpec(40, 136, 144, **SPECS[fields])
    check_matmul(spec, pipeline=pipeline(f"64x16x{depth}", end), target=target)
