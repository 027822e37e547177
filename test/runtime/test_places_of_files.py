"""Files replace files; links stay, and devices, pipes and open files are written to."""

import errno
import os
import threading
from pathlib import Path

import pytest

from tilewright.runtime.atomic import is_stream, write_file, write_folder


def test_a_file_is_replaced_behind_its_links(tmp_path):
    (tmp_path / "folder").mkdir()
    real, link, second = tmp_path / "folder" / "real", tmp_path / "link", tmp_path / "second"
    link.symlink_to("folder/real")
    second.symlink_to(link)
    for content in (b"new", b"newer"):  # at first the links name nothing
        write_file(second, content)
        assert real.read_bytes() == content
        assert not real.is_symlink() and link.is_symlink() and second.is_symlink()
    assert sorted(os.listdir(tmp_path)) == ["folder", "link", "second"]


def test_an_entry_of_a_cache_is_replaced_and_not_what_it_names(tmp_path):
    other, entry = tmp_path / "other", tmp_path / "entry"
    other.write_bytes(b"kept")
    entry.symlink_to(other)
    write_file(entry, b"new", 0o600, synced=False)
    assert other.read_bytes() == b"kept" and entry.read_bytes() == b"new"
    assert not entry.is_symlink()


def test_a_folder_is_replaced_behind_its_link(tmp_path):
    link = tmp_path / "link"
    (tmp_path / "real").mkdir()
    link.symlink_to("real")
    write_folder(link, {"a": b"1"})
    assert link.is_symlink() and (tmp_path / "real" / "a").read_bytes() == b"1"


def test_links_in_a_circle_are_refused(tmp_path):
    loop = tmp_path / "loop"
    loop.symlink_to(loop)
    with pytest.raises(OSError, match="loop") as refused:
        write_file(loop, b"new")
    assert refused.value.errno == errno.ELOOP and loop.is_symlink()


def test_a_pipe_is_written_to(tmp_path):
    pipe, got = tmp_path / "pipe", []
    os.mkfifo(pipe)
    reader = threading.Thread(target=lambda: got.append(pipe.read_bytes()))
    reader.start()
    write_file(pipe, b"through")
    reader.join()
    assert got == [b"through"] and pipe.is_fifo()


def test_an_open_file_is_written_to(tmp_path):
    place = tmp_path / "place"
    with place.open("w+b") as file:
        before = place.stat().st_ino
        link = tmp_path / "stdout"
        link.symlink_to(f"/proc/self/fd/{file.fileno()}")
        write_file(link, b"content")
        assert file.read() == b"content" and place.stat().st_ino == before
    assert link.is_symlink()


def node(path, minor):
    """A device like those in /dev, if this user may make one."""
    try:
        os.mknod(path, 0o20666, os.makedev(1, minor))
    except PermissionError:
        pytest.skip("this user makes no devices")
    return path


def test_a_device_is_written_to_and_stays(tmp_path):
    null, full = node(tmp_path / "null", 3), node(tmp_path / "full", 7)
    write_file(null, b"nothing")
    with pytest.raises(OSError, match="full") as refused:
        write_file(full, b"something")
    assert refused.value.errno == errno.ENOSPC
    assert null.is_char_device() and full.is_char_device()


def test_a_file_is_no_stream(tmp_path):
    path = tmp_path / "file"
    assert not is_stream(path)
    path.write_bytes(b"")
    assert not is_stream(path) and is_stream(Path("/dev/null"))
