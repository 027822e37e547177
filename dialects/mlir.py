"""The one place that names the MLIR wheel: upstream `mlir` when installed, else `torch_mlir`."""

import builtins
import ctypes
import functools
import importlib
import importlib.util
import inspect
import sys
from collections.abc import Mapping
from types import ModuleType
from typing import Any


class _LateNumpy(ModuleType):
    """numpy, imported when something of it is first asked for."""

    def __getattr__(self, name: str) -> Any:
        return getattr(importlib.import_module("numpy"), name)


def _bring_ir(package: str) -> None:
    """Import the wheel's module `ir`, which gets numpy when it first asks it for something.

    The bindings import numpy for builders of attributes that nothing here builds. It takes a sixth
    of all imports, and starts a thread for each core.
    """
    spec = importlib.util.find_spec(f"{package}.ir")
    if spec is None or spec.loader is None or spec.name in sys.modules or "numpy" in sys.modules:
        return

    def imported(name: str, *how: Any) -> Any:
        return _LateNumpy(name) if name == "numpy" else builtins.__import__(name, *how)

    module = importlib.util.module_from_spec(spec)
    module.__dict__["__builtins__"] = {**vars(builtins), "__import__": imported}
    sys.modules[spec.name] = sys.modules[package].__dict__["ir"] = module
    try:
        spec.loader.exec_module(module)
    except BaseException:
        del sys.modules[spec.name]
        raise


try:
    _bring_ir("mlir")
    from mlir import ir, passmanager, rewrite
    from mlir.dialects import _linalg_ops_gen as linalg_ops
    from mlir.dialects import (
        arith,
        ext,
        func,
        irdl,
        math,
        memref,
        scf,
        vector,
    )

    PACKAGE = "mlir"
except ImportError:
    _bring_ir("torch_mlir")
    from torch_mlir import ir, passmanager, rewrite  # of the extra `compiler`
    from torch_mlir.dialects import _linalg_ops_gen as linalg_ops
    from torch_mlir.dialects import (
        arith,
        ext,
        func,
        irdl,
        math,
        memref,
        scf,
        vector,
    )

    PACKAGE = "torch-mlir"

DIALECTS = arith.__name__.rpartition(".")[0]
LLVM_BINDING = importlib.import_module(f"{DIALECTS.partition('.')[0]}._mlir_libs._mlirDialectsLLVM")


def _deferred(name: str) -> Any:
    """A module of the wheel's that runs when something of it is first asked for.

    The bindings import the module of each dialect that they meet an op of, and ask it for nothing:
    the classes of ops register themselves. That of linalg also builds each named op from its
    definition, which takes a sixth of all imports; those of llvm and nvvm make 1,100 classes, which
    takes a tenth, and ours are built by name (llvm.py, nvvm.py), as the one op of gpu's is.
    """
    spec = importlib.util.find_spec(f"{DIALECTS}.{name}")
    if spec is None or spec.loader is None or spec.name in sys.modules:
        return importlib.import_module(f"{DIALECTS}.{name}")
    module, run = importlib.util.module_from_spec(spec), spec.loader.exec_module

    def first_asked(attribute: str) -> Any:
        del module.__dict__["__getattr__"]
        run(module)
        return getattr(module, attribute)

    module.__dict__["__getattr__"] = first_asked
    sys.modules[spec.name] = module
    return module


linalg = _deferred("linalg")
for _built_by_name in ("gpu", "llvm", "nvvm"):
    _deferred(_built_by_name)


def upstream_class(operation: str) -> type:
    """The bindings' class of an op, of those dialects, too, whose classes nothing has asked for."""
    return _upstream_classes(operation.partition(".")[0])[operation]


@functools.cache
def _upstream_classes(dialect: str) -> dict[str, type]:
    found = vars(importlib.import_module(f"{DIALECTS}._{dialect}_ops_gen")).values()
    classes = [each for each in found if isinstance(each, type) and issubclass(each, ir.OpView)]
    return {each.OPERATION_NAME: each for each in classes if hasattr(each, "OPERATION_NAME")}


def declare_dialect(name: str) -> None:
    """Say that a dialect of ours needs no module of the wheel's.

    The bindings look for one, in every folder of the path, each time that they meet an op or type
    of a dialect without: some 3,000 times in one compilation, which took half of it.
    """
    module = f"{DIALECTS}.{name}"
    sys.modules.setdefault(module, ModuleType(module))


def quicken(op_class: Any) -> None:
    """Let an op of ours that is built with keywords alone skip the binding of a signature.

    What `ext.Operation` generates binds one first, which takes longer than all the rest.
    """
    declared = op_class.__init__

    def __init__(self: Any, *positional: Any, **fields: Any) -> None:
        attributes, results, operands, regions, names, needed = _fields_of(op_class, declared)
        if positional or not needed <= fields.keys() <= names:
            declared(self, *positional, **fields)
            return
        ir.OpView.__init__(
            self,
            op_class.OPERATION_NAME,
            op_class._ODS_REGIONS,
            op_class._ODS_OPERAND_SEGMENTS,
            op_class._ODS_RESULT_SEGMENTS,
            attributes={each.name: each.process_attr(fields.get(each.name)) for each in attributes},
            results=[each.process_type(fields.get(each.name)) for each in results],
            operands=[fields.get(each.name) for each in operands],
            regions=regions,
        )

    op_class.__init__ = __init__


@functools.cache
def _fields_of(op_class: Any, declared: Any) -> tuple[Any, ...]:
    """What an op is built of: attributes, results, operands, the number of regions; the names of
    its fields, and of those without a default.

    Looked for when the first such op is built: to read 224 signatures takes 10 ms.
    """
    parts: Any = ext.partition_fields(op_class._fields)
    operands, attributes, results, regions = parts
    names = frozenset(field.name for field in (*operands, *attributes, *results))
    parameters = inspect.signature(declared).parameters.values()
    needed = names & {each.name for each in parameters if each.default is each.empty}
    return attributes, results, operands, len(regions) or None, names, needed


def llvm_ir_of(operation: Any) -> str:
    """The LLVM IR that a module of the llvm dialect becomes, as text.

    This is `llvm.translate_module_to_llvmir`, which never frees the text that it copies into a
    Python string: one byte a character for each call (upstream's DialectLLVM.cpp).
    """
    translate, dispose = _translation()
    capsule = operation._CAPIPtr
    text = translate(_capsule_pointer(capsule, _capsule_name(capsule)))
    try:
        return ctypes.string_at(text).decode()
    finally:
        dispose(text)


@functools.cache
def _translation() -> tuple[Any, Any]:
    """The two functions of the C API, found through the library of the binding (LLVMIR.h)."""
    library = ctypes.PyDLL(LLVM_BINDING.__file__)
    translate, dispose = library.mlirTranslateModuleToLLVMIRToString, library.LLVMDisposeMessage
    translate.argtypes, translate.restype = [ctypes.c_void_p], ctypes.c_void_p
    dispose.argtypes, dispose.restype = [ctypes.c_void_p], None
    return translate, dispose


_capsule_name = ctypes.PYFUNCTYPE(ctypes.c_char_p, ctypes.py_object)(
    ("PyCapsule_GetName", ctypes.pythonapi)
)
_capsule_pointer = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.py_object, ctypes.c_char_p)(
    ("PyCapsule_GetPointer", ctypes.pythonapi)
)


def linalg_of_torch(program: Any, *, decompositions: Mapping[Any, Any]) -> str:
    """What torch.export gave as linalg on tensors, with the lines of Python: the text of an MLIR
    module.

    By torch_mlir's importer, whichever wheel MLIR itself is from; `decompositions` go before its
    own. Raises what it raises: any exception.
    """
    from torch_mlir import fx
    from torch_mlir.extras.fx_decomp_util import get_decomposition_table

    table = {**get_decomposition_table(), **decompositions}
    imported = fx.export_and_import(
        program, output_type="linalg-on-tensors", decomposition_table=table
    )
    return imported.operation.get_asm(enable_debug_info=True)


__all__ = [
    "LLVM_BINDING",
    "PACKAGE",
    "arith",
    "declare_dialect",
    "ext",
    "func",
    "ir",
    "irdl",
    "linalg",
    "linalg_of_torch",
    "linalg_ops",
    "llvm_ir_of",
    "math",
    "memref",
    "passmanager",
    "rewrite",
    "scf",
    "upstream_class",
    "vector",
]
