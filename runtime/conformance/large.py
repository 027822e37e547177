"""Products with more than 2^31 elements: generated in place, checked at ends and edges."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..element_types import ITEM_BYTES, torch_dtype
from .cases import MANY, Case
from .subjects import Subject, values_of
from .verdicts import Outcome, Verdict, judge, sums

CHUNK = 1 << 22
SAMPLES = 64
CYCLE = 9
"""Values are whole numbers from -4 to 4."""


def run_large(subject: Subject, case: Case) -> Outcome:
    """One product, if the memory holds it; rows and columns at the ends and around 2^31."""
    needed = _needed_bytes(case, subject)
    free = free_bytes(subject.memory)
    if needed > free:
        gigabytes = f"{needed / 2**30:.1f} GiB, {free / 2**30:.1f} are free"
        return Outcome(Verdict.SKIPPED, f"needs {gigabytes}")
    a = make_matrix(case.m, case.k, subject.dtypes[0], subject.memory, 5)
    b = make_matrix(case.n, case.k, subject.dtypes[1], subject.memory, 7)
    own = b.t().contiguous() if subject.b_shape == "kn" else b
    made = subject.product(_as_placed(a, subject, 0), _as_placed(own, subject, 1))
    if tuple(made.result.shape) != (case.m, case.n):
        got = tuple(made.result.shape)
        return Outcome(Verdict.WRONG, f"the result must be {case.m}×{case.n}, got {got}")
    rows, columns = samples(case.m, case.n), samples(case.n, case.m)
    found = sums(_rows(a, rows, subject, 0), _rows(b, columns, subject, 1), subject.dtypes)
    actual = made.result[_index(rows, made.result)][:, _index(columns, made.result)]
    dtype = made.dtype
    return judge(subject.expected(found, dtype), values_of(actual, dtype), dtype)


def _needed_bytes(case: Case, subject: Subject) -> int:
    """The bytes of the operands, of a transposed copy of B if there is one, and of a 4-byte
    result."""
    a, b = (ITEM_BYTES[dtype] for dtype in subject.dtypes)
    return int(1.2 * (case.m * case.k * a + 2 * case.n * case.k * b + 4 * case.m * case.n))


def free_bytes(memory: str) -> int:
    """Bytes that can be had: of the GPU, or of this machine's memory (/proc/meminfo)."""
    if memory.startswith("cuda"):
        import torch

        return int(torch.cuda.mem_get_info(memory)[0])
    try:
        with open("/proc/meminfo", encoding="ascii") as file:
            found = [line.split()[1] for line in file if line.startswith("MemAvailable")]
        return int(found[0]) * 1024
    except (OSError, IndexError, ValueError):
        return 0


def make_matrix(rows: int, columns: int, dtype: str, memory: str, factor: int) -> Any:
    """Small whole numbers that differ from row to row and from column to column."""
    import torch

    made = torch.empty((rows, columns), dtype=torch_dtype(dtype), device=memory)
    across = torch.arange(columns, device=memory) * factor
    for start in range(0, rows, CHUNK):
        down = torch.arange(start, min(start + CHUNK, rows), device=memory)
        values = (down[:, None] * 13 + (down[:, None] >> 9) + across) % CYCLE - CYCLE // 2
        made[start : start + CHUNK] = values.to(made.dtype)
    return made


def samples(extent: int, other: int) -> np.ndarray:
    """Indices at both ends and where index times `other` passes 2^31 and 2^32."""
    around = [limit // max(other, 1) + step for limit in (MANY, 2 * MANY) for step in range(-2, 3)]
    spread = np.linspace(0, extent - 1, SAMPLES).astype(int).tolist()
    chosen = {*spread, 1, extent - 2, *around}
    return np.array(sorted(index for index in chosen if 0 <= index < extent))


def _index(chosen: np.ndarray, like: Any) -> Any:
    import torch

    return torch.from_numpy(chosen).to(like.device)


def _rows(matrix: Any, chosen: np.ndarray, subject: Subject, operand: int) -> np.ndarray:
    return values_of(matrix[_index(chosen, matrix)], subject.dtypes[operand])


def _as_placed(view: Any, subject: Subject, operand: int) -> Any:
    from .operands import Placed

    return Placed(view, view, view, subject.dtypes[operand])
