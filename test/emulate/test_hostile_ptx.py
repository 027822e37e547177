"""PTX that is broken, or wants to hurt: an error with its line, in bounded time and memory."""

from __future__ import annotations

import json
import random
import re
import resource
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tilewright.runtime.emulator import DeviceError, LaunchError, PtxSyntaxError, Trap, launch
from tilewright.runtime.emulator.host.programs import load_program

HEADER = ".version 8.8\n.target sm_100a\n.address_size 64\n"
ROOT = Path(__file__).parent.parent
MANY = 100_000


def kernel(body: str, before: str = "", parameters: str = "") -> str:
    return f"{HEADER}{before}.visible .entry k({parameters}) {{\n{body} ret; }}"


def refused(text: str) -> DeviceError:
    started = time.process_time()
    with pytest.raises(DeviceError) as caught:
        launch(text, "k", grid=1, block=32, max_steps=10_000)
    assert time.process_time() - started < 10
    return caught.value


SYNTAX = {
    "nothing": ("", "1:1", "a PTX module must start with .version, got `the end of the text`"),
    "binary": ("\x00\xff\x01", "1:1", r"character not allowed in PTX, got '\x00'"),
    "version": (".version 8", "1:10", "expected a version such as 8.8, got `8`"),
    "no target": (
        ".version 8.8\n",
        "2:1",
        "expected a .target directive after .version, got `the end of the text`",
    ),
    "no end": (kernel("")[:-1], "5:7", "expected `}`, got `the end of the text`"),
    "no semicolon": (kernel("mov.b32 %r 5;"), "5:12", "expected `,` or `;`, got `5`"),
    "comment": (
        kernel("") + "/* so",
        "5:8",
        "expected `*/` at the end of the comment, got the end of the text",
    ),
    "string": (
        kernel('.pragma "so'),
        "5:9",
        'expected `"` at the end of the string, got the end of the line',
    ),
    "octal": (kernel("mov.u32 %r, 09;"), "5:13", "expected a constant of 64 bits, got `09`"),
    "wide": (
        kernel("mov.u64 %r, 18446744073709551616;"),
        "5:13",
        "expected a constant of 64 bits, got `18446744073709551616`",
    ),
    "digits": (
        kernel(f"mov.u32 %r, {'9' * MANY};"),
        "5:13",
        f"expected a constant of 64 bits, got `{'9' * 60}…`",
    ),
    "empty vector": (kernel("mov.b32 {}, 1;"), "5:9", "expected an element in a vector, got `{}`"),
    "align 0": (
        kernel("", ".shared .align 0 .b8 x[4];\n"),
        "4:16",
        "expected an alignment that is a power of two, got 0",
    ),
    "align 3": (
        kernel("", parameters=".param .align 3 .b8 p[4]"),
        "4:33",
        "expected an alignment that is a power of two, got 3",
    ),
    "count": (kernel(".reg .b32 %r<-5>;"), "5:14", "expected an integer, got `-`"),
    "extent": (
        kernel("", ".global .b8 x[2 - 7];\n"),
        "4:15",
        "expected an extent of at least 0, got -5",
    ),
    "values": (
        kernel("", ".global .b32 x[2] = {1, 2, 3};\n"),
        "4:19",
        "expected at most 2 values, got 3",
    ),
    "address": (
        kernel("", ".global .b64 x = [y];\n"),
        "4:18",
        "expected a constant or an address in an initialiser",
    ),
    "mask": (
        kernel("", ".global .b8 x = 0xFF(5);\n"),
        "4:17",
        "expected a mask above 0 of an address",
    ),
}


@pytest.mark.parametrize("name", SYNTAX)
def test_a_syntax_error_has_line_column_and_what_was_expected(name):
    text, place, message = SYNTAX[name]
    error = refused(text)
    assert isinstance(error, PtxSyntaxError)
    assert str(error) == f"ptx:{place}: error: {message}"
    assert place == f"{error.line}:{error.column}"


@pytest.mark.parametrize(
    "text",
    [
        kernel("{" * MANY),
        kernel("mov.b32 %r, " + "{" * MANY),
        kernel("mov.b32 %r, " + "-" * MANY + "1;"),
        kernel("", ".global .b32 x = " + "{" * MANY),
        kernel("", ".global .b32 x = " + "1(" * MANY),
    ],
    ids=["blocks", "vectors", "signs", "initialiser", "masks"],
)
def test_nesting_without_end_is_a_syntax_error(text):
    assert "expected blocks and lists that nest less deeply" in str(refused(text))


TOO_MUCH = {
    "registers": (
        kernel(".reg .b32 %r<2000000000>;"),
        "ptx:5: error: kernel k: unmodelled: more than 131072 registers, got 2000000000 here",
    ),
    "module": (
        kernel("", ".global .b8 x[1099511627776];\n"),
        "ptx:4: error: out-of-bounds: the variables of a module must have at most 4294967296 bytes,"
        " got 1099511627776 with variable x",
    ),
    "dimensions": (
        kernel("", ".const .b8 x[4294967296][4294967296];\n"),
        "ptx:4: error: out-of-bounds: the variables of a module must have at most 4294967296 bytes,"
        " got 18446744073709551616 with variable x",
    ),
    "local": (
        kernel(".local .b8 x[1073741824];"),
        "ptx:5: error: out-of-bounds: the local memory of a thread must have at most 524288 bytes,"
        " got 1073741824 with variable x",
    ),
    "parameters": (
        kernel("", parameters=".param .b8 p[1099511627776]"),
        "ptx:4: error: out-of-bounds: the parameters of a kernel must have at most 32764 bytes, got"
        " 1099511627776 with variable p",
    ),
    "shared": (
        kernel(".reg .b32 %r; mov.b32 %r, x;", ".shared .b8 x[1099511627776];\n"),
        "ptx:4: error: out-of-bounds: static shared memory must have at most 49152 bytes, got"
        " 1099511627776 with variable x",
    ),
    "predicates in memory": (
        kernel("", ".global .pred x = 1;\n"),
        "ptx:4:9: error: expected a type that .global variables may have, got `.pred`",
    ),
    "recursion": (
        kernel("call f;", ".func f() { call g; ret; }\n.func g() { call f; ret; }\n").replace(
            ".func f()", ".func g();\n.func f()", 1
        ),
        "ptx:5: error: kernel k: unmodelled: function f calls itself, recursion is not modelled",
    ),
    "missing operand": (
        kernel("mbarrier.inval.shared.b64 ;"),
        "ptx:5: error: kernel k: `mbarrier.inval.shared.b64`: unmodelled: 0 operands (PTX ISA"
        " section 9.7.13.15)",
    ),
    "a negative count of groups": (
        kernel("cp.async.bulk.wait_group -3;"),
        "ptx:5: error: kernel k: `cp.async.bulk.wait_group -3`: operand: a constant of at least 0"
        " is expected, got -3",
    ),
    "a number as label": (
        kernel("bra 5;"),
        "ptx:5: error: kernel k: `bra 5`: operand: a name is expected here",
    ),
    "a decimal as predicate": (
        kernel(".reg .pred %p; mov.pred %p, 1.5;"),
        "ptx:5: error: kernel k: `mov.pred %p, 1.5`: type: a decimal constant cannot have 1 bits",
    ),
}


@pytest.mark.parametrize("name", TOO_MUCH)
def test_what_cannot_be_is_refused_with_its_line(name):
    text, message = TOO_MUCH[name]
    assert str(refused(text)) == message


def test_calls_are_followed_once_however_many_paths_there_are():
    """Functions a0, b0 … a39, b39, each of which calls both of the next: 2^40 paths."""
    functions = [
        f".func {name}{i}() {{ call a{i + 1}; call b{i + 1}; ret; }}\n"
        for i in reversed(range(40))
        for name in "ab"
    ]
    text = kernel("call a0;", ".func a40() { ret; }\n.func b40() { ret; }\n" + "".join(functions))
    trap = refused(text)
    assert isinstance(trap, Trap) and trap.category == "step-limit"


def test_a_long_opcode_takes_no_time():
    error = str(refused(kernel("ld." + "x." * MANY + "u32 a, b;")))
    assert "modifier" in error and len(error) < 3000


def test_a_grid_is_bounded():
    with pytest.raises(LaunchError, match="a grid has at most 4194304 CTAs here, got 4194305"):
        launch(kernel(""), "k", grid=4194305, block=32)


def sources() -> list[str]:
    folders = ("emulator/ptx", "backend/golden", "emulator/foreign_instructions/compiled")
    paths = sorted(path for folder in folders for path in (ROOT / folder).glob("*.ptx"))
    return [path.read_text() for path in paths if path.stat().st_size < 60_000]


def mutated(text: str, rng: random.Random) -> str:
    """Cut off, cut out, doubled, or with foreign characters at a random place."""
    at, size = rng.randrange(len(text)), rng.randrange(1, 40)
    junk = "".join(chr(rng.randrange(256)) for _ in range(3))
    marks = ["{", "}", "(", "]", ";", ",", "@", ".align 0", ".b8", "1e999", "0x", "/*", '"', "-"]
    return rng.choice(
        [
            text[:at],
            text[:at] + text[at + size :],
            text[: at + size] + text[at:],
            text[:at] + junk + text[at:],
            text[:at] + rng.choice(marks) + text[at:],
        ]
    )


@pytest.mark.parametrize("seed", range(4))
def test_a_mutated_module_loads_or_is_refused(seed):
    rng, texts = random.Random(seed), sources()
    outcomes = {"loaded": 0, "refused": 0}
    for _ in range(60):
        text = mutated(rng.choice(texts), rng)
        entry = re.search(r"\.entry\s+(\w+)", text)
        try:
            load_program.__wrapped__(text, entry[1] if entry else "k")
            outcomes["loaded"] += 1
        except DeviceError as error:
            assert str(error)
            outcomes["refused"] += 1
    assert min(outcomes.values()) > 0


OPERANDS = (
    "%p %r %h %rd %f %q 5 -3 1.5 0f3f800000 [%rd] [%r+4] [cell] [99] [%rd,{%r,%r}] [%h] {%r,%r}"
    " {%h,%h} {{%r}} (%r) () LABEL _ cell missing %tid.x %clock generic(cell) %r+4 !%p %p|%p"
).split()
REGISTERS = """.reg .pred %p; .reg .b16 %h; .reg .b32 %r; .reg .f32 %f; .reg .b64 %rd;
  .reg .b128 %q; .shared .align 16 .b8 cell[64];"""


@pytest.mark.parametrize("seed", range(4))
def test_an_instruction_with_foreign_operands_runs_or_is_refused(seed):
    rng = random.Random(seed)
    pattern = re.compile(r"^\s*(?:@!?%\w+\s+)?([a-z][\w.:]*)\s+(.*);", re.M)
    opcodes = sorted({match for text in sources() for match in pattern.findall(text)})
    for _ in range(300):
        opcode, operands = rng.choice(opcodes)
        count = max(0, operands.count(",") + rng.choice([0, 0, 0, 1]))
        words = ", ".join(rng.choice(OPERANDS) for _ in range(count + 1))
        text = kernel(f"{REGISTERS} {opcode} {words};\nLABEL:")
        try:
            launch(text, "k", grid=1, block=32, shared_bytes=64, max_steps=100)
        except DeviceError as error:
            assert str(error)


def limited(paths, *words, address_space: int):
    """The command in a process that may not have more than so many bytes."""
    code = "import sys; from tilewright.tools.main import main; sys.exit(main())"
    command = [sys.executable, "-c", code, "emulate", str(paths[0]), "--launch", str(paths[1])]
    limit = (address_space, address_space)
    return subprocess.run(
        [*command, *words],
        capture_output=True,
        text=True,
        timeout=120,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, limit),
    )


def test_a_kernel_that_needs_more_memory_than_there_is_fails_with_one_line(files):
    launch_file = {"entry": "k", "grid": [1], "block": [32], "tensors": [], "parameters": []}
    paths = files(kernel("", ".global .b8 huge[4294967296];\n"), launch_file)
    ran = limited(paths, "--json", address_space=4 * 2**30)
    assert ran.returncode == 1, ran.stderr
    error = json.loads(ran.stdout)["error"]
    assert error.endswith("of memory, got more; make the launch smaller")
    assert "Traceback" not in ran.stderr
