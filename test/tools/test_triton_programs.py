"""Programs of Triton on the emulator: how the driver passes arguments and launches. Where Triton is
installed, a program of it runs, too."""

import importlib.util
import struct
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch

from tilewright.runtime.errors import LaunchError
from tilewright.tools import main
from tilewright.tools.programs.execution import execute
from tilewright.tools.programs.launches import Launches, Options
from tilewright.tools.programs.tensor_maps import read_map
from tilewright.tools.programs.versions import unfit
from tilewright.tools.triton_programs.arguments import parameters
from tilewright.tools.triton_programs.driver import Function, launcher

KERNEL = Path(__file__).parents[1] / "emulate/examples/scaled_rows.ptx"
INSTALLED = importlib.util.find_spec("triton") is not None


def test_numbers_and_pointers_are_packed_by_their_types():
    """Constants are no parameters, tuples are those of their parts."""
    x = torch.zeros(4)
    signature = ["*fp32", "constexpr", ("i32", "constexpr", ("bf16",)), "fp16", "i1", "u64", "*i8"]
    found = parameters(signature, [x, 64, (-3, 1, (2.5,)), 0.5, True, 1 << 63, None], None)
    assert [raw.hex() for raw in found] == [
        struct.pack("<Q", x.data_ptr()).hex(), "fdffffff", "2040", "0038", "01",
        "0000000000000080", "0000000000000000",
    ]  # fmt: skip


def descriptor(base, shape, strides, **more):
    """A tensor descriptor of the host."""
    flags = {"padding": "zero", "round_f32_to_tf32": False} | more
    return SimpleNamespace(base=base, shape=shape, strides=strides, **flags)


def test_a_descriptor_is_a_map_with_its_extents():
    """Types of elements have other numbers in Triton than in the driver: 10 is bf16."""
    x = torch.zeros(6, 64, dtype=torch.bfloat16)
    layout = {"swizzle": 3, "elem_size": 2, "elem_type": 10, "block_size": [2, 32]}
    layout |= {"fp4_padded": False}
    value = descriptor(x, [6, 64], [64, 1], padding="nan")
    raw, *rest = parameters(["tensordesc<bf16[2, 32]>"], [value], [layout])
    assert read_map(raw) == {
        "address": x.data_ptr(), "dtype": "bfloat16", "dims": [64, 6], "strides_bytes": [128],
        "box": [32, 2], "element_strides": [1, 1], "swizzle": "128B", "oob_fill": "nan",
    }  # fmt: skip
    assert rest == [
        struct.pack("<i", 6),
        struct.pack("<i", 64),
        *(struct.pack("<q", n) for n in (64, 1)),
    ]


def test_a_descriptor_of_pixels_is_a_map_in_im2col_mode():
    """Corners and steps come in the order D, H, W, as the shape does."""
    x = torch.zeros(2, 5, 6, 64, dtype=torch.float16)
    layout = {"swizzle": 2, "elem_size": 2, "elem_type": 6, "block_size": [40, 32]}
    layout |= {"fp4_padded": False, "is_im2col": True}
    corners = {"pixel_box_lower_corner": [-1, -2], "pixel_box_upper_corner": [0, 1]}
    value = descriptor(x, list(x.shape), list(x.stride()), element_strides=[1, 2, 3, 1], **corners)
    raw = parameters(["tensordesc_im2col<fp16[40, 32]>"], [value], [layout])[0]
    assert read_map(raw) == {
        "address": x.data_ptr(), "dtype": "float16", "dims": [64, 6, 5, 2],
        "strides_bytes": [128, 768, 3840], "element_strides": [1, 3, 2, 1], "swizzle": "64B",
        "im2col": {"lower": [-2, -1], "upper": [1, 0], "channels": 32, "pixels": 40},
        "oob_fill": "zero",
    }  # fmt: skip


def test_a_descriptor_that_the_kernel_takes_apart_is_an_address_with_its_extents():
    x = torch.zeros(6, 64)
    value = descriptor(x, [6, 64], [64, 1], round_f32_to_tf32=True)
    raws = parameters(["tensordesc<fp32[2, 32]>"], [value], None)
    assert b"".join(raws) == struct.pack(
        "<Q4q2b2i2q", x.data_ptr(), 6, 64, 64, 1, 0, 1, 6, 64, 64, 1
    )
    del value.round_f32_to_tf32  # as in Triton 3.6
    raws = parameters(["tensordesc<fp32[2, 32]>"], [value], None)
    assert b"".join(raws) == struct.pack("<Q4qb2i2q", x.data_ptr(), 6, 64, 64, 1, 0, 6, 64, 64, 1)


def test_a_launch_runs_with_its_scratch_and_hooks(tmp_path):
    """What the kernel has more parameters for is memory of its own, or null."""
    told, seen = [], []
    text = KERNEL.read_text().replace(".param .f32 alpha", ".param .f32 alpha,\n.param .u64 more")
    launches = Launches(Options(), tmp_path, told.append)
    x, out = torch.arange(5 * 32.0).reshape(5, 32).bfloat16(), torch.full((5, 24), -1.0)
    pair = torch.tensor([x.data_ptr(), out.data_ptr()])  # the struct of the kernel's two pointers
    for tensor in (x, out):
        launches.memory.note(tensor)
    signature = {"t": "i64", "u": "i64", "columns": "i32", "step": "i32", "alpha": "fp32"}
    text = (
        text.replace(
            ".param .align 8 .b8 tensors[16],  // struct { const bf16 *x; float *out; }",
            ".param .u64 first, .param .u64 second,",
        )
        .replace("[tensors]", "[first]")
        .replace("[tensors+8]", "[second]")
    )
    source = SimpleNamespace(signature=signature)
    metadata = SimpleNamespace(num_ctas=1, global_scratch_size=0, profile_scratch_size=0)
    launch = launcher(launches, source, metadata)
    function = Function("scaled_rows", text, 0)
    launch(
        5, 1, 1, 0, function, None, "about", seen.append, seen.append, *pair.tolist(), 24, 32, 0.5
    )
    assert torch.equal(out, x[:, :24].float() * 0.5)
    assert (seen, len(told)) == (["about", "about"], 1)
    launch(0, 1, 1, 0, function, None, None, None, None, *pair.tolist(), 24, 32, 0.5)
    assert len(told) == 1


PROGRAM = """
import sys

import torch
import triton
import triton.language as tl


@triton.autotune(configs=[triton.Config({"B": 4}), triton.Config({"B": 8})], key=["n"])
@triton.jit
def scale(x, y, n, by, B: tl.constexpr):
    at = tl.program_id(0) * B + tl.arange(0, B)
    tl.store(y + at, tl.load(x + at, mask=at < n) * by, mask=at < n)


x = torch.arange(6, dtype=torch.float32, device="cuda")
y = torch.empty_like(x)
scale[lambda meta: (triton.cdiv(6, meta["B"]),)](x, y, 6, float(sys.argv[1]))
print(y.tolist())
"""


@pytest.mark.skipif(not INSTALLED, reason="needs triton")
def test_a_program_of_triton_runs(tmp_path, capfd):
    program = tmp_path / "program.py"
    program.write_text(PROGRAM)
    assert main.main(["triton", "--save", str(tmp_path / "saved"), str(program), "0.5"]) == 0
    assert capfd.readouterr().out == "[0.0, 0.5, 1.0, 1.5, 2.0, 2.5]\n"
    assert (tmp_path / "saved/000.json").exists()


@pytest.mark.skipif(INSTALLED, reason="needs an environment without triton")
def test_where_triton_is_not_installed_it_says_so(tmp_path, capsys):
    program = tmp_path / "program.py"
    program.write_text("print(1)")
    assert main.main(["triton", str(program)]) == 1
    assert "triton: must be installed; pip install" in capsys.readouterr().err


@pytest.mark.parametrize("raised", ["launches", "error"])
def test_a_traceback_shows_the_program_and_nothing_of_ours(raised, tmp_path, capsys):
    """What has stopped a launch is told at the end, and not twice."""
    launches = Launches(Options(), tmp_path, print)
    program = tmp_path / "program.py"
    program.write_text("import sys\nsys.modules['called_by_a_test'].call()\n")
    error = LaunchError("the reason")

    def call():
        if raised == "launches":
            launches.run(None)  # type: ignore[arg-type]
        raise error

    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(sys.modules, "called_by_a_test", SimpleNamespace(call=call))
        assert execute(program, [], launches) == 1
    told = capsys.readouterr().err
    files = {Path(line.split('"')[1]).name for line in told.splitlines() if "  File " in line}
    assert files == {"program.py", "test_triton_programs.py"}
    assert ("the reason" in told) == (raised == "error")
    assert "AttributeError" not in told


def test_another_release_is_told_apart_from_a_missing_one():
    """Where parts of it are missing it says which release has them."""
    error = AttributeError("no GPUTarget")
    assert "numpy: must be of release 0.1" in str(unfit("numpy", "0.1", error))
    assert str(unfit("none-such", "3.9", error)).startswith("none-such: must be installed; pip")
