"""Programs of the CuTe DSL on the emulator: what plays CUDA's part for their host programs. The DSL
itself is a package of NVIDIA's: where it is installed, a program of it runs, too."""

import ctypes
import importlib.util
import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import ClassVar

import numpy as np
import pytest
import torch

from tilewright.runtime import run_launch_file
from tilewright.tools import main
from tilewright.tools.cute_dsl import library
from tilewright.tools.cute_dsl.dsl import Compiled
from tilewright.tools.cute_dsl.running import runner
from tilewright.tools.programs.launch_files import Asked, launch_file
from tilewright.tools.programs.launches import Launches, Options
from tilewright.tools.programs.memory import TensorMemory
from tilewright.tools.programs.tensor_maps import read_map
from tilewright.tools.programs.torch_tensors import as_cuda, cuda_on_host

KERNEL = Path(__file__).parents[1] / "emulate/examples/scaled_rows.ptx"
pytestmark = pytest.mark.skipif(shutil.which("cc") is None, reason="needs a C compiler")


@pytest.fixture(scope="module")
def stand_in(tmp_path_factory):
    """The library, of a process that has loaded it."""
    return library.load(library.build(tmp_path_factory.mktemp("stand-in")))


class Text:
    """What the DSL keeps of a compilation: PTX and machine code."""

    def __init__(self, ptx: str, machine_code: bytes):
        self.PTX, self.CUBIN = ptx, machine_code


def kernel_of(stand_in, image) -> ctypes.c_void_p:
    """The handle that a host program gets of a kernel."""
    loaded, kernel = ctypes.c_void_p(), ctypes.c_void_p()
    assert stand_in._cudaLibraryLoadData(ctypes.byref(loaded), image) == 0
    assert stand_in._cudaLibraryGetKernel(ctypes.byref(kernel), loaded, b"scaled_rows") == 0
    return kernel


def pointers(*values):
    """The addresses of parameters, as a launch takes them; and what must live as long."""
    return (ctypes.c_void_p * len(values))(*(ctypes.addressof(each) for each in values)), values


def launch_scaled_rows(stand_in, launches, x, out, image) -> int:
    """What the host program of `scaled_rows` does."""
    tensors = (ctypes.c_uint64 * 2)(x.data_ptr(), out.data_ptr())
    numbers = ctypes.c_uint32(24), ctypes.c_uint32(32), ctypes.c_float(0.5)
    parameters, kept = pointers(tensors, *numbers)
    grid_xy = 5 | 1 << 32
    status = stand_in._cudaLaunchKernel(
        kernel_of(stand_in, image), ctypes.c_uint64(grid_xy), 1, ctypes.c_uint64(32 | 1 << 32), 1,
        parameters, ctypes.c_size_t(0), None,
    )  # fmt: skip
    del kept
    return status


@pytest.fixture
def launches(stand_in, tmp_path):
    """Runs the launches of this process; saves them, too."""
    told = []
    runs = Launches(Options(seeds=(0, 1), save=tmp_path / "saved"), tmp_path, told.append)
    runs.told = told
    runs.compiled = Compiled()
    callback = library.serve(stand_in, runner(runs, runs.compiled), 4, 10)
    yield runs
    del callback


def test_a_launch_of_a_host_program_runs_and_can_be_run_again(stand_in, launches, tmp_path):
    """Its results are in the memory that it named; the saved launch gives the same."""
    code = b"machine code of this kernel"
    image = ctypes.create_string_buffer(code)
    launches.compiled.note(Text(KERNEL.read_text().replace("scaled_rows", "other"), b"other"))
    launches.compiled.note(Text(KERNEL.read_text(), code))
    launches.compiled.note(Text(KERNEL.read_text().replace("mul.f32", "add.f32"), b"not this code"))
    x, out = torch.arange(5 * 32.0).reshape(5, 32).bfloat16(), torch.full((5, 24), -1.0)
    wanted = x[:, :24].float() * 0.5
    launches.memory.note(x)
    launches.memory.note(out)
    assert launch_scaled_rows(stand_in, launches, x, out, image) == 0, launches.failure
    assert torch.equal(out, wanted)
    assert [line.rpartition(" seed ")[2][0] for line in launches.told] == ["0", "1"]
    saved = run_launch_file(tmp_path / "saved/000.ptx", tmp_path / "saved/000.json")
    assert np.array_equal(saved.outputs["t1"].view(np.float32), wanted.numpy().ravel())


def test_a_fault_is_an_error_of_the_launch(stand_in, launches):
    """A host program hears that it failed, and the reason is kept."""
    image = ctypes.create_string_buffer(b"code")
    launches.compiled.note(Text(KERNEL.read_text(), b"code"))
    x, out = torch.zeros(5, 16, dtype=torch.bfloat16), torch.zeros(5, 24)
    launches.memory.note(x)
    launches.memory.note(out)
    assert launch_scaled_rows(stand_in, launches, x, out, image) == library.LAUNCH_FAILURE
    assert launches.failure.category == "out-of-bounds"


def test_a_kernel_without_ptx_is_refused(stand_in, launches):
    image = ctypes.create_string_buffer(b"code")
    x = torch.zeros(4)
    assert launch_scaled_rows(stand_in, launches, x, x, image) == library.LAUNCH_FAILURE
    assert str(launches.failure) == (
        "scaled_rows: must have been compiled in this process, to have PTX; turn caches off"
    )


def encoded(stand_in, tensor, kind, box, swizzle) -> bytes:
    """What cuTensorMapEncodeTiled leaves."""
    raw, rank = ctypes.create_string_buffer(128), tensor.dim()
    dims = (ctypes.c_uint64 * rank)(*tensor.shape[::-1])
    steps = [step * tensor.element_size() for step in tensor.stride()[::-1][1:]]
    strides = (ctypes.c_uint64 * (rank - 1))(*steps)
    boxes, ones = (ctypes.c_uint32 * rank)(*box), (ctypes.c_uint32 * rank)(*[1] * rank)
    address = ctypes.c_uint64(tensor.data_ptr())
    status = stand_in._cuTensorMapEncodeTiled(
        raw, kind, rank, address, dims, strides, boxes, ones, 0, swizzle, 0, 1
    )
    assert status == 0
    return raw.raw


def asked(raw: bytes) -> Asked:
    """A launch with one parameter."""
    return Asked("k", "", [1, 1, 1], [32, 1, 1], [1, 1, 1], 0, [raw])


def test_tensors_at_low_addresses_are_found():
    """Where Python itself lies at a fixed address, its heap begins below 4 GiB."""
    private, anonymous, low = 0x02, 0x20, 0x40
    mmap = ctypes.CDLL(None).mmap
    mmap.restype = ctypes.c_void_p
    at = mmap(None, ctypes.c_size_t(4096), 3, private | anonymous | low, -1, ctypes.c_long(0))
    memory = TensorMemory()
    memory.note(torch.frombuffer((ctypes.c_uint8 * 4096).from_address(at), dtype=torch.float16))
    parameter = (at + 128).to_bytes(8, "little")
    assert at < 1 << 32
    assert launch_file(asked(parameter), memory).fields()["parameters"] == [
        {"pointer": "t0", "offset_bytes": 128}
    ]


def test_parameters_become_maps_pointers_and_bytes(stand_in):
    """A struct of a map, an address within a tensor, and numbers."""
    memory, tensor = TensorMemory(), torch.zeros(4, 6, 64, dtype=torch.float16)
    memory.note(tensor)
    at = tensor.data_ptr() - tensor.untyped_storage().data_ptr()
    inside = (tensor.data_ptr() + 128).to_bytes(8, "little")
    raw = encoded(stand_in, tensor, 6, [64, 2, 1], 3) + inside + bytes([7, 0, 0, 0])
    fields = launch_file(asked(raw), memory).fields()
    assert fields["parameters"] == [
        {
            "struct": [
                {"at": 0, "tensor_map": "m0"},
                {"at": 128, "pointer": "t0", "offset_bytes": at + 128},
                {"at": 136, "hex": "07000000"},
            ],
            "size_bytes": 140,
        }
    ]
    assert fields["tensor_maps"] == [
        {
            "name": "m0", "tensor": "t0", "offset_bytes": at, "dtype": "float16",
            "dims": [64, 6, 4], "strides_bytes": [128, 768], "box": [64, 2, 1],
            "element_strides": [1, 1, 1], "swizzle": "128B", "oob_fill": "nan",
        }
    ]  # fmt: skip
    json.dumps([fields["parameters"], fields["tensor_maps"]])


def test_addresses_of_tensors_in_memory_are_an_array_of_pointers(stand_in):
    """As grouped kernels take them; numbers that are none stay a tensor."""
    memory, one, two = TensorMemory(), torch.zeros(16), torch.ones(16)
    table, other = torch.tensor([one.data_ptr(), two.data_ptr()]), torch.tensor([1 << 40, 5])
    for tensor in (one, two, table, other):
        memory.note(tensor)
    raw = table.data_ptr().to_bytes(8, "little") + other.data_ptr().to_bytes(8, "little")
    [parameter] = launch_file(asked(raw), memory).fields()["parameters"]
    assert parameter["struct"] == [
        {"at": 0, "pointer_array": ["t0", "t1"]},
        {"at": 8, "pointer": "t2", "offset_bytes": 0},
    ]


class _Doubled(torch.autograd.Function):
    """A function of the program's own, whose backward asks where its tensors are."""

    seen: ClassVar[list[bool]] = []

    @staticmethod
    def forward(ctx, x):
        return x * 2

    @staticmethod
    def backward(ctx, grad):
        _Doubled.seen.append(torch.zeros(1, device=grad.device).is_cuda)
        return grad * 2


def test_a_program_finds_its_cuda_tensors_on_the_host():
    """They are at addresses as CUDA has them, and travel as those of a GPU."""
    memory = TensorMemory()
    with cuda_on_host(memory, 4, (9, 0)):
        made = torch.ones(3, 5, device="cuda:0")
        copied = torch.arange(6).cuda()
        assert made.is_cuda and made.device == torch.device("cuda", 0)
        assert torch.cuda.get_device_capability() == (9, 0)
        with torch.cuda.device(made.device), torch.cuda.stream(torch.cuda.Stream()):
            torch.cuda.Event(enable_timing=True).record()
            made.record_stream(torch.cuda.current_stream())
        assert made.data_ptr() % 256 == 0 == copied.data_ptr() % 256
        assert torch.empty_like(made, device=made.device).shape == (3, 5)
        _Doubled.apply(made.requires_grad_()).sum().backward()
        assert _Doubled.seen == [True] and (made.grad == 2).all()
        seen = []
        as_cuda([made], lambda tensor: seen.append(tensor.__dlpack_device__()), memory)
    assert seen == [(2, 0)]
    assert memory.block_at(made.data_ptr() + 4) is not None
    assert not torch.ones(1).is_cuda


@pytest.mark.skipif(importlib.util.find_spec("cutlass") is None, reason="needs nvidia-cutlass-dsl")
def test_a_program_of_the_dsl_runs(tmp_path, capfd):
    program = tmp_path / "program.py"
    program.write_text(PROGRAM)
    assert main.main(["cute", "--save", str(tmp_path / "saved"), str(program), "3"]) == 0
    assert capfd.readouterr().out == "[3.0, 4.0, 5.0, 6.0]\n"
    assert (tmp_path / "saved/000.json").exists()


PROGRAM = """
import sys

import cutlass
import cutlass.cute as cute
import torch
from cutlass.cute.runtime import from_dlpack


@cute.kernel
def add(x: cute.Tensor, more: cutlass.Float32):
    i, _, _ = cute.arch.thread_idx()
    x[i] = x[i] + more


@cute.jit
def run(x: cute.Tensor, more: cutlass.Float32):
    add(x, more).launch(grid=(1, 1, 1), block=(4, 1, 1))


x = torch.arange(4, dtype=torch.float32, device="cuda")
run(from_dlpack(x), float(sys.argv[1]))
print(x.tolist())
"""


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--target", "volta", __file__], "--target must be as sm_100a or sm_90a, got volta"),
        (["--target", "sm_75", __file__], "--target must be sm_80 or newer, got sm_75"),
        ([], "the following arguments are required: PROGRAM.py; see"),
        (["no/such.py"], "PROGRAM.py must be a file, got no/such.py"),
    ],
)
@pytest.mark.parametrize("command", ["cute", "triton"])
def test_a_wrong_command_line_is_refused(command, words, message, capsys):
    assert main.main([command, *words]) == 2
    assert message in capsys.readouterr().err


def test_where_the_dsl_is_not_installed_it_says_so(tmp_path, capsys, monkeypatch):
    program = tmp_path / "program.py"
    program.write_text("print(1)")
    monkeypatch.setitem(__import__("sys").modules, "cutlass.cute", None)
    assert main.main(["cute", str(program)]) == 1
    assert "nvidia-cutlass-dsl" in capsys.readouterr().err


IN_CIRCLES = """
import os


class Circle:
    def __init__(self):
        self.own = self

    def __del__(self):
        os.write(1, b"collected")


kept = Circle()
"""


def test_what_a_program_leaves_in_circles_is_collected_at_the_end(tmp_path):
    """Commands leave such to the end of the process; libraries of a program report that."""
    program = tmp_path / "program.py"
    program.write_text(IN_CIRCLES)
    code = (
        "from pathlib import Path\n"
        "from tilewright.tools.command_line.own_process import as_process\n"
        "from tilewright.tools.programs.execution import execute\n"
        "from tilewright.tools.programs.launches import Launches, Options\n"
        "none = Launches(Options(), Path(), print)\n"
        f"raise SystemExit(as_process(lambda: execute(Path({str(program)!r}), [], none)))"
    )
    made = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True)
    assert made.stdout == b"collected"


def test_other_bytes_are_no_tensor_map():
    assert read_map(bytes(128)) is None
    assert read_map(b"TWM\0") is None


OF_PIXELS = [
    ("436304000800000028000000f000000090060000000000003f0000000400000005000000060000000100000040"
     "04003fdf77410c1f000000",
     {"dims": [64, 5, 6, 7, 2], "strides_bytes": [128, 640, 3840, 26880], "swizzle": "128B",
      "element_strides": [1, 1, 2, 3, 1],
      "im2col": {"lower": [-1, -2, -3], "upper": [1, 2, 3], "channels": 64, "pixels": 32}}),
    ("334304000400000018000000a800000000000000000000001f0000000500000006000000010000000000000040"
     "00001fffec150227000000",
     {"dims": [32, 6, 7, 2], "strides_bytes": [64, 384, 2688], "swizzle": "64B",
      "element_strides": [1, 1, 2, 1],
      "im2col": {"lower": [-1, -20], "upper": [21, 2], "channels": 32, "pixels": 40}}),
    ("2343040004000000240000000000000000000000000000001f0000000800000002000000000000000000000010"
     "00001f18fcd00727000000",
     {"dims": [32, 9, 3], "strides_bytes": [64, 576], "swizzle": "64B",
      "element_strides": [1, 3, 1],
      "im2col": {"lower": [-1000], "upper": [2000], "channels": 32, "pixels": 40}}),
]  # fmt: skip


@pytest.mark.parametrize(("raw", "fields"), OF_PIXELS)
def test_maps_of_pixels_are_read_in_the_format_of_the_hardware(raw, fields):
    """As host programs of the CuTe DSL 4.8.1 encode them."""
    address = (0x1000).to_bytes(8, "little")
    found = read_map(address + bytes.fromhex(raw) + bytes(64))
    assert found == {"address": 0x1000, "dtype": "float16", **fields}


def test_maps_of_ragged_tensors_begin_before_theirs():
    memory, tensors = TensorMemory(), [torch.zeros(64), torch.zeros(64)[3:], torch.zeros(64)]
    for tensor in tensors:
        memory.note(tensor)
    starts = [tensor.untyped_storage().data_ptr() for tensor in tensors]
    before = [tensor.data_ptr() - (3 << 30) for tensor in tensors]
    assert [memory.block_of_map(address).address for address in before] == starts
    assert memory.block_of_map(starts[1] + 4).address == starts[1]
