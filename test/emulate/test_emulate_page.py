"""docs/emulate.md shows the example that the tests run, and names every field there is."""

import re
from pathlib import Path

import pytest

from tilewright.runtime.launch_files import schema
from tilewright.runtime.launch_files.element_types import ELEMENT_TYPES
from tilewright.runtime.launch_files.rules import Keyed

EXAMPLES = Path(__file__).parent / "examples"
PAGE = (EXAMPLES.parent.parent.parent / "docs" / "emulate.md").read_text()


@pytest.mark.parametrize(
    ("language", "suffix"), [("ptx", "ptx"), ("json", "json"), ("text", "txt")]
)
def test_the_page_shows_the_example_as_it_is(language, suffix):
    (block,) = re.findall(rf"```{language}\n(.*?)```", PAGE, re.DOTALL)
    assert block == (EXAMPLES / f"scaled_rows.{suffix}").read_text()


@pytest.mark.parametrize("record", ["LAUNCH", "TENSOR", "TENSOR_MAP"])
def test_the_page_has_a_row_for_every_field(record):
    found = getattr(schema, record)
    rows = {
        name
        for first in re.findall(r"^\| ([^|]*) \|", PAGE, re.MULTILINE)
        for name in re.findall(r"`(\w+)`", first)
    }
    for fields in found.kinds.values() if isinstance(found, Keyed) else [found]:
        assert set(fields.required) | set(fields.optional) <= rows


@pytest.mark.parametrize("kinds", [schema.CONTENTS.kinds, schema.PARAMETER.kinds])
def test_the_page_has_a_row_for_every_kind(kinds):
    rows = re.findall(r"^\| `\{\"(\w+)\"", PAGE, re.MULTILINE)
    assert set(kinds) <= set(rows)


def test_the_page_names_every_dtype():
    (row,) = re.findall(r"^\| `dtype` \| (`bf16`.*?) \|", PAGE, re.MULTILINE)
    ranges = {"u8": ("u16", "u32"), "s8": ("s16", "s32")}
    named = set(re.findall(r"`(\w+)`", row))
    for first, between in ranges.items():
        named |= set(between) if first in named else set()
    assert named == set(ELEMENT_TYPES)
