"""Planted faults in regions of torch's graphs."""

from __future__ import annotations

from fault import Fault

REGIONS = "test/inductor/test_regions.py"
RACES = "test/inductor/test_races.py"
NUMBERS = "test/inductor/test_region_numerics.py"

GRAPHS = [
    Fault(
        "source: a region of our own product of f32 has the digits of tf32 whatever is asked for",
        "    spec = with_precision(spec, region.products[0].precision)\n",
        "",
        (REGIONS,),
    ),
    Fault(
        "module: a graph is not told that torch asks for more digits than its kernel multiplies",
        "warn_of_tf32._dynamo_marked_constant = True",
        "warn_of_tf32._no_mark = True",
        ("test/compiler/calls/test_matmul_of_other_types.py",),
    ),
    Fault(
        "grow: what depends on an operator outside through another one counts as independent",
        "                self._known[each] = any(self._known[e] for e in reads)",
        "                self._known[each] = False",
        (REGIONS,),
    ),
    Fault(
        "grow: regions that reach further than this one do not lead back",
        "        if begin <= last < end:",
        "        if begin <= last < begin:",
        (REGIONS,),
    ),
    Fault(
        "race: a region that is as fast as its products alone is not raced against the rest",
        "        if not fused or ours <= theirs * enough:",
        "        if not fused or ours <= theirs * 2:",
        (RACES,),
    ),
    Fault(
        "source: a bool counts as the number that it is read as",
        "value != 0 if is_truth(node) else value for node, value in given}",
        "value == 0 if is_truth(node) else value for node, value in given}",
        (NUMBERS,),
    ),
    Fault(
        "backend: threads that torch starts have no provider",
        "        entry.default = found",
        "        entry.default = None",
        ("test/inductor/test_region_pass.py",),
    ),
    Fault(
        "joins: what lies between two products may be read elsewhere",
        "        read_here = all(source_of(each, joined) is second.node for each in leaving)",
        "        read_here = all(source_of(each, joined) is not None for each in leaving)",
        (REGIONS,),
    ),
    Fault(
        "frames: what refuses a view among fake tensors ends the search",
        "    except (RuntimeError, ValueError):",
        "    except RuntimeError:",
        (REGIONS,),
    ),
    Fault(
        "matmul: a call like the last one goes to the kernel, whatever is differentiated",
        "or differentiates(a.requires_grad or b.requires_grad or out.requires_grad):",
        ":",
        ("test/compiler/calls/test_calls_like_the_last.py",),
    ),
    Fault(
        "row-regions: processes choose for the rows that torch traced",
        "        return Choice(of_any_size(self.spec, OPEN[self.size]), self.target)",
        "        return Choice(self.spec, self.target)",
        ("test/inductor/test_regions_of_any_rows.py",),
    ),
    Fault(
        "source: of all who ask how exact functions are, the most lenient is heard",
        '    return max(asked, key=("", FAST, EXACT).index)',
        '    return min(asked, key=("", FAST, EXACT).index)',
        ("test/inductor/test_math_of_regions.py",),
    ),
    Fault(
        "math: a policy that is asked for need not be about a function",
        "    if not _holds_functions(module):",
        "    if policy is None:",
        ("test/compiler/test_math_policy.py",),
    ),
    Fault(
        "grouped: a tangent of the matrices is left out",
        "        return first + second[0] if second else first\n\n    @staticmethod\n"
        "    def vmap(info: Any, in_dims: tuple[int | None, ...], *inputs: Any)",
        "        return first\n\n    @staticmethod\n"
        "    def vmap(info: Any, in_dims: tuple[int | None, ...], *inputs: Any)",
        ("test/compiler/calls/test_transforms_of_operators.py",),
    ),
    Fault(
        "grouped: gradients of matrices take offsets as they come",
        "    offs = offs.cummax(0).values",
        "    offs = offs.clone()",
        ("test/compiler/groups/test_grouped_operator.py",),
    ),
    Fault(
        "grouped: nobody records the gradients of gradients",
        "    return composed(mat_a, mat_b, offs, None, order, zeros, *how, m)",
        "    return _multiply(mat_a, mat_b, offs, None, order, zeros, *how, m)",
        ("test/compiler/groups/test_grouped_operator.py",),
    ),
    Fault(
        "elements: an operand of one element has the precision that it came with",
        "as_it_is = rank == 0 and node.target in SCALED and argument is node.args[1]",
        "as_it_is = rank == 0 and argument is node.args[1]",
        ("test/compiler/calls/test_epilogue_types.py",),
    ),
    Fault(
        "function-keys: what is like no other is stored for the next call",
        "    if any(each is LIKE_NO_OTHER for each in kept):",
        "    if not kept:",
        ("test/compiler/calls/test_function_keys.py",),
    ),
    Fault(
        "symbols: a size that is the same in both readings counts as known",
        "                if first == second and not _is_known(size):",
        "                if first > second and not _is_known(size):",
        ("test/inductor/test_regions_of_any_rows.py", "test/inductor/test_random_graphs.py"),
    ),
]

JOINED = [
    Fault(
        "joint-pass: what no product of backward reads counts as saved",
        "        else user in backward and product_of(user) is not None",
        "        else product_of(user) is not None",
        ("test/inductor/test_joint_pass.py",),
    ),
]

RECIPES = [
    Fault(
        "recipe: what is compiled anew may be another kernel than the key's",
        "    if found != key:",
        "    if found != found:",
        ("test/inductor/test_recipes.py",),
    ),
    Fault(
        "kept-rows: the process that looked at a graph enters its rows once more",
        "        rows = [_row(each) for each in written] if mark not in REPORT.graphs else []",
        "        rows = [_row(each) for each in written]",
        ("test/inductor/test_kept_rows.py",),
    ),
]

RACES = [
    Fault(
        "race: a bool is converted before the clock runs",
        "        return lambda: _taken(value.to(dtype), given)\n",
        "        value = value.to(dtype)\n",
        ("test/inductor/test_races.py",),
    ),
    Fault(
        "described: what is converted from a bool shares a race with what is there",
        '    lines += [f"{names[node]}: converted from a bool" for node in of_bools]\n',
        "    lines += []\n",
        ("test/inductor/test_races.py",),
    ),
]

TRACED = [
    Fault(
        "traced: a loaded kernel in a graph takes inputs of any shape and type",
        "    kernel.check_traced(inputs)\n    places",
        "    places",
        ("test/runtime/test_called_kernels.py",),
    ),
    Fault(
        "traced: a product in a graph has a type whatever its operands are of",
        "    dtype = check_types(str(a.dtype), str(b.dtype), out_dtype)\n",
        "    dtype = out_dtype or check_types(str(a.dtype), str(a.dtype))\n",
        ("test/compiler/calls/test_matmul_on_first_use.py",),
    ),
]
