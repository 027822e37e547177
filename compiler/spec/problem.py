"""`MatmulSpec`: the fields of a matmul, and the sizes and types of its arrays."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

from ...dialects.dtypes import (
    BLOCKWISE_FORMS,
    DTYPES,
    OPERAND_DTYPES,
    OPERAND_FORMATS,
    SCALED_FORMATS,
    WEIGHT_DTYPES,
    WIDE_DTYPES,
    ScaledFormat,
    blocked_scale_shape,
    blockwise_scale_shape,
)
from ...dialects.record import record
from ...runtime.group_sizes import rows_of_atoms
from .memory import Stored

EXTENT_MAX = 2**31 - 1
FURTHER_MAX = 8
SPEC_DTYPES = (*OPERAND_DTYPES, *OPERAND_FORMATS)
B_DTYPES = (*SPEC_DTYPES, *(name for name in WEIGHT_DTYPES if name not in SPEC_DTYPES))
BLOCKED, LINEAR = "blocked", "linear"
OF_BATCHES = ("batch", "a_stacked", "b_stacked")
OF_ANY = ("dynamic_m", "dynamic_batch", "dynamic_k")
OF_OUTPUTS = ("further", "neighbours")
OF_SCALES = ("scale_layout",)
OF_BLOCKWISE = ("a_scales", "b_scales")
OF_WEIGHTS = ("group_size", "scale_dtype", "zero_points")
TWO_LEVEL = "two-level"
OF_GROUPS = ("groups", "group_axis")
OF_GATHERED = ("gathered",)
OF_ORDERED = ("ordered",)
OF_PRODUCTS = ("products",)
BESIDE = ("beside", "beside_columns", "beside_rows")
OF_EPILOGUES = ("epilogue_instructions", *BESIDE)
OF_ROWS = ("least_m", "most_m")
OF_MULTIPLES = ("multiple_m",)
ROWS_HINT = 4096
"""The M that a schedule is chosen for where only the launch says one."""
MANY_ROWS = 2 * ROWS_HINT
"""The same of a kernel that is for many rows alone."""
BATCH_HINT = 16
"""The batch that a schedule is chosen for where only the launch says one."""
DEPTH_HINT, GROUP_DEPTH_HINT = 4096, 1024
"""The same of K, and of what each group has of it."""
ANY = "?"
"""In the place of a size that a launch says."""
ROWS_MOST = EXTENT_MAX
"""The most rows that a launch says."""
OF_GAPS = ("lda", "ldb", "ldc", "stride_a", "stride_b", "stride_c")


@record
class Problem:
    """The fields of a `MatmulSpec`, which says what they mean and checks them."""

    m: int
    n: int
    k: int
    a_dtype: str = "bf16"
    b_dtype: str = "bf16"
    c_dtype: str = "bf16"
    acc_dtype: str = "f32"
    a_major: str = "k"
    b_major: str = "k"
    batch: int = 0
    a_stacked: bool = True
    b_stacked: bool = True
    further: tuple[str, ...] = ()
    neighbours: int = 0
    scale_layout: str = BLOCKED
    groups: int = 0
    group_axis: str = "m"
    gathered: int = 0
    ordered: bool = False
    dynamic_m: bool = False
    dynamic_batch: bool = False
    dynamic_k: bool = False
    lda: int = 0
    ldb: int = 0
    ldc: int = 0
    stride_a: int = 0
    stride_b: int = 0
    stride_c: int = 0
    products: int = 1
    epilogue_instructions: int = 0
    beside: tuple[str, ...] = ()
    beside_columns: tuple[str, ...] = ()
    beside_rows: tuple[str, ...] = ()
    scale_rounding: str = ""
    a_scales: str = ""
    b_scales: str = ""
    sums: str = ""
    group_size: int = 0
    scale_dtype: str = ""
    zero_points: bool = False
    least_m: int = 0
    most_m: int = 0
    multiple_m: int = 0

    @property
    def quantized(self) -> ScaledFormat | None:
        """The format of C where it has block scales of its own."""
        return SCALED_FORMATS.get(self.c_dtype)

    @property
    def grouped_columns(self) -> int:
        """Neighbours in a row that an output is made of, the most of any; 0 where none is."""
        return max(self.neighbours, self.quantized.block if self.quantized else 0)

    @property
    def is_scaled(self) -> bool:
        """Whether A and B have block scales."""
        return self.a_dtype in OPERAND_FORMATS

    @property
    def is_blockwise(self) -> bool:
        """Whether A and B have scales in f32 for 128 elements of K."""
        return self.a_scales in BLOCKWISE_FORMS

    @property
    def has_weights(self) -> bool:
        """Whether B's elements are narrower than A's, and threads widen them."""
        return self.b_dtype in WEIGHT_DTYPES and self.a_dtype in WIDE_DTYPES

    @property
    def is_long_as_m(self) -> bool:
        """Whether a launch says how long A's rows in memory are, which lie along K."""
        return self.dynamic_m and self.a_major == "m" and not self.lda

    @property
    def adds_products(self) -> bool:
        """Whether threads add the products of parts of K, in f32."""
        return self.is_blockwise or self.sums == TWO_LEVEL

    def shapes(self) -> dict[str, tuple[int, ...]]:
        """The sizes of A, B and C, K the last one of A and B however they are stored."""
        matrices = {"a": (self.m, self.k), "b": (self.n, self.k), "c": (self.m, self.n)}
        if self.groups and self.group_axis == "k":
            return {**matrices, "c": (self.groups, *matrices["c"])}
        if self.groups:
            a = (self.gathered or self.m, self.k)
            return {**matrices, "a": a, "b": (self.groups, *matrices["b"])}
        stacked = {"a": self.a_stacked, "b": self.b_stacked, "c": True}
        return {
            name: (self.batch, *sizes) if self.batch and stacked[name] else sizes
            for name, sizes in matrices.items()
        }

    def open_shape(self, name: str, shape: tuple[int, ...]) -> tuple[int | str, ...]:
        """The sizes of A, B, C or what is as large as C, with a mark for one that a launch says."""
        *stack, rows, columns = shape
        any_rows = self.dynamic_m and name != "b"
        any_columns = self.dynamic_k and name in ("a", "b")
        opened = [ANY if self.dynamic_batch else extent for extent in stack]
        return (*opened, ANY if any_rows else rows, ANY if any_columns else columns)

    def open_stored(self, name: str) -> tuple[int | str, ...]:
        """The sizes of A or B as it is stored, with a mark for one that a launch says."""
        *stack, rows, columns = self.open_shape(name, self.shapes()[name])
        transposed = getattr(self, f"{name}_major") != "k"
        return (*stack, columns, rows) if transposed else (*stack, rows, columns)

    def stored(self) -> dict[str, Stored]:
        """How A, B and C lie: their sizes as they are stored, with what is between rows."""
        shapes = self.shapes()
        transposed = {"a": self.a_major == "m", "b": self.b_major == "n", "c": False}
        return {
            name: Stored(
                (*shape[:-2], *(shape[:-3:-1] if transposed[name] else shape[-2:])),
                getattr(self, f"ld{name}"),
                getattr(self, f"stride_{name}"),
                self.dynamic_m and name != "b",
            )
            for name, shape in shapes.items()
        }

    def arrays(self) -> dict[str, tuple[str, tuple[int, ...]]]:
        """What the kernel takes: the element type and the sizes of each array in memory.

        An array of packed elements is one of bytes.
        """
        found = {}
        for name, shape in self.shapes().items():
            dtype = element_of(getattr(self, f"{name}_dtype"))
            k = shape[-1] * DTYPES[dtype].bits // 8 if DTYPES[dtype].bits < 8 else shape[-1]
            found[name] = dtype, (*shape[:-1], k)
        c = found.pop("c")
        for name, shape in scale_shapes(self).items():
            scale = "f32" if self.is_blockwise else OPERAND_FORMATS[self.a_dtype].scale
            found[name] = scale, shape
        if self.products == 2:
            found["b2"] = found["b"]
        if self.groups:
            found["offsets"] = "s32", (self.groups,)
        if self.gathered:
            found["rows"] = "s32", (self.m,)
        if self.group_size:
            groups = (self.n, self.k // self.group_size)
            found["scales"] = self.scale_dtype, groups
            found |= {"zeros": ("u8", groups)} if self.zero_points else {}
        if self.ordered:
            found["order"] = "s32", (self.groups,)
        further = {f"c{n}": (dtype, c[1]) for n, dtype in enumerate(self.further, 1)}
        scales = {} if self.quantized is None else {"c_scales": self._scales_of_c(self.quantized)}
        return {**found, "c": c, **further, **scales}

    def _scales_of_c(self, form: ScaledFormat) -> tuple[str, tuple[int, ...]]:
        *stack, rows, columns = self.shapes()["c"]
        return form.scale, (*stack, *blocked_scale_shape(rows, columns // form.block))

    def as_dict(self) -> dict[str, Any]:
        """The fields by name; those of a batch, outputs, linear scales, open sizes and gaps where
        they are."""
        found = {item.name: getattr(self, item.name) for item in fields(self)}
        found |= {name: list(found[name]) for name in ("further", *BESIDE)}
        absent = [
            *(OF_BATCHES if not self.batch else ()),
            *(OF_OUTPUTS if not self.further else ()),
            *(OF_SCALES if self.scale_layout == BLOCKED else ()),
            *(OF_GROUPS if not self.groups else ()),
            *(("group_axis",) if self.group_axis == "m" else ()),
            *(() if self.gathered else OF_GATHERED),
            *(() if self.ordered else OF_ORDERED),
            *(OF_PRODUCTS if self.products == 1 else ()),
            *(name for name in OF_EPILOGUES if not found[name]),
            *(name for name in OF_ANY if not found[name]),
            *(() if self.most_m else OF_ROWS),
            *(() if self.multiple_m else OF_MULTIPLES),
            *(() if self.scale_rounding else ("scale_rounding",)),
            *(() if self.is_blockwise else OF_BLOCKWISE),
            *(() if self.sums else ("sums",)),
            *(() if self.group_size else OF_WEIGHTS),
            *(name for name in OF_GAPS if not found[name]),
        ]
        return {name: value for name, value in found.items() if name not in absent}

    @property
    def computed(self) -> tuple[str, ...]:
        """The types that an epilogue gives: f32 where C is quantised after it."""
        return "f32" if self.quantized else self.c_dtype, *self.further

    @property
    def outputs(self) -> tuple[str, ...]:
        """The types of all outputs but the scales of C, C's first."""
        return element_of(self.c_dtype), *self.further


def depth_hint(spec: Problem) -> int:
    """The K that a schedule is chosen for where only the launch says it."""
    return spec.groups * GROUP_DEPTH_HINT or DEPTH_HINT


def element_of(dtype: str) -> str:
    """The type of an operand's elements: of a format with block scales the one they scale."""
    return OPERAND_FORMATS[dtype].element if dtype in OPERAND_FORMATS else dtype


def scale_shapes(spec: Problem) -> dict[str, tuple[int, ...]]:
    """The arrays of the scales of A and B, if they have some."""
    if spec.is_blockwise:
        return {
            f"{name}_scales": (
                *spec.shapes()[name][:-2],
                *blockwise_scale_shape(getattr(spec, f"{name}_scales"), rows, spec.k),
            )
            for name, rows in (("a", spec.m), ("b", spec.n))
        }
    if not spec.is_scaled:
        return {}
    shapes, found = spec.shapes(), {}
    for name in "ab":
        *stack, rows, k = shapes[name]
        form = OPERAND_FORMATS[getattr(spec, f"{name}_dtype")]
        blocked = spec.scale_layout == BLOCKED and not form.linear
        if blocked and spec.groups and name == "a":
            rows = rows_of_atoms(rows, spec.groups)
        linear = -(-rows // form.rows), k // form.depth
        shape = blocked_scale_shape(*linear) if blocked else linear
        found[f"{name}_scales"] = (*stack, *shape)
    return found
