"""Draws which packages import which, as the Mermaid graph in ARCHITECTURE.md.

    python test/repository/draw_packages.py                  write the drawing into ARCHITECTURE.md
    python test/repository/draw_packages.py --count [ROOT]   only count, in this or another checkout

A package is a folder of Python files. Its `__init__.py` is drawn as a node of its own if it imports
anything. Every import counts: at the top of a file, inside a function, or for types only. To stay
readable, the drawing merges the packages inside `compiler/schedule` or `passes/lowering`, and omits
an arrow if a longer path leads to the same package (the transitive reduction).
"""

from __future__ import annotations

import argparse
import ast
import functools
from collections import defaultdict
from pathlib import Path

import networkx as nx

ROOT = Path(__file__).parent.parent.parent
FOLDERS = ("tools", "compiler", "passes", "dialects", "runtime")
BEGIN, END = "<!-- drawn: begin -->", "<!-- drawn: end -->"


@functools.cache
def imports_of(path: Path) -> list[ast.Import | ast.ImportFrom]:
    """Every import of a file, wherever it stands."""
    nodes = ast.walk(ast.parse(path.read_text()))
    return [node for node in nodes if isinstance(node, ast.Import | ast.ImportFrom)]


@functools.cache
def import_graph(root: Path) -> nx.DiGraph:
    """The files of a checkout, as paths without suffix, and who imports whom."""
    files = {
        path.relative_to(root).with_suffix("").as_posix(): path
        for folder in FOLDERS
        for path in sorted((root / folder).rglob("*.py"))
    }
    graph = nx.DiGraph()
    graph.add_nodes_from(files)
    for name, path in files.items():
        graph.add_edges_from((name, each) for each in imported(path, name, files) if each != name)
    return graph


def imported(path: Path, name: str, files: dict[str, Path]) -> set[str]:
    """The files that a file imports relatively: modules, or the packages that names come from."""
    found = set()
    for node in imports_of(path):
        if not isinstance(node, ast.ImportFrom) or not node.level:
            continue
        parts = name.split("/")[: -node.level]
        base = "/".join([*parts, *(node.module or "").split(".")]).rstrip("/")
        for alias in node.names:
            names = f"{base}/{alias.name}", base
            places = [f"{name}{end}" for name in names for end in ("", "/__init__")]
            found |= set([place for place in places if place in files][:1])
    return found


def package_graph(files: nx.DiGraph) -> nx.DiGraph:
    """The packages and who imports whom."""
    packages = nx.DiGraph()
    for file in files:
        folder, _, name = file.rpartition("/")
        if name != "__init__":
            packages.add_node(folder)
        elif files.out_degree(file):
            packages.add_node(file)
    for edge in files.edges:
        a, b = (_package(file, packages) for file in edge)
        if a != b and {a, b} <= set(packages):
            packages.add_edge(a, b)
    return packages


def _package(file: str, packages: nx.DiGraph) -> str:
    return file if file in packages else file.rpartition("/")[0]


def cyclic(graph: nx.DiGraph) -> list[list[str]]:
    """Groups of nodes that import each other, the largest first."""
    groups = (sorted(group) for group in nx.strongly_connected_components(graph))
    return sorted((group for group in groups if len(group) > 1), key=len, reverse=True)


def upward(packages: nx.DiGraph) -> list[tuple[str, str]]:
    """Imports that are part of a cycle of packages."""
    together = [set(group) for group in cyclic(packages)]
    return [edge for edge in packages.edges if any(set(edge) <= group for group in together)]


def counted(root: Path) -> str:
    """One line of counts for a checkout."""
    files = import_graph(root)
    packages = package_graph(files)
    parts = {
        "packages": len(packages),
        "imports between packages": packages.number_of_edges(),
        "imports in cycles of packages": len(upward(packages)),
        "files in cycles": sum(map(len, cyclic(files))),
    }
    return ", ".join(f"{value} {name}" for name, value in parts.items())


def overview(packages: nx.DiGraph) -> nx.DiGraph:
    """The packages, with those inside a second-level package merged; its `__init__` is separate."""
    whole = nx.relabel_nodes(packages, _whole)
    whole.remove_edges_from(list(nx.selfloop_edges(whole)))
    return whole


def _whole(package: str) -> str:
    parts = package.split("/")
    return package if parts[2:] == ["__init__"] else "/".join(parts[:2])


def drawn(packages: nx.DiGraph) -> str:
    """The packages as a Mermaid flowchart, one box per top-level folder."""
    boxes = defaultdict(list)
    for name in sorted(packages):
        boxes[name.split("/")[0]].append(name)
    lines = ["```mermaid", "flowchart TD"]
    for folder in FOLDERS:
        lines.append(f"  subgraph {folder}")
        lines += [f'    {_id(name)}["{_label(name)}"]' for name in boxes[folder]]
        lines.append("  end")
    reduced = packages if cyclic(packages) else nx.transitive_reduction(packages)
    lines += [f"  {_id(a)} --> {_id(b)}" for a, b in sorted(reduced.edges)]
    return "\n".join([*lines, "```"])


def _id(name: str) -> str:
    return name.replace("/", "_") + "_"


def _label(name: str) -> str:
    own = name.removesuffix("/__init__")
    return own.split("/", 1)[-1] + (" (__init__)" if own != name else "")


def with_drawing(page: str) -> str:
    """The page with the drawing of this checkout between its two marks."""
    before, rest = page.split(BEGIN)
    _, after = rest.split(END)
    packages = package_graph(import_graph(ROOT))
    return f"{before}{BEGIN}\n{drawn(overview(packages))}\n\n{counted(ROOT)}\n{END}{after}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--count", nargs="?", const=ROOT, type=Path, metavar="ROOT")
    options = parser.parse_args()
    if options.count:
        print(counted(options.count))
        return
    page = ROOT / "ARCHITECTURE.md"
    page.write_text(with_drawing(page.read_text()))


if __name__ == "__main__":
    main()
