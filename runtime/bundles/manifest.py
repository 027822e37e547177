"""Checks `manifest.json` of a bundle (schema 2 or 3); docs/manifest.md has each field."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import pairwise
from typing import Any

from ..element_types import DTYPES as TYPES
from ..element_types import (
    SCALE_DTYPES,
    blocked_scale_shape,
    blockwise_scale_shape,
)
from ..errors import DeviceError, LaunchError
from ..group_sizes import OFFSETS, ORDER, ROWS
from .agreement import order_contradictions, spec_contradictions, swizzle_contradictions
from .manifest_fields import MANIFEST
from .manifest_rules import (
    launch_contradictions,
    map_contradictions,
    memory_contradictions,
    operation_contradictions,
    pointer_contradictions,
    workspace_contradictions,
    workspaces,
)
from .name_rules import name_contradictions
from .schema import (
    OneOf,
    Record,
)
from .size_rules import size_contradictions
from .sizes import CALLED, is_dynamic, manifest_for, sizes_to_check
from .weight_rules import weight_contradictions

FORMAT = "tilewright-bundle"
SCHEMA, SCHEMA_OF_WORKSPACES = 2, 3
"""Of a kernel that needs no memory besides its tensors, and of one that does."""
SCHEMAS = (SCHEMA, SCHEMA_OF_WORKSPACES)
RECOMPILE = "make the bundle again with this tilewright"

BITS = {name: dtype.bits for name, dtype in TYPES.items()}


class BundleError(DeviceError):
    """A bundle that is foreign, damaged or of another schema."""


def validate(manifest: Any, where: str = "manifest") -> dict[str, Any]:
    """Return the manifest if it obeys its schema; raises BundleError with the first broken rule."""
    head = Record({"format": OneOf((FORMAT,)), "schema": OneOf(SCHEMAS)})
    broken = head.check(manifest, where) or MANIFEST.check(manifest, where)
    if not broken:
        broken = next(_all_contradictions(manifest, where), None)
    if broken:
        raise BundleError(recompiled(broken))
    return manifest


def recompiled(broken: str) -> str:
    """A rule that a manifest breaks, with the cure."""
    return f"{broken}; {RECOMPILE}"


def operands(manifest: Mapping[str, Any]) -> tuple[Mapping[str, Any], Mapping[str, Any]]:
    """The tensors a [m, k] and b [n, k]: the first two inputs, in this order."""
    first, second = [t for t in manifest["tensors"] if t["role"] == "input"][:2]
    return first, second


def offsets_of(manifest: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """The tensor that says where groups of rows end; None where rows are not grouped."""
    return next((t for t in manifest["tensors"] if t["name"] == OFFSETS), None)


def grouped_extent(manifest: Mapping[str, Any]) -> int:
    """How many rows, or of K, groups cut: of K where each has a matrix of c to itself."""
    sizes = output(manifest)["shape"]
    return operands(manifest)[0]["shape"][-1] if len(sizes) == 3 else sizes[0]


def rows_of(manifest: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """The tensor that says which rows of a the rows of groups are; None where they are a's."""
    return next((t for t in manifest["tensors"] if t["name"] == ROWS), None)


def second_b(manifest: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """The tensor [n, k] of a second product of a, where the epilogue takes the sums of two."""
    named = [each["b"] for each in manifest["epilogue"]["arguments"] if "b" in each]
    return next((t for t in manifest["tensors"] if t["name"] in named), None)


def k_of(operand: Mapping[str, Any]) -> Any:
    """Elements along K of a tensor a or b, the name where a launch says it; an array of packed ones
    is of bytes."""
    bits, extent = min(8, BITS[operand["dtype"]]), operand["shape"][-1]
    return extent if isinstance(extent, str) else extent * 8 // bits


def columns_of(c: Mapping[str, Any]) -> int:
    """Elements of a row of c; an array of packed ones is of bytes."""
    return k_of(c)


def scales(manifest: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """The tensors of block scales, those of a and of b; none where operands have none."""
    inputs = [t for t in manifest["tensors"] if t["role"] == "input"]
    return [t for t in inputs if t["dtype"] in SCALE_DTYPES]


def quantized_of(manifest: Mapping[str, Any], name: str) -> Mapping[str, Any] | None:
    """How c got scales of blocks, where an output is c, or these scales."""
    how = manifest.get("quantized")
    return how if how and name in (output(manifest)["name"], how["scales"]) else None


def output(manifest: Mapping[str, Any]) -> Mapping[str, Any]:
    """The tensor c [m, n]: the first output."""
    return outputs(manifest)[0]


def outputs(manifest: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """All that a kernel writes: c, then further outputs."""
    return [t for t in manifest["tensors"] if t["role"] == "output"]


def epilogues(manifest: Mapping[str, Any]) -> dict[str, Mapping[str, Any]]:
    """What is done to an element, for each output by name."""
    first = {output(manifest)["name"]: manifest["epilogue"]}
    return first | {each["tensor"]: each["epilogue"] for each in manifest.get("outputs", ())}


def reductions(manifest: Mapping[str, Any]) -> dict[str, Mapping[str, Any]]:
    """How outputs are reduced over adjacent elements of a row, by name."""
    stated = manifest.get("outputs", ())
    return {each["tensor"]: each["reduce"] for each in stated if "reduce" in each}


def in_order(manifest: Mapping[str, Any], values: Mapping[str, Any]) -> tuple[Any, ...]:
    """The values in the manifest's order; raises LaunchError when a name is missing or unknown."""
    names = [tensor["name"] for tensor in manifest["tensors"]]
    unknown = sorted(set(values) - set(names))
    missing = sorted(set(names) - set(values))
    if unknown or missing:
        got = f"missing {missing} and unknown {unknown}"
        raise LaunchError(f"tensors: must be exactly {names}, got {got}; pass each by name")
    return tuple(values[name] for name in names)


def schema_of(manifest: Mapping[str, Any]) -> int:
    """The schema that a manifest needs."""
    return SCHEMA_OF_WORKSPACES if workspaces(manifest) else SCHEMA


def _all_contradictions(manifest: Mapping[str, Any], where: str) -> Iterator[str]:
    """The contradictions in a manifest; of a dynamic size, for its minimum, its maximum and one
    value between."""
    roles = [tensor["role"] for tensor in manifest["tensors"]]
    if roles.count("input") < 2 or "output" not in roles:  # what all other rules are about
        yield f"{where}.tensors: must be two inputs or more and an output, got {roles}"
    yield from size_contradictions(manifest, operands(manifest), outputs(manifest), where)
    if manifest["schema"] != schema_of(manifest):
        yield f"{where}.schema: must be {schema_of(manifest)}, got {manifest['schema']}"
    for sizes in sizes_to_check(manifest) if is_dynamic(manifest) else ():
        stated = [f"{CALLED[each].removeprefix('the ')} = {size}" for each, size in sizes.items()]
        of_sizes = f"{where} for {' and '.join(stated)}"
        yield from _contradictions(manifest_for(manifest, sizes), of_sizes)
    if not is_dynamic(manifest):
        yield from _contradictions(manifest, where)
    yield from _agreement(manifest, where)


def _agreement(manifest: Mapping[str, Any], where: str) -> Iterator[str]:
    """Spec, schedule, tensors and parameters say the same where they say it twice."""
    inputs, c, parameters = operands(manifest), output(manifest), manifest["parameters"]
    if min(len(each["shape"]) for each in (*inputs, c)) > 1:
        sizes = {"m": c["shape"][-2], "n": columns_of(c), "k": k_of(inputs[0])}
        yield from spec_contradictions(manifest["spec"], inputs, c, sizes, f"{where}.spec")
    yield from order_contradictions(parameters, manifest["tensors"], f"{where}.parameters")
    schedule, place = manifest["schedule"], f"{where}.parameters"
    yield from swizzle_contradictions(schedule, parameters, inputs, place)


def _contradictions(manifest: Mapping[str, Any], where: str) -> Iterator[str]:
    yield from _tensor_contradictions(manifest["tensors"], f"{where}.tensors")
    yield from _argument_contradictions(manifest, f"{where}.tensors")
    yield from launch_contradictions(manifest, where)
    yield from workspace_contradictions(manifest, where)
    tensors = {tensor["name"]: tensor for tensor in manifest["tensors"]}
    for i, parameter in enumerate(manifest["parameters"]):
        yield from _parameter_contradictions(parameter, tensors, f"{where}.parameters[{i}]")
    second = second_b(manifest)
    if second is not None and second["shape"] != operands(manifest)[1]["shape"]:
        rule = "the second b must be as large as the first"
        yield f"{where}.tensors: {rule}, got {second['shape']}"
    yield from _blockwise_contradictions(manifest, tensors, f"{where}.blockwise")
    yield from weight_contradictions(manifest, operands(manifest)[1], f"{where}.weights")
    names = list(tensors)
    yield from _epilogue_contradictions(manifest["epilogue"], names, f"{where}.epilogue")
    yield from _output_contradictions(manifest, names, f"{where}.outputs")
    shared, block = manifest["dynamic_shared_bytes"], manifest["block"]
    yield from name_contradictions(manifest.get("names"), shared, block, f"{where}.names")
    yield from _origin_contradictions(manifest.get("origins", []), f"{where}.origins")


def _blockwise_contradictions(
    manifest: Mapping[str, Any], tensors: Mapping[str, Any], where: str
) -> Iterator[str]:
    """The scales of 128 elements of K are inputs of f32, as large as their forms say."""
    forms = manifest.get("blockwise", {})
    for operand, (name, form) in zip(operands(manifest), forms.items(), strict=False):
        *stack, rows, _ = operand["shape"]
        wanted = [*stack, *blockwise_scale_shape(form, rows, k_of(operand))]
        scales = tensors.get(f"{name}_scales", {"dtype": None, "shape": None})
        if (scales["dtype"], scales["shape"]) != ("f32", wanted):
            got = f"{scales['dtype']} {scales['shape']}"
            yield f"{where}.{name}: '{name}_scales' must be f32 {wanted} for {form}, got {got}"


def _origin_contradictions(runs: list[Any], where: str) -> Iterator[str]:
    """Each run of lines of PTX begins behind the one before it."""
    for i, (run, after) in enumerate(pairwise(runs), 1):
        if after["line"] <= run["line"]:
            yield f"{where}[{i}].line: must be above {run['line']}, got {after['line']}"


def _tensor_contradictions(tensors: list[Any], where: str) -> Iterator[str]:
    names = [tensor["name"] for tensor in tensors]
    if len(set(names)) != len(names):
        yield f"{where}: must have different names, got {names}"
    roles = [tensor["role"] for tensor in tensors]
    if roles.count("output") < 1 or roles.count("input") < 2:
        yield f"{where}: must be at least two inputs and one output, got {roles}"
        return
    for i, tensor in enumerate(tensors):
        if len(tensor["shape"]) != len(tensor["strides"]):
            yield f"{where}[{i}]: must have one stride a dimension, got {tensor['strides']}"
    yield from _shape_contradictions(tensors, where)
    yield from memory_contradictions(tensors, where)


def _argument_contradictions(manifest: Mapping[str, Any], where: str) -> Iterator[str]:
    """Every input is an argument of the source, where the manifest names those."""
    count = len(manifest.get("arguments", ()))
    for i, tensor in enumerate(manifest["tensors"]):
        argument = tensor.get("argument")
        if (argument is not None) != (count > 0 and tensor["role"] == "input"):
            wanted = "have no" if argument else "have an"
            got = "one" if argument else "none"
            yield f"{where}[{i}]: must {wanted} argument beside {count} arguments, got {got}"
        elif argument and argument["index"] >= count:
            yield f"{where}[{i}].argument.index: must be below {count}, got {argument['index']}"
        elif argument and argument["transposed"] and len(tensor["shape"]) < 2:
            yield f"{where}[{i}].argument: must be of rank 2 or more to be transposed"


def _shape_contradictions(tensors: list[Any], where: str) -> Iterator[str]:
    a, b = operands({"tensors": tensors})
    shapes = [t["shape"] for t in (a, b, output({"tensors": tensors}))]
    if any(len(shape) not in (2, 3) for shape in shapes):
        yield f"{where}: must have operands and output of rank 2, or stacks, got {shapes}"
        return
    (*stack_a, m, _), (*stack_b, n, _) = shapes[:2]
    k, b_k = k_of(a), k_of(b)
    offsets, stack_c = offsets_of({"tensors": tensors}), shapes[2][:-2]
    gathered = rows_of({"tensors": tensors})
    yield from _order_contradictions(tensors, where)
    if gathered is not None:
        m = gathered["shape"][0] if len(gathered["shape"]) == 1 else None
        if gathered["dtype"] != "s32" or offsets is None or stack_c:
            rule = "must have rows of s32 beside offsets of groups of rows"
            yield f"{where}: {rule}, got {gathered['dtype']}"
    if offsets is not None:
        by_group = stack_c or stack_b  # of rows each has a matrix of b, of K one of c
        stack_b, stack_c = ([] if by_group == offsets["shape"] else [None]), []
        if offsets["dtype"] != "s32" or len(offsets["shape"]) != 1:
            yield f"{where}: must have offsets of s32, one a group, got {offsets['shape']}"
    c = output({"tensors": tensors})
    if k != b_k or [c["shape"][-2], columns_of(c)] != [m, n]:
        yield f"{where}: must have shapes [m, k], [n, k] and [m, n], got {shapes}"
    elif any(each not in ([], stack_c) for each in (stack_a, stack_b)):
        yield f"{where}: must be matrices or stacks as long as the output, got {shapes}"
    elif stack_c and not stack_a and not stack_b:
        yield f"{where}: must have a stack among the operands of a stack, got {shapes}"


def _order_contradictions(tensors: list[Any], where: str) -> Iterator[str]:
    """An order is that of groups, one number each."""
    for order in (each for each in tensors if each["name"] == ORDER):
        offsets = offsets_of({"tensors": tensors})
        wanted = None if offsets is None else offsets["shape"]
        if order["shape"] != wanted or order["dtype"] != "s32":
            rule = f"must have an order of s32, one a group, {wanted}"
            yield f"{where}: {rule}, got {order['dtype']} {order['shape']}"


def _output_contradictions(
    manifest: Mapping[str, Any], names: list[str], where: str
) -> Iterator[str]:
    """Each further output is told of once, in the order of tensors, and is as large as c."""
    c, *others = outputs(manifest)
    how = manifest.get("quantized")
    if how:
        scale = others.pop() if others else {"name": None, "shape": []}
        *stack, rows, _ = c["shape"]
        shape = [*stack, *blocked_scale_shape(rows, columns_of(c) // how["block"])]
        if (scale["name"], scale["shape"]) != (how["scales"], shape):
            rule = f"'{how['scales']}', the last output, must have the shape {shape}"
            yield f"{where}: {rule}, got '{scale['name']}' of {scale['shape']}"
    stated = manifest.get("outputs", [])
    wanted, got = [each["name"] for each in others], [each["tensor"] for each in stated]
    if wanted != got:
        yield f"{where}: must tell of {wanted}, the outputs behind '{c['name']}', got {got}"
    for each, output in zip(others, stated, strict=False):
        group = output.get("reduce", {}).get("group", 1)
        shape = [*c["shape"][:-1], -(-columns_of(c) // group)]
        if each["shape"] != shape:
            rule = f"'{each['name']}' must have the shape {shape}, by that of '{c['name']}'"
            yield f"{where}: {rule}, got {each['shape']}"
    for i, each in enumerate(stated):
        yield from _epilogue_contradictions(each["epilogue"], names, f"{where}[{i}].epilogue")


def _parameter_contradictions(
    parameter: Mapping[str, Any], tensors: Mapping[str, Any], where: str
) -> Iterator[str]:
    if "tensor" not in parameter:
        return
    if parameter["tensor"] not in tensors:
        yield f"{where}.tensor: must be one of {list(tensors)}, got '{parameter['tensor']}'"
    if parameter["kind"] != "tensor_map":
        yield from pointer_contradictions(parameter, where)
        return
    rank = len(parameter["dims"])
    lengths = {"strides_bytes": rank - 1, "box": rank, "element_strides": rank}
    for name, length in lengths.items():
        if len(parameter[name]) != length:
            yield f"{where}.{name}: must have {length} items, got {len(parameter[name])}"
    yield from map_contradictions(parameter, tensors[parameter["tensor"]], where)


def _epilogue_contradictions(
    epilogue: Mapping[str, Any], names: list[str], where: str
) -> Iterator[str]:
    arguments = epilogue["arguments"]
    for i, argument in enumerate(arguments):
        second = i == 1 and "b" in argument
        known = names if i and not second else [None]
        if "b" in argument and (not second or argument["b"] not in names[2:]):
            yield f"{where}.arguments[{i}].b: must be that of a second product, got {argument['b']}"
        if argument["tensor"] not in known:
            yield f"{where}.arguments[{i}]: must be one of {known}, got {argument['tensor']!r}"
    ids = len(arguments)
    for i, operation in enumerate(epilogue["operations"]):
        if any(operand >= ids + i for operand in operation["operands"]):
            yield f"{where}.operations[{i}]: must use earlier ids, got {operation['operands']}"
        yield from operation_contradictions(operation, f"{where}.operations[{i}]")
    if epilogue["result"] >= ids + len(epilogue["operations"]):
        yield f"{where}.result: must be an id that exists, got {epilogue['result']}"
