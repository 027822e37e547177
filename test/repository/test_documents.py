"""What the documents tell people to type is what the program takes."""

import re
import shlex
from pathlib import Path

import pytest

from tilewright.tools import compile, explain, ladder, main, opt, run

ROOT = Path(__file__).parent.parent.parent
DOCUMENTS = ["README.md", "CONTRIBUTING.md", "docs/tools.md", "docs/bundle.md", "docs/presets.md"]


def typed_commands() -> list[str]:
    """Every `tilewright …` line of the documents' shell blocks and of the helps' examples."""
    blocks = [
        block
        for name in DOCUMENTS
        for block in re.findall(r"```sh\n(.*?)```", (ROOT / name).read_text(), re.DOTALL)
    ]
    examples = [module.EXAMPLES for module in (main, compile, opt, run, explain, ladder)]
    lines = [line.strip() for text in blocks + examples for line in text.splitlines()]
    return [re.split(r"\s{3,}|\s+#|\s<\s", line)[0] for line in lines if line[:11] == "tilewright "]


@pytest.mark.parametrize("command", typed_commands())
def test_every_command_in_the_documents_parses(command):
    options = main.build_parser().parse_args(shlex.split(command)[1:])
    assert hasattr(options, "command") or options.version


def test_every_link_between_documents_leads_somewhere():
    for name in DOCUMENTS:
        path = ROOT / name
        for target in re.findall(r"\]\(([^)#:]+)\)", path.read_text()):
            assert (path.parent / target).exists(), f"{name} links to {target}"


def test_the_python_of_the_readme_runs(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    blocks = re.findall(r"```python\n(.*?)```", (ROOT / "README.md").read_text(), re.DOTALL)
    names: dict = {}
    exec(blocks[0], names)
    expected = names["a"].double() @ names["b"].double().T
    assert (names["c"].double() - expected).abs().max() < 0.25
    assert "tcgen05.mma" in str(names["report"])


def test_every_folder_of_the_readme_exists():
    folders = re.findall(r"^\| `(\w+)/` \|", (ROOT / "README.md").read_text(), re.MULTILINE)
    assert len(folders) == 7
    assert all((ROOT / folder).is_dir() for folder in folders)


def test_the_constraints_lie_inside_the_ranges():
    import tomllib

    from packaging.requirements import Requirement

    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    extras = project["optional-dependencies"].values()
    ranges = {r.name.lower(): r for r in map(Requirement, sum(extras, project["dependencies"]))}
    lines = (ROOT / "constraints.txt").read_text().splitlines()
    pins = dict(line.lower().split("==") for line in lines if "==" in line)
    assert set(ranges) <= set(pins)
    assert all(ranges[name].specifier.contains(pins[name]) for name in ranges)
