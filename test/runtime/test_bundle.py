"""Bundles: what is written comes back; what is foreign or damaged is refused with the reason."""

import hashlib
import json
import os
import zipfile

import pytest

from tilewright.compiler.bundle_writer import write_bundle
from tilewright.dialects.errors import CompileError
from tilewright.runtime import BundleError, atomic, load, read_bundle
from tilewright.runtime.bundles.bundle import is_bundle, manifest_hash
from tilewright.runtime.bundles.manifest_rules import memory_contradictions
from tilewright.runtime.element_types import ITEM_BYTES


@pytest.fixture(params=["kernel.zip", "kernel"])
def path(request, tmp_path):
    return tmp_path / request.param


def change_manifest(path, change, seal=False):
    """Rewrites the manifest of a bundle folder, and its hash of itself where `seal` says so."""
    file = path / "manifest.json"
    manifest = json.loads(file.read_text())
    change(manifest)
    if seal:
        manifest["hashes"]["manifest.json"] = manifest_hash(manifest)
    file.write_text(json.dumps(manifest))


def refusal(path) -> str:
    with pytest.raises(BundleError) as refused:
        read_bundle(path)
    return str(refused.value)


def test_a_bundle_comes_back_as_it_was_written(path, manifest, ptx, cubin):
    write_bundle(path, manifest, ptx, cubin)
    bundle = read_bundle(path)
    assert (bundle.ptx, bundle.cubin, bundle.path) == (ptx, cubin, path)
    assert {name: bundle.manifest[name] for name in manifest} == manifest
    assert (bundle.manifest["format"], bundle.manifest["schema"]) == ("tilewright-bundle", 2)


def test_equal_inputs_give_equal_bytes(tmp_path, manifest, ptx, cubin):
    for name in ("one.zip", "two.zip"):
        write_bundle(tmp_path / name, manifest, ptx, cubin)
    assert (tmp_path / "one.zip").read_bytes() == (tmp_path / "two.zip").read_bytes()


def test_an_older_bundle_is_replaced_and_nothing_else_is_left(path, manifest, ptx, cubin):
    write_bundle(path, manifest, ptx, cubin)
    write_bundle(path, manifest, ptx + "// newer\n", cubin)
    assert read_bundle(path).ptx.endswith("// newer\n")
    assert os.listdir(path.parent) == [path.name]


def test_a_folder_that_is_no_bundle_is_not_replaced(tmp_path, manifest, ptx, cubin):
    (tmp_path / "thesis.txt").write_text("three years")
    with pytest.raises(CompileError) as refused:
        write_bundle(tmp_path, manifest, ptx, cubin)
    assert str(refused.value) == (
        f"error: {tmp_path}: only a bundle can be replaced, got a folder; choose another path"
    )
    assert (tmp_path / "thesis.txt").read_text() == "three years"


@pytest.mark.parametrize("call", ["fsync", "rename", "replace"])
def test_a_failed_write_leaves_the_older_bundle(call, path, manifest, ptx, cubin, monkeypatch):
    write_bundle(path, manifest, ptx, cubin)
    used = {"rename": path.suffix == "", "replace": path.suffix == ".zip", "fsync": True}[call]
    real, calls = getattr(atomic.os, call), []

    def fail_late(*arguments):
        calls.append(arguments)
        if call != "rename" or len(calls) == 2:
            raise OSError(28, "No space left on device")
        return real(*arguments)

    monkeypatch.setattr(atomic.os, call, fail_late)
    if used:
        with pytest.raises(OSError, match="No space left"):
            write_bundle(path, manifest, ptx + "// newer\n", cubin)
    monkeypatch.undo()
    assert read_bundle(path).ptx == ptx
    assert os.listdir(path.parent) == [path.name]


@pytest.mark.parametrize("kept", [0, 10, 300, -1])
def test_a_truncated_zip_is_refused(kept, tmp_path, manifest, ptx, cubin):
    path = tmp_path / "kernel.zip"
    write_bundle(path, manifest, ptx, cubin)
    path.write_bytes(path.read_bytes()[:kept])
    assert refusal(path).startswith(f"{path}: must be a whole zip file, got ")


def test_a_zip_with_a_flipped_byte_is_refused(tmp_path, manifest, ptx, cubin):
    path = tmp_path / "kernel.zip"
    write_bundle(path, manifest, ptx, cubin)
    with zipfile.ZipFile(path) as archive:
        place = archive.getinfo("kernel.ptx").header_offset + 60
    content = bytearray(path.read_bytes())
    content[place] ^= 0xFF
    path.write_bytes(content)
    assert str(path) in refusal(path)


@pytest.mark.parametrize("name", ["manifest.json", "kernel.ptx", "kernel.cubin"])
def test_a_missing_file_is_refused(name, tmp_path, manifest, ptx, cubin):
    path = tmp_path / "kernel"
    write_bundle(path, manifest, ptx, cubin)
    (path / name).unlink()
    assert refusal(path) == f"{path}: must hold {name}, got none; copy or make the bundle again"


@pytest.mark.parametrize("name", ["kernel.ptx", "kernel.cubin"])
def test_a_changed_file_is_refused(name, tmp_path, manifest, ptx, cubin):
    path = tmp_path / "kernel"
    write_bundle(path, manifest, ptx, cubin)
    with (path / name).open("ab") as file:
        file.write(b" ")
    assert f"{name}: must have the SHA-256 of the manifest" in refusal(path)


def test_a_path_that_does_not_exist_is_refused(tmp_path):
    path = tmp_path / "nothing"
    assert refusal(path) == (
        f"{path}: must be a bundle, got no such file or folder; check the path"
    )


def test_a_foreign_json_is_refused(tmp_path):
    (tmp_path / "manifest.json").write_text('{"name": "left-pad"}')
    assert refusal(tmp_path) == (
        f"{tmp_path}: manifest: must have the field 'format', got none;"
        " make the bundle again with this tilewright"
    )


@pytest.mark.parametrize("text", ["", "{", "\x00\x01", "[" * 100_000, "nope"])
def test_a_manifest_that_is_no_json_is_refused(text, tmp_path):
    (tmp_path / "manifest.json").write_text(text)
    assert "manifest.json: must be JSON, got " in refusal(tmp_path)


@pytest.mark.parametrize("schema", [1, 7, 4.0, [], {}])
def test_another_schema_is_refused(schema, tmp_path, manifest, ptx, cubin):
    path = tmp_path / "kernel"
    write_bundle(path, manifest, ptx, cubin)
    change_manifest(path, lambda m: m.update(schema=schema))
    assert refusal(path) == (
        f"{path}: manifest.schema: must be 2 or 3, got {schema};"
        " make the bundle again with this tilewright"
    )


@pytest.mark.parametrize(
    "change",
    [
        lambda m: m.update(grid=[2, 1, 1]),
        lambda m: m.update(author="somebody"),
        lambda m: m["tensors"][0].update(name="x") or m["parameters"][0].update(tensor="x"),
        lambda m: m["parameters"][0].update(box=[8, 5]),
        lambda m: m.pop("spec") or m.update(spec={}),
    ],
)
def test_a_manifest_that_was_changed_by_hand_is_refused(change, tmp_path, manifest, ptx, cubin):
    path = tmp_path / "kernel"
    write_bundle(path, manifest, ptx, cubin)
    change_manifest(path, change)
    message = refusal(path)
    assert message.startswith(f"{path}: manifest.json: must have the SHA-256 of the manifest, ")
    assert message.endswith("…; copy or make the bundle again")


def test_the_manifests_hash_is_of_its_sorted_json_without_itself(tmp_path, manifest, ptx, cubin):
    path = tmp_path / "kernel"
    write_bundle(path, manifest, ptx, cubin)
    found = json.loads((path / "manifest.json").read_text())
    stated = found["hashes"].pop("manifest.json")
    text = json.dumps(found, sort_keys=True, separators=(",", ":"))
    assert hashlib.sha256(text.encode("ascii")).hexdigest() == stated


def test_the_layout_of_the_manifest_and_the_order_of_its_fields_do_not_count(
    tmp_path, manifest, ptx, cubin
):
    path = tmp_path / "kernel"
    write_bundle(path, manifest, ptx, cubin)
    whole = json.loads((path / "manifest.json").read_text())
    (path / "manifest.json").write_text(json.dumps(dict(reversed(whole.items()))))
    assert read_bundle(path).manifest == whole


def set_at(*keys, to):
    def change(manifest):
        for key in keys[:-1]:
            manifest = manifest[key]
        manifest[keys[-1]] = to

    return change


def arguments_at(*indices):
    """Says that the inputs are these of two arguments."""

    def change(manifest):
        manifest["arguments"] = ["x", "w"]
        for tensor, index in zip(manifest["tensors"], indices, strict=False):
            tensor["argument"] = {"index": index, "transposed": False}

    return change


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        (set_at("grid", to=[1, 1]), "grid: must have 3 items, got 2"),
        (
            set_at("block", 0, to=0),
            "block[0]: must be an integer from 1 to 9223372036854775807, got 0",
        ),
        (set_at("grid", 1, to=True), "grid[1]: must be an integer"),
        (set_at("entry", to=""), "entry: must be an identifier of at most 1024 characters, got ''"),
        (
            set_at("tensors", 1, "dtype", to="i4"),
            f"tensors[1].dtype: must be {' or '.join(map(repr, ITEM_BYTES))}, got 'i4'",
        ),
        (
            set_at("tensors", 0, "strides", to=[1]),
            "tensors[0]: must have one stride a dimension, got [1]",
        ),
        (
            set_at("tensors", 1, "shape", to=[4, 15]),
            "tensors: must have shapes [m, k], [n, k] and [m, n], got [[6, 16], [4, 15], [6, 4]]",
        ),
        (
            set_at("tensors", 0, "role", to="output"),
            "tensors: must be two inputs or more and an output, got ['output', 'input', 'output']",
        ),
        (
            set_at("tensors", 2, "role", to="input"),
            "tensors: must be two inputs or more and an output, got ['input', 'input', 'input']",
        ),
        (set_at("tensors", 1, "name", to="a"), "tensors: must have different names, got"),
        (
            set_at("parameters", 0, "box", to=[8, 257]),
            "parameters[0].box[1]: must be an integer from 1 to 256, got 257",
        ),
        (
            set_at("parameters", 0, "box", to=[8, 2, 2]),
            "parameters[0].box: must have 2 items, got 3",
        ),
        (
            set_at("parameters", 0, "swizzle", to="96B"),
            "parameters[0].swizzle: must be 'none' or '32B' or '64B' or '128B', got '96B'",
        ),
        (
            set_at("parameters", 1, "kind", to="scalar"),
            "parameters[1].kind: must be 'tensor_map' or 'pointer' or 'size' or 'workspace',"
            " got 'scalar'",
        ),
        (
            set_at("parameters", 2, "tensor", to="d"),
            "parameters[2].tensor: must be one of ['a', 'b', 'c'], got 'd'",
        ),
        (set_at("epilogue", "result", to=1), "epilogue.result: must be an id that exists, got 1"),
        (
            set_at("workspace_bytes", to=64),
            "workspace_bytes: must be the 0 of the parameters, got 64",
        ),
        (
            lambda m: m.update(names={"barriers": [], "roles": [{"name": "mma"}]}),
            "names.roles[0]: must have the field 'first_warp', got none",
        ),
        (
            lambda m: m.update(arguments=["x"]),
            "tensors[0]: must have an argument beside 1 arguments, got none",
        ),
        (
            set_at("tensors", 0, "argument", to={"index": 0, "transposed": False}),
            "tensors[0]: must have no argument beside 0 arguments, got one",
        ),
        (arguments_at(0, 2), "tensors[1].argument.index: must be below 2, got 2"),
        (lambda m: m.pop("resources"), "must have the field 'resources', got none"),
    ],
)
def test_a_manifest_that_breaks_a_rule_is_refused(change, sentence, tmp_path, manifest, ptx, cubin):
    path = tmp_path / "kernel"
    write_bundle(path, manifest, ptx, cubin)
    change_manifest(path, change)
    message = refusal(path)
    assert message.startswith(f"{path}: manifest")
    assert sentence in message


def test_fields_that_a_later_version_adds_are_left_alone(tmp_path, manifest, ptx, cubin):
    path = tmp_path / "kernel"
    write_bundle(path, manifest, ptx, cubin)
    change_manifest(path, lambda m: m.update(author="somebody"), seal=True)
    assert read_bundle(path).manifest["author"] == "somebody"


def test_ptx_without_the_entry_is_refused(tmp_path, manifest, ptx, cubin):
    path = tmp_path / "kernel"
    write_bundle(path, manifest, ptx.replace("copy", "copied"), cubin)
    assert "kernel.ptx: must define the entry 'copy' of the manifest" in refusal(path)


@pytest.mark.parametrize("name", ["../evil.txt", "/evil.txt", "a/../../evil.txt"])
def test_a_zip_with_names_that_climb_out_is_refused(name, tmp_path, manifest, ptx, cubin):
    path = tmp_path / "deep" / "kernel.zip"
    path.parent.mkdir()
    write_bundle(path, manifest, ptx, cubin)
    with zipfile.ZipFile(path, "a") as archive:
        archive.writestr(name, "gotcha")
    assert f"must hold names that stay inside, got {name!r}" in refusal(path)
    assert sorted(os.listdir(tmp_path)) == ["deep"]
    assert os.listdir(path.parent) == ["kernel.zip"]


def test_what_is_a_bundle_is_told_from_what_is_not(path, manifest, ptx, cubin, tmp_path):
    write_bundle(path, manifest, ptx, cubin)
    assert is_bundle(path)
    (tmp_path / "matmul.mlir").write_text("module {}")
    assert not is_bundle(tmp_path / "matmul.mlir")
    assert not is_bundle(tmp_path)


def test_an_unknown_device_is_refused(path, manifest, ptx, cubin):
    from tilewright.runtime import DeviceError

    write_bundle(path, manifest, ptx, cubin)
    with pytest.raises(DeviceError) as refused:
        load(path, device="abacus")
    assert str(refused.value) == (
        "device: must be one of emulator, cuda, cuda:N, got 'abacus'; use one of them"
    )


def barriers(**changed):
    entry = {"name": "full", "offset_bytes": 0, "count": 4, **changed}
    return lambda m: m.update(names={"barriers": [entry], "roles": []})


def operation(name, operands, **attributes):
    entry = {"name": name, "operands": operands, "attributes": attributes}
    return lambda m: m["epilogue"]["operations"].append(entry)


def tiles(grid, cluster=(1, 1, 1), scheduler="none"):
    schedule = {"tile": [2, 3, 64], "scheduler": scheduler}
    return lambda m: m.update(grid=grid, cluster=list(cluster), schedule=schedule)


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        (set_at("cluster", to=[2, 1, 1]), "grid: must be a multiple of the cluster [2, 1, 1], got"),
        (set_at("grid", 1, to=65_536), "grid[1]: must be at most 65535, got 65536"),
        (set_at("block", 0, to=1025), "block[0]: must be at most 1024, got 1025"),
        (set_at("block", to=[512, 2, 2]), "block: must have a product of at most 1024, got"),
        (
            set_at("dynamic_shared_bytes", to=232_440),
            "dynamic_shared_bytes: must be at most 232448 with static shared memory, got 232456",
        ),
        (
            tiles([2, 2, 1]),
            "grid: must be [3, 2, 1], a CTA for each tile of [2, 3] of an output of [6, 4],"
            " got [2, 2, 1]",
        ),
        (tiles([4, 2, 1], scheduler="clc"), "grid: must be [3, 2, 1], a CTA for each tile"),
        (tiles([3, 2, 1], (1, 1, 2)), "grid: must be a multiple of the cluster [1, 1, 2]"),
        (
            tiles([3, 2, 1], scheduler="static"),
            "grid: must be one row of clusters for at most 6 tiles, got [3, 2, 1]",
        ),
        (
            barriers(count=2**40),
            "names.barriers[0]: must end within the 4096 bytes of dynamic shared memory",
        ),
        (barriers(offset_bytes=4072), "names.barriers[0]: must end within the 4096 bytes"),
        (
            lambda m: m.update(
                names={"barriers": [], "roles": [{"name": "x", "first_warp": 3, "warps": 2}]}
            ),
            "names.roles[0]: must end within the 4 warps of the block, got 5",
        ),
        (
            set_at("tensors", 0, "strides", to=[2**44, 1]),
            "tensors[0]: must span at most 140737488355328 bytes, got",
        ),
        (
            set_at("tensors", 2, "strides", to=[3, 1]),
            "tensors[2]: must have strides that keep elements apart, got [3, 1] for [6, 4]",
        ),
        (set_at("tensors", 2, "strides", to=[0, 1]), "must have strides that keep elements apart"),
        (set_at("tensors", 0, "strides", to=[0, 1]), "must have strides that keep elements apart"),
        (
            set_at("parameters", 0, "dtype", to="f32"),
            "parameters[0].dtype: must be as wide as the tensor's bf16, got 'f32'",
        ),
        (
            set_at("parameters", 0, "dims", to=[16, 7]),
            "parameters[0]: must reach over the 192 bytes of tensor 'a', got 224",
        ),
        (
            set_at("parameters", 0, "strides_bytes", to=[24]),
            "parameters[0].strides_bytes: must be multiples of 16, got [24]",
        ),
        (
            set_at("parameters", 0, "box", to=[9, 6]),
            "parameters[0].box: must have rows of a multiple of 16 bytes, at most 18",
        ),
        (
            lambda m: m["parameters"][0].update(swizzle="32B", box=[24, 6]),
            "parameters[0].box: must have rows of a multiple of 16 bytes, at most 32"
            " for swizzle '32B', got 48",
        ),
        (
            set_at("parameters", 1, "alignment_bytes", to=6),
            "parameters[1].alignment_bytes: must be a power of two, got 6",
        ),
        (operation("arith.addf", [0]), "operations[0].operands: must be 2 of arith.addf, got 1"),
        (operation("arith.constant", []), "operations[0].attributes.value: must be a number"),
        (operation("arith.truncf", [0]), "operations[0].attributes.type: must be bf16 or f16"),
        (set_at("schedule", to={"x": float("nan")}), "schedule: must be an object of finite"),
        (set_at("entry", to="a b"), "entry: must be an identifier"),
        (set_at("entry", to="k" * 1025), "entry: must be an identifier"),
        (lambda m: m["tensors"].extend([m["tensors"][0]] * 99), "must have 3 to 64 items, got 102"),
    ],
)
def test_parts_that_contradict_each_other_are_refused(
    change, sentence, tmp_path, manifest, ptx, cubin
):
    """Also where the manifest's hash is right: a bundle's maker is not its reader's friend."""
    path = tmp_path / "kernel"
    write_bundle(path, manifest, ptx, cubin)
    change_manifest(path, change, seal=True)
    assert sentence in refusal(path)


@pytest.mark.parametrize(
    "change",
    [
        tiles([3, 2, 1]),
        tiles([4, 2, 1], (2, 1, 1)),
        tiles([3, 2, 2], (1, 1, 2), "clc"),
        tiles([2, 1, 1], (2, 1, 1), "static"),
        tiles([9, 9, 1], scheduler="of a later version"),
        barriers(offset_bytes=4064),
        operation("arith.constant", [], value=float("inf")),
        operation("math.of_a_later_version", [0, 0, 0]),
    ],
)
def test_parts_that_agree_are_read(change, tmp_path, manifest, ptx, cubin):
    path = tmp_path / "kernel"
    write_bundle(path, manifest, ptx, cubin)
    change_manifest(path, change, seal=True)
    read_bundle(path)


def test_the_operands_of_every_operation_that_the_reference_knows_are_counted():
    from tilewright.runtime.bundles.manifest_rules import OPERANDS
    from tilewright.runtime.judge.epilogue import OPERATIONS

    assert set(OPERANDS) == {*OPERATIONS, "arith.constant", "arith.cmpf", "arith.truncf"}


@pytest.mark.parametrize(("strides", "refused"), [([1], []), ([16], ["[1] of a vector, got [16]"])])
def test_a_vector_has_its_elements_side_by_side(strides, refused):
    offsets = {"name": "offsets", "role": "input", "dtype": "s32", "shape": [5], "strides": strides}
    found = list(memory_contradictions([offsets], "tensors"))
    assert found == [f"tensors[0].strides: must be {each}" for each in refused]
