"""Tokens to instructions and operands (PTX ISA §4.5 constants, §6 operands)."""

from __future__ import annotations

import struct

from ..errors import PtxSyntaxError
from . import syntax
from .expressions import MULTIPLICATIVE, PRECEDENCE, fold, wrapped
from .lexer import Source, Token

WARP_SZ = 32
CASTS = (".s64", ".u64")
"""Of constant expressions; the arithmetic is that of 64 bits in both."""
INTEGER_BITS = 64
DECIMAL_DIGITS = 20
"""A decimal integer of fewer has at most 64 bits."""
SHOWN_CHARACTERS = 60
MAX_TEXT = 2000
"""Characters of an instruction that messages show: tcgen05.ld of 128 registers has 900."""


class TokenStream:
    """The tokens of a module and a position; `kind` and `text` are those of the next token."""

    def __init__(self, source: Source):
        self._source = source
        self._tokens = source.tokens()
        self._at = 0
        self.kind, self.text, self.offset = self._tokens[0]

    # -- tokens ------------------------------------------------------------------------------

    def advance(self) -> str:
        """Consume the next token and return its text."""
        text = self.text
        self._at = min(self._at + 1, len(self._tokens) - 1)
        self.kind, self.text, self.offset = self._tokens[self._at]
        return text

    def peek(self) -> str:
        """The text of the token after the next."""
        return self._tokens[min(self._at + 1, len(self._tokens) - 1)][1]

    @property
    def line(self) -> int:
        return self._source.line(self.offset)

    def error(self, expected: str) -> PtxSyntaxError:
        return self._source.error(f"{expected}, got `{_shown(self.text)}`", self.offset)

    def accept(self, text: str) -> bool:
        """Consume the next token if it is `text`."""
        if self.text != text:
            return False
        self.advance()
        return True

    def expect(self, text: str, what: str) -> None:
        """Consume `text`, else a syntax error says that `what` is expected."""
        if not self.accept(text):
            raise self.error(f"expected {what}")

    def take(self, kind: str, what: str) -> str:
        """Consume a token of a kind and return its text."""
        if self.kind != kind:
            raise self.error(f"expected {what}")
        return self.advance()

    def integer(self) -> int:
        """Consume an integer constant."""
        offset = self.offset
        value = self._number("an integer")
        if not isinstance(value, syntax.Integer):
            raise self._source.error("expected an integer, got a decimal", offset)
        return value.value

    def _number(self, what: str) -> syntax.Integer | syntax.Float:
        offset, text = self.offset, self.take("number", what)
        try:
            return number(text)
        except ValueError:
            message = f"expected {what} of 64 bits, got `{_shown(text)}`"
            raise self._source.error(message, offset) from None

    def skip_past(self, text: str) -> None:
        """Skip tokens up to and including `text`."""
        while self.text != text:
            if self.kind == "end":
                raise self.error(f"expected `{text}`")
            self.advance()
        self.advance()

    def skip_line(self) -> None:
        """Skip the tokens that start on this line."""
        line = self.line
        while self.kind != "end" and self.line == line:
            self.advance()

    # -- instructions ------------------------------------------------------------------------

    def instruction(self) -> syntax.Instruction:
        """`[@p] opcode operands ;`"""
        start = self.offset
        guard = self._guard() if self.text == "@" else None
        opcode = self.take("word", "an instruction")
        while self.kind == "directive":  # a modifier behind a space
            opcode += self.advance()
        operands = []
        while self.text != ";":
            operands.append(self.operand())
            if self.text != ";":
                self.expect(",", "`,` or `;`")
        text = _shown(" ".join(self._source.text[start : self.offset].split()), MAX_TEXT)
        self.advance()
        return syntax.Instruction(opcode, tuple(operands), guard, self._source.line(start), text)

    def _guard(self) -> syntax.Guard:
        self.advance()
        negated = self.accept("!")
        return syntax.Guard(self.take("word", "a predicate register"), negated)

    def operand(self) -> syntax.Operand:
        """Any operand."""
        if self.kind == "word":
            return self._word_operand()
        if self.kind == "number" or self.text in "-~+":
            return self._continued(self._constant())
        if self.text == "[":
            return self._address()
        if self.text == "{":
            return self._vector()
        if self.text == "(" and self.peek() in CASTS:
            return syntax.Integer(self.expression())
        if self.text == "(":
            return self._continued(syntax.Group(tuple(self._list("(", ")"))))
        if self.text == "!" and (self.peek()[:1].isdigit() or self.peek() == "("):
            return syntax.Integer(self.expression())
        if self.accept("!"):
            return syntax.Negated(syntax.Symbol(self.take("word", "a predicate register")))
        raise self.error("expected an operand")

    def _continued(self, first: syntax.Operand) -> syntax.Operand:
        """The operand that a constant, perhaps in parentheses, is the beginning of."""
        if self.text not in PRECEDENCE and self.text != "?":
            return first
        inner = first.elements[0] if isinstance(first, syntax.Group) and first.elements else first
        if not isinstance(inner, syntax.Integer):
            raise self.error("expected `,` or `;`")
        return syntax.Integer(self._chosen(self._binary(inner.value, 0)))

    # -- constant expressions ------------------------------------------------------------------

    def expression(self) -> int:
        """A constant expression of integers."""
        return self._chosen(self._binary(self._unary(), 0))

    def _chosen(self, condition: int) -> int:
        """The value of `condition ? a : b`, or the condition where no `?` follows."""
        if not self.accept("?"):
            return condition
        first = self.expression()
        self.expect(":", "`:`")
        second = self.expression()
        return first if condition else second

    def _binary(self, left: int, lowest: int) -> int:
        """Fold operators of at least the precedence `lowest` behind a value."""
        while PRECEDENCE.get(self.text, -1) >= lowest:
            offset, operator = self.offset, self.advance()
            level, right = PRECEDENCE[operator], self._unary()
            while PRECEDENCE.get(self.text, -1) > level:
                right = self._binary(right, PRECEDENCE[self.text])
            try:
                left = fold(operator, left, right)
            except ZeroDivisionError:
                raise self._source.error("a constant is divided by zero", offset) from None
        return left

    def _unary(self) -> int:
        if self.accept("-"):
            return wrapped(-self._unary())
        if self.accept("+"):
            return self._unary()
        if self.accept("~"):
            return ~self._unary()
        if self.accept("!"):
            return int(not self._unary())
        if self.accept("("):
            return self._parenthesised()
        return WARP_SZ if self.accept("WARP_SZ") else self.integer()

    def _parenthesised(self) -> int:
        if self.text in CASTS:
            self.advance()
            self.expect(")", "`)`")
            return self._unary()
        value = self.expression()
        self.expect(")", "`)`")
        return value

    def _vector(self) -> syntax.Vector:
        offset, elements = self.offset, self._list("{", "}")
        if not elements:
            raise self._source.error("expected an element in a vector, got `{}`", offset)
        return syntax.Vector(tuple(elements))

    def _list(self, opening: str, closing: str) -> list[syntax.Operand]:
        self.expect(opening, f"`{opening}`")
        found = []
        while not self.accept(closing):
            found.append(self.operand())
            if self.text != closing:
                self.expect(",", f"`,` or `{closing}`")
        return found

    def _word_operand(self) -> syntax.Operand:
        name = self.advance()
        if self.text == "|":
            self.advance()
            second = self.take("word", "a register after `|`")
            return syntax.Pair(syntax.Symbol(name), syntax.Symbol(second))
        if name == "WARP_SZ":
            return self._continued(syntax.Integer(WARP_SZ))
        if name == "generic" and self.text == "(":
            return self._generic()
        if self.text == "+":
            return syntax.SymbolOffset(name, self._offset())
        return syntax.Symbol(name)

    def _generic(self) -> syntax.SymbolOffset:
        self.expect("(", "`(`")
        name = self.take("word", "a variable")
        offset = self._offset()
        self.expect(")", "`)`")
        return syntax.SymbolOffset(name, offset + self._offset(), generic=True)

    def _offset(self) -> int:
        """`+4`, `-4`, `+-4`, `+4*8-2` or nothing."""
        total = 0
        while self.text in ("+", "-"):
            sign = 1 if self.advance() == "+" else -1
            total += sign * self._binary(self._unary(), MULTIPLICATIVE)
        return total

    def _address(self) -> syntax.Address:
        self.expect("[", "`[`")
        start = self.offset
        base = (
            self._constant()
            if self.kind == "number"
            else syntax.Symbol(self.take("word", "a register, variable or address"))
        )
        if isinstance(base, syntax.Float):
            raise self._source.error("expected an address, got a decimal", start)
        offset = self._offset()
        coordinates, rest = None, []
        while self.accept(","):
            item = self.operand()
            if isinstance(item, syntax.Vector) and coordinates is None:
                coordinates = item
            else:
                rest.append(item)
        self.expect("]", "`]`")
        return syntax.Address(base, offset, coordinates, tuple(rest))

    def _constant(self) -> syntax.Integer | syntax.Float:
        """A number with its sign, or an integer behind other unary operators."""
        if self.kind == "number":
            return self._number("a constant")
        if self.text in ("+", "-") and self.peek()[:1].isdigit():
            negative, constant = self.advance() == "-", self._number("a constant")
            return _negate(constant) if negative else constant
        return syntax.Integer(self._unary())

    # -- initialisers ------------------------------------------------------------------------

    def initializer(self) -> list[syntax.Initial]:
        """The values of an initialiser, nested braces flattened in order."""
        if not self.accept("{"):
            return [self._initial_value()]
        values = []
        while not self.accept("}"):
            values += self._decimals()
            values += self.initializer()
            if self.text != "}":
                self.expect(",", "`,` or `}`")
        return values

    def _decimals(self) -> list[syntax.Initial]:
        """Plain decimal integers with a comma and another number behind, at once: modules have
        tables of 200,000 of them."""
        tokens, at, values = self._tokens, self._at, []
        while (
            tokens[at][0] == "number"
            and (text := tokens[at][1]).isdecimal()
            and len(text) < DECIMAL_DIGITS
            and (text[0] != "0" or text == "0")
            and tokens[at + 1][1] == ","
            and tokens[at + 2][0] == "number"
        ):
            values.append(syntax.Integer(int(text)))
            at += 2
        self._at = at
        self.kind, self.text, self.offset = tokens[at]
        return values

    def _initial_value(self) -> syntax.Initial:
        if self.kind == "number" and self.peek() == "(":
            return self._masked_address()
        offset, value = self.offset, self.operand()
        if isinstance(value, syntax.Initial):
            return value
        raise self._source.error("expected a constant or an address in an initialiser", offset)

    def _masked_address(self) -> syntax.SymbolOffset:
        """`0xFF00(variable)`: some of the address's bits (PTX ISA §5.4.4)."""
        offset, mask = self.offset, self.integer()
        self.expect("(", "`(`")
        inner = self._initial_value()
        self.expect(")", "`)`")
        if mask and isinstance(inner, syntax.Symbol | syntax.SymbolOffset):
            return _masked(inner, mask)
        raise self._source.error("expected a mask above 0 of an address", offset)


def _masked(operand: syntax.Symbol | syntax.SymbolOffset, mask: int) -> syntax.SymbolOffset:
    if isinstance(operand, syntax.Symbol):
        return syntax.SymbolOffset(operand.name, mask=mask)
    return syntax.SymbolOffset(operand.name, operand.offset, operand.generic, mask)


def _negate(constant: syntax.Integer | syntax.Float) -> syntax.Integer | syntax.Float:
    if isinstance(constant, syntax.Integer):
        return syntax.Integer(-constant.value)
    return syntax.Float(constant.bits ^ 1 << constant.width - 1, constant.width)


def number(text: str) -> syntax.Integer | syntax.Float:
    """A numeric constant: decimal, hex, octal or binary integer, `0f`/`0d` bits or a decimal.

    ValueError for digits that the base has not, and for an integer of more than 64 bits (PTX ISA
    §4.5.1).
    """
    lower = text.lower()
    if lower.startswith("0f"):
        return syntax.Float(int(lower[2:], 16), 32)
    if lower.startswith("0d"):
        return syntax.Float(int(lower[2:], 16), 64)
    if not lower.startswith("0x") and any(mark in lower for mark in ".e"):
        return syntax.Float(struct.unpack("<Q", struct.pack("<d", float(lower)))[0], 64)
    return syntax.Integer(_integer(lower.rstrip("u")))


def _integer(digits: str) -> int:
    if digits.startswith(("0x", "0b")):
        value = int(digits, 0)
    else:
        octal = len(digits) > 1 and digits[0] == "0"
        value = int(digits, 8) if octal else int(digits)
    if value >> INTEGER_BITS:
        raise ValueError(digits)
    return value


def _shown(text: str, most: int = SHOWN_CHARACTERS) -> str:
    return text if len(text) <= most else text[:most] + "…"


__all__ = ["Token", "TokenStream", "number"]
