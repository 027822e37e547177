"""benchmarks/gpu_test without a GPU: the set, the way to the emulator, and what is found."""

import importlib
import itertools
import json
import math
import sys
from pathlib import Path

import pytest
import torch

from tilewright.compiler.presets import HOPPER_PRESETS
from tilewright.compiler.spec import MatmulSpec

FOLDER = Path(__file__).parents[2] / "benchmarks" / "gpu_test"
EPILOGUE = {"arguments": [{"tensor": None, "axes": ["m", "n"]}], "operations": [], "result": 0}
RIGHT, SEED = None, 7


@pytest.fixture
def script(monkeypatch):
    """script(name) imports one of the folder, as when it is run there."""
    monkeypatch.syspath_prepend(str(FOLDER))
    yield importlib.import_module
    for name in (
        "gpu_test",
        "gpu_test_case",
        "gpu_test_cases",
        "gpu_test_any_size",
        "gpu_test_sizes",
        "gpu_test_schedules",
        "gpu_test_units",
        "gpu_test_bundles",
        "gpu_test_judges",
        "gpu_test_launches",
        "gpu_test_runs",
        "gpu_test_sums",
    ):
        sys.modules.pop(name, None)


def run(script, monkeypatch, name, *arguments):
    monkeypatch.setattr(sys, "argv", [f"{name}.py", *map(str, arguments)])
    return script(name).main()


def test_the_set_holds_every_prefix_and_preset_in_every_layout(script):
    cases = script("gpu_test_cases")
    found = list(cases.cases("sm_90a"))
    assert len({case.name for case in found}) == len(found)
    layouts, results = list(itertools.product("km", "kn")), ("bf16", "f16", "f32")
    presets = {
        (case.pipeline, (case.spec.a_major, case.spec.b_major), case.spec.c_dtype)
        for case in found
        if case.group == "presets"
    }
    assert presets >= {*itertools.product(HOPPER_PRESETS.values(), layouts, results)}
    prefixes = [case for case in found if case.group == "prefixes"]
    for kind in (layouts, results):
        wanted = {*itertools.product(cases.PREFIXES, kind)}
        of = (lambda s: s.c_dtype) if kind is results else (lambda s: (s.a_major, s.b_major))
        assert {(case.last, of(case.spec)) for case in prefixes} == wanted


@pytest.mark.parametrize(("target", "ways"), [("sm_80", ("-",)), ("sm_90a", ("-", "-roles-"))])
def test_the_set_holds_kernels_of_warps_and_threads_of_every_type(script, target, ways):
    """By cp.async on a chip without TMA, with roles and without on one that has it."""
    found = [case for case in script("gpu_test_cases").cases(target) if case.name[:5] == "unit-"]
    assert len({case.name for case in found}) == len(found)
    of = {"mma.sync": {"bf16", "f16", "tf32", "s8"}, "fma": {"f32", "f64"}}
    for (unit, types), way in itertools.product(of.items(), ways):
        if (unit, way) == ("fma", "-roles-"):
            continue  # threads copy what they multiply
        those = [case for case in found if case.name.startswith(f"unit-{unit}{way}tiling-")]
        assert {case.spec.a_dtype for case in those} >= types
        stacks = [case.spec.batch for case in found if f"unit-{unit}-stack" in case.name]
        assert stacks == [3, 3, 3]


def test_the_set_holds_stacks_of_every_prefix_with_and_without_a_shared_matrix(script):
    cases = script("gpu_test_cases")
    found = [case for case in cases.cases("sm_90a") if case.group == "stacks"]
    assert {case.last for case in found} >= set(cases.PREFIXES)
    assert {case.pipeline for case in found} >= {
        None,
        *(HOPPER_PRESETS[f"h{n}"] for n in range(4, 9)),
    }
    shared = {(case.spec.a_stacked, case.spec.b_stacked) for case in found}
    assert shared == {(True, True), (False, True), (True, False)}
    assert {(case.spec.a_major, case.spec.b_major) for case in found} == {*cases.LAYOUTS}
    assert all(case.spec.batch == 3 for case in found)


def test_each_of_several_outputs_is_judged(script, monkeypatch, tmp_path):
    make, cases = script("gpu_test_bundles"), script("gpu_test_cases")
    those = [case for case in cases.cases("sm_90a") if case.group == "outputs"]
    assert {case.last for case in those} >= set(cases.PREFIXES)
    spec = MatmulSpec(40, 24, 16, c_dtype="e5m2", further=("f32",))
    monkeypatch.setattr(make, "cases", lambda target: iter([cases.Case("outputs", "two", spec)]))
    assert run(script, monkeypatch, "gpu_test_bundles", tmp_path, "--target", "sm_90a") == 0
    assert run(script, monkeypatch, "gpu_test", tmp_path, "--device", "cpu") == 0


def test_stacks_and_f64_are_judged_as_any_others(script, monkeypatch, tmp_path):
    make, case = script("gpu_test_bundles"), script("gpu_test_cases").Case
    spec = MatmulSpec(5, 9, 7, "f64", "f64", "f64", "f64", batch=2)
    chosen = [case("fma", "stack", spec, "tiling{tile=8x16x4 mma=fma}")]
    monkeypatch.setattr(make, "cases", lambda target: iter(chosen))
    assert run(script, monkeypatch, "gpu_test_bundles", tmp_path, "--target", "sm_80") == 0
    assert run(script, monkeypatch, "gpu_test", tmp_path, "--device", "cpu") == 0


def test_the_random_specs_are_200_and_the_same_every_time(script):
    cases = script("gpu_test_cases").cases
    once, again = (
        [case for case in cases("sm_90a") if case.group == "random specs"] for _ in range(2)
    )
    assert len({case.spec for case in once}) == 200
    assert once == again
    assert all(case.pipeline is None for case in once), "the compiler chooses"


def test_bundles_are_made_once_and_are_right_on_the_emulator(script, monkeypatch, tmp_path, capsys):
    make, case = script("gpu_test_bundles"), script("gpu_test_cases").Case
    small, other = MatmulSpec(20, 24, 40), MatmulSpec(9, 16, 24, "f16", "f16", "f32", a_major="m")
    pair = "tiling,tma-insertion{box=2d},clustering{shape=2x1 pair=true}"
    chosen = [
        case("few", "small", small),
        case("few", "refused", small, pair),
        case("more", "other", other, "tiling{tile=64x32x32}"),
    ]
    monkeypatch.setattr(make, "cases", lambda target: iter(chosen))
    assert run(script, monkeypatch, "gpu_test_bundles", tmp_path, "--emulate", "10000") == 1
    assert "\nrefused: error: " in capsys.readouterr().err
    index = json.loads((tmp_path / "index.json").read_bytes())
    assert list(index) == ["small", "other"]
    assert index["small"]["emulator"] == [None], "20·24·40 multiplications are above the limit"
    run(script, monkeypatch, "gpu_test_bundles", tmp_path)
    assert capsys.readouterr().err.startswith("refused: "), "the others are there"

    out = tmp_path / "out.json"
    assert run(script, monkeypatch, "gpu_test", tmp_path, "--device", "cpu", "--json", out) == 0
    assert capsys.readouterr().out.splitlines()[2:] == [
        "| 1 | 1 | 0 | few |",
        "| 1 | 1 | 1 | more |",
        "| 2 | 2 | 1 | together |",
    ]
    assert json.loads(out.read_bytes())["runs"] == 12


def test_a_name_that_no_kernel_has_is_refused(script, monkeypatch, tmp_path):
    with pytest.raises(SystemExit, match="--only: must be part of a kernel's name, got 'h9-'"):
        run(script, monkeypatch, "gpu_test_bundles", tmp_path / "new", "--only", "h9-")
    assert not (tmp_path / "new").exists()


def test_another_result_than_the_emulators_is_a_problem(script, monkeypatch, tmp_path, capsys):
    make, case = script("gpu_test_bundles"), script("gpu_test_cases").Case
    chosen = [case("few", "small", MatmulSpec(20, 24, 40))]
    monkeypatch.setattr(make, "cases", lambda target: iter(chosen))
    assert run(script, monkeypatch, "gpu_test_bundles", tmp_path) == 0
    index = json.loads((tmp_path / "index.json").read_bytes())
    index["small"]["emulator"] = ["0" * 64]
    index["missing"] = index["small"]
    (tmp_path / "index.json").write_text(json.dumps(index))
    capsys.readouterr()
    assert run(script, monkeypatch, "gpu_test", tmp_path, "--device", "cpu") == 1
    first, second = capsys.readouterr().err.splitlines()
    assert first == "small: emulator: integers must give the emulator's bits, got others"
    assert second.startswith(f"missing: {tmp_path}/missing.zip: must be a bundle, got no such file")


def test_a_kernel_of_any_batch_is_judged_with_each_of_its_sizes(
    script, monkeypatch, tmp_path, capsys
):
    make, cases = script("gpu_test_bundles"), script("gpu_test_cases")
    found = [case for case in cases.cases("sm_90a") if case.sizes]
    assert {case.group for case in found} == {"any batch", "any M", "any M and batch"}
    assert {case.last for case in found} == {*cases.PREFIXES, None}
    spec = MatmulSpec(5, 9, 8, "f32", "f32", "f32", batch=2, dynamic_batch=True)
    chosen = [cases.Case("any", "stack", spec, "tiling{tile=8x16x4 mma=fma}", sizes=(1, 3))]
    monkeypatch.setattr(make, "cases", lambda target: iter(chosen))
    assert run(script, monkeypatch, "gpu_test_bundles", tmp_path, "--target", "sm_80") == 0
    index = json.loads((tmp_path / "index.json").read_bytes())
    assert len(set(index["stack"]["emulator"])) == 2
    out = tmp_path / "out.json"
    assert run(script, monkeypatch, "gpu_test", tmp_path, "--device", "cpu", "--json", out) == 0
    assert json.loads(out.read_bytes())["runs"] == 12
    index["stack"]["emulator"].reverse()
    (tmp_path / "index.json").write_text(json.dumps(index))
    capsys.readouterr()
    assert run(script, monkeypatch, "gpu_test", tmp_path, "--device", "cpu") == 1
    lines = capsys.readouterr().err.splitlines()
    assert [line.rpartition("(")[2] for line in lines] == ["size 1)", "size 3)"]


def test_a_kernel_of_any_rows_and_batch_is_judged_with_both_and_with_none(
    script, monkeypatch, tmp_path, capsys
):
    make, cases = script("gpu_test_bundles"), script("gpu_test_cases")
    found = [case for case in cases.cases("sm_90a") if case.group == "any M and batch"]
    assert {case.last for case in found} == {*cases.PREFIXES, None}
    assert all(any(0 in size for size in case.sizes) for case in found)
    both = {"dynamic_m": True, "dynamic_batch": True, "b_stacked": False}
    spec = MatmulSpec(5, 9, 8, "f32", "f32", "f32", batch=2, **both)
    sizes = ((0, 3), (5, 0), (9, 2))
    chosen = [cases.Case("any", "both", spec, "tiling{tile=8x16x4 mma=fma}", sizes=sizes)]
    monkeypatch.setattr(make, "cases", lambda target: iter(chosen))
    assert run(script, monkeypatch, "gpu_test_bundles", tmp_path, "--target", "sm_80") == 0
    assert run(script, monkeypatch, "gpu_test", tmp_path, "--device", "cpu") == 0
    index = json.loads((tmp_path / "index.json").read_bytes())
    index["both"]["emulator"].reverse()
    (tmp_path / "index.json").write_text(json.dumps(index))
    capsys.readouterr()
    assert run(script, monkeypatch, "gpu_test", tmp_path, "--device", "cpu") == 1
    lines = capsys.readouterr().err.splitlines()
    assert [line.rpartition("(")[2] for line in lines] == ["size [0, 3])", "size [9, 2])"]


class Writing:
    """A kernel of any M that writes before outputs without rows."""

    def __init__(self, manifest):
        self.manifest = manifest

    def __call__(self, a, out):
        out.as_strided((1,), (1,), out.storage_offset() - 1)[0] = 1.0


def test_what_a_call_of_nothing_writes_is_a_problem(script):
    tensors = [
        {"name": name, "role": role, "dtype": "f32", "shape": ["m", 4], "strides": [4, 1]}
        for name, role in (("a", "input"), ("c", "output"))
    ]
    manifest = {"tensors": tensors, "parameters": [{"kind": "size", "size": "m"}]}
    problems = script("gpu_test").judge_size(Writing(manifest), 0, SEED, None, "cpu")
    assert problems == ["inside: nothing must be written, got something"]


def test_a_folder_without_an_index_is_refused(script, monkeypatch, tmp_path):
    with pytest.raises(SystemExit, match=r"index\.json: must be what gpu_test_bundles\.py has"):
        run(script, monkeypatch, "gpu_test", tmp_path, "--device", "cpu")


class Fake:
    """A kernel in torch that damages what it is told to."""

    def __init__(self, damage):
        self.damage, self.calls = damage, 0
        shapes = {"a": (40, 24), "b": (56, 24), "c": (40, 56)}
        roles = {"a": "input", "b": "input", "c": "output"}
        tensors = [
            {"name": name, "role": roles[name], "dtype": "f32" if name == "c" else "bf16",
             "shape": [*shape], "strides": [shape[1], 1]}
            for name, shape in shapes.items()
        ]  # fmt: skip
        self.manifest = {"tensors": tensors, "epilogue": EPILOGUE}

    def __call__(self, a, b, out):
        self.calls += 1
        out.copy_(a.double() @ b.double().T)
        if self.damage:
            self.damage(self.calls, out)


def off_by_a_little(calls, out):
    out[13, 7] += 1e-3


def unwritten(calls, out):
    out[39, 55] = math.nan


def once_other_zeros(calls, out):
    if calls % 3 == 0:
        out[3, 5] = torch.nextafter(out[3, 5], torch.tensor(math.inf))


def beyond(calls, out):
    out.as_strided((1,), (1,), out.storage_offset() + out.numel())[0] = 1.0


def before(calls, out):
    out.as_strided((1,), (1,), out.storage_offset() - 1)[0] = 1.0


@pytest.mark.parametrize(
    ("damage", "broken"),
    [
        (RIGHT, []),
        (off_by_a_little, ["bounds", "exact"]),
        (unwritten, ["bounds", "exact"]),
        (once_other_zeros, ["repeated", "repeated"]),
        (beyond, ["inside", "inside"]),
        (before, ["inside", "inside"]),
    ],
)
def test_each_rule_finds_what_breaks_it(script, damage, broken):
    problems = script("gpu_test").judge(Fake(damage), SEED, None, "cpu")
    assert [problem.partition(":")[0] for problem in problems] == broken


def test_inputs_are_the_same_wherever_they_are_drawn(script):
    runs = script("gpu_test_runs")
    manifest = Fake(RIGHT).manifest
    integers = runs.draw(manifest, runs.seed_of("a name"), "integers")
    normals = runs.draw(manifest, runs.seed_of("a name"), "normals")
    assert integers["a"][0, :8].tolist() == [-3, 0, -4, -4, 1, 1, 0, 0]
    assert normals["a"][0, :2].tolist() == [1.0078125, -0.357421875]
    assert not integers["a"][:, :8].equal(integers["b"][:40, :8])
    assert {*integers["b"].unique().tolist()} == set(range(-4, 5))


def cut(value, unit):
    return math.trunc(value / unit) * unit


def by_hand(x, y, products, fraction, kept):
    """One element, an MMA of so many products after the other, in Python's exact floats."""
    total = 0.0
    for start in range(0, len(x), products):
        pairs = list(zip(x[start : start + products], y[start : start + products], strict=True))
        places = [math.frexp(p)[1] + math.frexp(q)[1] - 2 for p, q in pairs if p * q]
        places += [math.frexp(total)[1] - 1] if total else []
        unit = 2.0 ** (max(places) - fraction)
        total = sum(cut(each, unit) for each in [*(p * q for p, q in pairs), total])
        total = cut(total, 2.0 ** (math.frexp(total)[1] - 1 - kept)) if total else 0.0
    return total


@pytest.mark.parametrize("dtype", ["e4m3", "tf32", "bf16"])
def test_known_sums_are_those_of_the_published_steps(script, dtype):
    known = script("gpu_test_sums")
    generator = torch.Generator().manual_seed(4)
    type_ = known.torch_dtype(dtype)
    inputs = {name: torch.randn((5, 70), generator=generator).to(type_) for name in ("a", "b")}
    tensors = [{"name": name, "dtype": dtype} for name in "ab"] + [{"name": "c", "dtype": "f32"}]
    found = known.known_product({"tensors": tensors}, inputs, "cpu")
    a, b = (known.to_float64(inputs[name], dtype).tolist() for name in "ab")
    sums = known.SUMS[dtype]
    assert found.tolist() == [[by_hand(x, y, *sums) for y in b] for x in a]
    exact = torch.tensor(a, dtype=torch.float64) @ torch.tensor(b, dtype=torch.float64).T
    assert not found.equal(exact.float())


def test_other_bits_than_the_known_ones_are_a_problem(script):
    known, runs = script("gpu_test_sums"), script("gpu_test_runs")
    judge_sums = script("gpu_test_judges").judge_sums
    kernel = Fake(RIGHT)
    manifest = kernel.manifest | {"target": "sm_90a", "schedule": {"split_k": 1}, "pipeline": ""}
    inputs = runs.draw(manifest, SEED, "normals")
    right = known.known_product(manifest, inputs, "cpu")
    assert judge_sums(manifest, inputs, right, "cpu") == []
    wrong = right.clone()
    wrong[3, 5] = torch.nextafter(wrong[3, 5], torch.tensor(math.inf))
    problem = "known: sums must have the bits of this GPU's MMAs, got 1 others"
    assert judge_sums(manifest, inputs, wrong, "cpu") == [problem]
    for other in ({"target": "sm_100a"}, {"schedule": {"split_k": 2}}):
        assert judge_sums(manifest | other, inputs, wrong, "cpu") == []


def test_groups_of_rows_are_judged_group_by_group(script, monkeypatch, tmp_path):
    make, cases = script("gpu_test_bundles"), script("gpu_test_cases")
    those = [case for case in cases.cases("sm_90a") if case.group == "groups"]
    assert {case.spec.groups for case in those} == {1, 5, 33}
    spec = MatmulSpec(40, 24, 16, groups=3)
    monkeypatch.setattr(make, "cases", lambda target: iter([cases.Case("groups", "three", spec)]))
    assert run(script, monkeypatch, "gpu_test_bundles", tmp_path, "--target", "sm_90a") == 0
    assert run(script, monkeypatch, "gpu_test", tmp_path, "--device", "cpu") == 0
