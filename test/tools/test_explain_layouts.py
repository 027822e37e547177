"""`tilewright explain layout` and `explain swizzle`: what they print, draw and refuse."""

import re
from pathlib import Path

import pytest

from tilewright.compiler.pipeline import all_presets

DOCS = Path(__file__).parents[2] / "docs"


def test_a_fragment_is_printed_as_layouts_and_as_a_table(tilewright):
    ran = tilewright("explain", "layout", "--atom", "m16n8k8", "--operand", "a", "--type", "bf16")
    assert ran.status == 0, ran.err
    assert "layout      ((4,8),(2,2)):((32,1),(16,8))" in ran.out
    assert "inverse     ((8,2),(2,4)):((4,64),(32,1))" in ran.out
    assert re.search(r"^8 +T0V2 +T0V3 +T1V2 +T1V3 ", ran.out, re.MULTILINE)


def test_a_fragment_as_json(tilewright):
    options = ("--atom", "m64n16k16", "--operand", "d", "--type", "f32", "--json")
    found = tilewright("explain", "layout", *options).json
    assert found["threads"] == 128 and found["registers"] == 8
    assert found["layout"] == "((4,8,4),(2,2,2)):((128,1,16),(64,8,512))"


def test_a_narrow_terminal_gets_what_fits_and_is_told(tilewright, monkeypatch):
    monkeypatch.setenv("COLUMNS", "40")
    ran = tilewright("explain", "layout", "--atom", "m16n8k16", "--operand", "a", "--type", "f16")
    assert max(map(len, ran.out.splitlines()[9:])) <= 40
    assert "(10 more columns; --svg FILE draws all)" in ran.out


def test_swizzles_are_compared_and_the_chosen_one_is_drawn(tilewright):
    ran = tilewright("explain", "swizzle", "--tile", "64x32", "--type", "bf16")
    assert ran.status == 0, ran.err
    assert re.search(r"none +8x16B +1 pass +4 passes +16 bytes", ran.out)
    assert re.search(r"64B +8x64B +1 pass +1 pass +64 bytes +chosen", ran.out)
    assert "128B" in ran.out and "refused: contiguous extent must be a multiple of 128" in ran.out
    assert re.search(r"^128 +9 +8\* +11 +10 +13 +12\* +15 +14$", ran.out, re.MULTILINE)


def test_every_chunk_of_a_matrix_is_in_banks_of_its_own(tilewright):
    ran = tilewright("explain", "swizzle", "--tile", "64x64", "--type", "tf32", "--all")
    names = re.findall(r"^swizzle (\w+), ", ran.out, re.MULTILINE)
    assert names == ["linear", "none", "32B", "64B", "128B"]
    drawings = re.split(r"^swizzle ", ran.out, flags=re.MULTILINE)[2:]
    for drawing in drawings:
        rows = [line.split()[1:] for line in drawing.partition("\n\n")[0].splitlines()[2:]]
        marked = [column for row in rows for column, text in enumerate(row) if "*" in text]
        assert sorted(marked) == list(range(8))


@pytest.mark.parametrize(("k", "passes"), [(8, 1), (16, 2), (32, 4), (64, 8), (128, 8), (24, 1)])
def test_linear_rows_meet_in_banks_as_their_length_says(tilewright, k, passes):
    """Row r begins at line byte r * length; chunks that begin apart share no bank."""
    length = 2 * k
    begins = [row * length % 128 for row in range(8)]
    assert passes == max(begins.count(begin) for begin in begins)
    found = tilewright("explain", "swizzle", "--tile", f"8x{k}", "--type", "bf16", "--json").json
    linear = found["swizzles"][0]
    assert linear["swizzle"] == "linear" and linear["matrix_read_passes"] == passes
    assert linear["row_write_passes"] == 1 and linear["global_request_bytes"] == min(length, 128)


@pytest.mark.parametrize(("major", "used"), [("k", "column-major"), ("mn", "row-major")])
def test_atoms_follow_each_other_by_columns_or_rows(tilewright, major, used):
    """A tile of 16x64 bytes is 2x4 atoms of 128 bytes, 2x2 of 256: the rest is counting."""
    tile = "16x32" if major == "k" else "32x16"
    command = ("explain", "swizzle", "--tile", tile, "--type", "bf16", "--major", major, "--json")
    found = {layout["swizzle"]: layout for layout in tilewright(*command).json["swizzles"]}
    for name, atoms, size in (("none", [2, 4], 128), ("32B", [2, 2], 256)):
        atoms = atoms if major == "k" else atoms[::-1]
        steps = {"column-major": [size, atoms[0] * size], "row-major": [atoms[1] * size, size]}
        for order in found[name]["atom_orders"]:
            assert order["atoms"] == atoms and order["step_bytes"] == steps[order["order"]]
            assert order["used"] == (order["order"] == used)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (
            "layout --atom m16n8k3 --operand d --type f16",
            "K of mma.sync must be 4, 8, 16 or 32, got 3",
        ),
        ("layout --atom m16n8k8 --type f17", "--type must be one of"),
        ("layout --atom ldmatrix.x4 --operand a --type f16", "has one operand, got a"),
        ("layout --atom m16n8k8 --operand a --type s32", "--type of operand a must be one of"),
        ("layout --atom m16n8k8 --operand d --type e4m3", "--type of operand d must be one of"),
        (
            "layout --atom m16n8k8 --operand d --type f16 --svg no/such/a.svg",
            "the folder 'no/such' must exist",
        ),
        ("swizzle --tile 64 --type bf16", "--tile must be two extents"),
        ("swizzle --tile 9x9 --type bf16", "swizzle none: contiguous extent must be a multiple"),
        ("swizzle --tile 64x64 --type bf16 --major n", "--major must be k or mn, got 'n'"),
        ("swizzle --tile 64x64 --type bf16 --swizzle 16B", "must be one of linear, none, 32B"),
        ("swizzle --tile 12x64 --type bf16 --swizzle linear", "multiple of 8, got 12"),
        ("swizzle --tile 8x9 --type bf16 --swizzle linear", "of 16 bytes, got 18 bytes"),
        ("swizzle --tile 8x513 --type bf16 --swizzle linear", "up to 1024 bytes, got 1026"),
        ("swizzle --tile 64x64 --type bf16 --all --svg a.svg", "--svg draws one swizzle"),
        ("swizzle --tile 64x64 --type f64", "--type must be that of an operand, got f64"),
    ],
)
def test_what_cannot_be_is_refused_in_one_line(tilewright, arguments, words):
    ran = tilewright("explain", *arguments.split())
    assert ran.status != 0 and words in ran.err
    assert len(ran.err.strip().splitlines()) == 1
    assert not Path("a.svg").exists()


PICTURES = {
    "layouts/m16n8k8-a-bf16.svg": "layout --atom m16n8k8 --operand a --type bf16",
    "layouts/swizzle-linear.svg": "swizzle --tile 8x16 --type bf16 --swizzle linear",
    "layouts/swizzle-32B.svg": "swizzle --tile 64x64 --type bf16 --swizzle 32B",
    "layouts/swizzle-128B.svg": "swizzle --tile 64x64 --type bf16 --swizzle 128B",
    "mma-sync/m16n8k16-a-bf16.svg": "layout --atom m16n8k16 --operand a --type bf16",
    "mma-sync/m16n8k16-b-bf16.svg": "layout --atom m16n8k16 --operand b --type bf16",
    "mma-sync/ldmatrix-x1-trans.svg": "layout --atom ldmatrix.x1.trans --type bf16",
    "mma-sync/swizzle-64B-k.svg": "swizzle --tile 128x32 --type bf16 --major k",
    "mma-sync/swizzle-128B-mn.svg": "swizzle --tile 128x32 --type bf16 --major mn",
}


@pytest.mark.parametrize("name", PICTURES)
def test_the_pictures_of_the_pages_are_those_of_the_commands(tilewright, tmp_path, name):
    path = tmp_path / "drawn.svg"
    assert tilewright("explain", *PICTURES[name].split(), "--svg", path).status == 0
    assert path.read_text() == (DOCS / name).read_text()
    folder, _, file = name.partition("/")
    assert f"({folder}/{file})" in (DOCS / f"{folder}.md").read_text()


def test_c_lies_as_d_does(tilewright):
    c, d = (
        tilewright(*"explain layout --atom m16n8k16 --type f32 --operand".split(), operand).out
        for operand in "cd"
    )
    assert c == d and "((4,8),(2,2)):((32,1),(16,8))" in c


def test_the_tiles_of_the_pictures_are_those_of_the_presets():
    """Rows of 32 elements of 16 bits: mma-sync.md draws what s3 to s5 have."""
    for name in ("s3", "s4", "s5"):
        assert re.search(r"tile=\d+x\d+x32 ", all_presets()[name])


def test_the_lines_of_the_page_are_those_of_the_commands(tilewright):
    page = (DOCS / "layouts.md").read_text()
    commands = (
        "layout --atom m16n8k8 --operand a --type bf16",
        "swizzle --tile 64x64 --type bf16",
        "swizzle --tile 16x32 --type bf16 --swizzle none",
    )
    for shown, command in zip(
        re.findall(r"```text\n(.*?)```", page, re.DOTALL), commands, strict=True
    ):
        printed = [
            line.split() for line in tilewright("explain", *command.split()).out.splitlines()
        ]
        assert all(line.split() in printed for line in shown.splitlines())


def test_the_python_of_the_page_gives_what_its_comments_say():
    page = (DOCS / "layouts.md").read_text()
    (code,) = re.findall(r"```python\n(.*?)```", page, re.DOTALL)
    names: dict[str, object] = {}
    claims = 0
    for line in code.splitlines():
        expression, _, said = line.partition("#")
        exec(expression, names)
        inner = re.fullmatch(r"print\((.*)\)|(fragment\(.*\))", expression.strip())
        if inner:
            claims += 1
            assert (
                str(eval(inner[1] or inner[2], names))
                == said.split(":  ")[-1].split(": ")[-1].strip()
            )
    assert claims == 3
