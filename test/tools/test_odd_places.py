"""Where a command writes when the place is odd: full disks, names that are no text, other files,
several commands at once, and signals while it is loading."""

import os
import signal
import subprocess
import sys
import zipfile

import pytest

from tilewright.compiler import driver
from tilewright.runtime.bundles.bundle import read_bundle
from tilewright.tools.command_line import own_process

PROGRAM = [sys.executable, "-m", "tilewright.tools.main"]
SPEC = ["--m", "16", "--n", "16", "--k", "32", "--target", "sm_90a"]


def ran(*words, cwd, **more):
    """Status and standard error of a command in a process of its own."""
    found = subprocess.run([*PROGRAM, *words], cwd=cwd, capture_output=True, **more)
    assert b"Traceback" not in found.stderr and b"internal error" not in found.stderr
    lines = found.stderr.decode(errors="surrogateescape").splitlines()
    return found.returncode, [line for line in lines if not line.endswith(" …")]


def test_a_file_that_is_no_bundle_is_not_replaced_by_one(tmp_path, tilewright):
    (tmp_path / "thesis.zip").write_text("three years")
    found = tilewright("compile", *SPEC, "--emit", "bundle", "-o", tmp_path / "thesis.zip")
    rule = "only a bundle can be replaced, got a file; choose another path"
    assert (found.status, found.err) == (1, f"error: {tmp_path / 'thesis.zip'}: {rule}\n")
    assert (tmp_path / "thesis.zip").read_text() == "three years"


def test_a_pipe_is_no_bundle_and_nobody_waits_for_it(tmp_path, tilewright):
    os.mkfifo(tmp_path / "pipe.zip")
    found = tilewright("compile", *SPEC, "--emit", "bundle", "-o", tmp_path / "pipe.zip")
    rule = "only a bundle can be replaced, got a file; choose another path"
    assert (found.status, found.err) == (1, f"error: {tmp_path / 'pipe.zip'}: {rule}\n")


@pytest.mark.parametrize("command", [["compile", "--emit", "bundle"], ["run"]])
def test_a_place_of_others_is_refused_before_the_work(command, tmp_path, tilewright, monkeypatch):
    monkeypatch.setattr(driver, "compile_matmul", None)
    (tmp_path / "manifest.json").write_text('{"name": "an app"}')
    (tmp_path / "index.html").write_text("")
    found = tilewright(*command, *SPEC, "-o", tmp_path)
    rule = "only a bundle can be replaced, got one with 'index.html' in it; choose another path"
    assert (found.status, found.err) == (1, f"error: {tmp_path}: {rule}\n")


def test_a_link_to_itself_is_no_file(tmp_path, tilewright):
    loop = tmp_path / "loop.mlir"
    loop.symlink_to(loop)
    found = tilewright("run", loop)
    rule = "must be a readable .mlir file, got Too many levels of symbolic links; check the path"
    assert (found.status, found.err) == (1, f"error: {loop}: {rule}\n")


@pytest.mark.parametrize("flag", ["--trace", "--report-json", "-o"])
def test_links_that_lead_nowhere_are_refused_before_the_work(
    flag, tmp_path, tilewright, monkeypatch
):
    monkeypatch.setattr(driver, "compile_matmul", None)
    (tmp_path / "there").symlink_to(tmp_path / "back")
    (tmp_path / "back").symlink_to(tmp_path / "there")
    (tmp_path / "far").symlink_to(tmp_path / "none" / "file")
    found = tilewright("run", *SPEC, flag, tmp_path / "there")
    rule = "must be usable, got Too many levels of symbolic links; use another path"
    assert (found.status, found.err) == (1, f"error: {tmp_path / 'there'}: {rule}\n")
    if flag == "-o":  # whose folder is made
        return
    found = tilewright("run", *SPEC, flag, tmp_path / "far")
    assert f"the folder '{tmp_path / 'none'}' must exist, got none" in found.err


def test_a_folder_that_is_a_file_is_said_to_be_one(tmp_path, tilewright):
    (tmp_path / "file").write_text("")
    found = tilewright("compile", *SPEC, "-o", tmp_path / "file" / "k.ptx")
    assert f"the folder '{tmp_path}/file' must exist, got a file; choose another" in found.err


def test_an_empty_file_and_a_damaged_bundle_are_replaced(tmp_path, tilewright):
    in_its_directory = b"PK" + b"\0" * 44 + b"PK\5\6" + b"\0" * 4 + b"\1\0\1\0\x2e" + b"\0" * 9
    for content in (b"", b"PK damaged", in_its_directory):
        (tmp_path / "k.zip").write_bytes(content)
        assert (
            tilewright("compile", *SPEC, "--emit", "bundle", "-o", tmp_path / "k.zip").status == 0
        )
        assert zipfile.is_zipfile(tmp_path / "k.zip")


@pytest.mark.parametrize("emit", ["ptx", "bundle"])
def test_the_sign_for_stdout_is_no_file(emit, tmp_path, tilewright, monkeypatch):
    monkeypatch.chdir(tmp_path)
    found = tilewright("compile", *SPEC, "--emit", emit, "-o", "-")
    rule = "must be a path, got what stands for stdout; leave it out"
    assert (found.status, found.err) == (1, f"error: -: {rule}\n")
    assert os.listdir(tmp_path) == []


def test_names_that_are_no_text_are_read_and_written(tmp_path):
    strange = os.fsdecode(b"\xff.mlir")
    (tmp_path / strange).write_text("module {}")
    status, err = ran("compile", strange, cwd=tmp_path)
    assert (status, err) == (1, ["error: normalize: the module must hold one func.func, got 0"])
    assert ran("compile", *SPEC, "-o", os.fsdecode(b"\xfe.ptx"), cwd=tmp_path) == (0, [])
    assert (tmp_path / os.fsdecode(b"\xfe.ptx")).stat().st_size > 1000


@pytest.mark.parametrize("name", ["k.zip", "k.ptx", "folder"])
def test_a_disk_without_room_leaves_what_was_there(name, tmp_path):
    """A limit of the file size stands for the disk: a kibibyte is less than any of these."""
    emit = ["--emit", "ptx" if name.endswith("ptx") else "bundle"]
    assert ran("compile", *SPEC, *emit, "-o", name, cwd=tmp_path) == (0, [])
    before = contents(tmp_path)
    words = " ".join([*PROGRAM, "compile", *SPEC, *emit, "-o", name])
    found = subprocess.run(
        ["bash", "-c", f"ulimit -f 1; {words}"],
        cwd=tmp_path,
        env=os.environ | {"PYTHONDONTWRITEBYTECODE": "1"},  # else cut off at the limit, and stay so
        capture_output=True,
        text=True,
    )
    assert found.returncode > 0 and "Traceback" not in found.stderr
    assert contents(tmp_path) == before


def contents(folder):
    """All files below a folder."""
    return {each: each.read_bytes() for each in folder.rglob("*") if each.is_file()}


@pytest.mark.parametrize("name", ["k.zip", "k"])
def test_commands_that_write_one_bundle_at_once_leave_that_of_one(name, tmp_path):
    words = [*PROGRAM, "compile", "--n", "16", "--k", "32", "--target", "sm_90a"]
    words += ["--emit", "bundle", "-o", name, "--m"]
    sizes = (16, 32, 48)
    running = [
        subprocess.Popen([*words, str(m)], cwd=tmp_path, stderr=subprocess.DEVNULL) for m in sizes
    ]
    assert [each.wait() for each in running] == [0, 0, 0]
    assert read_bundle(tmp_path / name).manifest["spec"]["m"] in sizes
    assert os.listdir(tmp_path) == [name]


@pytest.mark.parametrize(
    ("number", "told"), [(signal.SIGTERM, own_process.Ended), (signal.SIGINT, KeyboardInterrupt)]
)
def test_a_signal_counts_though_a_library_made_another_error_of_it(number, told, monkeypatch):
    """As numpy does, whose loading ends with an ImportError."""
    monkeypatch.setattr(own_process, "_asked", [])
    own_process.end_if_asked()
    with pytest.raises(told):
        own_process._ask(number, None)
    with pytest.raises(told):
        own_process.end_if_asked()


def printed_until(program, number):
    """What a program printed that a signal ends, with one line for an interruption and no other."""
    found = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    interrupted = number == signal.SIGINT
    assert found.returncode == (130 if interrupted else -number)
    assert found.stderr == ("error: interrupted\n" if interrupted else "")
    return found.stdout


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
@pytest.mark.parametrize("error", ["raise ImportError('of datetime')", "pass", "raise"])
def test_a_signal_that_a_library_swallows_ends_the_program(number, error, tmp_path):
    program = f"""
import os, signal, sys
signal.signal(signal.SIGINT, signal.default_int_handler)
from tilewright.tools import main
def strange(words, isolate):
    try:
        os.kill(os.getpid(), {int(number)})
    except BaseException:
        {error}
    return 0
main._dispatch = strange
sys.argv = ["tilewright"]
sys.exit(main.main())
"""
    printed_until(program, number)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_waits_until_native_code_is_loaded(number):
    """Which ends the process where Python raises in it, as MLIR's does."""
    program = f"""
import os, signal, sys, time
from importlib.machinery import ExtensionFileLoader
signal.signal(signal.SIGINT, signal.default_int_handler)
from tilewright.tools import main
class Loader(ExtensionFileLoader):
    def exec_module(self, module):
        os.kill(os.getpid(), {int(number)})
        time.sleep(0.2)  # it comes again
        print("loaded", flush=True)
def loading(words, isolate):
    Loader("native", "native.so").exec_module(None)
    time.sleep(60)
main._dispatch = loading
sys.argv = ["tilewright"]
sys.exit(main.main())
"""
    assert printed_until(program, number) == "loaded\n"
