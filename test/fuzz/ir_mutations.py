"""Seeded changes to the text of a tile program: what no pass of ours would write.

`mutate(text, random)` gives (what was done, the new text). IR in generic form has an op a line, or
a region that opens and closes on lines of its own, so that lines are ops.
"""

import re

OPERANDS = re.compile(r'"\((%[^)]*)\)')
INTEGER = re.compile(r"(?<== )-?\d+(?= : i64)|(?<=[\[ ])\d+(?=[,\]])")
VALUE = re.compile(r"%[\w#]+")


def mutate(text, random):
    """One to three changes."""
    done = []
    for _ in range(random.choice((1, 1, 1, 2, 3))):
        name = random.choice(sorted(MUTATORS))
        changed = MUTATORS[name](text.splitlines(), random)
        if changed is not None and "\n".join(changed) != text:
            text = "\n".join(changed)
            done.append(name)
    return "+".join(done) or "nothing", text


def _ops(lines, *names):
    """Numbers of the lines that hold a whole op, of some names where given."""
    simple = [
        number
        for number, line in enumerate(lines)
        if ('"(' in line or "arith." in line) and not line.endswith(("({", "{"))
    ]
    return [at for at in simple if not names or any(f'"{name}' in lines[at] for name in names)]


def _loops(lines):
    return [number for number, line in enumerate(lines) if "scf.for" in line]


def constant(lines, random):
    """Another value of an index constant."""
    at = _pick(
        random, [n for n, line in enumerate(lines) if "constant" in line and "index" in line]
    )
    if at is None:
        return None
    new = random.choice((0, 1, 2, 3, 5, 7, -1, 1 << 33))
    lines[at] = re.sub(r"constant -?\d+", f"constant {new}", lines[at])
    return lines


def bound(lines, random):
    """Another constant as a bound or the step of a loop."""
    at = _pick(random, _loops(lines))
    known = [
        match[1]
        for line in lines[:at]
        for match in [re.search(r"(%\S+) = arith.constant \d", line)]
        if match
    ]
    if at is None or not known:
        return None
    which = random.choice((r"(?<== )%\w+(?= to)", r"(?<=to )%\w+", r"(?<=step )%\w+"))
    lines[at] = re.sub(which, random.choice(known), lines[at])
    return lines


def new_bound(lines, random):
    """A constant of its own as a bound or the step of a loop."""
    at = _pick(random, _loops(lines))
    if at is None:
        return None
    which = random.choice((r"(?<== )%\w+(?= to)", r"(?<=to )%\w+", r"(?<=step )%\w+"))
    lines[at] = re.sub(which, "%new", lines[at])
    value = random.choice((0, 1, 2, 3, 4, 6))
    return [*lines[:at], f"%new = arith.constant {value} : index", *lines[at:]]


def drop(lines, random):
    """One op less."""
    at = _pick(random, _ops(lines))
    return None if at is None else [*lines[:at], *lines[at + 1 :]]


def drop_pipe(lines, random):
    """One op of pipes less."""
    at = _pick(random, _ops(lines, "pipe."))
    return None if at is None else [*lines[:at], *lines[at + 1 :]]


def double(lines, random):
    """An op twice."""
    at = _pick(random, _ops(lines))
    if at is None:
        return None
    copy = re.sub(r"^(\s*)%\w+( =|:2 =)", r"\1%twice\2", lines[at])
    return [*lines[: at + 1], copy, *lines[at + 1 :]]


def swap(lines, random):
    """Two neighbours the other way round."""
    at = _pick(random, [at for at in _ops(lines) if at + 1 in _ops(lines)])
    if at is not None:
        lines[at], lines[at + 1] = lines[at + 1], lines[at]
    return lines


def move(lines, random):
    """An op somewhere else."""
    ops = _ops(lines, "pipe.", "tile.")
    at, to = _pick(random, ops), _pick(random, ops)
    if at is None or to is None:
        return None
    line = lines.pop(at)
    lines.insert(to, line)
    return lines


def operands(lines, random):
    """Two operands of an op swapped."""
    at = _pick(random, [at for at in _ops(lines) if len(_operands(lines[at])) > 1])
    if at is None:
        return None
    found = _operands(lines[at])
    one, other = random.sample(range(len(found)), 2)
    found[one], found[other] = found[other], found[one]
    lines[at] = OPERANDS.sub(f'"({", ".join(found)})', lines[at], count=1)
    return lines


def operand(lines, random):
    """Another value as an operand."""
    at = _pick(random, [at for at in _ops(lines) if _operands(lines[at])])
    if at is None:
        return None
    values = [value for line in lines[:at] for value in VALUE.findall(line)]
    found = _operands(lines[at])
    found[random.randrange(len(found))] = random.choice(values)
    lines[at] = OPERANDS.sub(f'"({", ".join(found)})', lines[at], count=1)
    return lines


def _operands(line):
    match = OPERANDS.search(line)
    return match[1].split(", ") if match else []


def attribute(lines, random):
    """Another number in an attribute."""
    places = [n for n, line in enumerate(lines) if re.search(r"\{[^{}]* = [^{}]*\}", line)]
    at = _pick(random, places)
    if at is None:
        return None
    head, brace, tail = lines[at].partition("{")
    numbers = list(INTEGER.finditer(tail.partition("}")[0]))
    if not numbers:
        return None
    which = random.choice(numbers)
    new = random.choice((0, 1, 2, 3, 4, int(which[0]) + 1, 2 * int(which[0]), int(which[0]) // 2))
    lines[at] = head + brace + tail[: which.start()] + str(new) + tail[which.end() :]
    return lines


def unknown_attribute(lines, random):
    """An attribute that nobody knows."""
    at = _pick(random, [at for at in _ops(lines) if "{" in lines[at]])
    if at is not None:
        lines[at] = lines[at].replace("{", "{odd = 1 : i64, ", 1)
    return lines


def predicate(lines, random):
    """Another comparison."""
    at = _pick(random, [at for at, line in enumerate(lines) if "cmpi" in line])
    if at is not None:
        new = random.choice(("eq", "slt", "sgt", "ult", "ugt", "sge"))
        lines[at] = re.sub(r"cmpi \w+", f"cmpi {new}", lines[at])
    return lines


def stages(lines, random):
    """Another number of slots in every ring of one size."""
    found = sorted({match for line in lines for match in re.findall(r"ring<\d+", line)})
    if not found:
        return None
    old, new = random.choice(found), f"ring<{random.choice((1, 2, 3, 4, 5, 9))}"
    return [line.replace(old + " ", new + " ") for line in lines]


def types(lines, random):
    """Another major axis, swizzle, extent or element everywhere."""
    old, new = random.choice(
        (
            ('"k"', '"mn"'),
            ('"128B"', '"32B"'),
            ('"none"', '"64B"'),
            ("tensor<64x64x", "tensor<32x64x"),
            ("tensor<64x48x", "tensor<48x64x"),
            ("memref<72x200xbf16, 1>", "memref<72x200xbf16, strided<[1, 72]>, 1>"),
            ("memref<72x96xf32, 1>", "memref<72x96xf32, strided<[1, 72]>, 1>"),
            ("memref<72x200", "memref<136x200"),
            (", 1>", ">"),
        )
    )
    return [line.replace(old, new) for line in lines]


def map_type(lines, random):
    """Another number in the type of a tensor map."""
    maps = sorted({each for line in lines for each in re.findall(r"!tile.map<[^>]*>", line)})
    if not maps:
        return None
    old = random.choice(maps)
    number = random.choice(list(re.finditer(r"\d+(?=[,\]])", old)))
    new = old[: number.start()] + str(int(number[0]) * 2) + old[number.end() :]
    return [line.replace(old, new) for line in lines]


def nest(lines, random):
    """A loop around a loop."""
    at = _pick(random, _loops(lines))
    if at is None:
        return None
    indent = lines[at][: len(lines[at]) - len(lines[at].lstrip())]
    end = next(n for n in range(at + 1, len(lines)) if lines[n].startswith(indent + "}"))
    top = [f"%n{index} = arith.constant {index} : index" for index in range(3)]
    head = f"scf.for %outer = %n0 to %n{random.choice((1, 2))} step %n1 {{"
    return [*lines[:at], *top, head, *lines[at : end + 1], "}", *lines[end + 1 :]]


def carry(lines, random):
    """A loop that carries a value."""
    at = _pick(random, _loops(lines))
    if at is None:
        return None
    lines[at] = re.sub(
        r"scf.for (.*) \{$",
        r"%carried = scf.for \1 iter_args(%held = %n0) -> (index) {",
        lines[at],
    )
    indent = lines[at][: len(lines[at]) - len(lines[at].lstrip())]
    end = next(n for n in range(at + 1, len(lines)) if lines[n].startswith(indent + "}"))
    lines.insert(end, "scf.yield %held : index")
    lines.insert(at, "%n0 = arith.constant 0 : index")
    return lines


def twice(lines, random):
    """A whole loop done twice."""
    at = _pick(random, _loops(lines))
    if at is None:
        return None
    indent = lines[at][: len(lines[at]) - len(lines[at].lstrip())]
    end = next(n for n in range(at + 1, len(lines)) if lines[n].startswith(indent + "}"))
    return [*lines[: end + 1], *lines[at : end + 1], *lines[end + 1 :]]


def index(lines, random):
    """An index that is moved on by a constant or doubled."""
    names = ("tile.load", "tile.tma_load", "tile.copy", "tile.tma_multicast", "tile.store")
    at = _pick(
        random, [n for n, line in enumerate(lines) if any(f'"{name}"' in line for name in names)]
    )
    if at is None:
        return None
    found = _operands(lines[at])
    which = random.choice((-1, -2))
    op = random.choice(("addi", "muli", "subi", "divsi"))
    made = [
        f"%one = arith.constant {random.choice((0, 1, 2))} : index",
        f"%moved = arith.{op} {found[which]}, %one : index",
    ]
    found[which] = "%moved"
    lines[at] = OPERANDS.sub(f'"({", ".join(found)})', lines[at], count=1)
    return [*lines[:at], *made, *lines[at:]]


def _pick(random, places):
    return random.choice(places) if places else None


MUTATORS = {
    function.__name__: function
    for function in (
        constant, bound, new_bound, drop, drop_pipe, double, swap, move, operands, operand,
        attribute, unknown_attribute, predicate, stages, types, map_type, nest, carry, twice, index,
    )
}  # fmt: skip
