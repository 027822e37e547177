"""Bundles: what is written comes back; what is foreign or damaged is refused with the reason."""

import hashlib
import json
import os
import re
import zipfile

import pytest
from edited_manifests import change_manifest, refusal

from tilewright.compiler.bundle_writer import write_bundle
from tilewright.dialects.errors import CompileError
from tilewright.runtime import atomic, load, read_bundle
from tilewright.runtime.bundles.bundle import is_bundle


@pytest.fixture(params=["kernel.zip", "kernel"])
def path(request, tmp_path):
    return tmp_path / request.param


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
        f"error: {tmp_path}: only a bundle can be replaced, got one with 'thesis.txt' in it;"
        " choose another path"
    )
    assert (tmp_path / "thesis.txt").read_text() == "three years"


@pytest.mark.parametrize("place", ["folder", "k.zip"])
@pytest.mark.parametrize(
    ("names", "strange"),
    [
        (["manifest.json"], "manifest.json"),  # which others have, too
        (["manifest.json", "kernel.ptx", "notes.txt"], "notes.txt"),
        (["photo.jpg"], "photo.jpg"),
    ],
)
def test_what_is_no_bundles_own_is_not_lost(place, names, strange, tmp_path, manifest, ptx, cubin):
    path = tmp_path / place
    if path.suffix:
        with zipfile.ZipFile(path, "w") as archive:
            for name in names:
                archive.writestr(name, "x")
    else:
        path.mkdir()
        for name in names:
            (path / name).write_text("x")
    rule = f"only a bundle can be replaced, got one with '{strange}' in it"
    with pytest.raises(CompileError, match=re.escape(f"error: {path}: {rule}; choose another")):
        write_bundle(path, manifest, ptx, cubin)
    found = zipfile.ZipFile(path).namelist() if path.suffix else os.listdir(path)
    assert sorted(found) == sorted(names)


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


@pytest.mark.parametrize("schema", [1, 99, 4.0, [], {}])
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


@pytest.mark.parametrize("name", ["abacus", "emulator:1"])
def test_an_unknown_device_is_refused(name, path, manifest, ptx, cubin):
    from tilewright.runtime import DeviceError

    write_bundle(path, manifest, ptx, cubin)
    with pytest.raises(DeviceError) as refused:
        load(path, device=name)
    assert str(refused.value) == (
        f"device: must be one of emulator, cuda, cuda:N, got '{name}'; use one of them"
    )
