"""The reference of `tilewright run`: the source, or the manifest if there is none.

--m --n --k    the spec's own product, by torch
FILE.mlir      the text of linalg, as `tools.oracle` evaluates it
a kernel       of a file or a bundle: its manifest, or a source that is named beside it
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import prod
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ...dialects.errors import CompileError
from ...runtime.bundles.manifest import operands, outputs
from ...runtime.element_types import DTYPES, SCALE_ROUNDINGS
from ...runtime.judge.gaps import refuse_written_gaps
from .inputs import make_tensors
from .scaled_inputs import fill_identity

if TYPE_CHECKING:
    from ...compiler.spec import MatmulSpec
    from ...runtime.judge.intervals import Interval
    from ...runtime.judge.reference import Comparison

Manifest = Mapping[str, Any]
HOPPER = "sm_90a"
MARKS = "marks"


def without_marks(manifest: Manifest) -> Manifest:
    """A manifest without the tensor to which the pass `instrument` lets a kernel write."""
    tensors = [each for each in manifest["tensors"] if each["name"] != MARKS]
    named = "arguments" in manifest and len(tensors) < len(manifest["tensors"])
    arguments = {"arguments": manifest["arguments"][:-1]} if named else {}
    return {**manifest, "tensors": tensors, **arguments}


def marks_of(manifest: Manifest) -> dict[str, Any]:
    """The tensor `marks`, zero as a launch expects it; empty if there is none."""
    import torch

    marks = [each for each in manifest["tensors"] if each["name"] == MARKS]
    return {each["name"]: torch.zeros(each["shape"], dtype=torch.int32) for each in marks}


class OfManifest:
    """What the kernel's own manifest says that it computes."""

    said = "the kernel's own product and epilogue, in float64; --reference FILE for its source"

    def tensors(self, manifest: Manifest, seed: int, identity: str | None = None) -> dict[str, Any]:
        """Random inputs by the manifest's names, and a poisoned output."""
        return make_tensors(manifest, seed, identity)

    def expected(
        self, manifest: Manifest, tensors: Mapping[str, Any], on_gpu: bool
    ) -> list[Interval]:
        """What each output may be, for the tensors as the kernel got them."""
        from ...runtime.judge.reference import expected_output

        names = [each["name"] for each in outputs(manifest)]
        return [expected_output(manifest, tensors, on_gpu, name) for name in names]


@dataclass
class OfSpec(OfManifest):
    """A spec's product; of the manifest only names are read."""

    spec: MatmulSpec
    said = "torch's a @ b.T in float64"

    def __post_init__(self) -> None:
        if self.spec.is_scaled or self.spec.is_blockwise or self.spec.group_size:
            self.said = "torch's a @ b.T in float64, of elements times scales"

    def tensors(self, manifest: Manifest, seed: int, identity: str | None = None) -> dict[str, Any]:
        return make_tensors(self._declared(manifest), seed, identity) | marks_of(manifest)

    def expected(
        self, manifest: Manifest, tensors: Mapping[str, Any], on_gpu: bool
    ) -> list[Interval]:
        return super().expected(self._declared(manifest), tensors, on_gpu)

    def _declared(self, manifest: Manifest) -> Manifest:
        """A manifest of the spec alone, in whose epilogue nothing is done."""
        spec = self.spec
        manifest = without_marks(manifest)
        kernel = [tensor["name"] for tensor in manifest["tensors"] if tensor["role"] == "input"]
        arrays, written = spec.arrays(), [each["name"] for each in outputs(manifest)]
        count = len(spec.outputs) + bool(spec.quantized)
        if len(written) != count:
            rule = f"must be of a kernel of {count} outputs, got {len(written)}"
            raise CompileError(f"--m, --n, --k: the reference {rule}")
        if len(kernel) != len(arrays) - len(written):
            rule = "must be of a kernel that reads a and b alone, got one that reads"
            raise CompileError(f"--m, --n, --k: the reference {rule} {', '.join(kernel)}")
        names = [*kernel, *written]
        tensors = [
            {
                "name": name,
                "role": "output" if name in written else "input",
                "dtype": dtype,
                "shape": list(shape),
                "strides": _strides(spec, key, shape),
            }
            for name, (key, (dtype, shape)) in zip(names, arrays.items(), strict=True)
        ]
        epilogue = _epilogue(spec)
        _refuse_other_tensors(manifest, tensors)
        fields: dict[str, Any] = {}
        if spec.quantized:
            rounding = spec.scale_rounding or SCALE_ROUNDINGS[spec.quantized.scale][0]
            how = {"block": spec.quantized.block, "rounding": rounding}
            fields["quantized"] = {"scales": written.pop(), **how}
        further = [{"tensor": name, "epilogue": epilogue} for name in written[1:]]
        fields |= {"outputs": further} if further else {}
        if spec.is_blockwise:
            fields["blockwise"] = {"a": spec.a_scales, "b": spec.b_scales}
        if spec.group_size:
            fields["weights"] = {"group": spec.group_size}
        if "terms" in manifest:  # how the kernel sums, which no spec says
            fields["terms"] = manifest["terms"]
        return {"target": manifest["target"], "tensors": tensors, "epilogue": epilogue, **fields}


def _epilogue(spec: MatmulSpec) -> dict[str, Any]:
    """What a manifest says of the sums of one product; of two, that they are multiplied."""
    arguments: list[dict[str, Any]] = [{"tensor": None, "axes": ["m", "n"]}]
    if spec.products == 1:
        return {"arguments": arguments, "operations": [], "result": 0}
    arguments.append({**arguments[0], "b": "b2"})
    multiplied = {"name": "arith.mulf", "operands": [0, 1], "attributes": {}}
    return {"arguments": arguments, "operations": [multiplied], "result": 2}


def _strides(spec: MatmulSpec, key: str, shape: tuple[int, ...]) -> list[int]:
    """Elements from one to the next along the dims of an array of the spec: leading dimensions and
    majors of A, B and C, and no gaps in scales and what is beside them."""
    gaps = {"a": (spec.lda, spec.stride_a), "b": (spec.ldb, spec.stride_b)}
    gaps |= {"b2": gaps["b"], "c": (spec.ldc, spec.stride_c)}
    if key not in gaps:
        return [prod(shape[axis + 1 :]) for axis in range(len(shape))]
    *stack, rows, columns = shape
    leading, step = gaps[key]
    column_major = spec.a_major == "m" if key == "a" else spec.b_major == "n" and key != "c"
    contiguous, others = (rows, columns) if column_major else (columns, rows)
    pitch = leading or contiguous
    outer = [step or others * pitch for _ in stack]
    return [*outer, *([1, pitch] if column_major else [pitch, 1])]


def _refuse_other_tensors(manifest: Manifest, tensors: list[dict[str, Any]]) -> None:
    """Refuse a kernel whose tensors are not those of the spec that it is held to."""
    by_name = {tensor["name"]: tensor for tensor in manifest["tensors"]}
    for wanted in tensors:
        got = by_name[wanted["name"]]
        for name in ("dtype", "shape", "strides"):
            if wanted[name] != got[name]:
                raise CompileError(
                    f"tensor '{got['name']}': {name} must be {wanted[name]}, as the spec says, "
                    f"got {got[name]}"
                )


@dataclass
class OfSource:
    """The text of a module of linalg on tensors, evaluated op by op."""

    text: str
    name: str
    arguments: list[Any] = field(default_factory=list)

    def __post_init__(self) -> None:
        from ..oracle.interpreter import Source

        self.source = Source(self.text, self.name)

    @property
    def said(self) -> str:
        """What the report calls it."""
        return f"{self.name} evaluated op by op in float64"

    def tensors(self, manifest: Manifest, seed: int, identity: str | None = None) -> dict[str, Any]:
        """Random arguments of the source, as the kernel takes them, and a poisoned output."""
        import torch

        from ...runtime.host_memory import refuse_large

        refuse_large(manifest["tensors"])
        self.arguments = self.random(seed)
        if identity and "arguments" in manifest:
            place: Any = operands(manifest)["ab".index(identity)]
            chosen = self.arguments[place["argument"]["index"]]
            if DTYPES[place["dtype"]].bits < 8:
                fill_identity(chosen, place["dtype"])
            else:
                chosen.copy_(torch.eye(*chosen.shape))
        return self.placed(manifest)

    def random(self, seed: int) -> list[Any]:
        """Random arguments, fixed by a seed."""
        from ..oracle.tensors import random_arguments

        return random_arguments(self.source.arguments, seed, self.source.unread())

    def placed(self, manifest: Manifest) -> dict[str, Any]:
        """The arguments as the kernel takes them, and a poisoned output."""
        from ..oracle.layouts import check_layouts
        from ..oracle.tensors import kernel_tensors

        if "arguments" not in manifest:
            rule = "must be a bundle that was made of a file, got one of --m, --n and --k"
            raise CompileError(f"--reference: {rule}")
        own = without_marks(manifest)
        check_layouts(own, self.source)
        return kernel_tensors(own, self.arguments) | marks_of(manifest)

    def expected(
        self, manifest: Manifest, tensors: Mapping[str, Any], on_gpu: bool
    ) -> list[Interval]:
        """What the source may return for its arguments."""
        wanted, found = self.source.results, outputs(manifest)
        if len(wanted) != len(found):
            rule = f"must be those of the source, which returns {len(wanted)}, got {len(found)}"
            raise CompileError(f"outputs: {rule}")
        for (_, shape), each in zip(wanted, found, strict=True):
            if list(shape) != each["shape"]:
                rule = f"must have the shape {list(shape)}, got {each['shape']}"
                raise CompileError(f"tensor '{each['name']}': {rule}")
        by_fma = operands(manifest)[0]["dtype"] == "f32"  # tf32 where a tensor core multiplies
        limits = self.evaluated(on_gpu and manifest["target"] == HOPPER, by_fma)
        dtypes = [each["dtype"] for each in found]
        return [self.allowed(manifest, *each) for each in zip(limits, dtypes, strict=True)]

    def allowed(self, manifest: Manifest, limits: Interval, dtype: str) -> Interval:
        """The limits under the kernel's policy for the error of functions."""
        from ...runtime.judge.reference import half_ulp
        from ...runtime.judge.relaxed import allows_more, relaxed

        if not (allows_more(manifest, dtype) and self.source.has_functions):
            return limits
        return relaxed(limits, lambda part: half_ulp(part, dtype))

    def evaluated(self, hopper_gpu: bool, by_fma: bool) -> list[Interval]:
        """The source evaluated for the arguments."""
        from ..oracle.tensors import as_numbers

        elements = [element for element, _ in self.source.arguments]
        numbers = [as_numbers(*each) for each in zip(self.arguments, elements, strict=True)]
        return self.source.evaluate_all(numbers, hopper_gpu, by_fma=by_fma)


class OfTorch(OfSource):
    """The program of a .pt2 file, run by torch."""

    def __init__(self, path: Path, sizes: Sequence[int] = ()):
        from ...compiler.importers.torch_module import exported_program, read_exported
        from ..oracle.torch_program import TorchProgram

        module, inputs = exported_program(path)
        imported = read_exported(path)
        names = imported.arguments[len(inputs) :]
        self.name = str(path)
        self.program = TorchProgram(module, names, _of_sizes(imported.text, sizes), self.name)
        self.source = self.program.source

    @property
    def said(self) -> str:
        return f"torch's own run of {self.name}, with the limits of its linalg"

    def random(self, seed: int) -> list[Any]:
        return self.program.arguments(seed)

    def evaluated(self, hopper_gpu: bool, by_fma: bool) -> list[Interval]:
        return self.program.evaluate_all(self.arguments, hopper_gpu, by_fma)


Reference = OfManifest | OfSource


def of_kernel(source: MatmulSpec | Path | None) -> Reference:
    """The reference for a kernel: its manifest, or the source that is named."""
    return OfManifest() if source is None else of_source(source)


def of_source(source: MatmulSpec | Path, sizes: Sequence[int] = ()) -> Reference:
    """The reference for what is compiled; `sizes` are the M and batch to run of a source of any."""
    from ...compiler.importers.file_kinds import EXPORTED

    if not isinstance(source, Path):
        return OfSpec(source.of_sizes(*sizes))
    if source.suffix == EXPORTED:
        return OfTorch(source, sizes)
    try:
        return OfSource(_of_sizes(source.read_text(), sizes), str(source))
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or "it is not UTF-8 text"
        raise CompileError(f"{source}: must be a readable .mlir file, got: {reason}") from error


def _of_sizes(text: str, sizes: Sequence[int]) -> str:
    """The text of linalg with numbers where M, the batch or K is dynamic.

    Of the first two the batch is the first dim of stacks; what has one of the two has rows, unless
    it is a stack of known rows.
    """
    if not sizes:
        return text
    *m, last = sizes
    if m:
        text = text.replace("<?x?x", f"<{last}x{m[0]}x")
        text = re.sub(r"<\?x(?=\d+x\d+x)", f"<{last}x", text)
        text = re.sub(r"strided<\[\?, (\d+),", lambda found: _step(found, m[0]), text)
    sized = re.sub(r"%\w+ = tensor\.dim .*", "", text.replace("<?x", f"<{sizes[0]}x"))
    return re.sub(r"tensor\.empty\([^)]*\)", "tensor.empty()", sized)


def _step(found: re.Match[str], m: int) -> str:
    """The step between matrices of so many rows, which are that far apart."""
    return f"strided<[{m * int(found[1])}, {found[1]},"


def compare_with(
    reference: Reference, manifest: Manifest, tensors: Mapping[str, Any], on_gpu: bool = False
) -> Comparison:
    """The output tensors, on the CPU, beside what they may be: of several the first that is wrong.

    Its counts are of the elements of all.
    """
    from ...runtime.judge.reference import compare, to_float64

    found, expected = [], reference.expected(manifest, tensors, on_gpu)
    for c, limits in zip(outputs(manifest), expected, strict=True):
        refuse_written_gaps(c["name"], tensors[c["name"]])
        actual = to_float64(tensors[c["name"]], c["dtype"])
        found.append(compare(limits, actual, c["dtype"], c["name"]))
    fields = next((each for each in found if not each.passed), found[0])
    elements, mismatches = (sum(getattr(e, n) for e in found) for n in ("elements", "mismatches"))
    return replace(fields, elements=elements, mismatches=mismatches)
