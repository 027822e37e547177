"""A loaded bundle as a callable."""

from __future__ import annotations

import hashlib
import json
import sys
from collections.abc import Callable, Mapping
from typing import Any

from ..bundles.bundle import Bundle
from ..bundles.manifest import in_order, outputs
from ..errors import LaunchError
from ..operands.dlpack import gpu_of
from ..operands.results import new_output, written
from ..relaunch import NOTHING
from ..tracing import are_transformed, is_watched, records_gradients
from .devices import Program, open_device


class Kernel:
    """A loaded bundle; call it as a function of its inputs.

    Without `device` a call runs where its inputs are: on their GPU, or on the emulator if they are
    in the CPU's memory. The devices "emulator", "cuda" and "cuda:1" refuse other inputs. With
    `copies`, inputs of numpy and torch that have other strides or unaligned addresses are copied,
    on torch's current stream. torch.compile keeps a call as one operator, if torch was imported
    before the bundle was loaded.

    >>> kernel = load("matmul.zip")  # doctest: +SKIP
    >>> c = kernel(a, b)  # doctest: +SKIP
    """

    def __init__(self, bundle: Bundle, device: str | None = None, copies: bool = False):
        self.bundle = bundle
        self.key = _key(bundle, device, copies)
        from ..operands.arguments import Arguments

        self.arguments = Arguments(bundle.manifest)
        self._copies, self._place = copies, device
        self._device = open_device(device) if device else None
        tensors = bundle.manifest["tensors"]
        self.outputs = outputs(bundle.manifest)
        self._position = [tensor["role"] for tensor in tensors].index("output")
        self._several = len(self.outputs) > 1
        self._count = self.arguments.count
        last = self._position == len(tensors) - 1 and not self._several
        self._is_plain = self.arguments.in_order and last
        self._programs: dict[int | None, Program] = {}
        self._relauncher: Any = NOTHING
        self._plain_relauncher: Any = NOTHING
        self.entered: Any = None
        self._operator, self._is_traced = None, _never
        self._forward: Any = NoTangents
        if sys.modules.get("torch") is not None:
            self._operator, self._is_traced = _operator_for(self)
            self._forward = sys.modules["torch"].autograd.forward_ad

    def __reduce__(self) -> Any:
        """Copies and pickles load the same bundle."""
        return type(self), (self.bundle, self._place, self._copies)

    def __repr__(self) -> str:
        inputs, outputs = (
            ", ".join(
                f"{each['name']} {each['dtype']} {each['shape']}"
                for each in self.manifest["tensors"]
                if each["role"] == role
            )
            for role in ("input", "output")
        )
        return (
            f"<kernel {self.manifest['entry']} of {self.manifest['target']}: {inputs} → {outputs}>"
        )

    @property
    def manifest(self) -> Mapping[str, Any]:
        """The bundle's manifest (docs/manifest.md)."""
        return self.bundle.manifest

    def __call__(self, *inputs: Any, out: Any = None, stream: int | None = None) -> Any:
        """Compute the output of the kernel.

        inputs: the arguments of the source, in its order and shapes; if the manifest names none, a,
            b, then the other operands of the epilogue. Torch tensors, numpy arrays, or anything
            with DLPack, of the dtypes, shapes and strides in the manifest.
        out: is written and returned. Without it, the output is a new array of the library of the
            first input, of torch if that is neither numpy nor torch. For a kernel with several
            outputs, `out` and the result are tuples of them, in the order of the manifest.
        stream: the handle of a CUstream; by default torch's current stream. On a GPU the call
            returns without waiting for the kernel.

        Raises LaunchError or another DeviceError.
        """
        if len(inputs) != self._count:
            self._refuse_count(len(inputs))
        if self._is_traced():
            return self._in_graph(inputs, out)
        if self._forward._current_level >= 0:
            self._refuse_transforms(inputs)
        if out is None:
            result = self._plain_relauncher.launch_new(inputs, stream)
            if result is not None:
                return result
        elif self._plain_relauncher.launch_into(inputs, out, stream):
            return out
        return self._call(inputs, out, stream)

    def relaunched(self, inputs: tuple[Any, ...], out: Any, stream: int | None = None) -> bool:
        """Launch the kernel as in the last call, if all tensors are laid out as those were.

        Returns whether it did: never for a kernel with several outputs, nor for one whose inputs
        are not the arguments of its source in order.
        """
        return self._plain_relauncher.launch_into(inputs, out, stream)

    def declared_outputs(self, inputs: Any) -> list[Mapping[str, Any]]:
        """The outputs according to the manifest."""
        del inputs
        return self.outputs

    def check_traced(self, inputs: Any) -> None:
        """Refuse tensors of a graph of which a launch would refuse shape or type; LaunchError."""
        self.arguments.check_sized(inputs, {})

    def run(self, tensors: Mapping[str, Any], seed: int = 0) -> Any:
        """Run on tensors named as in the manifest, and wait; outputs are written in place.

        As for a call, with every tensor given by name. `seed` picks the emulator's order of events.
        Returns the device's report; raises LaunchError or another DeviceError.
        """
        values = in_order(self.manifest, tensors)
        return self._program(values[0]).run(values, seed)

    def _call(self, inputs: tuple[Any, ...], out: Any, stream: int | None) -> Any:
        """A call that `_plain_relauncher` does not take."""
        self.arguments.refuse_nested(inputs)
        taken = inputs if self.arguments.in_order else self.arguments.inputs(inputs)
        result = self._new(taken[0]) if out is None else self._given(out)
        values = (*taken, result) if self._is_plain else self._beside(taken, result)
        was_asked = self._is_plain and out is not None
        if not was_asked and self._relauncher.launch(values, stream):
            return result if out is None else written(result)
        if out is not None:
            written(result)
        if self._operator is not None and is_watched(*values):
            self._refuse_transforms(values)
            return self._in_graph(inputs, out)
        self._enqueue(taken, result, stream)
        return result

    def _beside(self, inputs: tuple[Any, ...], result: Any) -> tuple[Any, ...]:
        """The inputs and the outputs, in the manifest's order."""
        if self._several:
            given, made = iter(inputs), iter(result)
            tensors = self.manifest["tensors"]
            return tuple(next(made if each["role"] == "output" else given) for each in tensors)
        if self._position == len(inputs):
            return (*inputs, result)
        return (*inputs[: self._position], result, *inputs[self._position :])

    def _new(self, like: Any) -> Any:
        """A new output, or a tuple of them."""
        if not self._several:
            return new_output(self.outputs[0], like)
        return tuple(new_output(each, like) for each in self.outputs)

    def _given(self, out: Any) -> Any:
        """The caller's output, or a tuple of them."""
        if not self._several:
            return out
        count = len(out) if isinstance(out, (tuple, list)) else 0
        if count != len(self.outputs):
            names = ", ".join(each["name"] for each in self.outputs)
            got = count or type(out).__name__
            raise LaunchError(f"out: must be a tuple of {names}, got {got}")
        return tuple(out)

    def _enqueue(self, inputs: tuple[Any, ...], result: Any, stream: int | None) -> None:
        if records_gradients(*inputs, *(result if isinstance(result, tuple) else (result,))):
            rule = "has no gradient, got tensors that require one"
            cure = "call it under torch.no_grad(), or pass what detach() gives"
            raise LaunchError(f"kernel {self.manifest['entry']}: {rule}; {cure}")
        program = self._program(inputs[0])
        if self._copies and not program.takes(inputs):
            inputs = self.arguments.fitted(inputs, stream)
        try:
            program.enqueue(self._beside(inputs, result), stream)
        except LaunchError as error:
            raise self.arguments.explained(error) from error
        self._relauncher = program.relauncher
        self._plain_relauncher = self._relauncher if self._is_plain else NOTHING

    def _in_graph(self, inputs: tuple[Any, ...], out: Any) -> Any:
        """The call as one operator, for torch to trace."""
        assert self._operator is not None
        results = self._operator(self.key, list(inputs))
        if out is not None:
            given = self._given(out) if self._several else (out,)
            self._check_given(given, results)
            results = [each.copy_(result) for each, result in zip(given, results, strict=True)]
        return tuple(results) if self._several else results[0]

    def _check_given(self, given: Any, results: list[Any]) -> None:
        """Refuse outputs that a launch refuses, if torch would convert into them in a graph."""
        for declared, place, result in zip(self.outputs, given, results, strict=True):
            wanted, got = ([list(each.shape), each.dtype] for each in (result, place))
            if wanted != got:
                rule = f"tensor '{declared['name']}': must be {wanted[0]} of {wanted[1]}"
                raise LaunchError(f"{rule}, got {got[0]} of {got[1]}; pass another out=")

    def _program(self, value: Any) -> Program:
        """The program of the bundle on an array's device."""
        where = gpu_of(value)
        if where not in self._programs:
            device = self._device or open_device("emulator" if where is None else "cuda")
            self._programs[where] = device.open(self.bundle, where)
        return self._programs[where]

    def _refuse_transforms(self, values: tuple[Any, ...]) -> None:
        """Refuse tensors that `torch.func` transforms: it would take derivatives for zero."""
        if are_transformed(*values):
            rule = "has no derivatives and no rules for torch.func, got tensors that it transforms"
            raise LaunchError(f"kernel {self.manifest['entry']}: {rule}; call it outside")

    def _refuse_count(self, got: int) -> None:
        names, wanted = ", ".join(self.arguments.names), self.arguments.count
        entry = self.manifest["entry"]
        raise LaunchError(
            f"kernel {entry}: must be called with {wanted} inputs, {names}, got {got};"
            " outputs are passed as out="
        )


def _key(bundle: Bundle, device: str | None, copies: bool) -> str:
    """What identifies this kernel in graphs."""
    manifests = [each.manifest for each in bundle.kernels]
    text = json.dumps([manifests, device, copies], sort_keys=True)
    return f"{bundle.manifest['entry']}-{hashlib.sha256(text.encode()).hexdigest()[:32]}"


def _operator_for(kernel: Kernel) -> tuple[Callable[..., Any], Callable[[], bool]]:
    """The operator of this kernel, and whether torch.compile is tracing."""
    import torch

    from .torch_op import enter, run_kernel, run_kernel_of_several

    kernel.entered = enter(kernel.key, kernel)
    operator = run_kernel_of_several if len(kernel.outputs) > 1 else _one(run_kernel)
    return operator, torch.compiler.is_dynamo_compiling


def _one(operator: Callable[..., Any]) -> Callable[..., list[Any]]:
    return lambda *given: [operator(*given)]


def _never() -> bool:
    return False


class NoTangents:
    """A stand-in if torch is not imported: there are no forward-mode tangents."""

    _current_level = -1
