"""What each role does in a K step: the MMA role only waits, issues, commits and counts.

The steady loop of a role is the innermost one around its instruction, in the PTX that LLVM leaves.
"""

import functools
import re

import pytest

from tilewright.compiler.control_flow import innermost_loop
from tilewright.compiler.driver import compile_matmul
from tilewright.compiler.inspect_ptx import parse_kernel, role_loops
from tilewright.compiler.presets import PRESETS
from tilewright.compiler.spec import MatmulSpec

SPECIALISED = [name for name in PRESETS if "warp-specialization" in PRESETS[name]]
SHAPES = [(1024, 1024, 4096), (1000, 1112, 1096)]
K_PER_MMA, TILE_K = 16, 64

WAIT = r"mbarrier\.try_wait\."
SLOW = r"(div|rem|mul|mad)\."  # a product or quotient by a power of two is a shift
COUNTING = {
    "move": r"mov\.(b16|b32|b64|pred) ",
    "add": r"(add\.s(32|64)|or\.b32|shl\.b32|cvt\.s64\.s32) ",
    "ring": r"(selp\.b32|xor\.b32) ",
    "test": r"(setp\.(eq|ne)\.b(32|64)|not\.pred) ",
}
MMA_ROLE = {
    "wait": WAIT,
    "fence": r"tcgen05\.fence::after_thread_sync$",
    "mma": r"tcgen05\.mma\.",
    "commit": r"tcgen05\.commit\.",
    "jump": r"bra(\.uni)? ",
    **COUNTING,
}
LOAD_ROLE = {
    "wait": WAIT,
    "announce": r"mbarrier\.arrive\.expect_tx\.",
    "load": r"cp\.async\.bulk\.tensor\.",
    "jump": r"bra(\.uni)? ",
    **COUNTING,
    "address": r"(and\.b(32|64)|cvta?\.\S+) ",
}


def kinds(loop, table):
    """How many instructions of each kind a loop holds; the text of one of no kind is its own."""
    found = dict.fromkeys(table, 0)
    for text in loop.instructions:
        kind = next((name for name, pattern in table.items() if re.match(pattern, text)), text)
        found[kind] = found.get(kind, 0) + 1
    return found


@functools.cache
def loops_of(preset, shape):
    compiled = compile_matmul(MatmulSpec(*shape), preset=preset, until="ptx")
    return role_loops(compiled.ptx, compiled.entry)


def test_the_presets_with_roles_are_all_looked_at():
    assert {"v4", "v5", "v6", "kernel6", "kernel7", "kernel8"} <= set(SPECIALISED)


@pytest.mark.array(1, preset=SPECIALISED, shape=SHAPES)
def test_the_mma_role_waits_issues_commits_and_counts(preset, shape):
    found = kinds(loops_of(preset, shape)["mma"], MMA_ROLE)
    assert set(found) == set(MMA_ROLE)
    mmas = TILE_K // K_PER_MMA
    once = {"wait": 1, "fence": 1, "commit": 1, "mma": mmas, "jump": 2}
    assert {name: found[name] for name in once} == once
    # A barrier's address (4), two slots (4), two counters, two descriptors for every further MMA.
    assert found["add"] <= 4 + 4 + 2 + 2 * (mmas - 1)
    assert found["move"] <= 2 * mmas + 5
    assert (found["ring"], found["test"]) == (3, 4)


@pytest.mark.array(1, preset=SPECIALISED, shape=SHAPES)
def test_the_load_role_waits_announces_copies_and_counts(preset, shape):
    found = kinds(loops_of(preset, shape)["tma"], LOAD_ROLE)
    assert set(found) == set(LOAD_ROLE)
    assert (found["wait"], found["announce"], found["load"]) == (1, 1, 2)


@pytest.mark.sweep(4)
@pytest.mark.parametrize("preset", ["v6", "kernel8"])
@pytest.mark.parametrize("majors", [("m", "k"), ("k", "n"), ("m", "n")])
def test_other_layouts_cost_no_more_in_the_mma_role(preset, majors):
    spec = MatmulSpec(1024, 1024, 4096, a_major=majors[0], b_major=majors[1])
    compiled = compile_matmul(spec, preset=preset, until="ptx")
    found = kinds(role_loops(compiled.ptx, compiled.entry)["mma"], MMA_ROLE)
    assert set(found) == set(MMA_ROLE)


@pytest.mark.pairwise
@pytest.mark.parametrize("tile", ["128x128x64", "64x96x48", "192x80x112"])
@pytest.mark.parametrize("spec", [MatmulSpec(300, 520, 264), MatmulSpec(300, 521, 261)])
@pytest.mark.parametrize("order", ["static", "clc"])
def test_no_role_divides_or_multiplies_in_a_k_step(tile, spec, order):
    head = f"tiling{{tile={tile}}},tma-insertion,swizzle-selection,pipelining{{stages=3}}"
    text = f"{head},warp-specialization,persistence{{scheduler={order}}}"
    compiled = compile_matmul(spec, pipeline=text, until="ptx")
    loops = role_loops(compiled.ptx, compiled.entry)
    for role in ("mma", "tma"):
        assert loops[role] is None or loops[role].count(r"(div|rem)\.|mul\.hi") == 0
    assert loops["mma"].count(SLOW) <= 2  # a slot's offset, where a slot is no power of two


COPIES = r"st\.shared|cp\.async\.c[ag]\.shared"


@pytest.mark.array(1, k=[260, 261], tile=["128x128x64", "64x96x48"])
def test_copies_by_threads_do_not_divide_in_a_k_step(k, tile):
    text = f"tiling{{tile={tile}}},tma-insertion,swizzle-selection,warp-specialization"
    compiled = compile_matmul(MatmulSpec(300, 520, k), pipeline=text, until="ptx")
    loop = innermost_loop(parse_kernel(compiled.ptx, compiled.entry), COPIES)
    assert loop is not None
    assert loop.count(r"(div|rem)\.|mul\.hi") == 0
