"""The cache of compiled kernels: what finds an entry, what doesn't, and what replaces one."""

import os
import re
import stat
import subprocess
import sys
import warnings
from dataclasses import replace

import pytest

from tilewright.compiler.bundle_writer import OWN_NAME, read_entry
from tilewright.compiler.calls.kernels import kernel_cache
from tilewright.compiler.calls.kernels.kernel_cache import cached_bundle, describe_request, digest
from tilewright.compiler.own_sources import digest_of
from tilewright.compiler.spec import MatmulSpec
from tilewright.dialects.errors import OptionError
from tilewright.dialects.record import record
from tilewright.dialects.target import TARGETS, find_target
from tilewright.passes import PASSES
from tilewright.runtime import read_bundle
from tilewright.runtime.bundles.manifest import BundleError

SPEC = MatmulSpec(64, 32, 64)
PIPELINE = "normalize,tiling{tile=64x32x64},lower-to-nvvm"
ONE_PROCESS = f"""
from tilewright.compiler.calls.kernels.kernel_cache import cached_bundle
from tilewright.compiler.spec import MatmulSpec
print(cached_bundle(MatmulSpec(64, 32, 64), "sm_100a", "{PIPELINE}").manifest["hashes"])
"""


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.setenv(kernel_cache.VARIABLE, str(tmp_path / "cache"))
    cached_bundle.cache_clear()
    yield tmp_path / "cache"
    cached_bundle.cache_clear()


@pytest.fixture
def compilations(monkeypatch):
    """How often the compiler was asked, by spec."""
    asked, compile_matmul = [], kernel_cache.compile_matmul

    def count(spec, **options):
        asked.append(spec)
        return compile_matmul(spec, **options)

    monkeypatch.setattr(kernel_cache, "compile_matmul", count)
    return asked


def find(spec=SPEC):
    """As another process would: nothing is left in memory."""
    cached_bundle.cache_clear()
    return cached_bundle(spec, "sm_100a", PIPELINE)


def test_memory_and_disk_are_asked_before_the_compiler(folder, compilations):
    first = cached_bundle(SPEC, "sm_100a", PIPELINE)
    assert cached_bundle(SPEC, "sm_100a", PIPELINE) is first
    again = find()
    assert (again.manifest, again.cubin) == (first.manifest, first.cubin)
    assert compilations == [SPEC]
    assert [path.suffix for path in folder.iterdir()] == [".zip"]


def test_a_kernel_is_not_written_where_a_pass_is_entered_meanwhile(folder, monkeypatch):
    """By another thread: it may be of a pass that no other process has."""
    compile_matmul = kernel_cache.compile_matmul

    def meanwhile(spec, **options):
        monkeypatch.setitem(PASSES, "tiling", PASSES["tiling"])
        return compile_matmul(spec, **options)

    monkeypatch.setattr(kernel_cache, "compile_matmul", meanwhile)
    find()
    assert list(folder.iterdir()) == []


def test_kernels_of_a_users_pass_are_not_kept_for_other_processes(folder, monkeypatch):
    bundle = find()
    kernel_cache.keep("ours", bundle)
    monkeypatch.setitem(PASSES, "tiling", type("Mine", (PASSES["tiling"],), {}))
    assert kernel_cache.keep("theirs", bundle) is bundle
    assert (folder / "ours.zip").exists() and not (folder / "theirs.zip").exists()


@pytest.mark.parametrize("damage", ["cut", "foreign", "empty", "bit"])
def test_a_damaged_entry_is_compiled_again_and_replaced(folder, compilations, damage):
    find()
    (entry,) = folder.iterdir()
    whole = entry.read_bytes()
    bit = whole[:700] + bytes([whole[700] ^ 4]) + whole[701:]
    entry.write_bytes({"cut": whole[:-99], "foreign": b"%PDF", "empty": b"", "bit": bit}[damage])
    with pytest.warns(UserWarning, match="cache: an entry is compiled again and replaced, as it"):
        find()
    assert entry.read_bytes() == whole
    assert len(compilations) == 2


def test_an_entry_of_another_kernel_is_replaced(folder, compilations):
    find()
    (entry,) = folder.iterdir()
    other = MatmulSpec(64, 64, 64)
    find(other)
    (another,) = set(folder.iterdir()) - {entry}
    entry.write_bytes(another.read_bytes())
    with pytest.warns(UserWarning, match="cache: an entry is compiled again and replaced, as it"):
        assert find().manifest["spec"] == SPEC.as_dict()
    assert read_bundle(entry).manifest["spec"] == SPEC.as_dict()
    assert compilations == [SPEC, other, SPEC]


def test_processes_at_the_same_time_agree_and_leave_one_entry(folder):
    command = [sys.executable, "-c", ONE_PROCESS]
    running = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(2)]
    printed = {process.communicate()[0] for process in running}
    assert [process.returncode for process in running] == [0, 0]
    assert len(printed) == 1
    assert len(list(folder.iterdir())) == 1


def test_a_folder_that_cannot_be_written_is_warned_of(tmp_path, monkeypatch):
    (tmp_path / "file").write_text("in the way")
    monkeypatch.setenv(kernel_cache.VARIABLE, str(tmp_path / "file"))
    with pytest.warns(UserWarning) as warned:
        assert find().manifest["spec"] == SPEC.as_dict()
    assert str(warned[0].message) == (
        f"cache: {tmp_path}/file must be writable, got Not a directory; set TILEWRIGHT_CACHE"
    )
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        cached_bundle(SPEC, "sm_100a", PIPELINE)


def test_all_that_a_kernel_follows_from_is_in_the_key(monkeypatch):
    request = describe_request(SPEC, "sm_100a", PIPELINE)
    assert set(request["tools"]) == {"tilewright", "mlir", "llvm", "ptxas"}
    changed = [
        describe_request(MatmulSpec(64, 32, 64, b_major="n"), "sm_100a", PIPELINE),
        describe_request(SPEC, "sm_90a", PIPELINE),
        describe_request(SPEC, "sm_100a", PIPELINE.replace("64}", "32}")),
        {**request, "tools": {**request["tools"], "ptxas": "13.6.1"}},
        {**request, "sources": "0" * 64},
    ]
    assert len({digest(each) for each in [request, *changed]}) == 6
    assert digest(request) == digest(describe_request(SPEC, "sm_100a", PIPELINE))


def test_sources_are_other_ones_by_name_and_content(tmp_path):
    seen = set()
    files = {"passes/a.py": "1", "passes/b.py": "2", "runtime/c.py": "3"}
    for change in ({}, {"passes/a.py": "4"}, {"runtime/c.py": "5"}, {"dialects/x/d.py": ""}):
        for name, content in (files | change).items():
            (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / name).write_text(content)
        seen.add(digest_of(tmp_path))
    (tmp_path / "passes" / "a.py").rename(tmp_path / "passes" / "e.py")
    assert len({*seen, digest_of(tmp_path)}) == 5


def test_a_chip_that_is_entered_anew_has_other_kernels(monkeypatch):
    request = describe_request(SPEC, "sm_100a", PIPELINE)
    monkeypatch.setitem(TARGETS, "sm_100a", replace(TARGETS["sm_100a"], gpu="another"))
    assert describe_request(SPEC, "sm_100a", PIPELINE) != request
    monkeypatch.undo()
    assert describe_request(SPEC, "sm_100a", PIPELINE) == request


def test_a_gpu_is_the_chip_that_was_entered_anew(monkeypatch):
    monkeypatch.setitem(TARGETS, "sm_90a", replace(TARGETS["sm_90a"], multiprocessors=16))
    assert find_target("h200") == TARGETS["sm_90a"]
    assert find_target("h100") == replace(TARGETS["sm_90a"], gpu="h100")
    assert find_target("b200").multiprocessors != 16


@pytest.mark.parametrize(("entry", "got"), [(TARGETS["sm_90a"], "sm_90a"), ("sm_90a", "str")])
def test_a_chip_is_entered_by_its_own_name(entry, got):
    with pytest.raises(OptionError) as refused:
        TARGETS["mine"] = entry
    rule = "TARGETS['mine'] must be a Target with chip='mine'"
    assert refused.value.message == f"target: {rule}, got {got}" and "mine" not in TARGETS


def test_kernels_of_a_users_pass_are_of_the_pass_as_it_is_now(folder, monkeypatch):
    asked = []

    def compile_(source, target, pipeline, math, named, path):
        asked.append(path)
        return PASSES["mine"]

    monkeypatch.setattr(kernel_cache, "_compile", compile_)
    passes = f"{PIPELINE},mine"
    for made in (record(type("Mine", (), {})), record(type("Mine", (), {}))):
        monkeypatch.setitem(PASSES, "mine", made)
        assert cached_bundle(SPEC, "sm_100a", passes) is made
        assert cached_bundle(SPEC, "sm_100a", passes) is made
    assert asked == [None, None]  # as nothing is kept on disk


def test_the_folder_is_the_users_unless_named(monkeypatch, tmp_path):
    monkeypatch.delenv(kernel_cache.VARIABLE, raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert kernel_cache.cache_folder() == tmp_path / "tilewright"
    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    assert kernel_cache.cache_folder() == tmp_path / "home" / ".cache" / "tilewright"


@pytest.fixture
def no_compiler(monkeypatch):
    """Compiles nothing: what a cache does is told by what it asks for."""
    asked = []

    def compile_(spec, target, pipeline, math, named, path):
        asked.append(path)
        return "compiled"

    monkeypatch.setattr(kernel_cache, "_compile", compile_)
    return asked


def refusal_of(folder, monkeypatch):
    """What is warned of when that folder is named, and the place that was given to the compiler."""
    monkeypatch.setenv(kernel_cache.VARIABLE, str(folder))
    with pytest.warns(UserWarning) as warned:
        assert find() == "compiled"
    cached_bundle.cache_clear()
    return str(warned[0].message)


@pytest.mark.parametrize("mode", [0o720, 0o702, 0o777, 0o775])
def test_a_folder_that_others_can_write_is_not_used(mode, tmp_path, no_compiler, monkeypatch):
    folder = tmp_path / "cache"
    folder.mkdir()
    folder.chmod(mode)
    assert refusal_of(folder, monkeypatch) == (
        f"cache: {folder}: must be writable by you alone, got mode {mode:04o};"
        f" chmod go-w '{folder}', or set TILEWRIGHT_CACHE"
    )
    assert no_compiler == [None]
    assert list(folder.iterdir()) == []


def test_a_folder_below_one_that_others_can_write_is_not_used(tmp_path, no_compiler, monkeypatch):
    (tmp_path / "open").mkdir()
    (tmp_path / "open").chmod(0o777)
    message = refusal_of(tmp_path / "open" / "cache", monkeypatch)
    assert message.startswith(f"cache: {tmp_path}/open: must be writable by you alone, got mode")
    (tmp_path / "open").chmod(0o1777)  # as /tmp is
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        find()


def test_a_folder_of_somebody_else_is_not_used(tmp_path, no_compiler, monkeypatch):
    (tmp_path / "cache").mkdir()
    mine = os.geteuid()
    os.chown(tmp_path / "cache", 65_534, -1) if mine == 0 else monkeypatch.setattr(
        os, "geteuid", lambda: mine + 1
    )
    message = refusal_of(tmp_path / "cache", monkeypatch)
    assert ": must belong to you (user " in message
    assert message.endswith("; use a folder of your own, or set TILEWRIGHT_CACHE")


def test_a_link_in_the_folders_place_is_not_followed(tmp_path, no_compiler, monkeypatch):
    (tmp_path / "elsewhere").mkdir(mode=0o700)
    (tmp_path / "cache").symlink_to(tmp_path / "elsewhere")
    assert "cache: must be a folder, got a symbolic link; name where it leads" in refusal_of(
        tmp_path / "cache", monkeypatch
    )


@pytest.mark.parametrize("umask", [0o000, 0o002, 0o077, 0o377])
def test_folder_and_entries_are_the_users_alone_whatever_the_umask(umask, tmp_path, monkeypatch):
    from tilewright.runtime.atomic import write_file
    from tilewright.runtime.private_folders import make_private

    before = os.umask(umask)
    try:
        make_private(tmp_path / "a" / "cache")
        write_file(tmp_path / "a" / "cache" / "entry.zip", b"content", kernel_cache.FILE_MODE)
    finally:
        os.umask(before)
    modes = [0o700, 0o700, 0o600]
    places = [tmp_path / "a", tmp_path / "a" / "cache", tmp_path / "a" / "cache" / "entry.zip"]
    assert [stat.S_IMODE(place.stat().st_mode) for place in places] == modes


def test_a_written_entry_is_the_users_alone(folder):
    before = os.umask(0)
    try:
        find()
    finally:
        os.umask(before)
    (entry,) = folder.iterdir()
    assert stat.S_IMODE(entry.stat().st_mode) == 0o600
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700


@pytest.mark.parametrize("kind", ["writable", "pipe", "link", "lzma"])
def test_an_entry_that_cannot_be_believed_is_replaced(kind, folder, tmp_path, no_compiler):
    folder.mkdir(mode=0o700)
    request = describe_request(SPEC, "sm_100a", PIPELINE)
    entry = folder / f"{digest(request)}.zip"
    if kind == "pipe":
        os.mkfifo(entry)
    elif kind == "link":
        entry.symlink_to(tmp_path / "elsewhere.zip")
    else:
        import zipfile

        with zipfile.ZipFile(entry, "w", compression=zipfile.ZIP_LZMA) as archive:
            archive.writestr("manifest.json", b"{}" * 100)
        entry.chmod(0o666 if kind == "writable" else 0o600)
    with pytest.warns(UserWarning, match="cache: an entry is compiled again and replaced, as it"):
        assert find() == "compiled"
    assert no_compiler == [entry]


def test_what_killed_processes_left_is_removed_when_it_is_an_hour_old(tmp_path):
    from tilewright.runtime.atomic import write_file

    names = [".tilewright-abcd1234", ".tilewright-old_____", ".tilewright-fresh__1", ".tilewrights"]
    for name in names:
        (tmp_path / name).mkdir()
        (tmp_path / name / "part").write_text("x")
    (tmp_path / names[1] / "old").mkdir()  # the only copy of a bundle that was being replaced
    for name in (*names[:2], names[3]):
        os.utime(tmp_path / name, (1, 1))
    write_file(tmp_path / "out", b"content")
    assert sorted(os.listdir(tmp_path)) == sorted([*names[1:], "out"])


def test_an_entry_in_the_place_of_another_is_told_and_replaced(folder, compilations):
    """Whatever it holds: a manifest does not have the text of an epilogue."""
    find()
    (entry,) = folder.iterdir()
    other = folder / f"{'0' * 64}.zip"
    other.write_bytes(entry.read_bytes())
    other.chmod(0o600)
    rule = f"must be the kernel of that name, got '{entry.name}'; remove it"
    with pytest.raises(BundleError, match=re.escape(f"{other}: {rule}")):
        read_entry(other)
    with pytest.warns(UserWarning, match=f"{other.name}: must be the kernel of that name"):
        assert kernel_cache._entry(other) is None


def test_an_entry_whose_name_is_torn_is_told_and_replaced(folder, compilations):
    """No hash of the bundle's covers it."""
    find()
    (entry,) = folder.iterdir()
    content = entry.read_bytes()
    at = content.index(OWN_NAME.encode()) + len(OWN_NAME)
    entry.write_bytes(content[:at] + bytes(8) + content[at + 8 :])
    with pytest.warns(UserWarning, match="must be the kernel of that name, got 'a torn one'"):
        find()
    assert compilations == [SPEC, SPEC]
    find()
    assert compilations == [SPEC, SPEC]
