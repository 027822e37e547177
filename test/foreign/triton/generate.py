"""Compiles the kernels of this folder ahead of time, without a GPU: PTX and launch files.

pip install triton==3.9.0
python test/foreign/triton/generate.py [KERNEL ...]
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import triton
from cases import Case, Constant, Descriptor, Tensor
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource
from triton.experimental.gluon._runtime import GluonASTSource, GluonJITFunction

FOLDER = Path(__file__).parent
PACKAGES = Path(triton.__file__).parent.parent
"""Line tables name the compiler's own library by its path below this folder."""
TOOLS = ("cases", "generate", "references")
TYPES = {
    "f16": "fp16",
    "bf16": "bf16",
    "f32": "fp32",
    "e4m3": "fp8e4nv",
    "e5m2": "fp8e5",
    "e2m1": "u8",
    "ue8m0": "u8",
    "s8": "i8",
    "u8": "u8",
    "s32": "i32",
}
MAP_TYPES = {"e4m3": "uint8", "e5m2": "uint8", "e2m1": "uint8", "ue8m0": "uint8", "s8": "uint8"}
SWIZZLES = ("none", "32B", "64B", "128B")
DIVISIBLE = [["tt.divisibility", 16]]


def main(names: list[str]) -> None:
    """Write KERNEL.TARGET.ptx and .json of every kernel named, or of all."""
    os.chdir(FOLDER)  # so that line tables hold relative paths
    known = sorted(path.stem for path in Path().glob("*.py") if path.stem not in TOOLS)
    for name in names or known:
        case = load(name)
        for target in case.targets:
            write(name, case, target)


def load(name: str) -> Case:
    """The CASE of a kernel file."""
    path = Path(f"{name}.py")
    module = ModuleType(name)
    sys.modules[name] = module
    exec(compile(path.read_text(), path.name, "exec"), module.__dict__)
    return module.CASE


def write(name: str, case: Case, target: int) -> None:
    """Compile one kernel for one target and write its two files."""
    compiled = triton.compile(
        source(case), target=GPUTarget("cuda", target, 32), options=dict(case.options)
    )
    chip = f"sm_{target}a" if target >= 90 else f"sm_{target}"
    made_by = f"// Triton {triton.__version__}: {name}.py for {chip}, written by generate.py\n"
    stem = FOLDER / f"{name}.{chip}"
    text = compiled.asm["ptx"].replace(f"{PACKAGES}/", "")
    lines = [line.rstrip() for line in text.splitlines()]
    stem.with_name(stem.name + ".ptx").write_text(made_by + "\n".join(lines).rstrip() + "\n")
    launch = json.dumps(launch_file(case, compiled.metadata), indent=1)
    stem.with_name(stem.name + ".json").write_text(launch + "\n")
    print(stem.name, f"{len(text) >> 10} KiB")


def source(case: Case) -> ASTSource:
    """The kernel specialised as for aligned pointers and these integers."""
    constants = {k: v.value for k, v in case.arguments.items() if isinstance(v, Constant)}
    signature = {name: signature_of(value) for name, value in case.arguments.items()}
    divisible = {
        (i,): DIVISIBLE
        for i, value in enumerate(case.arguments.values())
        if isinstance(value, Tensor) or (isinstance(value, int) and value % 16 == 0)
    }
    kind = GluonASTSource if isinstance(case.kernel, GluonJITFunction) else ASTSource
    return kind(case.kernel, signature, constants, divisible)


def signature_of(value: Any) -> str:
    """The compiler's type of an argument."""
    if isinstance(value, Constant):
        return "constexpr"
    if isinstance(value, Tensor):
        return f"*{TYPES[value.dtype]}"
    if isinstance(value, Descriptor):
        kind = value.element_type or TYPES[value.tensor.dtype]
        layout = f",{value.layout!r}" if value.layout is not None else ""
        return f"tensordesc<{kind}[{','.join(map(str, value.block))}]{layout}>"
    return "fp32" if isinstance(value, float) else "i32"


def launch_file(case: Case, metadata: Any) -> dict[str, Any]:
    """The launch as the compiler's own launcher would make it."""
    described = iter(metadata.tensordesc_meta)
    tensors, maps, parameters = [], [], []
    for name, value in case.arguments.items():
        if isinstance(value, Tensor):
            tensors.append(value.declared(name))
            parameters.append({"pointer": name})
        elif isinstance(value, Descriptor):
            tensors.append(value.tensor.declared(name))
            maps.append(tensor_map(name, value, next(described)))
            parameters += [{"tensor_map": name}, *extents(value.tensor)]
        elif not isinstance(value, Constant):
            parameters.append({"scalar": value, "type": scalar_type(value)})
    scratch = scratch_tensor(case, metadata)
    no_pointer = {"scalar": 0, "type": "u64"}
    return {
        "entry": metadata.name,
        "grid": [case.grid[0] * metadata.num_ctas, *case.grid[1:]],
        "block": [metadata.num_warps * 32],
        "cluster": [metadata.num_ctas],
        "shared_bytes": metadata.shared,
        "tensors": tensors + scratch,
        "tensor_maps": maps,
        "parameters": [
            *parameters,
            {"pointer": "global_scratch"} if scratch else no_pointer,
            no_pointer,
        ],
    }


def scalar_type(value: float) -> str:
    """The launch file's type of a number."""
    return "f32" if isinstance(value, float) else "s32"


def extents(tensor: Tensor) -> list[dict[str, Any]]:
    """Shape and strides, which follow a tensor map; packed pairs count as one."""
    shape = packed_shape(tensor)
    strides = dense_strides(shape)
    sizes = [{"scalar": extent, "type": "s32"} for extent in shape]
    return [*sizes, *({"scalar": stride, "type": "s64"} for stride in strides)]


def packed_shape(tensor: Tensor) -> list[int]:
    """The shape in bytes where elements are packed two a byte."""
    packing = 2 if tensor.dtype == "e2m1" else 1
    return [*tensor.shape[:-1], tensor.shape[-1] // packing]


def dense_strides(shape: list[int]) -> list[int]:
    """Row-major strides in elements."""
    strides = [1]
    for extent in reversed(shape[1:]):
        strides.insert(0, strides[0] * extent)
    return strides


def tensor_map(name: str, value: Descriptor, described: dict[str, Any]) -> dict[str, Any]:
    """The arguments of cuTensorMapEncodeTiled that the compiler asks its launcher to use."""
    shape, size_bytes = packed_shape(value.tensor), described["elem_size"]
    padded = described["fp4_padded"]
    dims = [*shape[:-1], shape[-1] * 2] if padded else shape
    entry = {
        "name": name,
        "tensor": name,
        "dims": dims[::-1],
        "strides_bytes": [stride * size_bytes for stride in dense_strides(shape)[-2::-1]],
        "box": described["block_size"][::-1],
        "swizzle": SWIZZLES[described["swizzle"]],
        "l2_promotion": "128B",
        "oob_fill": "nan" if value.nan_padding else "zero",
    }
    kind = "16U4_ALIGN16B" if padded else MAP_TYPES.get(value.tensor.dtype)
    return {**entry, "dtype": kind} if kind else entry


def scratch_tensor(case: Case, metadata: Any) -> list[dict[str, Any]]:
    """The memory that a kernel may ask for beside its arguments, for all programs together."""
    if not metadata.global_scratch_size:
        return []
    programs = metadata.num_ctas
    for extent in case.grid:
        programs *= extent
    size_bytes = programs * metadata.global_scratch_size
    align = max(metadata.global_scratch_align, 256)
    scratch = Tensor("u8", [size_bytes]).declared("global_scratch")
    return [{**scratch, "align": align}]


if __name__ == "__main__":
    main(sys.argv[1:])
