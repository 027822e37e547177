"""All that is needed to compile a region's kernels again, kept in the graph with their key.

    specs or texts, target, pipelines, math, ranges of sizes   ↔   JSON, deflated, in base64

The recipe of the first kernel of a graph holds the rows of the graph's report as well
(`kept_rows.py`).

torch keeps graphs longer than the cache may keep kernels. One that finds none compiles them anew,
as they were chosen: nothing is searched or measured.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ...dialects.errors import CompileError
from ...runtime.bundles.bundle import Bundle, together
from ..calls.kernels.kernel_cache import describe_request, digest, keep
from ..importers.linalg_text import LinalgText
from ..spec import MatmulSpec
from .ahead import Job, Workers
from .kept_rows import KeptRows, malformed, packed, tuples, unpacked
from .row_regions import AnyPrepared, RowsPrepared


def recipe_of(prepared: AnyPrepared, rows: KeptRows | None = None) -> str:
    """The recipe of a region's kernels, with rows of the report."""
    jobs = [[_written(source), *how] for source, *how in prepared.jobs.values()]
    bands = prepared.bands if isinstance(prepared, RowsPrepared) else None
    beside = {"rows": rows.as_json()} if rows else {}
    return packed({"jobs": jobs, "bands": bands, **beside})


def remade(key: str, recipe: str) -> Bundle:
    """The kernels of a recipe, compiled now where the cache has them not.

    Raises CompileError for one that does not compile, or where these sources make other kernels of
    it than the key's.
    """
    jobs, bands = _read(recipe)
    keyed = {digest(describe_request(*job)): job for job in jobs}
    found = digest({"kernels": list(keyed), "bands": bands}) if bands else next(iter(keyed))
    if found != key:
        raise CompileError(f"its recipe must be of the kernel {key[:12]}, got one of {found[:12]}")
    with Workers(len(keyed)) as workers:
        made = workers.compile_all(keyed)
    bundles = []
    for each in made.values():
        if isinstance(each, CompileError):
            raise each
        bundles.append(each)
    return keep(key, together(bundles, bands)) if bands else bundles[0]


def _written(source: MatmulSpec | LinalgText) -> dict[str, Any]:
    if isinstance(source, MatmulSpec):
        return {"spec": source.as_dict()}
    assert not (source.is_file or source.parts), "texts of regions are of matrices as they are"
    marked = {name: sorted(getattr(source, name)) for name in ("column_major", "transposed")}
    fields = {name: getattr(source, name) for name in ("text", "name", "exact_sums")}
    return {"text": {**fields, **marked, "arguments": list(source.arguments)}}


def _read(recipe: str) -> tuple[list[Job], Any]:
    """The jobs of a recipe, and the ranges of sizes of kernels that share them all."""
    found = unpacked(recipe)
    try:
        jobs = [(_source(source), *how) for source, *how in found["jobs"]]
        return jobs, tuples(found["bands"])
    except (ValueError, KeyError, TypeError) as error:
        raise malformed(error) from error


def _source(written: Mapping[str, Any]) -> MatmulSpec | LinalgText:
    if "spec" in written:
        return MatmulSpec(**{name: tuples(value) for name, value in written["spec"].items()})
    given: dict[str, Any] = dict(written["text"])
    marked: dict[str, Any] = {
        name: frozenset(given.pop(name)) for name in ("column_major", "transposed")
    }
    return LinalgText(arguments=tuple(given.pop("arguments")), **given, **marked)
