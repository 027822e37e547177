"""A model as a program of torch.export with kernels for its matmuls, and their bundles.

    FOLDER/program.pt2        what torch.export.save writes: run_kernel_of_several(key, inputs)
    FOLDER/kernels/KEY.zip    a bundle for each key

Where it is loaded nothing is compiled, and the compiler need not be installed
(`runtime/launch/program.py`). Every region that compiles is taken; nothing is measured.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
from torch import fx

from ...dialects.errors import CompileError
from ...runtime.atomic import new_folder
from ...runtime.bundles.bundle import Bundle
from ...runtime.errors import DeviceError
from ...runtime.launch.kernel import Kernel
from ...runtime.launch.loading import open_kernel
from ...runtime.launch.program import KERNELS, PROGRAM
from ...runtime.launch.torch_op import loaded, run_kernel, run_kernel_of_several
from ..bundle_writer import rewrite
from ..calls.dense.matmul_operator import composed
from ..importers.quiet import quiet
from .describe import row_of
from .graph_pass import compiled_regions, leave, products_of_graph, sort
from .replace import call, replace
from .report import REPORT
from .settings import Settings
from .symbols import numbered

NAME = re.compile(r"[\w.-]+")
MATMUL: Any = torch.ops.tilewright.matmul.default
POSITIONAL = inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD
ONE, SEVERAL = run_kernel._opoverload, run_kernel_of_several._opoverload


def export(
    model: torch.nn.Module,
    inputs: Sequence[Any],
    path: str | Path,
    *,
    dynamic_shapes: Any = None,
    target: str = "",
    math: str = "",
    processes: int = 0,
) -> None:
    """Write the model to a new folder; the report says of each product whether it is a kernel.

    inputs: examples, which give the program its shapes, types and device. On the CPU it runs on the
        emulator, for `target`.
    dynamic_shapes: which sizes are any, as torch.export takes them. Regions whose rows follow from
        them are kernels for any M.

    Raises CompileError for a folder that is there or cannot be made, for what is no module or no
    tuple of inputs, and for what torch cannot export. The folder appears whole or not at all.
    """
    _check(model, inputs)
    inputs = _distinguished(inputs)
    path = Path(path)
    if path.exists():
        raise CompileError(f"export: {path} must not be there yet, got one; name a new folder")
    device = "emulator" if _device(model, inputs).type == "cpu" else "cuda"
    settings = Settings(device, target, race=False, processes=processes, math=math)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with new_folder(path) as folder:
            (folder / KERNELS).mkdir()
            module = _taken_apart(model, inputs, dynamic_shapes)
            kernels = _with_kernels(module, settings)
            program = _exported(module, inputs, _one_by_one(model, inputs, dynamic_shapes))
            for key, kernel in kernels.items():
                rewrite(folder / KERNELS / f"{key}.zip", kernel.bundle)
            torch.export.save(program, folder / PROGRAM)
    except OSError as error:
        got = error.strerror or error
        raise CompileError(f"export: {path} must be a place for a folder, got {got}") from error


def _check(model: Any, inputs: Any) -> None:
    for name, given, kind, what in (
        ("model", model, torch.nn.Module, "a torch.nn.Module"),
        ("inputs", inputs, tuple | list, "a tuple of what the model is called with"),
    ):
        if not isinstance(given, kind):
            got = type(given).__name__
            raise CompileError(f"export: {name} must be {what}, got {got}; wrap it in one")


def _distinguished(inputs: Sequence[Any]) -> Sequence[Any]:
    """The inputs with a tensor of its own for each, since torch.export takes those that are one
    tensor for one input, and its program leaves out the others."""
    seen: set[int] = set()

    def own(each: torch.Tensor) -> torch.Tensor:
        known = id(each) in seen
        seen.add(id(each))
        return each.detach() if known else each

    return torch.utils._pytree.tree_map_only(torch.Tensor, own, inputs)  # type: ignore[no-any-return]


def _device(model: torch.nn.Module, inputs: Sequence[Any]) -> torch.device:
    """Where the model runs."""
    leaves = torch.utils._pytree.tree_leaves([list(model.parameters()), list(inputs)])
    found = [each.device for each in leaves if isinstance(each, torch.Tensor)]
    if not found:
        raise CompileError("export: model and inputs must hold a tensor, got none")
    return found[0]


def _exported(
    module: torch.nn.Module, inputs: Sequence[Any], dynamic_shapes: Any
) -> torch.export.ExportedProgram:
    with _in_one_message(), torch.no_grad():
        return torch.export.export(module, tuple(inputs), dynamic_shapes=dynamic_shapes)


def _one_by_one(model: torch.nn.Module, inputs: Sequence[Any], dynamic_shapes: Any) -> Any:
    """The sizes as the module that torch made takes them: what `*args` were is an argument each."""
    parameters = inspect.signature(model.forward).parameters.values()
    several = next((each for each in parameters if each.kind is each.VAR_POSITIONAL), None)
    if several is None or not isinstance(dynamic_shapes, dict | tuple | list):
        return dynamic_shapes
    names = [each.name for each in parameters if each.kind in POSITIONAL][: len(inputs)]
    of_all = dynamic_shapes
    if isinstance(of_all, dict):
        of_all = [of_all.get(name) for name in (*names, several.name)]
    first, rest = of_all[: len(names)], len(inputs) - len(names)
    return (*first, *((rest and of_all[-1]) or [None] * rest))


@contextmanager
def _in_one_message() -> Iterator[None]:
    """A block whose errors, which are torch's about the model, become one of ours."""
    try:
        with quiet():
            yield
    except Exception as error:  # torch raises any kind
        got = f"{type(error).__name__}: {error}".splitlines()[0]
        raise CompileError(f"export: torch.export must take the model, got {got}") from error


def _taken_apart(
    model: torch.nn.Module, inputs: Sequence[Any], dynamic_shapes: Any
) -> fx.GraphModule:
    """The model in the operators that Inductor has, with its parameters."""
    from torch._inductor.decomposition import select_decomp_table

    program = _exported(model, inputs, dynamic_shapes)
    table: dict[Any, Any] = {**select_decomp_table(), MATMUL: composed}  # torch 2.9 keeps it whole
    with _in_one_message():
        return program.run_decompositions(table).module()  # type: ignore[return-value]


def _with_kernels(module: fx.GraphModule, settings: Settings) -> dict[str, Kernel]:
    """Replace the module's regions by calls of kernels, which are given by their keys."""
    graph = module.graph
    graphs = numbered(graph)
    products, chip = products_of_graph(graphs.first if graphs else graph, settings)
    static = [each for each in products if each.is_static()]
    for each in products:
        if not each.is_static():
            REPORT.add(row_of(each.multiplies, "a size is a symbol that stands for no number"))
    found, bundles = compiled_regions(graph, static, chip, settings, graphs)
    kernels: dict[str, Kernel] = {}
    moved: dict[fx.Node, fx.Node] = {}
    for each in found:
        bundle = bundles[each.prepared.key]
        if isinstance(bundle, CompileError):
            leave(each.row, bundle)
        else:
            kernel = open_kernel(bundle, copies=True)
            kernel = kernels.setdefault(kernel.key, kernel)
            each.row.taken, each.row.reason = True, f"exported for {chip}"
            region = graphs.original(each.region) if graphs else each.region
            replace(graph, region, each.prepared.viewed, _launch(kernel.key), moved)
        REPORT.add(each.row)
    if moved:
        sort(graph)
    _take_along(graph, kernels)
    module.recompile()
    return kernels


def _take_along(graph: fx.Graph, kernels: dict[str, Kernel]) -> None:
    """Add the kernels that the model calls itself, as one that was loaded before does, by the keys
    that they have where a program is loaded.

    Raises CompileError for operators of ours that the compiler has and no kernel computes.
    """
    for node in graph.nodes:
        if node.target in (ONE, SEVERAL):
            kernel = open_kernel(_bundle_of(node.args[0]), copies=True)
            kernel = kernels.setdefault(kernel.key, kernel)
            node.args = (kernel.key, *node.args[1:])
        elif getattr(node.target, "namespace", "") == "tilewright":
            reasons = [row.reason for row in REPORT.rows if row.name == node.name]
            got = ": ".join([str(node.target), *reasons[-1:]])
            rule = "products must become kernels, since a program has no compiler"
            cure = "leave out its options, or call a kernel that tilewright.load gives"
            raise CompileError(f"export: {rule}, got {got}; {cure}")


def _bundle_of(key: Any) -> Bundle:
    try:
        return loaded(key).bundle
    except DeviceError as error:
        raise CompileError(f"export: {error}") from error


def _launch(key: str) -> Any:
    assert NAME.fullmatch(key)
    return lambda graph, given: call(graph, SEVERAL, (key, given))
