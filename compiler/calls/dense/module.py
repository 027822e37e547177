"""`compile_module`: a torch module's forward as one kernel, called as the module is."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

from ....dialects.errors import CompileError
from ....runtime.bundles.sizes import SIZE, STACK
from ....runtime.errors import LaunchError
from ....runtime.launch.loading import open_kernel
from ....runtime.operands.copies import warn_of_copy
from ....runtime.operands.dlpack import gpu_of
from ....runtime.tracing import are_transformed, is_traced
from ...buckets import compile_buckets
from ...bundle_writer import several
from ...compiled import Compiled
from ...driver import compile_matmul
from ...importers.linalg_text import LinalgText
from ...importers.torch_module import (
    import_module,
    import_without_views,
    is_mask,
    named_inputs,
    named_state,
    type_name,
)
from ..kernels.kernel_cache import warn_of_room
from ..kernels.lookup import default_target
from ..operands.operands import check_options
from ..operands.precision import warn_of_tf32
from ..operands.torch_precision import asks_for_all_digits
from .module_form import (
    Form,
    autocast_of,
    check_autocast,
    check_form,
    check_reads,
    form_of,
    watch_of,
)
from .module_reads import reads_mode
from .module_views import arguments_of, results_of, with_strides
from .module_watch import Watch

if TYPE_CHECKING:
    import torch


ANEW = "compile the module again, whose kernel is of another setting"
MODES = {True: "training", False: "evaluation"}


class ModuleKernel:
    """A torch module's forward as one kernel; call it as the module, with inputs of those shapes.

    compiled: PTX, manifest and IR (`as_bundle` keeps it), of any size those for the largest.
    tensors: for each input of the kernel in its order, by the manifest's name, the module's input
    ("input 0") or parameter ("fc.weight").
    """

    def __init__(
        self,
        module: torch.nn.Module,
        kernels: Sequence[Compiled],
        inputs: Sequence[Any],
        parts: Sequence[tuple[str, Any]] = (),
        results: Sequence[Any] = (),
    ):
        import torch

        from ....runtime.launch.torch_op import Checked

        self.module, self.compiled, self._parts = module, (compiled := kernels[-1]), parts
        self._results = results
        self._names = compiled.manifest["arguments"]
        used = [each for each in compiled.manifest["tensors"] if each["role"] == "input"]
        numbers = [each["argument"]["index"] for each in used]
        self.tensors = {
            each["name"]: self._names[number] for each, number in zip(used, numbers, strict=True)
        }
        self._used = sorted(set(numbers))
        given = named_inputs(module, inputs) | named_state(module)
        self._whole = {name: tuple(given[name].shape) for name, part in parts if part}
        examples = list(self._values(inputs).values())
        taken = zip(numbers, map(_argument_shape, used), strict=True)
        self._shapes = {  # of those that the kernel takes in another shape
            number: (examples[number].shape, shape)
            for number, shape in taken
            if _is_viewed(examples[number].shape, shape)
        }
        self._kernel = open_kernel(several(kernels), copies=True)
        is_tf32 = compiled.chosen and used[0]["dtype"] == "tf32"
        self._may_lack_digits = is_tf32 and not asks_for_all_digits(torch)
        self._inputs = len(inputs)
        self._operand = numbers[0]
        self._autocast = autocast_of(examples[numbers[0]])
        self._form, self._watch = form_of(module), watch_of()
        self._check_module = partial(_check_module, module, _tied(module), self._form, self._watch)
        self._in_graphs = Checked(self._kernel, self._check_module)
        self._modes = [(each, each.training) for each in module.modules() if reads_mode(each)]

    def __call__(self, *inputs: Any, out: Any = None, **named: Any) -> Any:
        """The module's output for these inputs, with its parameters as they are now.

        Inputs in a layout that the kernel cannot read are copied first. The kernel runs where the
        inputs are: on their GPU, on torch's current stream, or on the emulator. Raises CompileError
        if torch would record a gradient, since a kernel has none, and DeviceError for tensors of
        other shapes, types or devices.
        """
        _refuse_named(type_name(self.module), named)
        values = [self._shaped(each.detach(), n) for n, each in enumerate(self._taken(inputs))]
        if not self._results:
            return self._kernel(*values, out=out)
        if out is not None:
            rule = "out must be None where a module returns views of its kernel's result"
            raise CompileError(f"{type_name(self.module)}: {rule}, got one; copy what is returned")
        return results_of(self._kernel(*values), self._results)

    def _shaped(self, value: torch.Tensor, number: int) -> torch.Tensor:
        if is_mask(value) and number in self._used:
            from ...importers.element_names import STAND_IN

            value = value.to(STAND_IN)
            warn_of_copy(self._names[number], value, "a kernel reads no torch.bool")
        example, taken = self._shapes.get(number, (None, ()))
        if example is None:
            return value
        opened = any(isinstance(size, str) for size in taken)
        if value.dim() != len(example) or not (opened or value.shape == example):
            rule = f"shape must be {list(example)}, got {list(value.shape)}"
            raise LaunchError(f"argument '{self._names[number]}': {rule}")
        said: dict[Any, Any] = {SIZE: value.shape[max(0, value.dim() - 2)], STACK: value.shape[0]}
        return value.reshape([said.get(size, size) for size in taken])

    def _taken(self, inputs: Sequence[Any]) -> list[torch.Tensor]:
        """The function's arguments: the inputs, then the module's state."""
        import torch

        where = type_name(self.module)
        if len(inputs) > self._inputs:
            rule = f"must be called with {self._inputs} inputs, got {len(inputs)}"
            raise CompileError(f"{where}: {rule}")
        for each, training in self._modes:
            if each.training != training:
                rule = f"{type_name(each)} must be in {MODES[training]} mode, as it was compiled"
                got = f"got {MODES[each.training]} mode"
                raise CompileError(f"{where}: {rule}, {got}; compile the module again")
        if not is_traced():  # else the graph does at each run
            self._check_module()
        if self._may_lack_digits:
            warn_of_tf32(where, ANEW)
        values = self._values(inputs)
        missing = [name for name in self._names if name not in values]
        if missing:
            raise CompileError(f"{where}: {missing[0]} must be given, got none")
        taken = [values[name] for name in self._names]
        check_autocast(where, taken[self._operand], self._autocast)
        if are_transformed(*(taken[number] for number in self._used)):
            raise CompileError(
                f"{where}: a kernel has no tangents and no rules for torch.func, got tensors that"
                " it transforms; transform the module itself"
            )
        if torch.is_grad_enabled() and any(taken[number].requires_grad for number in self._used):
            raise CompileError(
                f"{where}: a kernel has no gradient, got tensors that require one;"
                " call it under torch.no_grad()"
            )
        return taken

    def _values(self, inputs: Sequence[Any]) -> dict[str, torch.Tensor]:
        """Inputs, parameters and buffers by name; of weights that the module cuts, the parts."""
        values = named_inputs(self.module, inputs) | named_state(self.module)
        if not self._parts:
            return values
        for name, shape in self._whole.items():
            if name in values and tuple(values[name].shape) != shape:
                rule = f"shape must be {[*shape]}, got {[*values[name].shape]}"
                raise LaunchError(f"argument '{name}': {rule}")
        return arguments_of(self._parts, values)


def _check_module(
    module: torch.nn.Module, tied: set[tuple[str, str]], form: Form, watch: Watch
) -> None:
    """Raise CompileError where the module is no longer what it was when it was compiled."""
    where = type_name(module)
    check_form(where, module, form, watch)
    if tied and not tied <= _tied(module):
        names = " and ".join(sorted(tied - _tied(module))[0])
        rule = f"{names} must be one tensor, as when it was compiled, got two"
        raise CompileError(f"{where}: {rule}; compile the module again")


def _tied(module: torch.nn.Module) -> set[tuple[str, str]]:
    """The pairs of names of one parameter or buffer, of which the kernel takes the first."""
    named = [
        *module.named_parameters(remove_duplicate=False),
        *module.named_buffers(remove_duplicate=False),
    ]
    first: dict[int, str] = {}
    pairs = {(first.setdefault(id(value), name), name) for name, value in named}
    return {pair for pair in pairs if pair[0] != pair[1]}


def _argument_shape(declared: Mapping[str, Any]) -> list[Any]:
    """The sizes of the argument that an input of a kernel is, or is the transpose of."""
    shape = list(declared["shape"])
    if declared["argument"]["transposed"]:
        shape[-2:] = shape[:-3:-1]
    return shape


def _is_viewed(example: Sequence[int], taken: Sequence[Any]) -> bool:
    """Whether an argument of the example's sizes must be viewed to have those; a name is any."""
    pairs = zip(example, taken, strict=False)
    others = any(isinstance(size, int) and size != own for own, size in pairs)
    return others or len(example) != len(taken)


def compile_module(
    module: torch.nn.Module,
    *inputs: torch.Tensor,
    target: str | None = None,
    pipeline: str | None = None,
    preset: str | None = None,
    math: str | None = None,
    dynamic_shapes: Any = None,
    **named: Any,
) -> ModuleKernel:
    """One kernel for a module that multiplies two matrices: nn.Linear, an activation, a residual.

    The module may multiply its input by two weights of one shape, if an elementwise function
    combines both products: `silu(gate(x)) * up(x)`. Both may be parts of one weight, its halves or
    alternating rows, if the module splits the output of one nn.Linear accordingly.

    inputs: examples, which give the kernel its shapes and types; their values do not matter. The
        kernel reads an operand in the layout of its example, without a copy, if its MMA can.
        Parameters and buffers are inputs of the kernel as well, not constants.
    target: the chip; by default that of the GPU on which the inputs are, else sm_100a, for the
        emulator.
    pipeline, preset, math: as for `matmul`. For f32, torch's setting at the time of this call
        decides on the precision.
    dynamic_shapes: sizes that are known only at a call, as in torch.export: a tuple with `{0:
        Dim("m")}` for each input with that number of rows, None for others. Kernels for any M then
        share the calls. For stacks, `{0: Dim("batch")}` is the number of matrices, and `{0:
        Dim("batch"), 1: Dim("m")}` that and the rows of each.
    named: must be empty; inputs are passed by position.

    Raises CompileError if torch cannot export the module, or if the compiler cannot compile it:
    further products, ops that are not elementwise, inputs that are not matrices.
    """
    import torch

    if not isinstance(module, torch.nn.Module):
        kind = type(module).__name__
        raise CompileError(f"compile_module: module must be a torch.nn.Module, got {kind}")
    _refuse_named("compile_module", named)
    check_options("compile_module", target=target, pipeline=pipeline, preset=preset, math=math)
    named_inputs(module, inputs)
    check_reads(type_name(module), module)
    where = gpu_of(inputs[0]) if inputs else None
    chip = target or default_target(where)

    exact = not (pipeline or preset) and asks_for_all_digits(torch)

    def compiled(source: LinalgText) -> list[Compiled]:
        source = replace(_in_place(source, module, inputs, chip), all_digits=exact)
        return [compile_matmul(source, target=chip, pipeline=pipeline, preset=preset, math=math)]

    try:
        source = import_module(module, *inputs, cuts=True, masks=True, dynamic=dynamic_shapes)
        if dynamic_shapes is not None and not (pipeline or preset):
            source = replace(source, all_digits=exact)
            kernels = compile_buckets(source, target=chip, math=math)
        else:
            kernels = compiled(source)
    except CompileError:
        viewed = import_without_views(module, *inputs) if dynamic_shapes is None else None
        if viewed is None:
            raise
        source, kernels = viewed, compiled(viewed)
    for each in kernels:
        warn_of_room(each)
    if not pipeline and kernels[-1].manifest["tensors"][0]["dtype"] == "tf32":
        cure = "leave the preset out, or ask torch for 'high' by set_float32_matmul_precision"
        warn_of_tf32("compile_module", cure)
    return ModuleKernel(module, kernels, inputs, source.parts, source.results)


def _in_place(
    source: LinalgText, module: torch.nn.Module, inputs: Sequence[torch.Tensor], chip: str
) -> LinalgText:
    """The source that says how the parts and views that it takes lie in the examples."""
    values = named_inputs(module, inputs) | named_state(module)
    return with_strides(source, arguments_of(source.parts, values), chip)


def _refuse_named(where: str, named: Mapping[str, Any]) -> None:
    """Refuse arguments by name that are none of ours: inputs come in the order of forward's."""
    if named:
        rule = f"{where}: inputs must be given by their places"
        got = f"got '{next(iter(named))}' by its name"
        raise CompileError(f"{rule}, {got}; pass it in the order of the module's forward")
