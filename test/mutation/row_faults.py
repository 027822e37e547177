"""Planted faults in what kernels for any number of rows do."""

from __future__ import annotations

from fault import Fault

BOTH = ("test/numerics/sizes/test_any_rows_and_matrices.py",)
DYNAMIC = ("test/numerics/sizes/test_dynamic_rows.py",)
STACKS = ("test/numerics/sizes/test_dynamic_stacks.py",)
LIMITS = ("test/compiler/groups/test_sizes_over_limits.py",)
LONG = ("test/numerics/sizes/test_columns_of_any_rows.py",)
SEVERAL = ("test/runtime/test_bundles_of_several_kernels.py",)
BANDS = [
    Fault(
        "bundles: the first matrices of a band have the kernels of the one before it",
        "bisect_right(found, matrices, key",
        "bisect_right(found, matrices - 1, key",
        ("test/runtime/test_bundles_of_bands.py",),
    ),
    Fault(
        "matmul: the first matrices of a band have the kernels of the one before it",
        "band = bisect_right(table.bands, matrices)",
        "band = bisect_right(table.bands, matrices - 1)",
        ("test/compiler/calls/test_matmul_of_any_rows_and_batch.py",),
    ),
    Fault(
        "bands: a schedule serves more rows than its tile holds",
        "for most, own in bounded.items() if keeps_rules(each, own)}",
        "for most in bounded}",
        ("test/compiler/schedule/test_bands.py",),
    ),
]
ROWS = [
    Fault(
        "launch: boxes have the rows of a tile, however few a launch says",
        'return min(sizes[each["size"]], each["most"])',
        'return each["most"]',
        DYNAMIC,
    ),
    Fault(
        "clearing: the first row that no box fills is left as it is",
        "        unit = box_rows(load) * in_row + unit\n",
        "        unit = (box_rows(load) + 1) * in_row + unit\n",
        DYNAMIC,
    ),
    Fault(
        "bundles: the first rows of a range go to the one before it",
        "bisect_right(ranges, rows, key",
        "bisect_right(ranges, rows - 1, key",
        SEVERAL,
    ),
    Fault(
        "matmul: the first rows of a range go to the one before it",
        "[bisect_right(table.starts[band], rows)]",
        "[bisect_right(table.starts[band], rows - 1)]",
        ("test/compiler/calls/test_matmul_of_any_m.py",),
    ),
    Fault(
        "regions: operands of any rows are viewed with the rows that were traced",
        "tuple(a if a == b else REST for a, b in pairs)",
        "tuple(a for a, _ in pairs)",
        ("test/inductor/test_regions_of_any_rows.py",),
    ),
    Fault(
        "launch: exchanged tiles have the rows of those that are not",
        '"rows": tile[axis] * cluster[axis]',
        '"rows": tile[0] * cluster[axis]',
        DYNAMIC,
    ),
    Fault(
        "places: of tiles that are counted along N a group's first ones are left out",
        "turn - number * (n * group), number * group, m",
        "turn - number * (n * group), number * group + 1, m",
        DYNAMIC,
    ),
    Fault(
        "grid parts: kernels of rows without end may have them",
        "m = -(-problem.most_m // schedule.tile[0])",
        "m = -(-problem.m // schedule.tile[0])",
        ("test/compiler/schedule/test_row_buckets.py",),
    ),
    Fault(
        "stacks: a launch counts the tiles of one matrix less",
        "return build.as_i32(op.matrices) * op.each",
        "return (build.as_i32(op.matrices) - 1) * op.each",
        STACKS,
    ),
    Fault(
        "matmul: the number of matrices is looked for in an a that all share",
        "self._at, self._axis = int(stacks and not spec.a_stacked)",
        "self._at, self._axis = 0",
        ("test/compiler/calls/test_matmul_of_any_batch.py",),
    ),
    Fault(
        "stacks: every matrix of any number has a cluster for itself",
        "clusters = batch.tiles.value // cluster[0]",
        "clusters = 1",
        STACKS,
    ),
    Fault(
        "stacks: tiles of any number of rows are those of a matrix less one",
        "return [build.as_index(batch), build.as_index(place - batch * op.each)]",
        "return [build.as_index(batch), build.as_index(place - batch * (op.each - 1))]",
        BOTH,
    ),
    Fault(
        "stacks: threads address matrices of any number of rows as if they had one",
        "            first = first * build.widen(build.as_value(scope.extent(DYNAMIC)))\n",
        "            first = first * 1\n",
        BOTH,
    ),
    Fault(
        "launch: maps of matrices of any number of rows step over one row more",
        'each["times"] * sizes[each["size"]] if isinstance(each, dict)',
        'each["times"] * (sizes[each["size"]] + 1) if isinstance(each, dict)',
        BOTH,
    ),
    Fault(
        "launch: a grid of any rows and matrices has the tiles of one matrix",
        'clusters *= sizes[formula["times"]] if "times" in formula else 1',
        "clusters *= 1",
        BOTH,
    ),
    Fault(
        "regions: kernels for any rows of a stack keep the number that was traced",
        'opened = {"dynamic_batch": True, "dynamic_m": first.m != second.m}',
        'opened = {"dynamic_batch": True, "dynamic_m": False}',
        ("test/inductor/test_regions_of_any_rows_and_matrices.py",),
    ),
    Fault(
        "buckets: schedules are left out however much they are missed",
        "missed.max(1) <= 1 + loss",
        "missed.max(1) <= 2 + loss",
        ("test/compiler/schedule/test_row_buckets.py",),
    ),
    Fault(
        "sizes: a function that asks how many rows there are need not be asked at each number",
        "    return bool(sizes.guards) or watching.is_number",
        "    return watching.is_number",
        ("test/compiler/calls/test_epilogues_of_any_m.py",),
    ),
    Fault(
        "short-steps: what is left of K is rounded down to whole MMAs",
        "-(-left // dtype.k_per_mma) * dtype.k_per_mma",
        "max(left // dtype.k_per_mma, 1) * dtype.k_per_mma",
        ("test/numerics/sizes/test_skipped_zeros.py",),
    ),
    Fault(
        "short-steps: tcgen05.mma of the last step leaves out one more",
        "*sums_at(op.acc), op.accumulate, range(depth))",
        "*sums_at(op.acc), op.accumulate, range(max(depth - 16, 1)))",
        ("test/numerics/sizes/test_skipped_zeros_tcgen05.py",),
    ),
    Fault(
        "modules: rows that are compared with matrices are taken for them",
        "if None in named or named[0] != named[1]:",
        "if None in named:",
        ("test/compiler/calls/test_compared_sizes.py",),
    ),
    Fault(
        "modules: a size of a transposed tensor is that of the other's dim",
        '_size_of(transposed[1], int(transposed[2].split(",")[dim]), text, dims)',
        "_size_of(transposed[1], dim, text, dims)",
        ("test/compiler/calls/test_compared_sizes.py",),
    ),
    Fault(
        "modules: inputs of rows and matrices are viewed with matrices alone",
        "SIZE: value.shape[max(0, value.dim() - 2)]",
        "SIZE: value.shape[0]",
        ("test/tools/test_modules_of_any_m.py",),
    ),
    Fault(
        "literals: what a number has behind its point is cut off for an integer",
        "whole = math.isfinite(number) and number == int(number)",
        "whole = math.isfinite(number)",
        ("test/compiler/test_literals.py",),
    ),
    Fault(
        "literals: an integer of many digits is rounded twice",
        "number = (number >> more | bool(lost)) << more",
        "number = float(number)",
        ("test/compiler/test_literals.py",),
    ),
]
FIRST_ROWS = [
    Fault(
        "buckets: the first rows that lanes take share the kernel of the most of them",
        "[_by_lanes(spec, each, target) for each in range(1, rows + 1)]",
        "[replace(_by_lanes(spec, rows, target), ranges=((1, rows),))]",
        ("test/compiler/schedule/test_row_buckets.py",),
    ),
]
ONE_NUMBER = [
    Fault(
        "whole: a kernel for one number of rows compares them",
        "extent = _fewest_rows(kernel) if found.extent == DYNAMIC else found.extent",
        "extent = found.extent",
        DYNAMIC,
    ),
    Fault(
        "whole: rows that some launches say lie inside for all",
        "return row_bounds(kernel)[0] if has_dynamic_rows",
        "return row_bounds(kernel)[1] if has_dynamic_rows",
        DYNAMIC,
    ),
    Fault(
        "scope: a kernel knows the fewest rows of a launch, whatever the most are",
        "return least if least == most else self._said(size)",
        "return least if most < ROWS_MOST else self._said(size)",
        DYNAMIC,
    ),
]
REDUCED_ROWS = [
    Fault(
        "fused rows: what a kernel leaves of a reduction of any rows is what the caller gets",
        "return Traced(spec, ops, arguments, finish)",
        "return Traced(spec, ops, arguments, tuple(each._replace(kind=None) for each in finish))",
        ("test/compiler/calls/test_epilogues_of_any_m.py",),
    ),
]
LONG_ROWS = [
    Fault(
        "bundles: rows have the kernels of a multiple that they are none of",
        "if rows % multiple == 0)\n    found = next",
        "if rows >= multiple)\n    found = next",
        LONG,
    ),
    Fault(
        "matmul: rows have the kernels of a multiple that they are none of",
        "if rows % multiple == 0:\n                table = other",
        "if rows >= multiple:\n                table = other",
        ("test/compiler/calls/test_columns_of_any_m.py",),
    ),
    Fault(
        "legality: TMA addresses rows of any length that a launch says",
        "if multiple * element_bytes % unit == 0:",
        "if multiple * element_bytes > 0:",
        LONG,
    ),
    Fault(
        "copies: threads copy as many bytes at once as rows of known length allow",
        "known = [rows_multiple(row) if length < 0 else length for length in lengths]",
        "known = [8 if length < 0 else length for length in lengths]",
        LONG,
    ),
    Fault(
        "stacks: matrices of an A with M contiguous are as far apart as those of one column",
        "rows_times(stack.shape[2] if long_as_rows else strides[1])",
        "rows_times(1 if long_as_rows else strides[1])",
        LONG,
    ),
    Fault(
        "placement: operands that are too long are copied before they are refused",
        "if max(array.shape, default=0) > EXTENT_MAX:",
        "if max(array.shape, default=0) > 2 * EXTENT_MAX + 2:",
        LIMITS,
    ),
    Fault(
        "spec: more rows and K are grouped than maps of groups reach",
        "if (extent := getattr(spec, axis)) > FAR:",
        "if (extent := getattr(spec, axis)) > 2 * FAR:",
        LIMITS,
    ),
    Fault(
        "bundles: a launch says more rows in groups than maps of groups reach",
        "found = min(found, FAR)",
        "found = min(found, 2 * FAR)",
        LIMITS,
    ),
    Fault(
        "operands: tiles end behind what is counted",
        "furthest = (max(abs(end) for end in reach) + 1) * extent",
        "furthest = max(abs(end) for end in reach) * extent",
        LIMITS,
    ),
]
FIRST_STEPS = [
    Fault(
        "buckets: few rows begin elsewhere by more kernels than a bundle holds",
        'ways = ways if len(ways) - 1 <= room else {"": ranges}',
        "ways = dict(ways)",
        ("test/numerics/loops/test_rotated_steps.py",),
    ),
    Fault(
        "sharing: the first row behind those that begin elsewhere has no kernel",
        "(last + 1, most)",
        "(last + 2, most)",
        ("test/numerics/loops/test_rotated_steps.py",),
    ),
    Fault(
        "rotation: rows of any M begin elsewhere, however few rows of weights a tile has",
        "range(ROWS.start, min(ROWS.stop, most + 1))",
        "range(ROWS.start, ROWS.stop)",
        ("test/numerics/loops/test_rotated_steps.py",),
    ),
]
