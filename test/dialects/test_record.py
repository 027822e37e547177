"""A record does what a frozen dataclass does."""

import copy
import dataclasses
import inspect
import pickle
from typing import ClassVar

import pytest

from tilewright.compiler.spec import MatmulSpec
from tilewright.dialects.record import record


@record
class Box:
    rows: int
    columns: int = 8
    names: list[str] = dataclasses.field(default_factory=list)
    kind: ClassVar[str] = "box"

    def __post_init__(self):
        if self.rows < 1:
            raise ValueError("no rows")

    @property
    def size(self):
        return self.rows * self.columns


@record
class Named(Box):
    name: str = ""

    def __repr__(self):
        return self.name


@dataclasses.dataclass(frozen=True)
class Frozen:
    rows: int
    columns: int = 8


@record
class Quick:
    rows: int
    columns: int = 8


def test_values_come_by_place_by_name_and_by_default():
    for made in (Box(2), Box(rows=2), Box(2, 8), Box(2, names=[], columns=8)):
        assert (made.rows, made.columns, made.names, made.size) == (2, 8, [], 16)
    assert Box(1).names is not Box(1).names
    assert Named(1, 2, [], "a").name == "a"
    assert Box(1).kind == "box"


@pytest.mark.parametrize(
    ("values", "named", "message"),
    [
        ((), {}, "Box needs a value for 'rows'"),
        ((1, 2, [], 4), {}, "Box takes 3 values, got 4"),
        ((1,), {"rows": 2}, "Box takes no 'rows' here"),
        ((1,), {"row": 2, "kind": 3}, "Box takes no 'row', 'kind' here"),
    ],
)
def test_other_values_are_refused(values, named, message):
    with pytest.raises(TypeError, match=f"^{message}$"):
        Box(*values, **named)


@pytest.mark.parametrize("left_out", ["init", "repr", "compare", "hash", "kw_only"])
def test_fields_that_a_method_leaves_out_are_refused(left_out):
    class Odd:
        rows: int = dataclasses.field(default=1, **{left_out: left_out == "kw_only"})

    with pytest.raises(TypeError, match=r"Odd\.rows must be in all methods of a record"):
        record(Odd)


def test_what_a_class_checks_is_checked():
    with pytest.raises(ValueError, match="no rows"):
        dataclasses.replace(Box(1), rows=0)


def test_equal_are_those_of_one_class_with_equal_values():
    assert Box(1) == Box(1)
    assert Box(1) != Box(2)
    assert Box(1) != Box(1, 8, ["a"])
    assert Named(1) != Box(1)
    assert Box(1) != (1, 8, [])


def test_nothing_can_be_changed():
    box = Box(1)
    for name in ("rows", "other"):
        with pytest.raises(
            dataclasses.FrozenInstanceError, match=f"cannot assign to field '{name}'"
        ):
            setattr(box, name, 2)
    with pytest.raises(dataclasses.FrozenInstanceError, match="cannot delete field 'rows'"):
        del box.rows


def test_it_is_shown_and_described_as_a_dataclass_is():
    assert repr(Box(1)) == "Box(rows=1, columns=8, names=[])"
    assert repr(Named(1, name="mine")) == "mine"
    assert [field.name for field in dataclasses.fields(Named)] == [
        "rows",
        "columns",
        "names",
        "name",
    ]
    assert str(inspect.signature(Box)) == "(rows: int, columns: int = 8, names: list[str] = [])"


def test_a_spec_hashes_copies_and_is_pickled_as_a_frozen_dataclass():
    spec = MatmulSpec(128, 64, 32, c_dtype="f32")
    for made in (pickle.loads(pickle.dumps(spec)), copy.deepcopy(spec), dataclasses.replace(spec)):
        assert made == spec
        assert hash(made) == hash(spec)
    assert hash(Quick(1)) == hash(Frozen(1))
    assert dataclasses.asdict(Box(1)) == {"rows": 1, "columns": 8, "names": []}
    match Box(3):
        case Box(rows, columns):
            assert (rows, columns) == (3, 8)
