"""Regions whose rows are a symbol, or how many matrices a stack has, or both, or whose K is: the
kernels for any of them, and what they read.

    region of numbers, twice   →   spec and epilogue with "?" rows   →   kernels for ranges of rows

Both readings of the region must differ in the number of rows alone, of matrices or of K
(`symbols.py`).
All kernels that share the rows are compiled ahead, and kept as one bundle.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

from ...dialects.errors import CompileError, OptionError
from ...runtime.bundles.bundle import Bundle, together
from ...runtime.bundles.several import Bands, bands_of
from ..calls.dense.fused_rows import AXES, any_rows
from ..calls.kernels.kernel_cache import describe_request, digest, keep
from ..calls.kernels.lookup import OPEN, How, buckets_of_rows
from ..calls.kernels.row_kernels import of_any_size
from ..importers.linalg_text import LinalgText
from ..schedule.any_size.buckets import Bucket
from ..spec import MatmulSpec
from ..spec.epilogue import Epilogue
from .ahead import Choice, Job
from .region import Region
from .replace import REST
from .source import Input, Parts, Prepared, parts_of, policy_of
from .symbols import Numbered

if TYPE_CHECKING:
    import torch


class RowsPrepared(NamedTuple):
    """As `Prepared` has it, of the rows that torch traced, and the kernels that share all rows; of
    a stack likewise of its matrices.

    jobs: what is compiled, by the key of each. viewed: `inputs` for any rows.
    """

    spec: MatmulSpec
    target: str
    pipeline: str
    math: str
    inputs: list[Input]
    viewed: list[Input]
    jobs: dict[str, Job]
    bands: Bands

    @property
    def key(self) -> str:
        return digest({"kernels": list(self.jobs), "bands": self.bands})

    def bundle_of(self, made: Mapping[str, Bundle | CompileError]) -> Bundle | CompileError:
        """The kernels as one bundle, which other processes find as well."""
        found = [made[key] for key in self.jobs]
        kernels = [each for each in found if isinstance(each, Bundle)]
        if len(kernels) < len(found):
            return next(each for each in found if isinstance(each, CompileError))
        return keep(self.key, together(kernels, self.bands))


AnyPrepared = Prepared | RowsPrepared


class Outline(NamedTuple):
    """A region of any rows before kernels are chosen for it: the spec and the epilogue of them all,
    what it is at the rows that torch traced, and what the kernels read."""

    spec: MatmulSpec
    epilogue: Epilogue | None
    first: Parts
    viewed: list[Input]
    target: str
    math: str

    @property
    def size(self) -> str:
        """The sizes that a launch says, as `How.m` has them."""
        return size_of(self.spec)

    @property
    def choice(self) -> Choice:
        """What takes a second: which kernels share all rows."""
        return Choice(of_any_size(self.spec, OPEN[self.size]), self.target)

    def prepared(self) -> RowsPrepared:
        """With the kernels, chosen where they are not kept; CompileError where there are none."""
        how = How(target=self.target, math=self.math, m=self.size)
        buckets = buckets_of_rows(self.spec, self.target, how)
        first = self.first
        jobs: dict[str, Job] = {}
        for bucket in buckets:
            job = _source(bucket, self.epilogue, first), self.target, bucket.pipeline, self.math
            jobs[digest(describe_request(*job))] = job
        multiples = [each.spec.multiple_m for each in buckets]
        bands = bands_of([each.ranges for each in buckets], multiples)
        known = first.spec, self.target, buckets[0].pipeline, self.math
        return RowsPrepared(*known, first.inputs, self.viewed, jobs, bands)


def outlined(region: Region, graphs: Numbered, target: str, math: str) -> Outline:
    """A region of the first graph, for any rows; CompileError for what no kernel computes.

    Sizes beside the rows must be numbers.
    """
    _check_form(region)
    graphs.check_sizes(region)
    first, second = (parts_of(each, target) for each in (region, graphs.other(region)))
    spec = any_rows_spec(first.spec, second.spec)
    epilogue, viewed = _any_rows(first, second, AXES[size_of(spec)])
    _check_views(region, viewed)
    return Outline(spec, epilogue, first, viewed, target, policy_of(region, math, epilogue))


def any_rows_spec(first: MatmulSpec, second: MatmulSpec) -> MatmulSpec:
    """The spec of any M, of those at two numbers of rows, or of any K; of a stack that of any
    batch."""
    if first.batch:
        return _any_stack(first, second)
    if first.m == second.m and first.k != second.k:
        return _any_depth(first, second)
    if first.m == second.m:
        raise CompileError("region: rows or K must be the symbol, got another size that is one")
    if replace(first, m=second.m) != second:
        raise CompileError("region: sizes beside rows must be numbers, got symbols")
    return replace(first, dynamic_m=True)


def _any_depth(first: MatmulSpec, second: MatmulSpec) -> MatmulSpec:
    """The spec of any K, of those at two, as gradients of weights are."""
    if replace(first, k=second.k) != second:
        raise CompileError("region: sizes beside K must be numbers, got symbols")
    try:
        return replace(first, dynamic_k=True)
    except OptionError as error:
        raise CompileError(f"region: K that is a symbol is of no kernel: {error}") from error


def _any_stack(first: MatmulSpec, second: MatmulSpec) -> MatmulSpec:
    """The spec of any batch, of those at two; of any M, too, where that differs."""
    rule = "of a stack the matrices and their rows alone may be symbols"
    sizes = {"m": second.m, "batch": second.batch}
    opened = {"dynamic_batch": True, "dynamic_m": first.m != second.m}
    try:
        if replace(first, **sizes) == second:
            return replace(first, **opened)
    except OptionError as error:
        raise CompileError(f"region: {rule}, got steps of numbers: {error}") from error
    raise CompileError(f"region: {rule}, got other sizes")


def size_of(spec: MatmulSpec) -> str:
    """The sizes that launches of a spec's kernels say, as `How.m` has them."""
    return next(name for name, sizes in OPEN.items() if sizes == spec.open_sizes)


def _check_form(region: Region) -> None:
    """Refuse products that no kernel for any M computes."""
    if region.products[0].blocks:
        raise CompileError("region: rows must be a number for scales of blocks, got a symbol")


def _any_rows(first: Parts, second: Parts, axis: str) -> tuple[Epilogue | None, list[Input]]:
    """The epilogue of any rows, and what the kernels read with their sizes open."""
    epilogues = first.epilogue, second.epilogue
    if epilogues[0] is None or epilogues[1] is None:
        return None, first.inputs
    if [_steps(e) for e in first.lies] != [_steps(e) for e in second.lies]:
        raise CompileError("region: operands must lie as they do at other rows, got other strides")
    found = any_rows(epilogues[0], first.arguments, axis)
    other = any_rows(epilogues[1], second.arguments, axis)
    if found != other:
        raise CompileError("region: must compute the same at any rows, got another function")
    return found[0], [_open(*each) for each in zip(first.inputs, second.inputs, strict=True)]


def _steps(value: torch.Tensor) -> tuple[int, ...] | None:
    """How an operand lies; None where its elements lie one after the other, whatever its sizes."""
    return None if value.is_contiguous() else value.stride()


def _check_views(region: Region, viewed: list[Input]) -> None:
    """Refuse operands that a reshape would have to find two sizes of."""
    for each in viewed:
        node = region.reads[each.number]
        found = [size for size in each.sizes or () if size == REST]
        if len(found) > 1 and len(each.sizes or ()) != len(node.meta["val"].shape):
            rule = "must have the dims of the product where rows and matrices are symbols"
            got = list(node.meta["val"].shape)
            raise CompileError(f"region: {node.name} {rule}, got {got}")


def _open(first: Input, second: Input) -> Input:
    if first.sizes is None or second.sizes is None:
        return first
    pairs = zip(first.sizes, second.sizes, strict=True)
    return first._replace(sizes=tuple(a if a == b else REST for a, b in pairs))


def _source(bucket: Bucket, epilogue: Epilogue | None, parts: Parts) -> MatmulSpec | LinalgText:
    if epilogue is None:
        return bucket.spec
    text = bucket.spec.mlir_text(epilogue)
    return LinalgText(text, "region", parts.names, column_major=parts.transposed)
