"""Reads the chip and the launch back from a lowered kernel (gpu.module of llvm and nvvm ops)."""

from __future__ import annotations

from typing import Any

from ..dialects.mlir import ir
from ..passes.base import ARGUMENTS_MAX, refused
from ..runtime.bundles.manifest_fields import MANIFEST
from ..runtime.bundles.schema import Integer, ListOf, OneOf, Record
from ..runtime.strict_json import parse_json

LAUNCH_ATTRIBUTE = "tile.launch"
FUNCTION = "llvm.func"
SIZES = {"nvvm.reqntid": "block", "nvvm.cluster_dim": "cluster"}
OF_THE_KERNEL = (
    *("entry", "grid", "cluster", "block", "dynamic_shared_bytes", "workspace_bytes"),
    *("schedule", "tensors", "parameters", "epilogue", "names"),
)
SOURCE = Record(
    {
        "arguments": Integer(1, ARGUMENTS_MAX),
        "inputs": ListOf(Integer(0), 2),
        "transposed": ListOf(OneOf((False, True)), 2),
    }
)
_RULES = {**MANIFEST.fields, **MANIFEST.optional}
OF_SOME_KERNELS = (
    "preferred_cluster",
    "outputs",
    "quantized",
    "math",
    "blockwise",
    "weights",
    "terms",
)
LAUNCH = Record(
    {name: _RULES[name] for name in OF_THE_KERNEL} | {"source": SOURCE},
    optional={name: _RULES[name] for name in OF_SOME_KERNELS},
)


def launch_of(gpu_module: Any, chip: str) -> dict[str, Any]:
    """What the kernel of a gpu.module says of its launch (`passes/lowering/launch/`), checked.

    Raises CompileError where it says nothing, or what no launch can be, or is for another chip.
    """
    _check_chip(gpu_module, chip)
    ops = [op.operation for op in gpu_module.regions[0].blocks[0].operations]
    kernels = [op for op in ops if op.name == FUNCTION and LAUNCH_ATTRIBUTE in op.attributes]
    if len(kernels) != 1:
        raise refused(
            gpu_module,
            f"one llvm.func must say by {LAUNCH_ATTRIBUTE} how it is launched, got {len(kernels)}; "
            "lower a tile.kernel, which writes it",
        )
    launch = _read(kernels[0])
    name = ir.StringAttr(kernels[0].attributes["sym_name"]).value
    if launch["entry"] != name:
        rule = f"{LAUNCH_ATTRIBUTE}.entry: must be the name of the function, '{name}'"
        raise refused(kernels[0], f"{rule}, got '{launch['entry']}'")
    _check_sizes(kernels[0], launch)
    return launch


def _check_sizes(kernel: ir.Operation, launch: dict[str, Any]) -> None:
    """PTX requires the sizes that the function has; a launch with others fails."""
    for name, field in SIZES.items():
        got = kernel.attributes[name] if name in kernel.attributes else None
        sizes = [1, 1, 1] if got is None else list(ir.DenseI32ArrayAttr(got))
        stated = launch[field]
        if field == "cluster" and "preferred_cluster" in launch:  # of two shapes none is required
            stated = [1, 1, 1]
        if sizes != stated:
            rule = f"{name} must be the {field} of {LAUNCH_ATTRIBUTE}, {stated}"
            raise refused(kernel, f"{rule}, got {sizes}")


def _check_chip(gpu_module: Any, chip: str) -> None:
    attributes = gpu_module.operation.attributes
    got = str(attributes["targets"]) if "targets" in attributes else "none"
    wanted = f'[#nvvm.target<chip = "{chip}">]'
    if got != wanted:
        raise refused(gpu_module, f"targets must be {wanted}, the chip of tile.target, got {got}")


def _read(kernel: ir.Operation) -> dict[str, Any]:
    attribute = kernel.attributes[LAUNCH_ATTRIBUTE]
    if not isinstance(attribute, ir.StringAttr):
        raise refused(kernel, f"{LAUNCH_ATTRIBUTE} must be a text of JSON, got {attribute}")
    try:
        launch = parse_json(ir.StringAttr(attribute).value.encode())
    except ValueError as error:
        raise refused(kernel, f"{LAUNCH_ATTRIBUTE} must be a text of JSON, got {error}") from error
    broken = LAUNCH.check(launch, LAUNCH_ATTRIBUTE) or _unknown(launch) or _contradiction(launch)
    if broken:
        raise refused(kernel, broken)
    return launch


def _unknown(launch: dict[str, Any]) -> str | None:
    more = sorted(set(launch) - {*LAUNCH.fields, *LAUNCH.optional})
    return f"{LAUNCH_ATTRIBUTE}: fields must be known ones, got {more}" if more else None


def _contradiction(launch: dict[str, Any]) -> str | None:
    """What breaks the rule that each input of the kernel is an argument of the source."""
    source, where = launch["source"], f"{LAUNCH_ATTRIBUTE}.source"
    inputs = sum(tensor["role"] == "input" for tensor in launch["tensors"])
    for name in ("inputs", "transposed"):
        if len(source[name]) != inputs:
            return f"{where}.{name}: must have {inputs} items, got {len(source[name])}"
    if max(source["inputs"]) >= source["arguments"]:
        return f"{where}.inputs: must be below {source['arguments']}, got {source['inputs']}"
    return None
