"""Runs all_cases() of silicon_cases.py on this machine's GPU and records what they gave.

    python test/emulator/silicon/record.py h100.json [--beside h200.json] [--raw PATH.npz]

`--beside` leaves out what another file records. Needs numpy, ml_dtypes, torch and cuda-python
(cuda.bindings), and no tilewright. The driver assembles the PTX. `--raw` also writes whole outputs,
to look at where a digest differs.
"""

from __future__ import annotations

import argparse
import ctypes
import json
from pathlib import Path

import numpy as np
import torch
from cuda.bindings import driver
from silicon_case import Case, Im2col, Map
from silicon_cases import all_cases

POISON = 0xA5A5A5A5


def main() -> None:
    options = parse_options()
    known = json.loads(options.beside.read_bytes())["kernels"] if options.beside else {}
    found = {case.name: (case, on_gpu(case)) for case in all_cases() if case.name not in known}
    kernels = {name: [case.inputs_digest(), case.digest_of(out)]
               for name, (case, out) in found.items()}  # fmt: skip
    options.place.write_text(as_json(torch.cuda.get_device_name(), kernels))
    if options.raw:
        np.savez_compressed(options.raw, **{name: out for name, (_, out) in found.items()})


def parse_options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("place", type=Path, metavar="PATH.json")
    parser.add_argument("--beside", type=Path, metavar="PATH.json")
    parser.add_argument("--raw", type=Path, metavar="PATH.npz")
    return parser.parse_args()


def as_json(gpu: str, kernels: dict[str, list[str]]) -> str:
    """A line a kernel: digests of its inputs and of its output."""
    lines = (f"  {json.dumps(name)}: {json.dumps(digests)}" for name, digests in kernels.items())
    return f'{{"gpu": {json.dumps(gpu)}, "kernels": {{\n' + ",\n".join(lines) + "\n}}\n"


def on_gpu(case: Case) -> np.ndarray:
    """uint32[threads, results]: what the kernel stores."""
    inputs = [torch.from_numpy(each.view(np.uint8)).cuda() for each in (case.image, case.words)]
    out = torch.full((case.threads, case.results), POISON - 2**32, dtype=torch.int32).cuda()
    module = checked(driver.cuModuleLoadData(case.ptx.encode() + b"\0"))
    function = checked(driver.cuModuleGetFunction(module, b"k"))
    arguments = [ctypes.c_uint64(each.data_ptr()) for each in (*inputs, out)]
    if case.tensor_map:
        base = {"image": inputs[0], "out": out}[case.tensor_map.over].data_ptr()
        arguments.append(encoded(case.tensor_map, base))
    table = (ctypes.c_void_p * len(arguments))(*map(ctypes.addressof, arguments))
    shape = (case.ctas, 1, 1, case.threads // case.ctas, 1, 1)
    stream = torch.cuda.current_stream().cuda_stream
    checked(driver.cuLaunchKernel(function, *shape, 0, stream, ctypes.addressof(table), 0))
    torch.cuda.synchronize()
    checked(driver.cuModuleUnload(module))
    return out.cpu().numpy().view(np.uint32)


def encoded(tensor_map: Map | Im2col, base: int) -> ctypes.Array:
    """The map's 128 bytes, by the driver; at a multiple of 64, as it wants them."""
    room = ctypes.create_string_buffer(256)
    place = (ctypes.c_char * 128).from_buffer(room, -ctypes.addressof(room) % 64)
    common = (
        place, number("DataType", f"DATA_TYPE_{tensor_map.dtype.upper()}"),
        len(tensor_map.dims), ctypes.c_uint64(base), numbers(ctypes.c_uint64, tensor_map.dims),
        numbers(ctypes.c_uint64, tensor_map.strides),
    )  # fmt: skip
    fill = {"zero": "NONE", "nan": "NAN_REQUEST_ZERO_FMA"}[tensor_map.oob_fill]
    rest = (
        numbers(ctypes.c_uint32, tensor_map.element_strides), 0,
        number("Swizzle", f"SWIZZLE_{tensor_map.swizzle.upper()}"), 0,
        number("FloatOOBfill", f"FLOAT_OOB_FILL_{fill}"),
    )  # fmt: skip
    library = ctypes.CDLL("libcuda.so.1")
    if isinstance(tensor_map, Map):
        box = numbers(ctypes.c_uint32, tensor_map.box)
        status = library.cuTensorMapEncodeTiled(*common, box, *rest)
    else:
        corners = [numbers(ctypes.c_int, each) for each in (tensor_map.lower, tensor_map.upper)]
        counts = ctypes.c_uint32(tensor_map.channels), ctypes.c_uint32(tensor_map.pixels)
        status = library.cuTensorMapEncodeIm2col(*common, *corners, *counts, *rest)
    if status:
        raise RuntimeError(f"the driver must take {tensor_map}, got {status}")
    return place


def number(enum: str, name: str) -> int:
    """A constant of the driver's."""
    return int(getattr(getattr(driver, f"CUtensorMap{enum}"), f"CU_TENSOR_MAP_{name}"))


def numbers(type_: type, values: list[int]) -> ctypes.Array:
    """An array of C."""
    return (type_ * len(values))(*values)


def checked(answer: tuple) -> object:
    """What a call of the driver gives; an error is a RuntimeError with its name."""
    status, *rest = answer
    if status != driver.CUresult.CUDA_SUCCESS:
        raise RuntimeError(f"the driver must succeed, got {status.name}")
    return rest[0] if rest else None


if __name__ == "__main__":
    main()
