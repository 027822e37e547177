"""Untrusted files of torch.export.save: only what cannot run code is passed to torch.

torch.export.load unpickles (weights, constants, example inputs), loads libraries (AOTInductor) and
evaluates text (shapes by sympy, guards by exec). So a file is read here first, by a list of what is
allowed: raw weights, a graph of aten operators with static shapes, and example inputs that torch
unpickles as tensors alone (`weights_only`). What torch then gets is a new archive of those members.
As torch 2.9 to 2.13 write and read them: torch/export/pt2_archive, torch/_export/serde/schema.py.
"""

from __future__ import annotations

import io
import json
import re
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from ...dialects.errors import CompileError
from ...runtime.strict_json import parse_json

MEMBERS_LIMIT, JSON_LIMIT_BYTES, FILE_LIMIT_BYTES = 4096, 64 * 2**20, 8 * 2**30
GRAPH = "models/model.json"
EXAMPLES = "data/sample_inputs/model.pt"
CONFIGS = ("data/weights/model_weights_config.json", "data/constants/model_constants_config.json")
PLAIN = (
    "archive_format",
    "archive_version",
    "byteorder",
    ".data/version",
    ".data/serialization_id",
)
RAW = re.compile(r"data/(weights/weight|constants/tensor)_\d+")
PAYLOAD = re.compile(r"(weight|tensor)_\d+")
TARGET = re.compile(r"torch\.ops\.(aten|prims)\.\w+(\.\w+)?|_operator\.getitem")
CONTAINERS = (None, "builtins.tuple", "builtins.list", "builtins.dict")
UNREAD_TEXT = re.compile(
    r"as_(expr|custom_obj|operator|graph|complex|opaque)\w*|expr_str|as_sym_\w+"
)
TRUST = "give --trust (trust=True) if you know who made it"


_trusted: set[Path] = set()


def trust(path: Path) -> None:
    """Let this process load the file as torch does, which may run any code (`--trust`)."""
    _trusted.add(path)


def is_trusted(path: Path) -> bool:
    """Whether `trust` was said of the file."""
    return path in _trusted


def safe_archive(path: Path) -> io.BytesIO:
    """An archive for torch.export.load whose loading runs no code; CompileError where there can be
    none."""
    try:
        if path.stat().st_size > FILE_LIMIT_BYTES:
            raise _refused(path, f"must have at most {FILE_LIMIT_BYTES} bytes, got more")
        with zipfile.ZipFile(path) as archive:
            return _rewritten(path, archive)
    except (AttributeError, KeyError, OSError, RecursionError, RuntimeError, TypeError) as error:
        raise _unreadable(path, error) from error
    except (ValueError, zipfile.BadZipFile) as error:
        raise _unreadable(path, error) from error


def _unreadable(path: Path, error: Exception) -> CompileError:
    reason = str(error) or type(error).__name__
    return CompileError(f"{path}: must be a file of torch.export.save, got: {reason}")


def _refused(path: Path, rule: str) -> CompileError:
    return CompileError(f"{path}: {rule}; {TRUST}")


def _rewritten(path: Path, archive: zipfile.ZipFile) -> io.BytesIO:
    _check_members(path, archive)
    contents = {info.filename: archive.read(info) for info in archive.infolist()}
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_STORED) as safe:
        for name, content in contents.items():
            inner = name.partition("/")[2]
            safe.writestr(name, _checked(path, inner, content))
    buffer.seek(0)
    return buffer


def _check_members(path: Path, archive: zipfile.ZipFile) -> None:
    """Names that are known, once each, below one folder, stored without compression."""
    infos = archive.infolist()
    if len(infos) > MEMBERS_LIMIT:
        raise _refused(path, f"must hold at most {MEMBERS_LIMIT} members, got {len(infos)}")
    if any(info.compress_type != zipfile.ZIP_STORED for info in infos):
        raise _refused(path, "members must be stored as they are, got compressed ones")
    if sum(info.file_size for info in infos) > path.stat().st_size:
        raise _refused(path, "members must lie beside each other, got overlapping ones")
    names = [info.filename for info in infos]
    if len({name.lower() for name in names}) != len(names):
        raise _refused(path, "members must have different names, got one twice")
    if len({name.partition("/")[0] for name in names}) != 1:
        raise _refused(path, "members must lie in one folder, got several")
    known = (GRAPH, EXAMPLES, *CONFIGS, *PLAIN)
    for name in names:
        inner = name.partition("/")[2]
        if inner not in known and not RAW.fullmatch(inner):
            raise _refused(path, f"must hold a graph and its tensors alone, got '{name}'")


def _checked(path: Path, name: str, content: bytes) -> bytes:
    """The member as torch may read it."""
    if name == EXAMPLES:
        _check_examples(path, content)
    if name not in (GRAPH, *CONFIGS):
        return content
    if len(content) > JSON_LIMIT_BYTES:
        raise _refused(path, f"'{name}' must have at most {JSON_LIMIT_BYTES} bytes, got more")
    value = parse_json(content)
    if name == GRAPH:
        _check_graph(path, value)
    else:
        _check_payloads(path, value)
    return json.dumps(value).encode()


def _check_payloads(path: Path, config: Any) -> None:
    for name, payload in config["config"].items():
        if payload["use_pickle"] is not False or not PAYLOAD.fullmatch(payload["path_name"]):
            raise _refused(path, f"tensors must be stored as raw bytes, got '{name}' pickled")


def _check_graph(path: Path, program: Any) -> None:
    """Operators of aten alone, and nothing that torch would evaluate or execute as text."""
    if program.get("guards_code") or program.get("range_constraints"):
        raise _refused(path, "shapes must be static, got guards or ranges, which torch evaluates")
    for key, value in _fields(program):
        if UNREAD_TEXT.fullmatch(key) and value is not None:
            raise _refused(path, f"the graph must hold tensors and numbers, got {key}")
        if key in ("in_spec", "out_spec") and isinstance(value, str):
            _check_structure(path, parse_json(value.encode()))
        if key == "target" and isinstance(value, str) and not TARGET.fullmatch(value):
            got = value[:60]
            raise _refused(path, f"the graph must hold operators of aten alone, got '{got}'")


def _check_structure(path: Path, spec: Any) -> None:
    """Inputs and outputs in tuples, lists and dicts: torch imports classes of others by name."""
    for key, value in _fields(spec):
        if key == "type" and value not in CONTAINERS:
            raise _refused(path, f"inputs must be tensors in tuples, lists or dicts, got {value}")
        if key == "context" and "enum" in str(value):
            raise _refused(path, "names of inputs must be texts, got members of an enum")


def _fields(value: Any) -> Iterator[tuple[str, Any]]:
    """Every field of every object, but for what is kept of a node for people."""
    if isinstance(value, list):
        for item in value:
            yield from _fields(item)
    elif isinstance(value, dict):
        for key, item in value.items():
            yield key, item
            yield from _fields(item)


def _check_examples(path: Path, content: bytes) -> None:
    import torch

    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        sizes = sum(info.file_size for info in archive.infolist())
        if sizes > len(content):
            raise _refused(path, "example inputs must be stored as they are, got compressed ones")
    try:
        torch.load(io.BytesIO(content), weights_only=True)
    except Exception as error:  # torch raises any kind
        raise _refused(path, "example inputs must be tensors alone, got others") from error
