"""Measured pipelines of products for which several kinds of kernels compete.

The entries of `tuned_schedules.py` do not say whether lanes are faster than tensor-core tiles, or
which tiles of warps or threads are the fastest. For such products `tilewright tune` writes the
passes of the fastest kernel into the same tables. They serve exactly the product that was measured,
and only on the target's GPU.

Nothing here imports MLIR.
"""

from __future__ import annotations

import functools
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ...dialects.record import record
from ...dialects.target import Target
from ..spec import MatmulSpec
from .tuned_schedules import PIPELINES, is_of_gpu, kept_table, parsed_table, tables_of


@record
class TunedPipeline:
    """The fastest passes, their time in microseconds, on which GPU and when it was measured.

    `product` is the JSON of the spec's fields, sorted by name.
    """

    product: str
    passes: str
    us: float
    gpu: str
    date: str

    def label(self) -> str:
        """In words."""
        return f"{self.passes}, {self.us:.2f} us on an {self.gpu}, {self.date}"

    def pipeline(self) -> str:
        """The passes with their options, as `--pipeline` takes them."""
        return self.passes

    def as_json(self) -> dict[str, Any]:
        """The entry as it is written to a table."""
        measurement = {"us": self.us, "gpu": self.gpu, "date": self.date}
        return {"spec": json.loads(self.product), "pipeline": self.passes, **measurement}


def product_of(fields: Mapping[str, Any]) -> str:
    """What tells one product from all others, from the fields of its spec
    (`MatmulSpec.as_dict`)."""
    return json.dumps(fields, sort_keys=True)


def tuned_pipeline(spec: MatmulSpec, target: Target) -> TunedPipeline | None:
    """The entry for exactly this product that a table of the chip has, measured on the target's
    GPU."""
    found = (
        entry
        for path in tables_of(target.chip)
        for entry in _read(path, path.stat().st_mtime_ns)
        if is_of_gpu(entry.gpu, target)
    )
    of_gpu = list(found)
    product = product_of(spec.as_dict()) if of_gpu else ""
    return next((entry for entry in of_gpu if entry.product == product), None)


@functools.cache
def _read(path: Path, changed: int) -> tuple[TunedPipeline, ...]:
    return tuple(map(_entry, kept_table(path, changed).pipelines))


def read_pipelines(path: Path) -> tuple[TunedPipeline, ...]:
    """The pipelines of a table; `CompileError` says what is wrong with the file."""
    return tuple(_entry(each) for each in parsed_table(path).get(PIPELINES, ()))


def _entry(each: Mapping[str, Any]) -> TunedPipeline:
    measurement = float(each["us"]), str(each["gpu"]), str(each["date"])
    return TunedPipeline(product_of(each["spec"]), str(each["pipeline"]), *measurement)
