"""Single instructions give the bits that they gave on an H200 and an H100 (record.py, *.json)."""

from __future__ import annotations

import functools
import json
from dataclasses import asdict
from pathlib import Path

import numpy as np
import pytest
from silicon_case import Case, Im2col
from silicon_cases import all_cases

from tilewright.runtime.emulator import Im2colMap, TensorMap, launch

FOLDER = Path(__file__).parent
RECORDED = {
    name: digests
    for gpu in ("h200", "h100")
    for name, digests in json.loads((FOLDER / f"{gpu}.json").read_bytes())["kernels"].items()
}


@functools.cache
def cases() -> dict[str, Case]:
    """Every case by its name; inputs and PTX are made when the first test asks for them."""
    return {case.name: case for case in all_cases()}


def emulated(case: Case, check: str) -> np.ndarray:
    out = np.full((case.threads, case.results), 0xA5A5A5A5, np.uint32)
    parameters = [case.image, case.words, out]
    if case.tensor_map:
        described = asdict(case.tensor_map)
        array = {"image": case.image, "out": out}[described.pop("over")]
        kind = Im2colMap if isinstance(case.tensor_map, Im2col) else TensorMap
        parameters.append(kind(array, **described))
    launch(case.ptx, "k", grid=case.ctas, block=case.threads // case.ctas, cluster=case.ctas,
           params=parameters, seed=len(case.name), check=check, fp8_sums=case.fp8_sums)  # fmt: skip
    return out


@pytest.mark.sweep(8)
@pytest.mark.parametrize("name", RECORDED)
def test_the_emulator_gives_the_bits_of_a_gpu(name):
    """Without the search for races, which takes four fifths of the time and changes no bit."""
    inputs, expected = RECORDED[name]
    case = cases()[name]
    assert case.inputs_digest() == inputs, "other inputs than were recorded: run record.py again"
    assert case.digest_of(emulated(case, "fast")) == expected


def test_every_kernel_is_recorded_and_another_bit_would_show():
    assert RECORDED.keys() == cases().keys()
    exact = [case for case in cases().values() if case.nan_type is None]
    for case in exact[::50]:
        out = emulated(case, "full")
        assert case.digest_of(out) == RECORDED[case.name][1]
        out[-1, 0] ^= 1
        assert case.digest_of(out) != RECORDED[case.name][1]
