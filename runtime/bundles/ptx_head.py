"""Compares the launch directives of a bundle's PTX with its manifest.

Only the head of the entry is read, and addresses that are numbers: that takes no time beside the
hashes. What a kernel does with a tensor map, a stride of tiles or a workspace stands in its
instructions, and is not looked for. So the compiler's PTX ends with a line that says for which
launch it was made, by a hash of the records that its instructions rely on:

    // launch 5f1c…    of grid, block, cluster, shared memory, schedule, parameters and tensors
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterator, Mapping
from math import prod
from typing import Any

MAP_BYTES, POINTER_BYTES, SIZE_BYTES = 128, 8, 4
BYTES = {
    "tensor_map": MAP_BYTES,
    "pointer": POINTER_BYTES,
    "workspace": POINTER_BYTES,
    "size": SIZE_BYTES,
}
"""Of a parameter of each kind."""
TYPE_BITS = re.compile(r"\.[bsuf](8|16|32|64)\b")
ITEMS = re.compile(r"\[\s*(\d+)\s*\]\s*$")
COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/", re.DOTALL)
SHARED = re.compile(r"\[dynamic_shared\+(\d+)\]")
WAITS = re.compile(r"^\s*griddepcontrol\.wait\b", re.MULTILINE)
LAUNCH = (
    *("arguments", "block", "cluster", "dynamic_shared_bytes"),
    *("grid", "parameters", "schedule", "tensors"),
)
"""The records that a kernel's instructions rely on."""
PREFERRED = "preferred_cluster"  # another, of those that have one
MADE_FOR = re.compile(r"^// launch ([0-9a-f]{64})$", re.MULTILINE)


def with_launch(ptx: str, manifest: Mapping[str, Any]) -> str:
    """PTX that says for which launch it was made, in its last line."""
    return f"{ptx.rstrip()}\n// launch {_launch_hash(manifest)}\n"


def _launch_hash(manifest: Mapping[str, Any]) -> str:
    records = [manifest.get(name) for name in LAUNCH]
    records += [manifest[PREFERRED]] if PREFERRED in manifest else []
    return hashlib.sha256(json.dumps(records, sort_keys=True).encode()).hexdigest()


def ptx_contradictions(ptx: str, manifest: Mapping[str, Any]) -> Iterator[str]:
    """What the PTX and the manifest say differently, as `must …, got …`; first that there is no
    such entry, behind which nothing else is asked."""
    found = re.search(rf"\.entry\s+{re.escape(manifest['entry'])}(?![\w$])", ptx)
    if found is None:
        yield f"must define the entry '{manifest['entry']}' of the manifest, got none"
        return
    head = COMMENT.sub(" ", ptx[found.end() :].partition("{")[0])
    yield from _target_contradictions(ptx[: found.start()], manifest["target"])
    yield from _parameter_contradictions(head, manifest["parameters"])
    yield from _extent_contradictions(head.rpartition(")")[2], manifest)
    reach = max(map(int, SHARED.findall(ptx)), default=-1)
    if reach >= manifest["dynamic_shared_bytes"]:
        got = manifest["dynamic_shared_bytes"]
        yield f"must stay within the dynamic shared memory of {got} bytes, got byte {reach}"
    waits = WAITS.search(ptx) is not None
    if manifest["schedule"].get("programmatic_dependent_launch") and not waits:
        rule = "must wait for the grids before it, as the manifest's schedule says"
        yield f"{rule}, got no griddepcontrol.wait"
    made_for = MADE_FOR.findall(ptx)
    if made_for and made_for[-1] != _launch_hash(manifest):
        records = ", ".join(LAUNCH[:-1])
        yield f"must be made for the manifest's {records} and {LAUNCH[-1]}, got those of another"


def _target_contradictions(module: str, target: str) -> Iterator[str]:
    found = re.search(r"^\s*\.target\s+(\w+)", module, re.MULTILINE)
    if found and found[1] != target:
        yield f"must be for the manifest's target {target}, got {found[1]}"


def _parameter_contradictions(head: str, parameters: list[Mapping[str, Any]]) -> Iterator[str]:
    inside = head.partition("(")[2].rpartition(")")[0] if head.lstrip()[:1] == "(" else ""
    sizes = [_parameter_bytes(each) for each in inside.split(",") if each.strip()]
    wanted = [BYTES[each["kind"]] for each in parameters]
    if sizes != wanted:
        yield f"must have parameters of {wanted} bytes, as the manifest, got {sizes}"


def _parameter_bytes(declared: str) -> int:
    """0 of what declares no number of bytes."""
    bits, items = TYPE_BITS.search(declared), ITEMS.search(declared)
    return int(bits[1]) // 8 * (int(items[1]) if items else 1) if bits else 0


def _extent_contradictions(directives: str, manifest: Mapping[str, Any]) -> Iterator[str]:
    """Threads of a CTA and CTAs of a cluster are those that the entry asks for, if it does."""
    for directive, name in (("reqntid", "block"), ("reqnctapercluster", "cluster")):
        asked = _extents(directives, directive)
        if asked and asked != manifest[name]:
            yield f"must ask for the manifest's {name} {manifest[name]}, got .{directive} {asked}"
        if asked and name == "cluster" and PREFERRED in manifest:
            rule = f"must ask for no cluster, as the manifest prefers {manifest[PREFERRED]}"
            yield f"{rule}, got .{directive} {asked}"
    most = _extents(directives, "maxntid")
    if most and prod(manifest["block"]) > prod(most):
        yield f"must take the manifest's block {manifest['block']}, got .maxntid {most}"


def _extents(directives: str, name: str) -> list[int] | None:
    """The three extents of a directive, None where there is none; those that are left out are 1."""
    found = re.search(rf"\.{name}\s+(\d+(?:\s*,\s*\d+){{0,2}})", directives)
    if found is None:
        return None
    extents = [int(each) for each in found[1].split(",")]
    return extents + [1] * (3 - len(extents))
