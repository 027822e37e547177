"""Draws which rooms of the house import which, as the Mermaid graph in ARCHITECTURE.md.

    python test/repository/draw_house.py                  write the drawing into ARCHITECTURE.md
    python test/repository/draw_house.py --count [ROOT]   only count, in this or another checkout

A room is a folder that holds Python files; its `__init__.py`, if that imports, is a room apart,
the front of what lies behind. An import counts wherever it stands: at the top of a file, inside a
function, or for types only. So that it can be read, the drawing shows the rooms inside
`compiler/schedule` or `passes/lowering` as one, and leaves out an arrow where a longer way leads to
the same room (the transitive reduction).
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


def room_graph(files: nx.DiGraph) -> nx.DiGraph:
    """The rooms and who imports whom."""
    rooms = nx.DiGraph()
    for file in files:
        folder, _, name = file.rpartition("/")
        if name != "__init__":
            rooms.add_node(folder)
        elif files.out_degree(file):
            rooms.add_node(file)
    for edge in files.edges:
        a, b = (_room(file, rooms) for file in edge)
        if a != b and {a, b} <= set(rooms):
            rooms.add_edge(a, b)
    return rooms


def _room(file: str, rooms: nx.DiGraph) -> str:
    return file if file in rooms else file.rpartition("/")[0]


def cyclic(graph: nx.DiGraph) -> list[list[str]]:
    """Groups of nodes that import each other, the largest first."""
    groups = (sorted(group) for group in nx.strongly_connected_components(graph))
    return sorted((group for group in groups if len(group) > 1), key=len, reverse=True)


def upward(rooms: nx.DiGraph) -> list[tuple[str, str]]:
    """Arrows that a cycle of rooms goes through: no order of the rooms lets all of these fall."""
    together = [set(group) for group in cyclic(rooms)]
    return [edge for edge in rooms.edges if any(set(edge) <= group for group in together)]


def counted(root: Path) -> str:
    """One line of counts for a checkout."""
    files = import_graph(root)
    rooms = room_graph(files)
    parts = {
        "rooms": len(rooms),
        "arrows between rooms": rooms.number_of_edges(),
        "arrows in cycles of rooms": len(upward(rooms)),
        "files in cycles": sum(map(len, cyclic(files))),
    }
    return ", ".join(f"{value} {name}" for name, value in parts.items())


def overview(rooms: nx.DiGraph) -> nx.DiGraph:
    """The rooms, those inside one as one; its front stands apart."""
    whole = nx.relabel_nodes(rooms, _whole)
    whole.remove_edges_from(list(nx.selfloop_edges(whole)))
    return whole


def _whole(room: str) -> str:
    parts = room.split("/")
    return room if parts[2:] == ["__init__"] else "/".join(parts[:2])


def drawn(rooms: nx.DiGraph) -> str:
    """The rooms as a Mermaid flowchart, a box a top-level folder."""
    boxes = defaultdict(list)
    for name in sorted(rooms):
        boxes[name.split("/")[0]].append(name)
    lines = ["```mermaid", "flowchart TD"]
    for folder in FOLDERS:
        lines.append(f"  subgraph {folder}")
        lines += [f'    {_id(name)}["{_label(name)}"]' for name in boxes[folder]]
        lines.append("  end")
    reduced = rooms if cyclic(rooms) else nx.transitive_reduction(rooms)
    lines += [f"  {_id(a)} --> {_id(b)}" for a, b in sorted(reduced.edges)]
    return "\n".join([*lines, "```"])


def _id(name: str) -> str:
    return name.replace("/", "_") + "_"


def _label(name: str) -> str:
    own = name.removesuffix("/__init__")
    return own.split("/", 1)[-1] + (" (front)" if own != name else "")


def with_drawing(page: str) -> str:
    """The page with the drawing of this checkout between its two marks."""
    before, rest = page.split(BEGIN)
    _, after = rest.split(END)
    rooms = room_graph(import_graph(ROOT))
    return f"{before}{BEGIN}\n{drawn(overview(rooms))}\n\n{counted(ROOT)}\n{END}{after}"


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
