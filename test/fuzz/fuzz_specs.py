"""Compile and run random specs with random pipelines, and hold every element to the product.

    python test/fuzz/fuzz_specs.py --count 1000 --seed 0 --processes 2

Each must be refused with a CompileError, or be right on the emulator. What is neither is printed
with its seed; `--seed S --count 1` is that one again. Exit status 1 when there is one.
"""

from __future__ import annotations

import random
import sys
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import Any

from fuzz_linalg import Outcome, judge_all, without_ptxas

TYPES = (
    *(("bf16", "bf16", "bf16", "f32", 16), ("f16", "f16", "f32", "f32", 16)),
    *(("bf16", "bf16", "f32", "f32", 16), ("f16", "f16", "bf16", "f32", 16)),
    *(("tf32", "tf32", "f32", "f32", 8), ("e4m3", "e5m2", "bf16", "f32", 32)),
    *(("s8", "u8", "s32", "s32", 32), ("u8", "u8", "f16", "s32", 32)),
)
OWN = (("f32", "f32", "f32", "f32", 1), ("f64", "f64", "f64", "f64", 1))
"""Types that only threads multiply."""
PASSES = (
    *("tma-insertion", "tma-insertion{box=3d}", "swizzle-selection", "epilogue-staging"),
    *("clustering{shape=2x1}", "clustering{shape=1x2}", "pipelining{stages=2}", "pipelining"),
    *("warp-specialization", "ping-pong", "persistence", "persistence{scheduler=static}"),
)
SCALED = ("mxfp8", "mxfp8_e5m2", "mxfp6", "mxfp6_e3m2", "mxfp4")
ROUNDINGS = {
    **dict.fromkeys(SCALED, ("floor", "ceil", "even", "rceil")),
    "nvfp4": ("nearest", "normal"),
}
OPEN = {"groups", "dynamic_m", "dynamic_batch"}
"""Fields of products whose results have no block scales."""
QUANTISED = 0.25
"""The share of cases whose results have block scales."""
SCALED_ONE_IN = 6
"""One case in so many has block scales."""
SCALED_TARGETS = ("sm_100a", "sm_100a", "sm_120a")
SCALED_PRODUCTS = tuple(
    (format_, target) for target in ("sm_100a", "sm_120a") for format_ in (*SCALED, "nvfp4")
)
"""Formats of A on chips that multiply them."""
WITH_ROWS_OF_64 = ("sm_100a", "sm_90a")
SWAPPED = 0.4
"""The share of pipelines on these that exchange A and B."""
SPLITS = (",split-k{parts=2}", ",split-k{parts=2 over=grid}")
CLUSTERS = ("clustering{shape=2x1 pair=true}", "clustering{shape=2x2}", "clustering")
COPIES = ("copy-insertion", "swizzle-selection", "pipelining{stages=2}", "persistence{ctas=2}")
WITHOUT_TMA = ("sm_80", "sm_86", "sm_89")
FURTHER = ("f32", "bf16", "f16", "e4m3", "e5m2")
TARGETS = ("sm_100a", "sm_90a", "sm_120a", *WITHOUT_TMA)


def random_case(seed: int) -> tuple[dict[str, Any], dict[str, Any]]:
    """The fields of a spec, and how to compile it."""
    draw = random.Random(seed)
    if seed % SCALED_ONE_IN == SCALED_ONE_IN - 1:
        return scaled_case(draw, draw.choice((*SCALED, "nvfp4")), draw.choice(SCALED_TARGETS), 300)
    *names, k_per_mma = draw.choice((*TYPES, *OWN))
    dtypes = dict(zip(("a_dtype", "b_dtype", "c_dtype", "acc_dtype"), names, strict=True))
    sizes = {axis: draw.choice((draw.randint(1, 40), draw.randint(41, 100))) for axis in "mnk"}
    majors = {"a_major": draw.choice("kkm"), "b_major": draw.choice("kkn")}
    stack: dict[str, Any] = {"batch": draw.randint(1, 3)} if draw.random() < 0.2 else {}
    if stack:
        stack |= {draw.choice(("a_stacked", "b_stacked")): draw.random() < 0.5}
    target = draw.choice(TARGETS)
    options: dict[str, Any] = {"target": target}
    if draw.random() < 0.6:
        options["pipeline"] = pipeline_of(draw, target, k_per_mma)
        options["pipeline"] = swapped(random.Random(f"swap {seed}"), options["pipeline"], target)
        clusters = random.Random(f"clusters {seed}")
        options["pipeline"] = of_clusters(clusters, options["pipeline"], target)
    beside = random.Random(f"outputs {seed}")  # leaves what else a seed draws as it was
    if names[3] == "f32" and beside.random() < 0.3:
        stack |= {"further": tuple(beside.choices(FURTHER, k=beside.randint(1, 2)))}
    rows = random.Random(f"rows {seed}")
    if "batch" not in stack and rows.random() < 0.3:
        stack |= {"dynamic_m": True, **_bounds(rows, sizes["m"])}
    elif names[3] == "f32" and k_per_mma > 1 and rows.random() < 0.3:
        stack |= _two_products(rows, sizes, majors)
    any_of = random.Random(f"any batch {seed}")
    if "batch" in stack and any_of.random() < 0.4:
        stack |= {"dynamic_batch": True}
        if any_of.random() < 0.5:
            stack |= {"dynamic_m": True, **_bounds(any_of, sizes["m"])}
    groups = random.Random(f"groups {seed}")
    if set(stack) <= {"further"} and groups.random() < 0.3:
        stack |= _groups(groups, majors, two_level=target == "sm_90a" and names[0] == "e4m3")
    if set(stack) <= {"further", "products"} and "products" in stack and groups.random() < 0.4:
        majors["a_major"] = "k"
        stack |= {"groups": groups.choice((1, 2, 5, 9))}
        stack |= {"gathered": groups.randint(1, 120)} if groups.random() < 0.3 else {}
    made = {**sizes, **dtypes, **majors, **stack}
    suits = k_per_mma > 1 and names[3] == "f32" and not OPEN & set(stack)
    quantised = _quantised(random.Random(f"quantised {seed}"), made, target, suits)
    return made | quantised, options


def _bounds(draw: random.Random, m: int) -> dict[str, int]:
    """As often as not the fewest and the most rows that a kernel serves."""
    if draw.random() >= 0.5:
        return {}
    return {"least_m": draw.randint(1, m), "most_m": m + draw.randint(0, 40)}


def _quantised(
    draw: random.Random, made: dict[str, Any], target: str, suits: bool = True
) -> dict[str, Any]:
    """Now and then a C with block scales, mostly of what the chip makes and of whole blocks."""
    if draw.random() >= (QUANTISED if suits else QUANTISED / 10):
        return {}
    every = target in ("sm_100a", "sm_120a") or draw.random() < 0.1
    form = draw.choice((*SCALED, "nvfp4") if every else ("mxfp8", "mxfp8_e5m2"))
    block = 16 if form == "nvfp4" else 32
    columns = -(-made["n"] // block) * block if draw.random() < 0.95 else made["n"]
    found = {"c_dtype": form, "n": columns}
    return found | ({"scale_rounding": draw.choice(ROUNDINGS[form])} if draw.random() < 0.5 else {})


def _groups(draw: random.Random, majors: dict[str, str], two_level: bool) -> dict[str, Any]:
    """Groups of rows, or of K; mostly stored as they must be."""
    axis = draw.choice("mk")
    if draw.random() < 0.9:
        majors |= {"a_major": "k"} if axis == "m" else {"a_major": "m", "b_major": "n"}
    found: dict[str, Any] = {"groups": draw.choice((1, 2, 5, 9, 40)), "group_axis": axis}
    if axis == "m" and draw.random() < 0.3:
        found["gathered"] = draw.randint(1, 120)
    if axis == "k" and draw.random() < 0.3:
        found["ordered"] = True
    return found | ({"sums": "two-level"} if two_level and draw.random() < 0.5 else {})


def _two_products(
    draw: random.Random, sizes: dict[str, int], majors: dict[str, str]
) -> dict[str, Any]:
    """Two products of one A; now and then with gaps between the rows of A, B or C."""
    rows = {"lda": sizes["k"] if majors["a_major"] == "k" else sizes["m"], "ldc": sizes["n"]}
    rows["ldb"] = sizes["k"] if majors["b_major"] == "k" else sizes["n"]
    gaps = {name: row + draw.randint(1, 16) for name, row in rows.items() if draw.random() < 0.2}
    return {"products": 2, **gaps}


def small_scaled_case(a: str, target: str, seed: int) -> tuple[dict[str, Any], dict[str, Any]]:
    """A product of a format on a chip, of one CTA or few, which takes well under a second."""
    return scaled_case(random.Random(f"{seed} {a} {target}"), a, target, 60)


def scaled_properties(product: tuple[str, str], seed: int) -> dict[str, Any]:
    """What `small_scaled_case` drew, where cases may differ in how they are compiled."""
    spec, options = small_scaled_case(*product, seed)
    pipeline = options.get("pipeline", "")
    names = [each.partition("{")[0] for each in PASSES] + [
        each.partition("{")[0] for each in COPIES
    ]
    told = {name: spec.get(name) for name in ("b_dtype", "c_dtype", "a_major", "b_major")}
    told |= {name: spec.get(name) for name in ("scale_layout", "a_stacked", "b_stacked")}
    told |= {"product": product, "tail": spec["k"] % 128 > 0, "default": not pipeline}
    told |= {
        "groups": spec.get("groups", 0) > 0,
        "rows": spec["m"] > 40,
        "columns": spec["n"] > 40,
        "stack": spec.get("batch", 0) > 0,
    }
    if pipeline:
        tile = pipeline.partition("}")[0].partition("=")[2].split("x")
        told |= {f"tile {axis}": extent for axis, extent in zip("mnk", tile, strict=True)}
        told |= {name: name in pipeline for name in dict.fromkeys(names)}
    return told


def scaled_case(
    draw: random.Random, a: str, target: str, largest: int
) -> tuple[dict[str, Any], dict[str, Any]]:
    """A product of a format with one that it goes with, of up to so many rows and columns."""
    by_warps = target == "sm_120a"
    block = 16 if a == "nvfp4" else 32
    others = (a,) if a == "nvfp4" else SCALED
    b = draw.choice(others)
    m, n = (draw.choice((draw.randint(1, 40), draw.randint(41, largest))) for _ in "mn")
    k = block * draw.randint(1, (largest + 84) // block)
    spec: dict[str, Any] = {"m": m, "n": n, "k": k, "a_dtype": a, "b_dtype": b}
    spec["c_dtype"] = draw.choice(("bf16", "f16", "f32"))
    spec |= {"a_major": draw.choice("kkm")} if a.startswith("mxfp8") else {}
    spec |= {"b_major": draw.choice("kkn")} if b.startswith("mxfp8") else {}
    spec |= {"scale_layout": "linear"} if draw.random() < 0.3 else {}
    spec |= _scaled_stack(random.Random(f"stack {m} {n} {k}"))  # the rest is drawn as without
    spec |= _quantised(random.Random(f"quantised {m} {n} {k}"), spec, target)
    spec |= _scaled_groups(random.Random(f"groups {m} {n} {k}"), spec)
    options = {"target": target}
    if draw.random() < 0.3:
        return spec, options
    widest = min(128 if by_warps else 256, 32 * -(-largest // 32))
    rows, columns = draw.choice((128, 128, 256)), 32 * draw.randint(1, widest // 32)
    tile = f"{128 if by_warps else rows}x{columns}x{draw.choice((64, 128, 256))}"
    passes = COPIES if by_warps and draw.random() < 0.5 else _scaled_passes(draw, by_warps)
    first, *rest = passes
    kept = [first, *(each for each in rest if draw.random() < (0.3 if "cluster" in each else 0.7))]
    if draw.random() < 0.1:  # later passes refuse, or take, what threads copy at once
        kept = kept[1:]
    once = {each.partition("{")[0]: each for each in kept}
    return spec, options | {"pipeline": ",".join([f"tiling{{tile={tile}}}", *once.values()])}


def _scaled_stack(draw: random.Random) -> dict[str, Any]:
    """Now and then a stack of products, of which one operand may be a single matrix."""
    if draw.random() >= 0.25:
        return {}
    return {
        "batch": draw.randint(1, 3),
        draw.choice(("a_stacked", "b_stacked")): draw.random() < 0.5,
    }


def _scaled_groups(draw: random.Random, spec: dict[str, Any]) -> dict[str, Any]:
    """Now and then groups of rows; mostly of an A that lies as it must."""
    if "batch" in spec or draw.random() >= 0.3:
        return {}
    major = "k" if draw.random() < 0.95 else spec.get("a_major", "k")
    return {"groups": draw.choice((1, 2, 5, 9)), "a_major": major}


def _scaled_passes(draw: random.Random, by_warps: bool) -> list[str]:
    """Passes by TMA in their order; warps of a chip without pairs have no cluster."""
    cluster = "clustering{shape=1x1}" if by_warps else draw.choice(CLUSTERS)
    passes = [cluster if "clustering" in each else each for each in PASSES]
    return [each for each in passes if each != "ping-pong"]


def pipeline_of(draw: random.Random, target: str, k_per_mma: int) -> str:
    """A tile of the chip's own MMA, of warps or of threads, and some passes in their order."""
    rows, columns, depth = draw.choice((64, 128, 256)), 16 * draw.randint(1, 8), k_per_mma
    passes, mma = PASSES, ""
    if k_per_mma == 1:
        rows, columns, depth = draw.randint(1, 40), draw.randint(1, 40), draw.randint(1, 4)
        mma = f" mma=fma{draw.choice(('', ' operands=whole', ' operands=global'))}"
    elif target == "sm_120a" or target in WITHOUT_TMA or draw.random() < 0.2:
        rows, mma = draw.choice((16, 32, 64, 128)), " mma=mma.sync"
    if k_per_mma == 1 or target in WITHOUT_TMA or (mma and draw.random() < 0.5):
        passes = COPIES
    kept = [name for name in passes if draw.random() < (0.1 if "cluster" in name else 0.5)]
    once = {name.partition("{")[0]: name for name in kept}
    tile = "x".join(map(str, (rows, columns, depth * draw.randint(1, 4))))
    return ",".join([f"tiling{{tile={tile}{mma}}}", *once.values()])


def swapped(draw: random.Random, pipeline: str, target: str) -> str:
    """Now and then the same with A and B exchanged, in a tile with columns by 8, and a split K."""
    if target not in WITH_ROWS_OF_64 or "mma=" in pipeline or draw.random() >= SWAPPED:
        return pipeline
    tile, _, rest = pipeline.removeprefix("tiling{tile=").partition("}")
    rows, _, depth = tile.split("x")
    split = draw.choice((*[""] * 6, *SPLITS)) if "epilogue-staging" not in rest else ""
    head, comma, tail = rest.partition(",clustering")
    rest = head.replace(",pipelining", f"{split},pipelining") + comma + tail
    return f"tiling{{tile={rows}x{8 * draw.randint(1, 16)}x{depth} swap=true}}{rest}"


SHAPES = ("1x2", "2x1", "2x2", "4x1", "1x4", "4x2", "2x4")
CLAIMS = ("", " depth=1", " depth=2", " depth=3")
STATIC = ("", " ctas=1", " ctas=2", " ctas=8", " group=2", " order=hilbert")


def of_clusters(draw: random.Random, pipeline: str, target: str) -> str:
    """Half of the pipelines by TMA of a chip with tensor memory get clusters, with pairs or without
    them, and kernels that stay, mostly such that claim clusters."""
    if target != "sm_100a" or "tma-insertion" not in pipeline or draw.random() < 0.5:
        return pipeline
    given = pipeline.split(",")
    kept = [each for each in given if not each.startswith(("clustering", "persistence"))]
    if "mma=" not in kept[0] and draw.random() < 0.8:
        pair = draw.choice(("", " pair=true", " pair=false"))
        behind = ("tiling", "tma-insertion", "swizzle-selection", "epilogue-staging", "split-k")
        place = max(i for i, each in enumerate(kept) if each.startswith(behind))
        kept.insert(place + 1, f"clustering{{shape={draw.choice(SHAPES)}{pair}}}")
    if draw.random() < 0.8 and not any(each.startswith("split-k") for each in kept):
        roles = any(each.startswith("warp-specialization") for each in kept)
        if not roles and draw.random() < 0.9:
            piped = any(each.startswith("pipelining") for each in kept)
            kept += ["warp-specialization"] if piped else ["pipelining", "warp-specialization"]
        claims = draw.random() < 0.7
        more = draw.choice(CLAIMS) if claims else draw.choice(STATIC)
        kept.append(f"persistence{{scheduler={'clc' if claims else 'static'}{more}}}")
    return ",".join(kept)


def judge(seed: int) -> Outcome:
    """Compile and run the case of a seed."""
    return judge_case(seed, *random_case(seed))


def judge_case(seed: int, fields: dict[str, Any], options: dict[str, Any]) -> Outcome:
    """Compile a spec and run it on inputs of the seed."""
    return judge_spec(seed, fields, options, _wrong)


def judge_spec(
    seed: int,
    fields: dict[str, Any],
    options: dict[str, Any],
    wrong: Callable[[Any, Any, int], str],
    limited: Callable[[], AbstractContextManager[None]] = nullcontext,
) -> Outcome:
    """Compile a spec, and run its bundle, each within limits: `wrong(spec, bundle, seed)` says what
    is wrong of the results, "" where nothing is."""
    from tilewright.compiler import driver
    from tilewright.compiler.bundle_writer import as_bundle
    from tilewright.compiler.spec import MatmulSpec

    def make() -> tuple[Any, Any]:
        spec = MatmulSpec(**fields)
        bundle = as_bundle(driver.compile_matmul(spec, **options))
        spec, sizes = of_a_size(spec, seed)
        return spec, bundle.at(*sizes)

    return judge_made(seed, make, wrong, limited)


def judge_made(
    seed: int,
    make: Callable[[], tuple[Any, Any]],
    wrong: Callable[[Any, Any, int], str],
    limited: Callable[[], AbstractContextManager[None]] = nullcontext,
) -> Outcome:
    """The same of a case and its bundle, which `make` compiles: `wrong(case, bundle, seed)`."""
    from tilewright.dialects.errors import CompileError

    try:
        with limited(), without_ptxas():
            case, bundle = make()
    except CompileError as error:
        return Outcome(seed, "refused", str(error))
    except Exception as error:
        return Outcome(seed, "internal error", f"{type(error).__name__}: {error}")
    try:
        with limited():
            found = wrong(case, bundle, seed)
    except Exception as error:
        return Outcome(seed, "failed at run", f"{type(error).__name__}: {error}")
    return Outcome(seed, "wrong", found) if found else Outcome(seed, "right")


def _wrong(spec: Any, bundle: Any, seed: int) -> str:
    from tilewright.runtime.launch.devices import open_device
    from tilewright.tools.runs.references import OfSpec, compare_with

    if spec.groups or spec.quantized:
        found = _compare_by_manifest(bundle, seed)
    else:
        reference = OfSpec(spec)
        tensors = reference.tensors(bundle.manifest, seed)
        open_device("emulator").launch(bundle, tensors, seed, check="fast")
        found = compare_with(reference, bundle.manifest, tensors)
    return "" if found.passed else str(found)


def of_a_size(spec: Any, seed: int) -> tuple[Any, tuple[int, ...]]:
    """The spec of what is launched, and its open sizes: M is the hint, of any batch too one of the
    kernel's, a batch the hint or any other small one."""
    draw = random.Random(seed)
    sizes = {"m": spec.m, "batch": draw.choice((spec.batch, 1, 2, 5))}
    if spec.dynamic_batch and spec.dynamic_m:
        sizes["m"] = draw.choice((spec.m, spec.least_m or 1, spec.most_m or spec.m + 70))
    found = tuple(sizes[name] for name in spec.open_sizes)
    return spec.of_sizes(*found), found


def _compare_by_manifest(bundle: Any, seed: int) -> Any:
    """Run a product of which the manifest says what it should give: the first output that is wrong,
    or the last one."""
    from tilewright.runtime.bundles.manifest import outputs
    from tilewright.runtime.judge.reference import compare, expected_output, to_float64
    from tilewright.runtime.launch.devices import open_device
    from tilewright.tools.runs.inputs import make_tensors

    tensors = make_tensors(bundle.manifest, seed)
    open_device("emulator").launch(bundle, tensors, seed, check="fast")
    for each in outputs(bundle.manifest):
        name, dtype = each["name"], each["dtype"]
        expected = expected_output(bundle.manifest, tensors, name=name)
        found = compare(expected, to_float64(tensors[name], dtype), dtype, name)
        if not found.passed:
            break
    return found


def describe(seed: int) -> str:
    """What to keep of a seed."""
    fields, options = random_case(seed)
    return f"{fields}\n{options}\n"


if __name__ == "__main__":
    sys.exit(judge_all(judge, describe, __doc__, "txt"))
