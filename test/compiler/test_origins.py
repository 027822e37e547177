"""PTX that says which pass made the op behind an instruction, and verdicts that repeat it."""

import json
import re

import numpy as np
import pytest

from tilewright.compiler import inspect_sass
from tilewright.compiler.driver import compile_matmul
from tilewright.compiler.inspect_sass import parse_kernel
from tilewright.compiler.sass_listing import sass_listing
from tilewright.compiler.spec import MatmulSpec
from tilewright.dialects.errors import CompileError
from tilewright.runtime.bundles.bundle import seal
from tilewright.runtime.bundles.manifest import BundleError, validate
from tilewright.runtime.emulator import Trap, launch
from tilewright.runtime.emulator.ptx.origins import origins_of

SPEC = MatmulSpec(136, 136, 136)
CASES = [("v1a", "sm_100a"), ("v6", "sm_100a"), ("kernel7", "sm_100a"), (None, "sm_90a")]
NO_CODE = re.compile(
    r"\s*(\.loc\s|\.file\s|\$L__tmp\d+:|\$L__func_\w+:|\.section\s+\.debug_macinfo)"
)


@pytest.fixture(scope="module")
def with_origins():
    return compile_matmul(SPEC, preset="v6", origins=True)


def code(ptx):
    return [line for line in ptx.splitlines() if line.strip() and not NO_CODE.match(line)]


@pytest.mark.sweep(4)
@pytest.mark.parametrize(("preset", "target"), CASES)
def test_instructions_are_the_same_with_origins(preset, target):
    plain, named = (
        compile_matmul(SPEC, preset=preset, target=target, until="ptx", origins=origins)
        for origins in (False, True)
    )
    assert code(named.ptx) == code(plain.ptx) and ".loc" not in plain.ptx
    assert len(re.findall(r"^\s*\.loc", named.ptx, re.MULTILINE)) > 20


def test_each_origin_is_an_op_at_its_place_in_the_printed_ir(with_origins):
    files = dict(re.findall(r'\.file\s+(\d+) "(.*)"', with_origins.ptx))
    assert {"pipes-to-barriers/tile.load_boxes", "clustering/tile.pair_mma"} <= set(files.values())
    printed = {
        name: compile_matmul(SPEC, preset="v6", stop_after=name, until="mlir").mlir.splitlines()
        for name in {name.partition("/")[0] for name in files.values()}
    }
    for file, line in set(re.findall(r"\.loc\s+(\d+) (\d+) \d+", with_origins.ptx)):
        made_by, _, op = files[file].partition("/")
        assert line == "0" or op in printed[made_by][int(line) - 1], (files[file], line)


def test_a_verdict_names_the_op_and_the_pass_that_made_it(with_origins):
    ptx = with_origins.ptx
    (commit,) = re.findall(r"^.*tcgen05\.commit.*multicast.*\n", ptx, re.MULTILINE)[:1]
    with pytest.raises(Trap) as caught:
        run(with_origins, ptx.replace(commit, "", 1))
    verdict, *origins = str(caught.value).splitlines()
    assert "deadlock" in verdict
    assert any(
        re.search(r"ptx:\d+ is from [\w-]+/(pipe|sm)\.\w+:\d+:\d+$", each) for each in origins
    )


def test_the_bundle_says_of_each_line_what_the_ptx_says(with_origins):
    runs, ptx = with_origins.manifest["origins"], with_origins.ptx
    lines = range(1, len(ptx.splitlines()) + 1)
    told = {}
    for line in lines:
        places = [run["from"] for run in runs if run["line"] <= line]
        told[line] = places[-1] if places else None
    cited = origins_of(ptx, " ".join(f"ptx:{line}" for line in lines))
    assert cited == tuple(f"ptx:{line} is from {at}" for line, at in told.items() if at)
    validate(seal(with_origins.manifest, ptx, b""))
    broken = {**with_origins.manifest, "origins": runs[:1] * 2}
    rule = f"manifest.origins[1].line: must be above {runs[0]['line']}, got {runs[0]['line']}"
    with pytest.raises(BundleError, match=re.escape(rule)):
        seal(broken, ptx, b"")


def test_a_trace_names_the_op_and_the_pass(tmp_path, with_origins):
    path = tmp_path / "trace.json"
    run(with_origins, with_origins.ptx, trace=path)
    events = json.loads(path.read_text())["traceEvents"]
    waits = [event for event in events if event.get("name", "").startswith("wait: operands")]
    assert waits
    assert all(re.match(r"[\w-]+/(pipe|sm)\.", event["args"]["from"]) for event in waits)


def run(compiled, ptx, **options):
    from tilewright.runtime.bundles.bundle import Bundle
    from tilewright.runtime.launch.emulator_device import EmulatorProgram
    from tilewright.tools.runs.inputs import make_tensors

    tensors = make_tensors(compiled.manifest, 0)
    bundle = Bundle(compiled.manifest, ptx, b"")
    EmulatorProgram(bundle).run(list(tensors.values()), **options)


FOREIGN = """.version 8.8
.target sm_100a
.address_size 64
.visible .entry first(.param .u64 p)
{
  .reg .b64 %a;
  .loc 1 7 3
  ld.param.u64 %a, [p];
  .loc 2 0 0
  st.global.u32 [%a+4096], 1;
  .loc 2 9 5 // scale.py:9:5
  st.global.u32 [%a+8192], 1;
  ret;
}
.visible .entry second()
{
  ret;
}
.file 1 "matmul.py"
.file 2 "scale.py", 1700000000, 99
"""


def test_the_nearest_loc_before_a_line_in_its_function_counts():
    cited = " ".join(f"ptx:{line}" for line in (6, 8, 10, 12, 13, 17))
    assert origins_of(FOREIGN, cited) == (
        "ptx:8 is from matmul.py:7:3",
        "ptx:12 is from scale.py:9:5",
        "ptx:13 is from scale.py:9:5",
    )


def test_a_verdict_on_foreign_ptx_names_its_source():
    text = FOREIGN.replace("[%a+4096]", "[%a]")
    with pytest.raises(Trap) as caught:
        launch(text, "first", grid=1, block=1, params=[np.zeros(4, np.uint32)])
    assert str(caught.value).endswith("\n  ptx:12 is from scale.py:9:5")


def test_a_listing_of_sass_names_the_op_beside_each_instruction(with_origins):
    listing = sass_listing(with_origins.assembled.cubin).splitlines()
    named = {
        opcode: {line.partition("//")[2].strip() for line in listing if opcode in line}
        for opcode in ("UTMALDG", "UTCHMMA", "LDTM")
    }
    wanted = {"UTMALDG": "tile.load_boxes", "UTCHMMA": "tile.pair_mma", "LDTM": "tile.read_row"}
    for opcode, op in wanted.items():
        assert named[opcode], opcode
        assert all(re.fullmatch(rf"[a-z-]+/{op}:\d+", place) for place in named[opcode]), named
    parsed = [line for line in listing if re.match(r"\s*/\*[0-9a-f]{4}\*/", line)]
    assert all("//" in line for line in parsed)


def test_line_information_changes_no_instruction_of_sass(with_origins):
    compiled = compile_matmul(SPEC, preset="v6")
    plain, entry = sass_listing(compiled.assembled.cubin), compiled.entry
    assert "//" not in re.sub(r"//-+.*", "", plain)
    listing = sass_listing(with_origins.assembled.cubin)
    assert parse_kernel(plain, entry) == parse_kernel(listing, entry)


def test_a_listing_without_a_disassembler_is_refused(with_origins, monkeypatch):
    monkeypatch.setattr(inspect_sass, "find_disassembler", lambda: None)
    with pytest.raises(CompileError, match="sass: a disassembler must be installed, found none"):
        sass_listing(with_origins.assembled.cubin)
