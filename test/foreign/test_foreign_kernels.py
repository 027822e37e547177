"""Every kernel that another compiler made, as `tilewright emulate` runs it; README.md says more."""

from __future__ import annotations

import re
from functools import cache
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path

import numpy as np
import pytest

from tilewright.runtime import run_launch_file
from tilewright.runtime.launch_files.description import read_launch_file
from tilewright.runtime.launch_files.memory import make_memories

FOLDER = Path(__file__).parent
LAUNCHES = sorted(FOLDER.glob("*/*.json"))
SCRATCH = "global_scratch"
"""An output that only the kernel itself reads again."""
HEADER = re.compile(r"// .+ \d+\.\d+\S*: (?P<source>\S+) for (?P<chip>sm_\w+), written by \S+")
SOURCE_PATH = re.compile(r'^\s*\.file\s+\d+\s+"(?P<path>[^"]*)"', re.MULTILINE)
MAX_PTX_BYTES = 300 * 1024
MAX_STEPS = 2_000_000


def named(launch: Path) -> str:
    return f"{launch.parent.name}/{launch.stem}"


def one_chip_always(launches: list[Path]) -> list:
    """A kernel runs for its first chip each time, for the others now and then."""
    seen: set[tuple[Path, str]] = set()
    found = []
    for launch in launches:
        kernel = launch.parent, kernel_name(launch)
        marks = [pytest.mark.sweep(8)] if kernel in seen else []
        found.append(pytest.param(launch, id=named(launch), marks=marks))
        seen.add(kernel)
    return found


@cache
def references(folder: Path):
    spec = spec_from_file_location(f"references_of_{folder.name}", folder / "references.py")
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@cache
def expected(launch: Path) -> dict[str, np.ndarray]:
    """What the kernel's reference makes of the contents of the launch's tensors."""
    tensors = {
        name: numbers(tensor.elements())
        for name, tensor in make_memories(read_launch_file(launch), launch.parent).items()
        if tensor.declared["role"] != "output"
    }
    return getattr(references(launch.parent), kernel_name(launch))(tensors)


def numbers(elements: np.ndarray) -> np.ndarray:
    """Floats as float64, integers as they are."""
    return elements if elements.dtype.kind in "iu" else elements.astype(np.float64)


def kernel_name(launch: Path) -> str:
    return launch.stem.split(".")[0]


def check(launch: Path, seed: int, level: str = "full") -> None:
    compare(launch, run_launch_file(launch.with_suffix(".ptx"), launch, seed, check=level).outputs)


def compare(launch: Path, outputs: dict[str, np.ndarray]) -> None:
    """Raise an AssertionError where an element of an output is not the reference's."""
    outputs.pop(SCRATCH, None)
    wanted = expected(launch)
    assert outputs.keys() == wanted.keys()
    tolerance = references(launch.parent).TOLERANCE.get(kernel_name(launch), 0)
    for name, got in outputs.items():
        rounded = np.asarray(wanted[name]).astype(got.dtype)
        np.testing.assert_allclose(
            numbers(got), numbers(rounded), tolerance, tolerance, err_msg=name
        )


def wrong_output(launch: Path, ptx: Path, seed: int) -> bool:
    """Whether another text in place of the kernel's gives an output that is not the reference's."""
    result = run_launch_file(ptx, launch, seed, max_steps=MAX_STEPS)
    try:
        compare(launch, result.outputs)
    except AssertionError:
        return True
    return False


@pytest.mark.parametrize("launch", one_chip_always(LAUNCHES))
def test_every_output_element_is_the_references(launch):
    check(launch, 0)


@pytest.mark.slow
@pytest.mark.sweep(32)
@pytest.mark.array(1, launch=LAUNCHES, seed=range(1, 20))
def test_no_legal_order_of_events_raises_or_changes_anything(launch, seed):
    check(launch, seed)


@pytest.mark.slow
@pytest.mark.sweep(64)
@pytest.mark.parametrize("level", ["off", "fast"])
@pytest.mark.parametrize("launch", LAUNCHES, ids=named)
def test_levels_that_check_less_raise_nothing_either(launch, level):
    check(launch, 1, level)


@pytest.mark.parametrize("launch", LAUNCHES, ids=named)
def test_a_kernel_is_kept_with_its_source_and_names_its_compiler(launch):
    text = launch.with_suffix(".ptx").read_text()
    header = HEADER.match(text)
    assert header, text.splitlines()[0]
    assert (launch.parent / header["source"]).is_file()
    assert f".target {header['chip']}" in text
    assert len(text.encode()) <= MAX_PTX_BYTES
    paths = [found["path"] for found in SOURCE_PATH.finditer(text)]
    assert not [path for path in paths if Path(path).is_absolute()]


def test_launches_and_ptx_files_come_in_pairs():
    assert LAUNCHES
    assert {path.with_suffix(".ptx") for path in LAUNCHES} == set(FOLDER.glob("*/*.ptx"))
