"""What comes in the place of a schedule that was chosen and for which ptxas finds no room."""

import re
import warnings
from contextlib import nullcontext
from dataclasses import replace
from typing import Any

import pytest
import torch

import tilewright
from tilewright.compiler import buckets, driver
from tilewright.compiler.backend import Assembled, RoomError
from tilewright.compiler.calls.kernels import kernel_cache, lookup
from tilewright.compiler.chosen_pipeline import choose_pipeline, pipelines_by_rank
from tilewright.compiler.driver import TRIES, compile_matmul
from tilewright.compiler.importers.epilogue_function import Frame, import_epilogue
from tilewright.compiler.importers.linalg_text import LinalgText
from tilewright.compiler.importers.traced_function import TensorLike
from tilewright.compiler.pipeline import complete_pipeline
from tilewright.compiler.schedule.any_size.buckets import Bucket
from tilewright.compiler.schedule.problem import Problem
from tilewright.compiler.schedule.rules.two_level_rules import added_copies
from tilewright.compiler.schedule.search.choice import choose_schedule
from tilewright.compiler.spec import ROWS_MOST, MatmulSpec
from tilewright.dialects.errors import CompileError
from tilewright.dialects.target import find_target
from tilewright.tools.explain.chosen import compile_taken
from tilewright.tools.main import main

SPEC = MatmulSpec(64, 96, 128)
SPILLS = "ptxas: registers must not spill, got 8 bytes of stores and 4 of loads a thread"
NAMED = "tiling{tile=64x32x32},tma-insertion,warp-specialization"


@pytest.fixture
def room(monkeypatch):
    """Stands for ptxas, which spills the first so many kernels; the list of what it was given."""
    given = []

    def spilling(count):
        def assemble(ptx, **_):
            given.append(ptx)
            if [*dict.fromkeys(given)].index(ptx) < count:
                raise RoomError(f"{SPILLS}; choose a smaller tile or allow spills")
            return Assembled(b"", 0, 0, 0, 0, 0, "")

        monkeypatch.setattr(driver, "assemble", assemble)
        monkeypatch.setattr(driver, "assembler_ahead", lambda **_: nullcontext())
        return given

    return spilling


def whole(pipeline):
    return ",".join(str(call) for call in complete_pipeline(pipeline, None, None, True))


@pytest.mark.parametrize("target", ["sm_90a", "sm_100a"])
def test_the_next_schedule_is_taken_and_a_remark_names_both(room, target):
    room(1)
    first, second, *_ = pipelines_by_rank(SPEC, target)
    assert first == choose_pipeline(SPEC, target)
    compiled = compile_matmul(SPEC, target=target)
    assert compiled.pipeline == whole(second) == compiled.manifest["pipeline"]
    assert compiled.given_up == (whole(first),)
    assert compiled.chosen
    (remark,) = (each for each in compiled.remarks if "is taken instead" in each)
    assert remark == (
        "remark: schedule: a kernel must fit the registers and memory of the chip,"
        f" got '{first}' ({SPILLS}); '{second}' is taken instead"
    )


@pytest.mark.parametrize(
    ("until", "count"), [("mlir", 0), ("mlir", 1), ("llvm", 1), ("ptx", 1), ("ptx", 2)]
)
def test_what_is_shown_is_of_the_schedule_that_is_taken(room, until, count, monkeypatch):
    monkeypatch.setattr(driver, "TRIES", 2)
    room(count)
    how: dict[str, Any] = {"target": "sm_90a", "pipeline": None, "preset": None}
    how |= {"stop_after": None, "until": until, "observer": None}
    shown = compile_taken(compile_matmul, SPEC, how)
    taken = [*pipelines_by_rank(SPEC, "sm_90a")][count % 2]  # the first, if none has room
    text = {"mlir": "mlir", "llvm": "llvm_ir", "ptx": "ptx"}[until]
    expected = compile_matmul(SPEC, target="sm_90a", pipeline=taken, until=until)
    assert getattr(shown, text) == getattr(expected, text)
    assert (
        len(shown.given_up)
        == sum("is taken instead" in each for each in shown.remarks)
        == count % 2
    )


def test_without_a_ptxas_the_first_choice_is_shown_and_told_of_once(monkeypatch):
    monkeypatch.setenv("TILEWRIGHT_PTXAS", "/nowhere")
    heard = []
    how: dict[str, Any] = {"target": "sm_90a", "pipeline": None, "preset": None}
    how |= {"stop_after": None, "until": "ptx", "observer": lambda event: heard.append(event.name)}
    shown = compile_taken(compile_matmul, SPEC, how)
    assert shown.pipeline == whole(choose_pipeline(SPEC, "sm_90a"))
    assert heard.count("tiling") == 1


def test_what_is_explained_tells_what_comes_in_its_place(room, capsys):
    sizes = ["--m", "64", "--n", "96", "--k", "128", "--target", "sm_90a"]
    told = []
    for count in (0, 1):
        room(count)
        assert main(["explain", "schedule", *sizes]) == 0
        told.append(
            [each for each in capsys.readouterr().out.splitlines() if "is taken instead" in each]
        )
    second = [*pipelines_by_rank(SPEC, "sm_90a")][1]
    assert not told[0] and told[1][0].endswith(f"; '{second}' is taken instead")


@pytest.mark.parametrize("how", [["-v"], ["--json"]])
def test_who_compiles_a_file_is_told(room, how, tmp_path, capsys):
    room(1)
    sizes = ["--m", "64", "--n", "96", "--k", "128"]
    assert main(["compile", *sizes, "-o", str(tmp_path / "kernel.ptx"), *how]) == 0
    told = capsys.readouterr().err.splitlines()[-1]
    assert told.startswith(
        "remark: schedule: a kernel must fit the registers and memory of the chip"
    )
    assert told.endswith("is taken instead")


def test_linalg_gets_the_next_one_too(room, tmp_path):
    room(1)
    path = tmp_path / "m.mlir"
    path.write_text(SPEC.mlir_text())
    compiled = compile_matmul(path, target="sm_90a")
    assert compiled.given_up == (whole(choose_pipeline(SPEC, "sm_90a")),)


def test_a_kernel_for_some_rows_gets_the_next_one_for_these(room, monkeypatch):
    given = room(1)
    few, more = (
        replace(SPEC, m=most, dynamic_m=True, least_m=least, most_m=most)
        for least, most in ((1, 16), (17, ROWS_MOST))
    )
    shared = [Bucket(each, choose_pipeline(each, "sm_90a"), ((1, 16),)) for each in (few, more)]
    monkeypatch.setattr(buckets, "buckets_for", lambda *_: shared)
    first, second = buckets.compile_buckets(few, target="sm_90a")
    assert first.given_up == (whole(shared[0].pipeline),)
    assert first.pipeline == whole([*pipelines_by_rank(few, "sm_90a")][1])
    assert not second.given_up and len(given) == 3


@pytest.mark.parametrize("how", [{"pipeline": NAMED}, {"preset": "h4"}])
def test_passes_that_the_caller_names_are_refused_as_before(room, how):
    given = room(1)
    with pytest.raises(CompileError) as refused:
        compile_matmul(SPEC, target="sm_90a", **how)
    assert str(refused.value) == f"error: {SPILLS}; choose a smaller tile or allow spills"
    assert len(given) == 1


def test_after_so_many_schedules_the_first_one_is_refused(room):
    given = room(99)
    with pytest.raises(CompileError, match=re.escape(SPILLS)) as refused:
        compile_matmul(MatmulSpec(512, 512, 128), target="sm_90a")
    assert len(given) == TRIES
    _, *others = [*pipelines_by_rank(MatmulSpec(512, 512, 128), "sm_90a")][:TRIES]
    every = ", ".join(f"'{each}' ({SPILLS})" for each in others)
    assert refused.value.message.endswith(f"; nor do these fit: {every}")


def test_each_has_other_sums_than_all_before_it():
    found = list(pipelines_by_rank(MatmulSpec(512, 512, 128), "sm_90a"))
    sums = [(re.findall(r"\d+", each)[:2], "ping-pong" in each) for each in found]
    assert len(found) > TRIES
    assert all(each not in sums[:number] for number, each in enumerate(sums))


@pytest.mark.parametrize(
    ("spec", "target"),
    [
        (
            MatmulSpec(512, 512, 512, "bf16", "s4", "bf16", group_size=128, scale_dtype="bf16"),
            "sm_90a",
        ),
        (MatmulSpec(512, 512, 512, "mxfp8", "mxfp8", "bf16"), "sm_100a"),
        (MatmulSpec(512, 512, 512), "sm_80"),
        (MatmulSpec(2, 4096, 1024), "sm_90a"),
        (MatmulSpec(512, 512, 512, groups=4), "sm_90a"),
        (MatmulSpec(512, 512, 512, "e4m3", "e4m3", a_scales="1x128", b_scales="1x128"), "sm_90a"),
    ],
)
def test_every_kind_of_schedule_has_others(spec, target):
    first, second, *_ = pipelines_by_rank(spec, target)
    assert first == choose_pipeline(spec, target) != second


@pytest.fixture
def calls(tmp_path, monkeypatch):
    """A cache of the test's own, and the numbers of kernels in memory set to none."""
    monkeypatch.setenv(kernel_cache.VARIABLE, str(tmp_path))

    def forget():
        kernel_cache.cached_bundle.cache_clear()
        lookup._kernels.clear()
        lookup._seen.clear()

    forget()
    yield forget
    forget()


def test_another_process_finds_the_kernel_that_came_in_its_place(room, calls):
    given = room(1)
    a, b = torch.randn(64, 128).bfloat16(), torch.randn(96, 128).bfloat16()
    with pytest.warns(UserWarning, match="schedule: a kernel must fit the registers") as warned:
        c = tilewright.matmul(a, b)
    assert all(each in str(warned[0].message) for each in [*pipelines_by_rank(SPEC, "sm_100a")][:2])
    torch.testing.assert_close(c, a @ b.T, rtol=1e-2, atol=1e-1)
    assert len(given) == 2
    calls()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert tilewright.matmul(a, b).equal(c)
    assert len(given) == 2
    calls()
    with pytest.raises(CompileError, match=re.escape(SPILLS)):
        tilewright.matmul(a, b, pipeline=choose_pipeline(SPEC, "sm_100a"))


# Each was chosen, and spilled, before the rule that its planted fault breaks.
SCALED = {"a_scales": "1x128", "b_scales": "1x128"}
COARSE = {"a_scales": "1x128", "b_scales": "128x128"}
SPILLED = {
    "sums and products": ("sm_90a", (4096, 7168, 2048), {"c_dtype": "f32"} | COARSE),
    "beside copies": ("sm_90a", (4095, 2111, 7168), SCALED),
    "staging": ("sm_90a", (4096, 7168, 2048), {"c_dtype": "f32"} | SCALED),
    "groups": ("sm_90a", (8192, 3072, 1536), {"groups": 8} | SCALED),
    "tensor memory beside copies": ("sm_100a", (4095, 7168, 2048), SCALED),
    "tensor memory and groups": ("sm_100a", (4096, 7168, 2048), {"groups": 8} | SCALED),
}


def test_threads_that_copy_leave_two_warpgroups_160_registers():
    """Whatever is chosen at first."""
    spec, target = MatmulSpec(4095, 2111, 7168, "e4m3", "e4m3", **COARSE), find_target("sm_90a")
    schedule, problem = choose_schedule(spec, target), Problem.of(spec, target)
    most, more = (
        added_copies(problem, replace(schedule, tile=(128, n, 128)), target) for n in (160, 168)
    )
    assert most is None
    assert more and more.startswith(
        "168 registers of sums, products and scales leave a thread of 2"
    )


def test_tensor_memory_leaves_room_for_what_an_epilogue_reads():
    """Of 128x256 ptxas spills, where a vector of rows and one of columns are read beside sums."""
    spec = MatmulSpec(4096, 2112, 2048, "e4m3", "e4m3", sums="two-level")
    row, column = TensorLike((4096, 1), torch.float32), TensorLike((2112,), torch.float32)
    frame = Frame.of([4096, 2112], 0)
    spec, made, *_ = import_epilogue(spec, frame, lambda x, r, c: x * r * c, [row, column])
    assert not compile_matmul(LinalgText(spec.mlir_text(made), "matmul"), target="sm_100a").given_up


@pytest.mark.parametrize("name", SPILLED)
def test_ptxas_has_room_for_what_is_chosen_at_first(name):
    target, sizes, more = SPILLED[name]
    spec = MatmulSpec(*sizes, "e4m3", "e4m3", **more)
    assert not compile_matmul(spec, target=target).given_up
