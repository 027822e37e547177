"""The modifiers of one opcode, which its builder consumes: what is left over is not modelled."""

from __future__ import annotations

from typing import NoReturn, overload

from ..errors import Trap
from .values import TYPES, Type


class Modifiers:
    """modifiers: the pieces of an opcode behind its registered prefix, the mnemonic."""

    def __init__(self, mnemonic: str, modifiers: tuple[str, ...]):
        self.mnemonic, self.modifiers = mnemonic, modifiers
        self._left = list(modifiers)

    def unmodelled(self, reason: str) -> NoReturn:
        """Refuse the instruction."""
        raise NotImplementedError(reason)

    def trap(self, category: str, message: str) -> Trap:
        """A Trap for a refusal."""
        raise NotImplementedError(message)

    def flag(self, name: str) -> bool:
        """Consume modifier `name` (without its dot); was it there?"""
        if name not in self._left:
            return False
        self._left.remove(name)
        return True

    @overload
    def choice(self, names: tuple[str, ...], default: str) -> str: ...
    @overload
    def choice(self, names: tuple[str, ...]) -> str | None: ...
    def choice(self, names: tuple[str, ...], default: str | None = None) -> str | None:
        """Consume the one of `names` that is there, else return `default`."""
        found = [name for name in names if name in self._left]
        if len(found) > 1:
            self.unmodelled(f"modifiers .{found[0]} and .{found[1]} together")
        if not found:
            return default
        self._left.remove(found[0])
        return found[0]

    def required(self, names: tuple[str, ...]) -> str:
        """Consume the one of `names` that must be there."""
        found = self.choice(names)
        if found is None:
            self.unmodelled("an opcode without one of " + " ".join(f".{name}" for name in names))
        return found

    def peek_type(self) -> Type:
        """The last modifier that is a type; other modifiers may stand behind it."""
        for name in reversed(self._left):
            if name in TYPES:
                return TYPES[name]
        return self.unmodelled(
            f"type .{self._left[-1]}" if self._left else "an opcode without type"
        )

    def take_type(self, *allowed: str) -> Type:
        """Consume the last modifier that is a type, one of those `allowed` if any are named."""
        type_ = self.peek_type()
        if allowed and type_.name not in allowed:
            raise self.trap("type", f"{self.mnemonic} has no type .{type_.name}")
        at = len(self._left) - 1 - self._left[::-1].index(type_.name)
        del self._left[at]
        return type_

    def finish_modifiers(self) -> None:
        """Refuse the instruction if a modifier has not been consumed."""
        if self._left:
            self.unmodelled(f"modifier .{self._left[0]}")
