"""A manifest that is changed and sealed anew may not contradict its PTX, or itself."""

import json

import pytest

from tilewright.compiler.bundle_writer import write_bundle
from tilewright.runtime import BundleError, read_bundle
from tilewright.runtime.bundles.bundle import manifest_hash

SPEC = {"m": 6, "n": 4, "k": 16, "a_dtype": "bf16", "b_dtype": "bf16", "c_dtype": "f32"}


def refusal(path) -> str:
    with pytest.raises(BundleError) as refused:
        read_bundle(path)
    return str(refused.value)


def resealed(path, change):
    """The manifest of a bundle in a folder, changed, with a hash that fits."""
    file = path / "manifest.json"
    manifest = json.loads(file.read_text())
    change(manifest)
    manifest["hashes"]["manifest.json"] = manifest_hash(manifest)
    file.write_text(json.dumps(manifest))


def parameter(number, **fields):
    return lambda manifest: manifest["parameters"][number].update(fields)


def exchanged(manifest):
    """Both operands copied by threads, and the second given for the first."""
    pointer = {"kind": "pointer", "alignment_bytes": 2}
    first, second = ({**pointer, "tensor": name} for name in "ba")
    manifest["parameters"][:2] = [first, second]


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("copy(", "copies(", "must define the entry 'copy' of the manifest, got none"),
        ("copy(", "copy$1(", "must define the entry 'copy' of the manifest, got none"),
        ("sm_100a", "sm_90a", "must be for the manifest's target sm_100a, got sm_90a"),
        (
            "[128]",
            "[64]",
            "must have parameters of [128, 8, 8] bytes, as the manifest, got [64, 8, 8]",
        ),
        (
            ".param .u64 copy_param_2",
            ".param .u32 copy_param_2",
            "must have parameters of [128, 8, 8] bytes, as the manifest, got [128, 8, 4]",
        ),
        (
            ",\n  .param .u64 copy_param_2",
            "",
            "must have parameters of [128, 8, 8] bytes, as the manifest, got [128, 8]",
        ),
        (
            ".reqntid 128, 1, 1",
            ".reqntid 64",
            "must ask for the manifest's block [128, 1, 1], got .reqntid [64, 1, 1]",
        ),
        (
            ".reqntid 128, 1, 1",
            ".maxntid 64, 1, 1",
            "must take the manifest's block [128, 1, 1], got .maxntid [64, 1, 1]",
        ),
        (
            ".reqntid 128, 1, 1",
            ".explicitcluster\n.reqnctapercluster 2, 1, 1",
            "must ask for the manifest's cluster [1, 1, 1], got .reqnctapercluster [2, 1, 1]",
        ),
        (
            "  ret;",
            "  mbarrier.inval.shared.b64 [dynamic_shared+4096];\n"
            "  mbarrier.inval.shared.b64 [dynamic_shared+8];\n  ret;",
            "must stay within the dynamic shared memory of 4096 bytes, got byte 4096",
        ),
    ],
)
def test_a_manifest_that_its_ptx_contradicts_is_refused(
    old, new, message, tmp_path, manifest, ptx, cubin
):
    assert old in ptx
    path = tmp_path / "kernel"
    write_bundle(path, manifest, ptx.replace(old, new), cubin)
    assert refusal(path) == f"{path}: kernel.ptx: {message}; copy or make the bundle again"


def test_a_kernel_that_requires_a_cluster_prefers_none(tmp_path, manifest, ptx, cubin):
    manifest["preferred_cluster"] = [1, 1, 1]
    required = ptx.replace(".reqntid", ".reqnctapercluster 1\n.reqntid")
    write_bundle(tmp_path / "kernel", manifest, required, cubin)
    rule = "must ask for no cluster, as the manifest prefers [1, 1, 1], got .reqnctapercluster"
    assert rule in refusal(tmp_path / "kernel")


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("copy(", "copy /* as C++ says */ ("),
        ("[128]", "[ 128 ]"),
        (".reqntid 128, 1, 1", ".reqntid 128"),
        (".reqntid 128, 1, 1", "// .reqntid 64, 1, 1"),
        (".reqntid 128, 1, 1", ".maxntid 256"),
        (".target sm_100a", ".target sm_100a, debug"),
        ("  ret;", "  mbarrier.inval.shared.b64 [dynamic_shared+4088];\n  ret;"),
    ],
)
def test_what_the_ptx_may_say_in_another_way_is_taken(old, new, tmp_path, manifest, ptx, cubin):
    assert old in ptx
    write_bundle(tmp_path / "kernel", manifest, ptx.replace(old, new), cubin)
    assert read_bundle(tmp_path / "kernel").manifest["entry"] == "copy"


def test_a_kernel_launched_early_must_wait(tmp_path, manifest, ptx, cubin):
    manifest["schedule"]["programmatic_dependent_launch"] = True
    write_bundle(tmp_path / "early", manifest, ptx, cubin)
    assert "must wait for the grids before it" in refusal(tmp_path / "early")
    waiting = ptx.replace("  ret;", "  griddepcontrol.wait;\n  ret;")
    write_bundle(tmp_path / "waits", manifest, waiting, cubin)
    assert read_bundle(tmp_path / "waits").ptx == waiting


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            lambda m: m["spec"].update(m=7),
            "spec.m: must be the 6 of the tensors, got 7",
        ),
        (
            lambda m: m["spec"].update(k="16"),
            "spec.k: must be the 16 of the tensors, got '16'",
        ),
        (
            lambda m: m["spec"].update(a_dtype=["bf16"]),
            "spec.a_dtype: must be a text, got ['bf16']",
        ),
        (
            lambda m: m["spec"].update(c_dtype="bf16"),
            "spec.c_dtype: must be the tensor's f32, got 'bf16'",
        ),
        (
            parameter(0, swizzle="32B"),
            "parameters[0].swizzle: must be the schedule's 'none', got '32B'",
        ),
        (
            parameter(0, element_strides=[1, 2]),
            "parameters[0].element_strides[1]: must be an integer from 1 to 1, got 2",
        ),
        (parameter(0, oob_fill="nan"), "parameters[0].oob_fill: must be 'zero', got 'nan'"),
        (
            parameter(2, tensor="b"),
            "parameters: must take each tensor, got none that takes 'c'",
        ),
        (
            exchanged,
            "parameters: must be in the order of the tensors, ['a', 'b', 'c'], got ['b', 'a', 'c']",
        ),
    ],
)
def test_a_manifest_that_contradicts_itself_is_refused(
    change, message, tmp_path, manifest, ptx, cubin
):
    manifest |= {"spec": dict(SPEC)}
    manifest["schedule"]["swizzle"] = ["none", "none"]
    write_bundle(tmp_path / "kernel", manifest, ptx, cubin)
    resealed(tmp_path / "kernel", change)
    assert message in refusal(tmp_path / "kernel")


def test_the_schedule_of_exchanged_operands_names_b_first(tmp_path, manifest, ptx, cubin):
    manifest["schedule"] |= {"swizzle": ["128B", "none"], "swapped": True}
    write_bundle(tmp_path / "kernel", manifest, ptx, cubin)
    assert read_bundle(tmp_path / "kernel").manifest["parameters"][0]["swizzle"] == "none"


@pytest.fixture(scope="module")
def compiled():
    """A kernel whose parts of K meet over the grid: it has tensor maps and workspaces."""
    from tilewright.compiler.driver import compile_matmul
    from tilewright.compiler.spec import MatmulSpec

    split = "tiling{tile=64x64x64},tma-insertion,split-k{parts=2 over=grid},pipelining{stages=2}"
    return compile_matmul(MatmulSpec(72, 128, 256, ldc=136), pipeline=split)


def stride_of_rows(manifest):
    """C without the gaps that the kernel leaves between its rows."""
    manifest["tensors"][-1]["strides"] = [128, 1]


@pytest.mark.parametrize(
    "change",
    [
        lambda m: m.update(dynamic_shared_bytes=m["dynamic_shared_bytes"] + 1024),
        parameter(0, l2_promotion="none"),
        lambda m: [m.update(workspace_bytes=262160), parameter(3, tile_bytes=65536)(m)],
        parameter(4, start="any"),
        stride_of_rows,
        lambda m: m["schedule"].update(stages=3),
        lambda m: m.update(preferred_cluster=[2, 1, 1]),
    ],
    ids=["shared", "promotion", "workspace", "start", "strides", "schedule", "preferred"],
)
def test_the_compilers_ptx_is_for_the_launch_that_it_was_made_for(change, compiled, tmp_path):
    from tilewright.compiler.bundle_writer import as_bundle

    as_bundle(compiled, tmp_path / "kernel")
    assert read_bundle(tmp_path / "kernel").manifest["grid"] == [2, 2, 2]
    resealed(tmp_path / "kernel", change)
    rule = "must be made for the manifest's arguments, block, cluster, dynamic_shared_bytes, grid,"
    assert f"kernel.ptx: {rule}" in refusal(tmp_path / "kernel")


def test_other_records_may_be_changed(compiled, tmp_path):
    from tilewright.compiler.bundle_writer import as_bundle

    as_bundle(compiled, tmp_path / "kernel")
    resealed(tmp_path / "kernel", lambda manifest: manifest.update(note="kept in a drawer"))
    assert read_bundle(tmp_path / "kernel").manifest["note"] == "kept in a drawer"
