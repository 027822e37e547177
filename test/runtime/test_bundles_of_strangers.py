"""Bundles that somebody made on purpose: refused at once, by BundleError, whatever they hold."""

import json
import os
import socket
import struct
import time
import warnings
import zipfile

import pytest

from tilewright.compiler.bundle_writer import write_bundle
from tilewright.runtime import BundleError, read_bundle
from tilewright.runtime.bundles.bundle import manifest_hash
from tilewright.runtime.bundles.bundle_files import LIMITS_BYTES

NAMES = ("manifest.json", "kernel.ptx", "kernel.cubin")


@pytest.fixture
def folder(tmp_path, manifest, ptx, cubin):
    write_bundle(tmp_path / "kernel", manifest, ptx, cubin)
    return tmp_path / "kernel"


@pytest.fixture
def contents(folder):
    return {name: (folder / name).read_bytes() for name in NAMES}


def refusal(path) -> str:
    started = time.perf_counter()
    with pytest.raises(BundleError) as refused:
        read_bundle(path)
    assert time.perf_counter() - started < 20  # nothing waits for ever, also on a busy machine
    return str(refused.value)


def zipped(path, contents, **options):
    with zipfile.ZipFile(path, "w", **options) as archive, warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of names that come twice
        for name, content in contents:
            archive.writestr(name, content)
    return path


def lay(kind, place, tmp_path):
    """Something that is no file, at `place`."""
    place.unlink()
    if kind == "a pipe":
        os.mkfifo(place)
    elif kind == "a folder":
        place.mkdir()
    elif kind == "a socket":
        os.chdir(place.parent)
        with socket.socket(socket.AF_UNIX) as server:
            server.bind(place.name)
    else:
        (tmp_path / "elsewhere").write_bytes(b"{}")
        place.symlink_to("/dev/zero" if kind == "device" else tmp_path / "elsewhere")


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("kind", ["a pipe", "a folder", "a socket", "link", "device"])
def test_what_is_no_file_is_refused_without_waiting(kind, name, folder, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    lay(kind, folder / name, tmp_path)
    got = "a symbolic link" if kind in ("link", "device") else kind
    rule = f"must be a file of at most {LIMITS_BYTES[name]} bytes"
    assert refusal(folder) == (f"{folder / name}: {rule}, got {got}; copy or make the bundle again")


def test_a_pipe_or_a_device_in_a_bundles_place_is_refused(tmp_path):
    os.mkfifo(tmp_path / "pipe.zip")
    assert "got a pipe" in refusal(tmp_path / "pipe.zip")
    assert "got a device" in refusal("/dev/zero")


@pytest.mark.parametrize("where", ["folder", "zip"])
def test_a_manifest_of_sixty_megabytes_is_refused_unread(where, folder, contents, tmp_path):
    long = {**contents, "manifest.json": b" " * 60_000_000 + contents["manifest.json"]}
    if where == "folder":
        (folder / "manifest.json").write_bytes(long["manifest.json"])
        assert "must be a file of at most 1048576 bytes, got more than" in refusal(folder)
    else:
        path = zipped(tmp_path / "long.zip", long.items(), compression=zipfile.ZIP_DEFLATED)
        assert "manifest.json: must be at most 1048576 bytes, got 6000" in refusal(path)


def test_a_member_that_is_longer_than_the_zip_says_is_refused(contents, tmp_path):
    """A bomb: 40 MB of zeros behind a stated size of 100 bytes."""
    bomb = {**contents, "manifest.json": b"\0" * 40_000_000}
    path = zipped(tmp_path / "bomb.zip", bomb.items(), compression=zipfile.ZIP_DEFLATED)
    stated = struct.pack("<L", 40_000_000)
    path.write_bytes(path.read_bytes().replace(stated, struct.pack("<L", 100)))
    assert refusal(path).startswith(f"{path}: ")


@pytest.mark.parametrize("method", [zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA])
def test_other_compressions_are_refused(method, contents, tmp_path):
    path = zipped(tmp_path / "kernel.zip", contents.items(), compression=method)
    assert f"manifest.json: must be stored or deflated, got method {method}" in refusal(path)


def set_flag(path, bit):
    """Set a bit of the flags of every member, in the directory and before each member."""
    content = bytearray(path.read_bytes())
    for signature, offset in ((b"PK\x01\x02", 8), (b"PK\x03\x04", 6)):
        place = content.find(signature)
        while place >= 0:
            content[place + offset + bit // 8] |= 1 << bit % 8
            place = content.find(signature, place + 1)
    path.write_bytes(content)


def test_an_encrypted_member_is_refused(contents, tmp_path):
    path = zipped(tmp_path / "kernel.zip", contents.items())
    set_flag(path, 0)
    assert "manifest.json: must be stored or deflated, got an encrypted one" in refusal(path)


def test_names_that_are_no_utf8_are_refused(contents, tmp_path):
    path = zipped(tmp_path / "kernel.zip", contents.items())
    path.write_bytes(path.read_bytes().replace(b"kernel.ptx", b"kernel.p\xff\xff"))
    set_flag(path, 11)
    assert "must be a whole zip file, got 'utf-8' codec" in refusal(path)


def test_a_name_that_comes_twice_is_refused(contents, tmp_path):
    twice = [*contents.items(), ("kernel.ptx", b"// another")]
    assert "must hold each name once, got 1 again" in refusal(zipped(tmp_path / "k.zip", twice))


def test_a_zip_of_many_members_is_refused_unread(contents, tmp_path):
    many = [*contents.items(), *((f"{i}", b"") for i in range(5_000))]
    path = zipped(tmp_path / "many.zip", many)
    assert "must have at most 256 members, got 5003 in a directory of" in refusal(path)


def test_a_zip_of_the_large_kind_and_one_with_a_comment_are_refused(contents, tmp_path):
    path = zipped(tmp_path / "kernel.zip", contents.items())
    plain = path.read_bytes()
    path.write_bytes(plain[:-22] + b"PK\x06\x07" + b"\0" * 16 + plain[-22:])
    assert "must be a plain zip file, got zip64" in refusal(path)
    with zipfile.ZipFile(path, "w") as archive:
        archive.comment = b"PK\x05\x06" + b"\0" * 18
    assert str(path) in refusal(path)


@pytest.mark.parametrize(
    "text",
    [
        "[" * 500 + "]" * 500,
        '{"a": ' * 70 + "1" + "}" * 70,
        '{"grid": ' + "9" * 30 + "}",
        '{"grid": ' + "9" * 5000 + "}",
        '{"format": 1, "format": 2}',
        '{"entry": "\\ud800"}',
        '{"entry": "\xff"}'.encode("latin-1"),
        '{"format": 1}'.encode("utf-16"),
    ],
)
def test_json_that_readers_take_differently_is_refused(text, tmp_path):
    content = text if isinstance(text, bytes) else text.encode()
    (tmp_path / "manifest.json").write_bytes(content)
    assert "manifest.json: must be JSON, got " in refusal(tmp_path)


def test_ptx_that_is_no_utf8_is_refused(folder):
    import hashlib

    ptx = (folder / "kernel.ptx").read_bytes() + b"// \xff\n"
    (folder / "kernel.ptx").write_bytes(ptx)
    manifest = json.loads((folder / "manifest.json").read_text())
    manifest["hashes"]["kernel.ptx"] = hashlib.sha256(ptx).hexdigest()
    manifest["hashes"]["manifest.json"] = manifest_hash(manifest)
    (folder / "manifest.json").write_text(json.dumps(manifest))
    assert "kernel.ptx: must be UTF-8, got 'utf-8' codec can't decode" in refusal(folder)


def test_paths_that_name_nothing_are_refused(tmp_path):
    for path in (tmp_path / "a\0b", tmp_path / ("x" * 300), tmp_path / "file" / "inside"):
        (tmp_path / "file").write_text("")
        assert str(path) in refusal(path)
