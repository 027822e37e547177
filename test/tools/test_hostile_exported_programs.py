"""Files of torch.export.save that would run code while torch loads them: none does here."""

import io
import json
import pickle
import zipfile
from contextlib import suppress
from pathlib import Path

import pytest
import torch
from torch import nn

from tilewright.compiler.importers.torch_module import exported_program
from tilewright.dialects.errors import CompileError


class Payload:
    """Unpickled, it leaves a file."""

    def __init__(self, mark):
        self.mark = str(mark)

    def __reduce__(self):
        return Path.touch, (Path(self.mark),)


@pytest.fixture(scope="module")
def members(tmp_path_factory):
    """The members of a good file, by their names."""
    path = tmp_path_factory.mktemp("good") / "good.pt2"
    module = nn.Linear(16, 8, dtype=torch.bfloat16)
    torch.export.save(torch.export.export(module, (torch.ones(4, 16, dtype=torch.bfloat16),)), path)
    with zipfile.ZipFile(path) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def write(path, members, compression=zipfile.ZIP_STORED):
    with zipfile.ZipFile(path, "w", compression) as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    return path


def saved(value):
    buffer = io.BytesIO()
    torch.save(value, buffer)
    return buffer.getvalue()


def named(members, end):
    return next(name for name in members if name.endswith(end))


def change(members, end, edit):
    value = json.loads(members[named(members, end)])
    edit(value)
    members[named(members, end)] = json.dumps(value).encode()


def pickled_examples(members, mark):
    members[named(members, "sample_inputs/model.pt")] = saved(((Payload(mark),), {}))


def pickled_weight(members, mark):
    members[named(members, "weights/weight_0")] = saved(Payload(mark))
    change(members, "weights_config.json", lambda c: c["config"]["weight"].update(use_pickle=True))


def opaque_constant(members, mark):
    constants = named(members, "constants_config.json")
    folder = constants.rpartition("/")[0]
    members[f"{folder}/opaque_obj_0"] = pickle.dumps(Payload(mark))
    entry = {"path_name": "opaque_obj_0", "is_param": False, "use_pickle": True}
    change(members, "constants_config.json", lambda c: c["config"].update(x=entry))


def guards(members, mark):
    text = f"__import__('pathlib').Path({str(mark)!r}).touch() or True"
    change(members, "models/model.json", lambda program: program.update(guards_code=[text]))


def expression(members, mark):
    text = f"__import__('pathlib').Path({str(mark)!r}).touch()"

    def edit(program):
        (values,) = [
            value
            for name, value in program["graph_module"]["graph"]["tensor_values"].items()
            if name == "input" or name == "x"
        ]
        values["sizes"][0] = {"as_expr": {"expr_str": text, "hint": None}}

    change(members, "models/model.json", edit)


def foreign_operator(members, mark):
    def edit(program):
        program["graph_module"]["graph"]["nodes"][0]["target"] = "torch.ops.evil.run.default"

    change(members, "models/model.json", edit)


HOSTILE = [pickled_examples, pickled_weight, opaque_constant, guards, expression, foreign_operator]


@pytest.mark.parametrize("attack", HOSTILE)
def test_no_code_of_a_file_runs(attack, members, tmp_path):
    mark = tmp_path / "mark"
    hostile = dict(members)
    attack(hostile, mark)
    with pytest.raises(CompileError, match=r"; give --trust \(trust=True\) if you know who"):
        exported_program(write(tmp_path / "hostile.pt2", hostile))
    assert not mark.exists()


def test_a_graph_with_a_key_twice_is_refused(members, tmp_path):
    hostile = dict(members)
    name = named(hostile, "models/model.json")
    hostile[name] = hostile[name].replace(b"{", b'{"graph_module": {}, ', 1)
    with pytest.raises(CompileError, match="got: the key 'graph_module' twice"):
        exported_program(write(tmp_path / "hostile.pt2", hostile))


def test_what_is_trusted_does_run(members, tmp_path):
    mark = tmp_path / "mark"
    hostile = dict(members)
    pickled_examples(hostile, mark)
    path = write(tmp_path / "hostile.pt2", hostile)
    with suppress(CompileError):  # whether it then holds a program is not the question
        exported_program(path, trust=True)
    assert mark.exists()


def test_compressed_members_are_refused(members, tmp_path):
    path = write(tmp_path / "bomb.pt2", members, zipfile.ZIP_DEFLATED)
    with pytest.raises(CompileError, match="members must be stored as they are"):
        exported_program(path)


@pytest.mark.parametrize("end", ["models/model.json", "weights_config.json"])
@pytest.mark.parametrize("content", [b"[]", b"{", b"[" * 100_000, b"\xff", b"{}"])
def test_damaged_descriptions_are_refused(end, content, members, tmp_path):
    damaged = dict(members)
    damaged[named(damaged, end)] = content
    with pytest.raises(CompileError):
        exported_program(write(tmp_path / "damaged.pt2", damaged))


def test_a_good_file_is_loaded_as_it_was(members, tmp_path):
    module, (x,) = exported_program(write(tmp_path / "good.pt2", members))
    assert x.shape == (4, 16)
    assert module(x).shape == (4, 8)


def test_the_command_takes_the_flag(tilewright, members, tmp_path):
    hostile = dict(members)
    pickled_examples(hostile, tmp_path / "mark")
    path = write(tmp_path / "hostile.pt2", hostile)
    assert "example inputs must be tensors alone" in tilewright("compile", path).err
    assert not (tmp_path / "mark").exists()
    tilewright("compile", path, "--trust")
    assert (tmp_path / "mark").exists()
