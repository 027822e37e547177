"""What the documents tell people to type is what the program takes."""

import ast
import contextlib
import functools
import inspect
import io
import re
import shlex
from pathlib import Path

import pytest
import torch

import tilewright
from tilewright.compiler.bundle_writer import as_bundle
from tilewright.runtime.emulator import Trap
from tilewright.tools import main
from tilewright.tools.commands import compile, conform, emulate, explain, ladder, model, opt, run

ROOT = Path(__file__).parent.parent.parent
DOCUMENTS = [
    "README.md",
    "CONTRIBUTING.md",
    "SECURITY.md",
    "ARCHITECTURE.md",
    "benchmarks/README.md",
    *sorted(path.relative_to(ROOT).as_posix() for path in (ROOT / "docs").rglob("*.md")),
]


def typed_commands() -> list[str]:
    """Every `tilewright …` line of the documents' shell blocks and of the helps' examples."""
    blocks = [
        block
        for name in DOCUMENTS
        for block in re.findall(r"```sh\n(.*?)```", (ROOT / name).read_text(), re.DOTALL)
    ]
    examples = [
        module.EXAMPLES
        for module in (main, compile, opt, run, explain, ladder, emulate, conform, model)
    ]
    lines = [line.strip() for text in blocks + examples for line in text.splitlines()]
    return [re.split(r"\s{3,}|\s+#|\s<\s", line)[0] for line in lines if line[:11] == "tilewright "]


@functools.cache
def parser():
    """One for all commands: to build it takes longer than to parse a hundred."""
    return main.build_parser()


@pytest.mark.parametrize("command", typed_commands())
def test_every_command_in_the_documents_parses(command):
    options = parser().parse_args(shlex.split(command)[1:])
    assert hasattr(options, "command") or options.version


def test_every_link_between_documents_leads_somewhere():
    for name in DOCUMENTS:
        path = ROOT / name
        for target in re.findall(r"\]\(([^)#:]+)(?:#[\w-]+)?\)", path.read_text()):
            assert (path.parent / target).exists(), f"{name} links to {target}"


def test_every_link_to_a_heading_finds_it():
    for name in DOCUMENTS:
        path = ROOT / name
        links = re.findall(r"\]\(([^)#:]*)#([\w-]+)\)", path.read_text())
        for target, anchor in links:
            page = path.parent / target if target else path
            headings = re.findall(r"^#+ (.*)$", page.read_text(), re.MULTILINE)
            anchors = {re.sub(r"[^\w -]", "", h).lower().replace(" ", "-") for h in headings}
            assert anchor in anchors, f"{name} links to {target}#{anchor}"


ROOMS = "benchmarks|compiler|dialects|docs|package|passes|runtime|test|tools"


def test_every_file_that_a_document_names_exists():
    for name in DOCUMENTS:
        text = re.sub(r"\]\([^)]*\)", "", (ROOT / name).read_text())
        for path in re.findall(rf"(?<![\w/.-])((?:{ROOMS})/[\w./*-]*\w)", text):
            assert "convert_x" in path or any(ROOT.glob(path)), f"{name} names {path}"


NAMED_IN = re.compile(r"`([\w.]+)`(?: \w+)? (?:of|in|to) `([\w/]+\.py)`")


def test_every_name_that_a_document_puts_into_a_file_stands_there():
    compared = 0
    for document in DOCUMENTS:
        text = " ".join((ROOT / document).read_text().split())
        for name, path in NAMED_IN.findall(text):
            (file,) = [*ROOT.glob(path)] or [*(ROOT / "runtime/emulator").glob(path)]
            word = name.rpartition(".")[2]
            assert re.search(rf"\b{word}\b", file.read_text()), f"{document}: {name} of {path}"
            compared += 1
    assert compared > 20


def test_the_index_of_the_documents_names_every_page():
    index = (ROOT / "docs/README.md").read_text()
    pages = {path.name for path in (ROOT / "docs").glob("*.md")} - {"README.md"}
    assert set(re.findall(r"\]\(([\w.-]+\.md)\)", index)) == pages


def test_the_index_of_the_benchmarks_names_every_script():
    index = (ROOT / "benchmarks/README.md").read_text()
    paths = [path.relative_to(ROOT / "benchmarks") for path in (ROOT / "benchmarks").rglob("*.py")]
    of_the_set = "gpu_test/gpu_test_"
    names = {path.as_posix() for path in paths if not path.as_posix().startswith(of_the_set)}
    assert {name for name in names if f"`{name}" not in index} == set()
    assert set(re.findall(r"`([\w/]+\.py)", index)) <= names | {of_the_set + "bundles.py"}


def shown(line: str) -> str:
    """A line of a command's output, without the width of its columns and the times of passes."""
    return " ".join(re.sub(r"^( [a-z-]+ +)[\d.]+  ", r"\1", line).replace("[ms]", "").split())


def test_the_worked_example_of_the_readme_prints_what_stands_there(capsys):
    page = (ROOT / "README.md").read_text().split("## A worked example")[1]
    command, printed = re.findall(r"```(?:sh|text)\n(.*?)```", page, re.DOTALL)[:2]
    words = command.splitlines()[-1].split()
    assert words[0] == "tilewright" and main.main(words[1:]) == 0
    found = [shown(line) for line in capsys.readouterr().out.splitlines()]
    for line in printed.splitlines():
        begin, _, rest = shown(line).partition("…")
        if set(begin) <= set("─ ") and not rest:
            continue
        assert any(each.startswith(begin) if "…" in line else each == begin for each in found), line


def python_of_the_readme() -> list[str]:
    return re.findall(r"```python\n(.*?)```", (ROOT / "README.md").read_text(), re.DOTALL)


def test_the_readme_compiles_and_runs_a_matmul_in_python(tmp_path, monkeypatch, ptxas_for_a_share):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("TILEWRIGHT_CACHE", str(tmp_path / "cache"))
    names: dict = {}
    for block in python_of_the_readme()[:3]:
        exec(block, names)
    expected = names["a"].double() @ names["b"].double().T
    assert (names["c"].double() - expected).abs().max() < 0.25
    assert "tcgen05.mma" in str(names["report"])


def test_the_readme_runs_ptx_written_by_hand_on_the_emulator():
    names: dict = {}
    exec(python_of_the_readme()[3], names)
    assert names["values"].tolist() == [2 * index for index in range(100)]
    with pytest.raises(
        Trap, match=r"^ptx:21: error: kernel double, cta \(1,0,0\), warp 1, lanes 0"
    ):
        names["tilewright"].emulate(
            names["PTX"], "double", grid=2, block=64, params=[names["values"], 128], seed=3
        )


def test_the_page_on_the_emulator_has_every_argument_of_a_launch_with_its_default():
    from tilewright.runtime.emulator import launch

    text = " ".join((ROOT / "docs/emulator.md").read_text().split())
    call, table = re.findall(r"```text launch\((.*?)\) ```(.*?)The result", text)[0]
    given = inspect.signature(launch).parameters
    names = [each.partition("=") for each in call.replace("*, ", "").split(", ")]
    assert [name for name, *_ in names] == list(given)
    for name, _, value in names:
        default = 1 if name == "cluster" else given[name].default
        assert not value or ast.literal_eval(value) == default
        assert name in ("ptx", "entry") or f"`{name}`" in table


def test_every_folder_of_the_readme_exists():
    folders = re.findall(r"^\| `(\w+)/` \|", (ROOT / "README.md").read_text(), re.MULTILINE)
    assert len(folders) == 9
    assert all((ROOT / folder).is_dir() for folder in folders)


def test_every_folder_of_tests_is_told_of():
    table = (ROOT / "CONTRIBUTING.md").read_text().partition("| folder of `test/` |")[2]
    named = re.findall(r"`(\w+)/`", "".join(re.findall(r"^\| (.*?) \|", table, re.MULTILINE)))
    found = {path.parent.name for path in ROOT.glob("test/*/*") if path.suffix in (".py", ".md")}
    assert sorted(named) == sorted(found - {"__pycache__"})


def test_the_constraints_lie_inside_the_ranges():
    import tomllib

    from packaging.requirements import Requirement

    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    extras = project["optional-dependencies"].values()
    ranges = {r.name.lower(): r for r in map(Requirement, sum(extras, project["dependencies"]))}
    del ranges["tilewright"]  # an extra of its own
    lines = (ROOT / "constraints.txt").read_text().splitlines()
    pins = dict(line.lower().split("==") for line in lines if "==" in line)
    assert set(ranges) <= set(pins)
    assert all(ranges[name].specifier.contains(pins[name]) for name in ranges)


def python_of(page: str) -> list[str]:
    return re.findall(r"```python\n(.*?)```", (ROOT / f"docs/{page}.md").read_text(), re.DOTALL)


RETURNS = """.version 8.8
.target sm_100a
.address_size 64
.visible .entry kernel(.param .align 64 .b8 a_map[128], .param .u64 out, .param .u32 rows) { ret; }
"""


def a_model() -> dict:
    """What docs/torch.md compiles, checks and exports."""
    torch.manual_seed(0)
    layers = torch.nn.Linear(64, 32), torch.nn.ReLU()
    return {"model": torch.nn.Sequential(*layers).bfloat16(), "x": torch.ones(16, 64).bfloat16()}


GIVEN = {
    "python": dict,
    "weights": dict,
    "torch": a_model,
    "emulator": lambda: {"ptx_text": RETURNS},
}
"""What the blocks of a page take for granted."""


@pytest.mark.parametrize("page", GIVEN)
def test_the_python_of_a_page_runs(page, tmp_path, monkeypatch, ptxas_for_a_share):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("TILEWRIGHT_CACHE", str(tmp_path / "cache"))
    names = GIVEN[page]()
    for block in python_of(page):
        exec(block, names)


BUNDLES = (
    ("matmul.zip", {}),
    ("any.zip", {"dynamic_m": True}),
    ("any.zip", {"batch": 4, "dynamic_batch": True}),
    ("any.zip", {"a_major": "m", "b_major": "n", "dynamic_k": True}),
)
"""What the blocks of docs/bundle.md load, each by its fields of a spec."""


def test_the_python_of_the_page_on_bundles_runs(tmp_path, monkeypatch, ptxas_for_a_share):
    monkeypatch.chdir(tmp_path)
    for block, (name, fields) in zip(python_of("bundle"), BUNDLES, strict=True):
        as_bundle(tilewright.compile(tilewright.MatmulSpec(m=96, n=40, k=64, **fields)), name)
        stack = (4,) if "batch" in fields else ()
        a, b = (torch.randn(*stack, rows, 64).bfloat16() for rows in (96, 40))
        names = {"a": a, "b": b, "load": tilewright.load}
        exec(block, names)
        exact = names["a"].float() @ names["b"].float().mT
        assert (names["c"].float() - exact[: len(names["c"])]).abs().max() < 0.25


def shown_by(node: ast.stmt, names: dict) -> str:
    """What a statement prints, or the value of an expression."""
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        if not isinstance(node, ast.Expr):
            exec(ast.unparse(node), names)
            return ""
        value = eval(ast.unparse(node), names)
    return printed.getvalue().strip() or repr(value)


@pytest.mark.parametrize("page", ["layouts", "block-scales"])
def test_the_python_of_a_page_gives_the_values_that_stand_beside_it(page):
    names: dict = {}
    compared = 0
    for block in python_of(page):
        for node in ast.parse(block).body:
            found = shown_by(node, names)
            _, _, value = block.splitlines()[(node.end_lineno or 0) - 1].partition("  # ")
            if isinstance(node, ast.Expr) and value:
                assert value.endswith(found)
                compared += 1
    assert compared >= 3
