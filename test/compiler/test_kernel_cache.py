"""The cache of compiled kernels: what finds an entry, what doesn't, and what replaces one."""

import subprocess
import sys
import warnings

import pytest

from tilewright.compiler import kernel_cache
from tilewright.compiler.kernel_cache import cached_bundle, describe_request, digest
from tilewright.compiler.spec import MatmulSpec
from tilewright.runtime import read_bundle

SPEC = MatmulSpec(64, 32, 64)
PIPELINE = "normalize,tiling{tile=64x32x64},lower-to-nvvm"
ONE_PROCESS = f"""
from tilewright.compiler.kernel_cache import cached_bundle
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
    from tilewright.compiler import driver

    asked, compile_matmul = [], driver.compile_matmul

    def count(spec, **options):
        asked.append(spec)
        return compile_matmul(spec, **options)

    monkeypatch.setattr(driver, "compile_matmul", count)
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


@pytest.mark.parametrize("damage", ["cut", "foreign", "empty", "bit"])
def test_a_damaged_entry_is_compiled_again_and_replaced(folder, compilations, damage):
    find()
    (entry,) = folder.iterdir()
    whole = entry.read_bytes()
    bit = whole[:700] + bytes([whole[700] ^ 4]) + whole[701:]
    entry.write_bytes({"cut": whole[:-99], "foreign": b"%PDF", "empty": b"", "bit": bit}[damage])
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
    assert find().manifest["spec"] == SPEC.as_dict()
    assert read_bundle(entry).manifest["spec"] == SPEC.as_dict()
    assert compilations == [SPEC, other, SPEC]


def test_processes_at_the_same_time_agree_and_leave_one_entry(folder):
    command = [sys.executable, "-c", ONE_PROCESS]
    running = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(3)]
    printed = {process.communicate()[0] for process in running}
    assert [process.returncode for process in running] == [0, 0, 0]
    assert len(printed) == 1
    assert len(list(folder.iterdir())) == 1


def test_a_folder_that_cannot_be_written_is_warned_of(tmp_path, monkeypatch):
    (tmp_path / "file").write_text("in the way")
    monkeypatch.setenv(kernel_cache.VARIABLE, str(tmp_path / "file"))
    with pytest.warns(UserWarning) as warned:
        assert find().manifest["spec"] == SPEC.as_dict()
    assert str(warned[0].message) == (
        f"cache: {tmp_path}/file must be writable, got File exists; set TILEWRIGHT_CACHE"
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


def test_the_folder_is_the_users_unless_named(monkeypatch, tmp_path):
    monkeypatch.delenv(kernel_cache.VARIABLE, raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert kernel_cache.cache_folder() == tmp_path / "tilewright"
    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    assert kernel_cache.cache_folder() == tmp_path / "home" / ".cache" / "tilewright"
