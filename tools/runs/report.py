"""The report that `tilewright run` prints."""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ...runtime.bundles.manifest import columns_of, k_of, operands, outputs, scales
from ...runtime.bundles.manifest_fields import PTX_NAME
from ...runtime.emulator.observe.report import Suspicion
from ..command_line.tables import print_table
from ..explain.chosen import chosen_line
from .outcome import Outcome

if TYPE_CHECKING:
    from ...compiler.spec import MatmulSpec
    from ...runtime.judge.reference import Comparison


def print_outcome(outcome: Outcome, options: argparse.Namespace) -> None:
    """Print the problem, the passes (verbose), the kernel's resources, and PASS or FAIL."""
    manifest = outcome.bundle.manifest
    print(_problem_line(manifest))
    if options.verbose and outcome.obtained.chosen:
        print(f"schedule   {chosen_line(options.file or _spec(manifest), options)}")
    if options.verbose and outcome.passes:
        rows = [[name, f"{seconds * 1e3:.1f}", done] for name, seconds, done in outcome.passes]
        print_table(["pass", "[ms]", "what it did"], rows)
    for remark in outcome.obtained.remarks:
        print(remark)
    print(_pipeline_line(manifest))
    if outcome.bundle.path:
        print(f"ptx        {_ptx_place(outcome.bundle.path)}")
    print(_resources_line(manifest))
    print(f"device     {options.device}, seed {options.seed}, {outcome.run_seconds:.2f} s")
    print(f"reference  {outcome.obtained.reference.said}")
    report = outcome.report.as_dict()
    if options.verbose:
        print("\n".join(_counts(report)))
    if options.report:
        print(outcome.report.profile)
    for warning in report.get("warnings", ()):
        print(f"warning: {Suspicion(**warning)}")
    print(verdict(outcome.comparison))


def verdict(comparison: Comparison) -> str:
    """One line: PASS or FAIL, and the element with the largest error beside what is allowed."""
    index = ", ".join(str(i) for i in comparison.index)
    place = f"[{index}]" if comparison.output == "c" else f"{comparison.output}[{index}]"
    if comparison.passed:
        head = f"PASS  all {comparison.elements} elements"
    else:
        head = f"FAIL  {comparison.mismatches} of {comparison.elements} elements"
    return (
        f"{head}, largest error {comparison.largest_error:.3g} where {comparison.bound:.3g} is"
        f" allowed: {place} is {comparison.actual:.9g} for {comparison.expected:.9g}"
    )


def _counts(report: Mapping[str, Any]) -> list[str]:
    """What a device counted, in a few lines; --json has all of it."""
    if "gpu" in report:
        capability, version = report["capability"], report["driver_version"]
        return [f"gpu        {report['gpu']}, sm {capability}, driver for CUDA {version}"]
    executed = sum(report.get("instructions", {}).values())
    waits = {"asked": 0, "suspended": 0, **report.get("barrier_waits", {})}
    moved = [
        f"{space} {direction} {size}"
        for space, directions in report.get("memory_bytes", {}).items()
        for direction, size in directions.items()
    ]
    engines = [f"{name} {amount}" for name, amount in report.get("engines", {}).items()]
    return [
        f"executed   {executed} warp instructions",
        f"waits      {waits['asked']} on barriers, {waits['suspended']} of them blocked",
        f"bytes      {', '.join(moved) or 'none'}",
        f"engines    {', '.join(engines) or 'none'}",
    ]


def _problem_line(manifest: Mapping[str, Any]) -> str:
    (a, b), found = operands(manifest), outputs(manifest)
    *stack, m, _ = found[0]["shape"]
    n = columns_of(found[0])
    sizes = "×".join(map(str, (*stack, m, n, k_of(a))))
    factors = "".join(f" with {each['dtype']}" for each in scales(manifest)[:1])
    dtypes = (
        f"{a['dtype']} · {b['dtype']}{factors} → {' and '.join(each['dtype'] for each in found)}"
    )
    majors = f"A {_major(a, 'm')}-major, B {_major(b, 'n')}-major"
    return f"matmul     {sizes}, {dtypes}, {majors}, {manifest['target']}"


def _major(operand: Mapping[str, Any], outer: str) -> str:
    outer_stride, k_stride = operand["strides"][-2:]
    return "K" if outer_stride > k_stride or k_stride == 1 else outer.upper()


def _spec(manifest: Mapping[str, Any]) -> MatmulSpec:
    from ...compiler.spec import MatmulSpec

    return MatmulSpec(**manifest["spec"])


def _pipeline_line(manifest: Mapping[str, Any]) -> str:
    names = ("grid", "cluster", "preferred_cluster", "block")
    shown = {name: "×".join(map(str, manifest[name])) for name in names if name in manifest}
    launch = (f"{name.replace('_', ' ')} {extents}" for name, extents in shown.items())
    return f"pipeline   {manifest['pipeline']}\nlaunch     {', '.join(launch)}"


def _resources_line(manifest: Mapping[str, Any]) -> str:
    resources = manifest["resources"]
    spills = resources["spill_store_bytes"] + resources["spill_load_bytes"]
    shared = resources["static_shared_bytes"] + manifest["dynamic_shared_bytes"]
    return (
        f"ptxas      {resources['registers']} registers, {spills} bytes spilled,"
        f" {shared} bytes of shared memory"
    )


def _ptx_place(path: Path) -> str:
    return str(path / PTX_NAME if path.is_dir() else f"{path}:{PTX_NAME}")
