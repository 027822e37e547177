"""PTX and a launch file with symbolic sizes as a subject, judged by the emulator.

The file is a launch file (docs/emulate.md) in which any value may be a text that starts with "=":
an expression in M, N and K. One more field, `matmul`, says which tensors are the operands:

    {"a": "a", "b": "b", "c": "c", "b_shape": "nk", "takes": ["=K % 8 == 0"], "size": [129, 72, 96]}

`takes`: what must hold for a size; others are skipped. `size`: of cases that are not about sizes.
"""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from ..bundles.schema import Integer, ListOf, OneOf, Record, Text
from ..element_types import ITEM_BYTES
from ..errors import LaunchError
from ..judge.intervals import Interval
from ..launch_files import run_launch_file
from ..strict_json import parse_json
from .cases import Layout, Size
from .operands import Placed
from .subjects import B_SHAPES, USUAL_SIZE, OutOfDomain, Product
from .verdicts import rounded

FIELDS = {"a", "b", "c", "b_shape", "takes", "size"}
MATMUL = Record(
    {name: Text() for name in "abc"},
    {"b_shape": OneOf(B_SHAPES), "takes": ListOf(Text(), 0, 100), "size": ListOf(Integer(1), 3, 3)},
)
TENSORS = Record({"tensors": ListOf(Record({"name": Text(), "role": Text(), "dtype": Text()}))})
"""What is read of the template here; the launch made of it is checked whole before it runs."""
ROLES = {"a": ("input", "inout"), "b": ("input", "inout"), "c": ("output", "inout")}
OPERATORS: dict[type, Callable[..., Any]] = {
    ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul,
    ast.FloorDiv: operator.floordiv, ast.Mod: operator.mod, ast.USub: operator.neg,
    ast.Eq: operator.eq, ast.NotEq: operator.ne, ast.Lt: operator.lt, ast.LtE: operator.le,
    ast.Gt: operator.gt, ast.GtE: operator.ge,
}  # fmt: skip
FUNCTIONS: dict[str, Callable[..., int]] = {
    "cdiv": lambda a, b: -(-a // b),
    "align": lambda a, b: -(-a // b) * b,
    "min": min,
    "max": max,
}


class LaunchSubject:
    """A kernel's PTX with a launch for any size; every case is a run under full checks."""

    any_size, layouts, calls, takes_out = True, False, False, False
    any_rows = False
    device = "emulator"
    memory = "cpu"
    a_layout = b_layout = Layout()

    def __init__(self, ptx: Path, template: Path):
        self.name = ptx.name
        self._ptx = ptx
        self._launch = _read(template)
        matmul = _matmul_of(self._launch, template)
        self._names = {name: matmul[name] for name in "abc"}
        self.b_shape: str = matmul.get("b_shape", "kn")
        self._takes: list[str] = matmul.get("takes", [])
        m, n, k = matmul.get("size", USUAL_SIZE)
        self.size: Size = (m, n, k)
        tensors = {each["name"]: each for each in self._launch["tensors"]}
        a, b, self._c_dtype = (
            _dtype(tensors, self._names[name], template, roles) for name, roles in ROLES.items()
        )
        self.dtypes: tuple[str, str] = (a, b)

    def product(self, a: Placed, b: Placed, out: Placed | None = None, seed: int = 0) -> Product:
        import torch

        del out
        m, k = a.view.shape
        n = b.view.shape[1 if self.b_shape == "kn" else 0]
        self._check_domain({"M": m, "N": n, "K": k})
        result = run_launch_file(self._ptx, self._filled({"M": m, "N": n, "K": k}, a, b), seed)
        found = result.outputs[self._names["c"]].astype(np.float32)
        warnings = [each.category for each in result.report.warnings]
        return Product(torch.from_numpy(found), self._c_dtype, warnings)

    def expected(self, sums: Interval, c_dtype: str) -> Interval:
        return rounded(sums, c_dtype)

    def _check_domain(self, sizes: Mapping[str, int]) -> None:
        for rule in self._takes:
            if not evaluate(rule, sizes):
                raise OutOfDomain(f"it takes {rule.removeprefix('=')} only")

    def _filled(self, sizes: Mapping[str, int], a: Placed, b: Placed) -> dict[str, Any]:
        """The launch for these sizes and operands."""
        launch = _resolved(self._launch, sizes)
        given = {self._names["a"]: _raw(a), self._names["b"]: _raw(b)}
        for tensor in launch["tensors"]:
            tensor["whole"] = tensor["name"] == self._names["c"]
            if tensor["name"] in given:
                tensor["contents"] = given[tensor["name"]]
        return launch


def _raw(placed: Placed) -> np.ndarray:
    """The matrix as a launch file's `.npy` holds it: bits, of types that numpy has not."""
    import torch

    dense = placed.view.contiguous()
    if placed.dtype in ("bf16", "e4m3", "e5m2"):
        return dense.view(torch.uint16 if ITEM_BYTES[placed.dtype] == 2 else torch.uint8).numpy()
    return dense.numpy()


def _read(path: Path) -> dict[str, Any]:
    from ..launch_files.description import MAX_FILE_BYTES, read_limited

    try:
        found = parse_json(read_limited(path, MAX_FILE_BYTES))
    except ValueError as error:
        raise LaunchError(f"{path}: must be JSON, got {error}") from None
    if not isinstance(found, dict):
        raise LaunchError(f"{path}: must be an object, got {type(found).__name__}")
    broken = TENSORS.check(found, "launch")
    if broken:
        raise LaunchError(f"{path}: {broken}")
    return found


def _matmul_of(launch: dict[str, Any], path: Path) -> dict[str, Any]:
    """The field `matmul`, taken out of the launch and checked."""
    matmul = launch.pop("matmul", None)
    where = f"{path}: matmul"
    if not isinstance(matmul, dict) or not {"a", "b", "c"} <= set(matmul) <= FIELDS:
        got = sorted(matmul) if isinstance(matmul, dict) else matmul
        raise LaunchError(f"{where}: must name the tensors a, b and c, got {got}")
    broken = MATMUL.check(matmul, where)
    if broken:
        raise LaunchError(broken)
    if len({matmul[name] for name in "abc"}) != 3:
        raise LaunchError(f"{where}: must name three tensors, got one of them twice")
    for rule in matmul.get("takes", []):
        evaluate(rule, {"M": 128, "N": 128, "K": 128})
    return matmul


def _dtype(tensors: Mapping[str, Any], name: str, path: Path, roles: tuple[str, str]) -> str:
    if name not in tensors:
        known = ", ".join(map(str, tensors))
        raise LaunchError(f"{path}: matmul: must name one of the tensors {known}, got '{name}'")
    dtype, role = tensors[name]["dtype"], tensors[name]["role"]
    if role not in roles:
        raise LaunchError(f"{path}: '{name}' must have the role {roles[0]}, got {role}")
    if dtype not in ITEM_BYTES:
        raise LaunchError(f"{path}: '{name}' must be of {', '.join(ITEM_BYTES)}, got {dtype}")
    return dtype


def _resolved(value: Any, sizes: Mapping[str, int]) -> Any:
    """The launch with every expression replaced by its value."""
    if isinstance(value, dict):
        return {name: _resolved(each, sizes) for name, each in value.items()}
    if isinstance(value, list):
        return [_resolved(each, sizes) for each in value]
    return evaluate(value, sizes) if isinstance(value, str) and value[:1] == "=" else value


def evaluate(text: str, sizes: Mapping[str, int]) -> int:
    """The value of an expression in M, N, K: + - * // %, comparisons, cdiv, align, min, max.

    Raises LaunchError for anything else.
    """
    try:
        tree = ast.parse(text.removeprefix("=").strip(), mode="eval")
        return int(_value(tree.body, sizes))
    except (SyntaxError, TypeError, ValueError, ArithmeticError, RecursionError) as error:
        reason = str(error) or type(error).__name__
        raise LaunchError(f"'{text}': must be an expression in M, N and K, got: {reason}") from None


def _value(node: ast.AST, sizes: Mapping[str, int]) -> Any:
    if isinstance(node, ast.Constant) and isinstance(node.value, int):
        return node.value
    if isinstance(node, ast.Name) and node.id in sizes:
        return sizes[node.id]
    if isinstance(node, ast.BinOp) and type(node.op) in OPERATORS:
        return OPERATORS[type(node.op)](_value(node.left, sizes), _value(node.right, sizes))
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        return -_value(node.operand, sizes)
    if isinstance(node, ast.Compare) and len(node.ops) == 1 and type(node.ops[0]) in OPERATORS:
        sides = (_value(each, sizes) for each in (node.left, node.comparators[0]))
        return OPERATORS[type(node.ops[0])](*sides)
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and not node.keywords:
        if node.func.id in FUNCTIONS:
            return FUNCTIONS[node.func.id](*(_value(each, sizes) for each in node.args))
    raise ValueError(f"{ast.unparse(node)} is not one of these")
