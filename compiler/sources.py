"""Inputs of the compiler, as an MLIR module and a description of its arguments.

A source is a `MatmulSpec`, which is written as linalg; a `LinalgText`, which holds MLIR, of a torch
module as its importer wrote it; or the path of an .mlir or .pt2 file. A text may have been through
some passes; its level is the last of them (`compiler/levels.py`).
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

from ..dialects.context import lent_context, one_thread_at_a_time
from ..dialects.dtypes import SPLIT_MMAS
from ..dialects.errors import CompileError, OptionError
from ..dialects.mlir import ir
from ..dialects.mma_units import ADDED
from ..dialects.tile import MatmulOp
from ..passes.base import DEFAULT_TARGET, PassLog, use_mma, walk
from .argument_layout import describe_gaps, lay_out, read_arguments
from .argument_shapes import reshape_arguments
from .importers.file_kinds import EXPORTED
from .importers.linalg_text import LinalgText
from .importers.mlir_files import read_mlir
from .levels import check_alone, level_of, settle_target
from .mlir_errors import mlir_errors
from .normalized_spec import spec_of
from .pipeline import FIRST, PassCall, parse_module, run_passes
from .spec import MatmulSpec
from .spec.kernel_name import kernel_name

IMPORTED = "func.func @main("
"""How torch's importer names every function."""
EXACT_MMA = SPLIT_MMAS["bf16x9"]
"""That of all digits of f32, on every chip."""
Source = MatmulSpec | Path | str | LinalgText
SOURCES = "compile: source must be a MatmulSpec, a path or a LinalgText"


def loaded_source(source: Source, target: str | None) -> MatmulSpec | LinalgText:
    """The spec, or a text: that of a file, or of a module with its arguments laid out."""
    if isinstance(source, MatmulSpec):
        return source
    if isinstance(source, str | Path):
        source = _read(_path_of(source))
    if not isinstance(source, LinalgText):
        got = f"{type(source).__name__}; compile_module takes a module of torch"
        raise OptionError(f"{SOURCES}, got {got}")
    target = target or DEFAULT_TARGET
    source.check_sums(target)
    return _laid_out(source, target) if source.arguments and not source.transposed else source


def _path_of(source: str | Path) -> Path:
    """What names a file, and is not what one holds."""
    if "{" in str(source):
        raise OptionError(f"{SOURCES}, got the text of a module; make a LinalgText of it")
    return Path(source)


def _read(path: Path) -> LinalgText:
    if path.suffix != EXPORTED:
        return LinalgText(read_mlir(path), str(path), is_file=True)
    from .importers.torch_module import read_exported

    return read_exported(path)


@one_thread_at_a_time
def _laid_out(source: LinalgText, target: str) -> LinalgText:
    """The text of a torch module for a kernel that reads its arguments as they best lie."""
    with lent_context(), ir.Location.unknown():
        module = import_source(source)
        source = describe_gaps(reshape_arguments(source, module), module)
        normalized = import_source(source)
        run_passes(normalized, [PassCall(FIRST)], PassLog())
        source = _with_digits(source, normalized)
        return _named(lay_out(source, module, normalized, target), normalized)


def _with_digits(source: LinalgText, normalized: ir.Module) -> LinalgText:
    """The text of a torch module, which names the MMA of all digits of f32 where torch asks so."""
    (matmul,) = walk(normalized, MatmulOp)
    if not source.all_digits or str(matmul.a.type.element_type) != "f32":
        return source
    use_mma(normalized, EXACT_MMA)
    return replace(source, mma=EXACT_MMA)


def _named(source: LinalgText, normalized: ir.Module) -> LinalgText:
    """The text of a torch module with its product's name for that which the importer gives all."""
    (matmul,) = walk(normalized, MatmulOp)
    ops = [op.operation.name for op in matmul.epilogue.blocks[0].operations]
    name = kernel_name(spec_of(normalized), ops)
    return replace(source, text=source.text.replace(IMPORTED, f"func.func @{name}(", 1))


def import_source(source: MatmulSpec | LinalgText) -> ir.Module:
    """The module of a source, as it is written."""
    if isinstance(source, MatmulSpec):
        return ir.Module.parse(source.mlir_text())
    if source.is_file:
        return parse_module(source.text, source.name)
    from .importers.source_text import check_text

    check_text(source.text, source.name)
    with mlir_errors(source.name):
        module = ir.Module.parse(source.text)
    if source.mma:
        use_mma(module, source.mma)
    return module


class OpenedSource(NamedTuple):
    """A source as the pipeline begins with it.

    level: the last pass that it has been through, None for linalg.
    source: as it was given, of a text with what the module says of its arguments.
    chip: the one that was asked for, that the text names, or the default.
    """

    module: ir.Module
    level: str | None
    source: MatmulSpec | LinalgText
    chip: str


def open_source(source: MatmulSpec | LinalgText, target: str | None) -> OpenedSource:
    """Read a source that `loaded_source` gave. Raises `CompileError` where passes refuse it."""
    module, level = import_source(source), None
    if isinstance(source, LinalgText) and source.is_file:
        level = level_of(module)
        check_alone(module, level)
        source = read_arguments(module, source) if level else source
    chip = settle_target(module, level, target)
    if isinstance(source, LinalgText) and source.has_two_levels(chip):
        use_mma(module, ADDED)
    return OpenedSource(module, level, source, chip)


@contextmanager
def blamed_on(source: Source) -> Iterator[None]:
    """Errors of a spec lose their location, which is one in the module that we wrote for it."""
    try:
        yield
    except CompileError as error:
        if isinstance(source, MatmulSpec) and error.location:
            raise CompileError(error.message) from error
        raise
