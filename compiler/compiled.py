"""The result of a compilation, and its manifest: source, arguments, resources, tools."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from ..dialects.tile.marks import MARKS
from ..runtime.bundles.manifest import FORMAT, schema_of
from .backend import Assembled, versions
from .importers.linalg_text import LinalgText
from .spec import MatmulSpec

NO_PASSES = "none"


@dataclass
class Compiled:
    """What a compilation made, up to the kind asked for; later kinds are None.

    `mlir` is there where it is the kind asked for: to print a kernel takes as long as a pass.
    `stages` holds (stage, wall seconds) in order, `remarks` what a user should read. `level` is
    the pass that the source was through already, None for linalg; `chosen` whether the compiler
    chose the schedule, and `given_up` the pipelines of those for which the chip had no room, in
    whose place this one is. Of kernels that share all M, `ranges` are the least and the most rows
    of each range of this one, in bands of matrices also the fewest and the most of those.
    """

    pipeline: str
    target: str
    mlir: str | None
    remarks: list[str]
    stages: list[tuple[str, float]]
    level: str | None = None
    chosen: bool = False
    given_up: tuple[str, ...] = ()
    ranges: tuple[tuple[int, ...], ...] = ()
    entry: str | None = None
    llvm_ir: str | None = None
    ptx: str | None = None
    assembled: Assembled | None = None
    manifest: dict[str, Any] = field(default_factory=dict)


def complete_manifest(compiled: Compiled, source: MatmulSpec | LinalgText, origins: bool) -> None:
    """Add what the kernel alone does not say: where it came from, resources, tools; with `origins`
    of which op each PTX line is."""
    assert compiled.assembled is not None
    resources = ("registers", "spill_store_bytes", "spill_load_bytes", "static_shared_bytes")
    compiled.manifest |= {
        "format": FORMAT,
        "schema": schema_of(compiled.manifest),
        "spec": source.as_dict() if isinstance(source, MatmulSpec) else None,
        "target": compiled.target,
        "pipeline": compiled.pipeline or NO_PASSES,
        "resources": {name: getattr(compiled.assembled, name) for name in resources},
        "tools": versions(),
    }
    described = compiled.manifest.pop("source")
    if isinstance(source, LinalgText):
        compiled.manifest |= _arguments(source, described, compiled.manifest["tensors"])
    if origins and compiled.ptx:
        from ..runtime.emulator.ptx.origins import origin_runs  # with it, a third of a second

        runs = origin_runs(compiled.ptx)
        compiled.manifest["origins"] = [{"line": line, "from": place} for line, place in runs]


def _arguments(
    source: LinalgText, described: dict[str, Any], tensors: list[dict[str, Any]]
) -> dict[str, Any]:
    """What the source's function takes, and which argument each input of the kernel is."""
    names = source.arguments or [f"argument {number}" for number in range(described["arguments"])]
    names = [*names, *[MARKS] * (described["arguments"] - len(names))]  # what instrument adds
    found = iter(zip(described["inputs"], described["transposed"], strict=True))

    def argument(tensor: dict[str, Any]) -> dict[str, Any]:
        if tensor["role"] != "input":
            return tensor
        index, transposed = next(found)
        is_transposed = transposed != (index in source.transposed)
        return {**tensor, "argument": {"index": index, "transposed": is_transposed}}

    return {"arguments": list(names), "tensors": [argument(tensor) for tensor in tensors]}
