"""What a pass refuses, read from the code that raises it: its messages, with … for values."""

from __future__ import annotations

import ast
import inspect
import re
from collections.abc import Iterable
from typing import Any, TypeGuard

from ...dialects import legality, scaled_legality, store_legality

LEGALITY = {
    "legality": legality,
    "scaled_legality": scaled_legality,
    "store_legality": store_legality,
}

Words = dict[str, ast.expr]
"""Texts by the names that are assigned them."""


def refusals(modules: list[Any]) -> str:
    """The messages of the errors that the pass's files raise, with … for values.

    A function that ends in "refusal" returns such a message, and so do the rules of legality that
    the files ask.
    """
    trees = [ast.parse(inspect.getsource(module)) for module in modules]
    messages = [message for tree in trees for message in _messages(tree)]
    shown = list(dict.fromkeys(message for message in messages if _says_something(message)))
    if not shown:
        return "None of its own."
    return "\n".join(["Each … is a name or a value.\n", *(f"- {each}" for each in shown)])


def _messages(tree: ast.Module) -> list[str]:
    functions = [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)]
    constants = _assigned(tree.body)
    raised = [
        _message(node.args[-1], constants | _assigned_before(node, functions))
        for node in ast.walk(tree)
        if isinstance(node, ast.Call) and _is_refusal(node)
    ]
    returned = [
        _message(node.value, constants | _assigned_before(node, functions))
        for function in functions
        if function.name.endswith("refusal")
        for node in ast.walk(function)
        if isinstance(node, ast.Return) and node.value is not None
    ]
    rules = [text for node in ast.walk(tree) if _is_rule(node) for text in _rule(node)]
    return raised + returned + rules


def _assigned_before(node: ast.expr | ast.stmt, functions: list[ast.FunctionDef]) -> Words:
    """What the names of the function around a node were assigned last before it."""
    around = [each for each in functions if each.lineno <= node.lineno <= (each.end_lineno or 0)]
    statements = [each for function in around for each in ast.walk(function)]
    before = [each for each in statements if getattr(each, "lineno", node.lineno) < node.lineno]
    return _assigned(sorted(before, key=lambda each: each.lineno))


def _assigned(statements: Iterable[Any]) -> Words:
    """The names that are assigned a text."""
    return {
        each.targets[0].id: each.value
        for each in statements
        if isinstance(each, ast.Assign)
        and isinstance(each.targets[0], ast.Name)
        and isinstance(each.value, ast.Constant | ast.JoinedStr)
    }


def _is_rule(node: ast.AST) -> TypeGuard[ast.Attribute]:
    """Whether it is the name of a module of legality and one of its functions."""
    if not isinstance(node, ast.Attribute) or not isinstance(node.value, ast.Name):
        return False
    return node.value.id in LEGALITY and node.attr.islower()


def _rule(node: ast.Attribute) -> list[str]:
    """How a rule of legality says that it is broken."""
    assert isinstance(node.value, ast.Name)
    tree = ast.parse(inspect.getsource(getattr(LEGALITY[node.value.id], node.attr)))
    functions = [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)]
    texts = [node.value for node in ast.walk(tree) if isinstance(node, ast.Return) and node.value]
    return [_message(text, _assigned_before(text, functions)) for text in texts]


def _says_something(message: str) -> bool:
    """Whether its rule has words of its own; one that another function words is listed there."""
    rule = re.sub(r"^[\w-]+:", "", message).partition(";")[0]
    return bool(re.search(r"\w{3}", re.sub(r"\b(got|each)\b", "", rule)))


def _is_refusal(node: ast.Call) -> bool:
    return (
        isinstance(node.func, ast.Name)
        and node.func.id in ("refused", "CompileError")
        and bool(node.args)
    )


def _message(expression: ast.expr, words: Words) -> str:
    """A text with … for values, but for those that are a text themselves."""
    if isinstance(expression, ast.Name) and expression.id in words:
        others = {name: text for name, text in words.items() if name != expression.id}
        return _message(words[expression.id], others)
    if isinstance(expression, ast.Constant):
        return expression.value if isinstance(expression.value, str) else ""
    if not isinstance(expression, ast.JoinedStr):
        return ""
    return "".join(_part(part, words) for part in expression.values)


def _part(part: ast.expr, words: Words) -> str:
    if isinstance(part, ast.FormattedValue):
        return _message(part.value, words) or "…"
    return _message(part, words)
