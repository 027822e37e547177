"""PTX text to a `syntax.Module`: module level, functions and declarations.

Source: PTX ISA §4, §5.4, §11. Debugging directives (.file, .loc, .section) are skipped.
"""

from __future__ import annotations

import re
from dataclasses import replace
from math import prod

from . import syntax
from .lexer import Source
from .operand_types import is_declarable
from .operands import TokenStream
from .values import TYPES

VERSION = re.compile(r"\d{1,3}\.\d{1,3}")
MAJOR_VERSION = 9
"""A greater major number says of incompatible changes (PTX ISA §11.1.1)."""
ADDRESS_BITS = 64
LARGEST_ALIGNMENT = 1 << 31
LINKAGE = {".visible", ".extern", ".weak", ".common"}
SPACES = {".global", ".const", ".shared", ".local", ".param", ".tex"}
LINE_DIRECTIVES = {".file", ".loc"}
VECTORS = (".v2", ".v4", ".v8")
TO_SEMICOLON = {".pragma"}
PERFORMANCE = {
    ".maxntid",
    ".reqntid",
    ".minnctapersm",
    ".maxnctapersm",
    ".maxnreg",
    ".maxclusterrank",
    ".explicitcluster",
    ".reqnctapercluster",
    ".noreturn",
    ".blocksareclusters",
    ".abi_preserve",
    ".abi_preserve_control",
}


def parse(text: str) -> syntax.Module:
    """The module of a PTX text; PtxSyntaxError names line, column and what was expected."""
    parser = Parser(text)
    try:
        return parser.module()
    except RecursionError:
        raise parser.error("expected blocks and lists that nest less deeply") from None


class Parser(TokenStream):
    """Recursive descent over the tokens of one module."""

    def __init__(self, text: str):
        super().__init__(Source(text))
        self._version = (0, 0)
        self._target: tuple[str, ...] = ()
        self._address_size = 64
        self._variables: list[syntax.Variable] = []
        self._functions: dict[str, syntax.Function] = {}
        self._names: dict[str, syntax.Variable | syntax.Function] = {}

    def module(self) -> syntax.Module:
        self._header()
        while self.kind != "end":
            self._module_item()
        return syntax.Module(
            self._version, self._target, self._address_size, tuple(self._variables), self._functions
        )

    def _header(self) -> None:
        if not self.accept(".version"):
            raise self.error("a PTX module must start with .version")
        if not VERSION.fullmatch(self.text):
            raise self.error("expected a version such as 8.8")
        offset = self.offset
        major, minor = self.advance().split(".")
        self._version = (int(major), int(minor))
        if self._version[0] > MAJOR_VERSION:
            rule = f"expected a version of PTX up to {MAJOR_VERSION}.x, got {major}.{minor}"
            raise self._source.error(rule, offset)
        if self.text != ".target":
            raise self.error("expected a .target directive after .version")
        while self.text == ".target":
            self._target_names()
        if self.accept(".address_size"):
            offset, self._address_size = self.offset, self.integer()
            if self._address_size != ADDRESS_BITS:
                rule = f"expected an address size of {ADDRESS_BITS}, got {self._address_size}"
                raise self._source.error(rule, offset)

    def _target_names(self) -> None:
        """`.target`, which may come again with other features (PTX ISA §11.1.2)."""
        self.expect(".target", "a .target directive")
        names = [self.take("word", "a target such as sm_100a")]
        while self.accept(","):
            names.append(self.take("word", "a target option"))
        self._target = tuple(names)

    def _module_item(self) -> None:
        if self._skip_debug():
            return
        if self.accept(".alias"):
            self._alias()
            return
        linkage, start = set(), self.offset
        while self.text in LINKAGE:
            linkage.add(self.advance())
        if self.text in (".entry", ".func"):
            self._function()
        elif self.text in SPACES:
            for variable in self._variable_list(extern=".extern" in linkage):
                self._add_variable(variable, start)
        else:
            raise self.error("expected .entry, .func or a variable")

    def _add_variable(self, variable: syntax.Variable, offset: int) -> None:
        """A second declaration must be `.extern` and say the same (PTX ISA §5.4)."""
        known = self._names.setdefault(variable.name, variable)
        if known is variable:
            self._variables.append(variable)
        elif (
            not isinstance(known, syntax.Variable)
            or replace(known, line=variable.line) != variable
            or not variable.extern
        ):
            self._refuse_second(variable.name, known, offset)

    def _refuse_second(
        self, name: str, known: syntax.Variable | syntax.Function, offset: int
    ) -> None:
        rule = f"expected a name of its own, got `{name}`, which is declared in ptx:{known.line}"
        raise self._source.error(rule, offset)

    def _add_function(self, function: syntax.Function, offset: int) -> None:
        """Any number of declarations and one body, all with as many parameters."""
        name = function.name
        known = self._names.setdefault(name, function)
        if known is function or (isinstance(known, syntax.Function) and _agree(known, function)):
            if function.body is not None or name not in self._functions:
                self._names[name] = self._functions[name] = function
            return
        self._refuse_second(name, known, offset)

    def _skip_debug(self) -> bool:
        if self.text in LINE_DIRECTIVES:
            self.skip_line()
        elif self.text in TO_SEMICOLON:
            self.skip_past(";")
        elif self.text == ".section":
            self.skip_past("{")
            self.skip_past("}")
        else:
            return False
        return True

    # -- functions ---------------------------------------------------------------------------

    def _function(self) -> None:
        line, offset = self.line, self.offset
        is_entry = self.advance() == ".entry"
        returns = self._parameters() if self.text == "(" else ()
        name = self.take("word", "a function name")
        params = self._parameters() if self.text == "(" else ()
        directives = self._directives()
        body = None if self.accept(";") else self.block()
        function = syntax.Function(name, is_entry, params, returns, directives, body, line)
        self._add_function(function, offset)

    def _alias(self) -> None:
        """`.alias name, function;` (PTX ISA §11.1.4): the name stands for the function."""
        name = self.take("word", "a function name")
        self.expect(",", "`,` after the alias")
        target = self._functions.get(self.take("word", "a function name"))
        if target is None:
            raise self.error("expected an earlier function")
        self.expect(";", "`;`")
        self._functions[name] = replace(target, name=name)

    def _parameters(self) -> tuple[syntax.Variable | syntax.Registers, ...]:
        self.expect("(", "a parameter list")
        if self.accept(")"):
            return ()
        found = [self._parameter()]
        while not self.accept(")"):
            self.expect(",", "`,` or `)` in a parameter list")
            found.append(self._parameter())
        return tuple(found)

    def _parameter(self) -> syntax.Variable | syntax.Registers:
        if self.text == ".reg":
            line = self.line
            self.advance()
            type_ = self._type("reg")
            return syntax.Registers(type_, ((self.take("word", "a register name"), None),), line)
        if self.text != ".param":
            raise self.error("expected .param or .reg in a parameter list")
        return self._declarator(*self._variable_head(), extern=False)

    def _directives(self) -> dict[str, tuple[int, ...]]:
        found: dict[str, tuple[int, ...]] = {}
        while self.kind == "directive":
            if self._skip_debug():
                continue
            if self.text not in PERFORMANCE:
                raise self.error("expected `{`, `;` or a performance directive")
            name = self.advance()[1:]
            values = [self.integer()] if self.kind == "number" else []
            while values and self.accept(","):
                values.append(self.integer())
            found[name] = tuple(values)
        return found

    # -- statements --------------------------------------------------------------------------

    def block(self) -> syntax.Block:
        """`{ statements }`."""
        self.expect("{", "`{` or `;`")
        statements: list[syntax.Statement] = []
        while not self.accept("}"):
            if self.kind == "end":
                raise self.error("expected `}`")
            statements += self._statement()
        return syntax.Block(tuple(statements))

    def _statement(self) -> list[syntax.Statement]:
        if self.kind == "word":
            return [self._label() if self.peek() == ":" else self.instruction()]
        if self.text == "@":
            return [self.instruction()]
        if self.text == "{":
            return [self.block()]
        if self.text == ".reg":
            return [self._registers()]
        if self.text in SPACES:
            return [*self._variable_list(extern=False)]
        if self._skip_debug() or self.accept(";"):
            return []
        raise self.error("expected an instruction, a label or a declaration")

    def _label(self) -> syntax.Label:
        line, offset, name = self.line, self.offset, self.advance()
        if "." in name or ":" in name:
            raise self._source.error(f"expected a label without dots, got `{name}`", offset)
        self.expect(":", "`:`")
        if self.text not in (".branchtargets", ".calltargets", ".callprototype"):
            return syntax.Label(name, line)
        if self.advance() == ".callprototype":
            self.skip_past(";")
            return syntax.Label(name, line, ())
        targets = [self.take("word", "a label")]
        while self.accept(","):
            targets.append(self.take("word", "a label"))
        self.expect(";", "`;`")
        return syntax.Label(name, line, tuple(targets))

    def _registers(self) -> syntax.Registers:
        line = self.line
        self.expect(".reg", ".reg")
        vector = int(self.advance()[2:]) if self.text in VECTORS[:2] else 1
        type_ = self._type("reg")
        names = [self._register_name()]
        while self.accept(","):
            names.append(self._register_name())
        self.expect(";", "`;` after a declaration")
        return syntax.Registers(type_, tuple(names), line, vector)

    def _type(self, space: str) -> str:
        """A type that a variable of a space may have (PTX ISA §5.2)."""
        name = self.text[1:]
        if name in TYPES and not is_declarable(TYPES[name], space):
            raise self.error(f"expected a type that .{space} variables may have")
        return self.take("directive", "a type")[1:]

    def _register_name(self) -> tuple[str, int | None]:
        name = self.take("word", "a register name")
        if not self.accept("<"):
            return name, None
        count = self.integer()
        self.expect(">", "`>`")
        return name, count

    # -- variables ---------------------------------------------------------------------------

    def _variable_list(self, *, extern: bool) -> list[syntax.Variable]:
        head = self._variable_head()
        found = [self._declarator(*head, extern=extern)]
        while self.accept(","):
            found.append(self._declarator(*head, extern=extern))
        self.expect(";", "`;` after a declaration")
        return found

    def _variable_head(self) -> tuple[str, str, int | None, int]:
        """space, type, alignment and vector length, in any order after the space."""
        space = self.advance()[1:]
        type_, align, vector = None, None, 1
        while self.kind == "directive":
            if self.text[1:] in TYPES:
                type_ = self._type(space)
                continue
            word = self.advance()
            if word == ".align":
                align = self._alignment()
            elif word in VECTORS:
                vector = int(word[2:])
            elif word == ".attribute":
                self.skip_past(")")
            elif word == ".ptr":
                align = self._skip_pointer_attributes(align)
            else:
                type_ = word[1:]
        if type_ is None:
            raise self.error("expected a type in a declaration")
        return space, type_, align, vector

    def _skip_pointer_attributes(self, align: int | None) -> int | None:
        """`.ptr .space .align N` describes the object pointed to, not the parameter."""
        if self.text in SPACES:
            self.advance()
        if self.accept(".align"):
            self._alignment()
        return align

    def _extent(self) -> int:
        offset, extent = self.offset, self.expression()
        if extent < 0:
            raise self._source.error(f"expected an extent of at least 0, got {extent}", offset)
        return extent

    def _alignment(self) -> int:
        offset, align = self.offset, self.integer()
        if not 1 <= align <= LARGEST_ALIGNMENT or align & align - 1:
            rule = f"expected an alignment that is a power of two, got {align}"
            raise self._source.error(rule, offset)
        return align

    def _declarator(
        self, space: str, type_: str, align: int | None, vector: int, *, extern: bool
    ) -> syntax.Variable:
        line, name = self.line, self.take("word", "a variable name")
        dims = []
        while self.accept("["):
            dims.append(0 if self.text == "]" else self._extent())
            self.expect("]", "`]`")
        offset = self.offset
        initializer = tuple(self.initializer()) if self.accept("=") else None
        if initializer is not None and dims and dims[0] == 0:
            dims[0] = len(initializer)
        if initializer is not None and len(initializer) > vector * prod(dims):
            rule = f"expected at most {vector * prod(dims)} values, got {len(initializer)}"
            raise self._source.error(rule, offset)
        return syntax.Variable(
            space, type_, name, line, align, vector, tuple(dims), initializer, extern
        )


def _agree(one: syntax.Function, other: syntax.Function) -> bool:
    """Whether two declarations of a name can be of one function."""
    same = (one.is_entry, len(one.params), len(one.returns)) == (
        other.is_entry, len(other.params), len(other.returns))  # fmt: skip
    return same and (one.body is None or other.body is None)
