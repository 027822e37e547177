"""Launch files that do not fit the kernel: the entry that is wrong, and what the kernel needs."""

import pytest

from tilewright.runtime import LaunchError
from tilewright.runtime.emulator import PtxSyntaxError, Trap

KERNEL = """.shared .align 16 .b8 scratch[4096];
.visible .entry k(.param .u64 p, .param .u32 n, .param .align 64 .b8 m[128],
  .param .align 8 .b8 s[128]) .reqntid 64, 2 {directives}
{{ .reg .b32 %r; mov.u32 %r, scratch; ret; }}"""
LAUNCH = {
    "entry": "k",
    "grid": [2],
    "block": [64, 2],
    "tensors": [
        {"name": "a", "role": "input", "dtype": "f16", "shape": [8, 8], "contents": {"ramp": 0}}
    ],
    "tensor_maps": [
        {"name": "m", "tensor": "a", "dims": [8, 8], "strides_bytes": [16], "box": [8, 8]}
    ],
    "parameters": [
        {"pointer": "a"},
        {"scalar": 8, "type": "s32"},
        {"tensor_map": "m"},
        {"hex": "00" * 128},
    ],
}


def refusal(run, header, changes, directives="") -> str:
    launch = {**LAUNCH, **changes}
    with pytest.raises(LaunchError) as caught:
        run(header + KERNEL.format(directives=directives), launch)
    return str(caught.value).split("launch.json: ", 1)[1]


def with_parameter(index, parameter):
    parameters = list(LAUNCH["parameters"])
    parameters[index] = parameter
    return {"parameters": parameters}


def with_map(**fields):
    return {"tensor_maps": [{**LAUNCH["tensor_maps"][0], **fields}]}


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"block": [128]}, "block: must be [64, 2, 1] (.reqntid), got [128, 1, 1]"),
        ({"block": [64, 2, 16]}, "block: must be at most 1024 threads, got 2048"),
        ({"block": [1, 1, 65]}, "block[2]: must be at most 64, got 65"),
        ({"grid": [1, 65536]}, "grid[1]: must be at most 65535, got 65536"),
        ({"grid": [32], "cluster": [32]}, "cluster: must be at most 16 CTAs, got 32"),
        (
            {"preferred_cluster": [32], "grid": [32]},
            "preferred_cluster: must be at most 16 CTAs, got 32",
        ),
        (
            {"cluster": [2], "preferred_cluster": [3], "grid": [6]},
            "preferred_cluster: must be a multiple of the cluster [2], got [3]",
        ),
        ({"preferred_cluster": [4]}, "grid: must be a multiple of the preferred [4], got [2]"),
        (
            {"shared_bytes": 232448},
            "shared_bytes: must be at most 228352 beside 4096 static bytes, got 232448",
        ),
        (
            {"parameters": LAUNCH["parameters"][:3]},
            "parameters: must have 4 items for kernel k (p, n, m, s), got 3",
        ),
        (
            with_parameter(0, {"scalar": 8, "type": "u32"}),
            "parameters[0]: must be 8 bytes for p, got 4 (u32)",
        ),
        (
            with_parameter(1, {"pointer": "a"}),
            "parameters[1]: must be 4 bytes for n, got 8 (pointer)",
        ),
        (
            with_parameter(2, {"tensor_map_array": ["m"]}),
            "parameters[2]: must be 128 bytes for m, got 8 (tensor_map_array)",
        ),
        (
            with_parameter(3, {"struct": [], "size_bytes": 64}),
            "parameters[3]: must be 128 bytes for s, got 64 (struct)",
        ),
        (
            with_parameter(3, {"tensor_map": "m"}),
            "parameters[3]: must go to a parameter with .align 64, as it has a tensor map,"
            " got .align 8 of s",
        ),
    ],
)
def test_a_launch_that_does_not_fit_names_its_entry(changes, message, run, header):
    assert refusal(run, header, changes) == f"{message}; make the launch fit the kernel"


@pytest.mark.parametrize(
    ("changes", "directives", "message"),
    [
        ({}, ".maxntid 96", "block: must be at most 96 threads (.maxntid), got 128"),
        (
            {"cluster": [1]},
            ".reqnctapercluster 2",
            "cluster: must be [2, 1, 1] (.reqnctapercluster), got [1, 1, 1]",
        ),
        (
            {"preferred_cluster": [2]},
            ".reqnctapercluster 2",
            "preferred_cluster: must be left out (.reqnctapercluster), got [2]",
        ),
        (
            {"grid": [3]},
            ".reqnctapercluster 2",
            "grid: must be a multiple of the cluster [2, 1, 1] (.reqnctapercluster), got [3, 1, 1]",
        ),
    ],
)
def test_a_directive_that_is_not_met_is_named(changes, directives, message, run, header):
    assert refusal(run, header, changes, directives) == f"{message}; make the launch fit the kernel"


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"box": [4, 8]}, "boxDim[0] must span a multiple of 16 bytes, got 8"),
        ({"strides_bytes": [24]}, "globalStrides[0] must be a multiple of 16 bytes, got 24"),
        (
            {"offset_bytes": 8, "dims": [8, 7]},
            "globalAddress must be a multiple of 16, got 0x7f0100000008",
        ),
        ({"l2_promotion": "2B"}, "l2Promotion must be one of none, 64B, 128B, 256B, got '2B'"),
        ({"oob_fill": "one"}, "oobFill must be one of zero, nan, got 'one'"),
        ({"interleave": "8B"}, "interleave must be one of none, 16B, 32B, got '8B'"),
    ],
)
def test_an_illegal_tensor_map_is_named(fields, message, run, header):
    found = refusal(run, header, with_map(**fields))
    assert found == f"tensor_maps[0]: {message}; cuTensorMapEncodeTiled would refuse it"


def test_an_illegal_tensor_map_of_pixels_is_named(run, header):
    column = {"lower": [-200, 0], "upper": [0, 0], "channels": 8, "pixels": 4}
    changed = with_map(im2col=column, dims=[8, 2, 2, 1], strides_bytes=[16, 32, 64])
    changed["tensor_maps"][0].pop("box")
    assert refusal(run, header, changed) == (
        "tensor_maps[0]: pixelBoxLowerCorner[0] of rank 4 must be -128..127, got -200;"
        " cuTensorMapEncodeIm2col would refuse it"
    )


def test_the_whole_launch_fits(run, header):
    result = run(header + KERNEL.format(directives=""), LAUNCH)
    assert (result.report.kernel, result.seed, result.outputs) == ("k", 0, {})


def test_a_kernel_that_is_not_there_is_named(run, header):
    found = refusal(run, header, {"entry": "gemm"})
    assert found == ("entry: the module has no kernel `gemm`, it has k; name a kernel that it has")


def test_a_text_that_is_no_ptx_names_the_file_and_the_line(run, header):
    with pytest.raises(PtxSyntaxError) as caught:
        run(header + ".visible .entry k( {", LAUNCH)
    assert "kernel.ptx:4:20: error: " in str(caught.value)


def test_an_instruction_that_is_not_modelled_names_its_line(run, header):
    launch = {"entry": "k", "grid": [1], "block": [32], "tensors": [], "parameters": []}
    with pytest.raises(Trap, match=r"ptx:4: error: kernel k: `vset\.u32 1`: unmodelled: "):
        run(header + ".visible .entry k() { vset.u32 1; ret; }", launch)


@pytest.mark.parametrize("missing", ["kernel.ptx", "launch.json"])
def test_a_file_that_is_not_there_is_named(missing, files, tmp_path, header):
    from tilewright.runtime import run_launch_file

    paths = files(header + KERNEL.format(directives=""), LAUNCH)
    (tmp_path / missing).unlink()
    limit = 16 * 2**20 if missing.endswith("json") else 64 * 2**20
    with pytest.raises(LaunchError) as caught:
        run_launch_file(*paths)
    rule = f"must be a file of at most {limit} bytes"
    wanted = f"{tmp_path / missing}: {rule}, got no such file; check the path"
    assert str(caught.value) == wanted


def test_a_folder_is_no_kernel(files, tmp_path, header):
    from tilewright.runtime import run_launch_file

    _, launch = files("", LAUNCH)
    with pytest.raises(LaunchError) as caught:
        run_launch_file(tmp_path, launch)
    wanted = f"{tmp_path}: must be a file of at most 67108864 bytes, got a folder; check the path"
    assert str(caught.value) == wanted


def test_a_kernel_that_is_no_text_is_refused(files, header):
    from tilewright.runtime import run_launch_file

    kernel, launch = files("", LAUNCH)
    kernel.write_bytes(b"\xff\xfe")
    with pytest.raises(LaunchError) as caught:
        run_launch_file(kernel, launch)
    assert str(caught.value) == (
        f"{kernel}: must be PTX text, got invalid start byte; check the path"
    )
