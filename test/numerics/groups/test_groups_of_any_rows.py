"""Groups of any number of rows: a launch says how many there are, and the offsets who has them."""

import pytest

from tilewright.compiler.bundle_writer import as_bundle
from tilewright.compiler.driver import compile_matmul
from tilewright.compiler.pipeline import run_passes_on_text
from tilewright.compiler.spec import MatmulSpec
from tilewright.dialects.errors import CompileError, OptionError
from tilewright.runtime.bundles.bundle import Bundle, seal
from tilewright.runtime.bundles.manifest import BundleError, outputs
from tilewright.runtime.bundles.sizes import formula_of, most_rows
from tilewright.runtime.group_sizes import tiles_of_groups
from tilewright.runtime.judge.reference import compare, expected_output, to_float64
from tilewright.runtime.launch.devices import open_device
from tilewright.tools.runs.inputs import make_tensors

SPEC = MatmulSpec(200, 40, 72, groups=5, b_major="n", c_dtype="f32", dynamic_m=True)
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
ROLES = ",".join(LADDER[:7])
PERMUTES = "tiling{tile=64x32x64},tma-insertion,swizzle-selection,epilogue-staging,pipelining,"
PERMUTES += "warp-specialization,persistence{ctas=2},ping-pong"
PAIRS = ROLES.replace("64x32x32", "128x64x32").replace("shape=2x1", "shape=2x1 pair=true")
EXCHANGED = "tiling{tile=64x32x64 swap=true},tma-insertion,swizzle-selection"
IN_ROLES = f"{EXCHANGED},epilogue-staging{{columns=8 buffers=2}},pipelining,warp-specialization"
PREFIXES = [
    (target, ",".join(LADDER[:count])) for target in ("sm_90a", "sm_100a") for count in range(1, 9)
]
OTHERS = [
    *(
        ("sm_100a", f"{ROLES},persistence{{{how}}}")
        for how in ("scheduler=clc", "scheduler=clc order=n", "order=m", "order=n", "group=2")
    ),
    ("sm_100a", f"{PAIRS},persistence{{scheduler=clc}}"),
    ("sm_90a", PERMUTES),
    ("sm_90a", "tiling{tile=64x32x64 order=grouped group=2},tma-insertion"),
    ("sm_90a", "tiling{tile=64x32x64 order=n},tma-insertion"),
    ("sm_100a", "tiling{tile=64x48x64},copy-insertion,pipelining,warp-specialization"),
    ("sm_80", "tiling{tile=32x32x32},copy-insertion,swizzle-selection,epilogue-staging"),
    ("sm_80", "tiling{tile=16x16x32 mma=fma operands=global}"),
    ("sm_90a", EXCHANGED),
    ("sm_100a", f"{IN_ROLES},persistence{{ctas=4}}"),
    ("sm_90a", f"{EXCHANGED},level-groups"),
    ("sm_90a", f"{IN_ROLES},level-groups{{box=8}}"),
    ("sm_90a", f"{IN_ROLES},persistence{{ctas=4}},level-groups"),
]
SIZES = ((1, 0), (77, 1), (200, 2), (333, 3))
"""Rows, and a seed that draws offsets: in order, out of order, one group with nearly all."""


def is_right(bundle: Bundle, rows: int, seed: int) -> bool:
    """Whether the kernel gives every group's product, on poisoned outputs."""
    of_rows = bundle.at(rows)
    tensors = make_tensors(of_rows.manifest, seed)
    assert tensors["c"].shape[0] == rows
    open_device("emulator").launch(of_rows, tensors, seed, check="full")
    found = []
    for c in outputs(of_rows.manifest):
        expected = expected_output(of_rows.manifest, tensors, name=c["name"])
        actual = to_float64(tensors[c["name"]], c["dtype"])
        found.append(compare(expected, actual, c["dtype"], c["name"]).passed)
    return all(found)


@pytest.mark.sweep(17)
@pytest.mark.parametrize(("target", "pipeline"), PREFIXES + OTHERS)
def test_every_prefix_is_right_for_any_rows(target, pipeline):
    bundle = as_bundle(compile_matmul(SPEC, target=target, pipeline=pipeline))
    assert all(is_right(bundle, *each) for each in SIZES)


FORMS = [
    {},
    {"b_major": "k", "c_dtype": "bf16"},
    {"products": 2},
    {"further": ("f32", "bf16"), "c_dtype": "bf16"},
    {"a_dtype": "e4m3", "b_dtype": "e5m2", "b_major": "k"},
    {"k": 51, "n": 33},
    {"groups": 40},
    {"least_m": 65, "most_m": 333},
]


@pytest.mark.sweep(12)
@pytest.mark.parametrize("form", FORMS, ids=lambda form: "-".join(form) or "plain")
@pytest.mark.parametrize("target", ["sm_90a", "sm_100a", "sm_80"])
def test_the_chosen_schedule_is_right_for_any_rows(target, form):
    spec = MatmulSpec(**{**vars(SPEC), **form})
    if target == "sm_80" and spec.a_dtype == "e4m3":
        pytest.skip("no MMA for it")
    bundle = as_bundle(compile_matmul(spec, target=target))
    assert all(is_right(bundle, max(rows, spec.least_m), seed) for rows, seed in SIZES)


@pytest.mark.parametrize("count", [1, 5, 7])
def test_a_launch_has_as_many_ctas_as_groups_of_so_many_rows_may_need(count):
    compiled = compile_matmul(SPEC, target="sm_90a", pipeline=",".join(LADDER[:count]))
    bundle, together = as_bundle(compiled), 1 if count < 5 else 2
    grids = [bundle.at(rows).manifest["grid"][0] for rows in (1, 64, 65, 200, 100_000)]
    assert grids == [tiles_of_groups(rows, 5, 64, together) for rows in (1, 64, 65, 200, 100_000)]
    bundle.at(most_rows(bundle.manifest))


def test_exchanged_groups_have_as_many_rows_as_a_grid_has_places_along_y():
    compiled = compile_matmul(SPEC, target="sm_90a", pipeline=EXCHANGED)
    bundle = as_bundle(compiled)
    most = most_rows(bundle.manifest)
    assert bundle.at(most).manifest["grid"][1] <= 65_535 < tiles_of_groups(most + 32, 5, 32, 1)


def test_a_manifest_with_too_few_ctas_for_groups_is_refused():
    bundle = as_bundle(compile_matmul(SPEC, target="sm_90a", pipeline=LADDER[0]))
    formula = {**formula_of(bundle.manifest), "spare": 0}
    edited = {**bundle.manifest, "grid": [formula, *bundle.manifest["grid"][1:]]}
    with pytest.raises(BundleError, match="a CTA for each tile of"):
        Bundle(seal(edited, bundle.ptx, bundle.cubin), bundle.ptx, bundle.cubin).at(1)


@pytest.mark.parametrize(
    ("change", "rule"),
    [
        ({"gathered": 77}, "a dynamic m must come with gathered = 0, got 77; give m a number"),
        (
            {"group_axis": "k", "a_major": "m"},
            "a dynamic m must come with group_axis = 'm', got 'k'; give m a number",
        ),
    ],
)
def test_other_groups_have_a_known_number_of_rows(change, rule):
    with pytest.raises(OptionError, match=rule):
        MatmulSpec(**{**vars(SPEC), **change})


def test_groups_that_cut_another_number_of_rows_are_refused():
    how = {"stop_after": "tiling", "until": "mlir", "target": "sm_90a"}
    text = compile_matmul(SPEC, pipeline=LADDER[0], **how).mlir
    assert "extent = -1 : i64" in text
    edited = text.replace("extent = -1 : i64", "extent = 200 : i64")
    with pytest.raises(CompileError, match="tiles of 64 must cover c along M, got 4"):
        run_passes_on_text(edited, "edited", "assign-threads")
