"""A schedule, and the pipeline that implements it."""

from __future__ import annotations

from typing import Any

from ...dialects.dynamic import joined
from ...dialects.mma_units import WGMMA, WGMMA_WIDE
from ...dialects.record import record
from ...dialects.target import WARPGROUP_THREADS

GROUPED = "grouped"
RASTERS = {"m": "along m", "n": "along n", "hilbert": "on a Hilbert curve"}
THREADS, AHEAD, HELD = "threads", "ahead", "registers"  # who reads vectors, and when


@record
class Schedule:
    """One way to run a matmul. Sizes are in elements, tiles or CTAs.

    `tile` is M×N×K of the tile of one CTA, `cluster` the CTAs of a cluster along M and N, `pair` a
    2-CTA MMA. `scheduler` is "none" (one tile per CTA), "static" or "clc"; `order` and `group` are
    its raster order. `staging` is (columns, buffers) of the staged store, or None for direct
    stores. TMA prefetches `ahead` pieces of each other operand as large as C; with 0, threads read
    them. `vectors` says how smaller operands are read, as in `epilogue-staging`.

    `split_k` CTAs of a cluster share a tile, each with a part of K; with `split_grid`, that many
    CTAs of the grid do. `ping_pong` means two consumers with a tile each. With `swap`, A and B are
    exchanged, and everything above is said of Cᵀ. With `level`, the tiles of a group of rows have
    equal heights.
    """

    tile: tuple[int, int, int]
    stages: int = 1
    cluster: tuple[int, int] = (1, 1)
    pair: bool = False
    scheduler: str = "none"
    order: str = "m"
    group: int = 8
    staging: tuple[int, int] | None = None
    box: str = "2d"
    split_k: int = 1
    ping_pong: bool = False
    ahead: int = 0
    split_grid: int = 1
    swap: bool = False
    vectors: str = THREADS
    level: bool = False

    def but(self, **changes: Any) -> Schedule:
        """A copy with other values of some fields: `dataclasses.replace`, eight times as fast.

        A search makes up to 100,000 candidates this way.
        """
        changed = object.__new__(Schedule)
        object.__setattr__(changed, "__dict__", self.__dict__ | changes)
        return changed

    @property
    def cluster_size(self) -> int:
        """The number of CTAs of a cluster."""
        return self.cluster[0] * self.cluster[1]

    @property
    def wide(self) -> bool:
        """Whether each ping-pong consumer holds more accumulators than a warpgroup does
        elsewhere."""
        m, n, _ = self.tile
        most = WGMMA.accumulator_registers_max[0] * WARPGROUP_THREADS
        return self.ping_pong and m * n > most

    @property
    def plan(self) -> Schedule:
        """The schedule reduced to its tiles and how they are handed out, whatever a CTA does with a
        tile; a cluster is a pair or a single CTA."""
        cluster = (2, 1) if self.pair else (1, 1)
        return PLAIN.but(
            tile=self.tile,
            cluster=cluster,
            pair=self.pair,
            scheduler=self.scheduler,
            order=self.order,
            group=self.group,
        )

    @property
    def b_rows(self) -> int:
        """The rows of B that one CTA holds: half of the tile's in a pair."""
        return self.tile[1] // 2 if self.pair else self.tile[1]

    @property
    def of_whole_tiles(self) -> Schedule:
        """For tiles of equal height, the corresponding schedule of ordinary tiles, with A and B not
        exchanged and as many bytes staged."""
        columns, rows, k = self.tile
        staging = self.staging and (self.staging[0] * columns // rows, self.staging[1])
        return self.but(tile=(rows, columns, k), staging=staging, swap=False, level=False)

    def pipeline(self, stores_by_warpgroup: bool = False) -> str:
        """The passes with their options, as `--pipeline` takes them.

        Clustering comes before pipelining, so that stages are counted with the half of B that a CTA
        of a pair holds.
        """
        passes = [
            f"tiling{{tile={joined(self.tile)}{self._taken()}}}",
            f"tma-insertion{{box={self.box}}}",
            "swizzle-selection",
            f"split-k{{parts={self.split_k}}}" if self.split_k > 1 else "",
            f"split-k{{parts={self.split_grid} over=grid}}" if self.split_grid > 1 else "",
            self._staging(stores_by_warpgroup),
            self._clustering(),
            f"pipelining{{stages={self.stages}}}" if self.stages > 1 else "",
            "warp-specialization",
            self._persistence(),
            "ping-pong" if self.ping_pong else "",
            "level-groups" if self.level else "",
        ]
        return ",".join(filter(None, passes))

    def label(self) -> str:
        """One line that tells the schedule from the other candidates."""
        parts = [joined(self.tile), f"{self.stages} stages"]
        parts += ["A and B exchanged"] if self.swap else []
        parts += ["tiles of equal height"] if self.level else []
        if self.cluster_size > 1:
            parts.append(f"cluster {joined(self.cluster)}{' pair' if self.pair else ''}")
        if self.split_k > 1:
            parts.append(f"K split by {self.split_k}")
        if self.split_grid > 1:
            parts.append(f"K split by {self.split_grid} over the grid")
        if self.scheduler != "none":
            parts.append(f"{self.scheduler} {self.raster}")
        if self.ping_pong:
            parts.append("ping-pong")
        parts.append(f"staged {joined(self.staging)}" if self.staging else "direct stores")
        parts += [f"{self.ahead} pieces ahead"] if self.ahead else []
        parts += {HELD: ["vectors in registers"], AHEAD: ["vectors ahead"]}.get(self.vectors, [])
        return ", ".join(parts)

    @property
    def raster(self) -> str:
        """The order of tiles in words."""
        return f"grouped by {self.group}" if self.order == "grouped" else RASTERS[self.order]

    def _taken(self) -> str:
        """In words: the MMA, which operand is its A, and the order of CTAs that have one tile
        each."""
        alone = self.scheduler == "none" and self.order == "n"
        mma = f" mma={WGMMA_WIDE.name}" if self.wide else ""
        return mma + " swap=true" * self.swap + " order=n" * alone

    def _clustering(self) -> str:
        if self.cluster_size == 1:
            return ""
        return f"clustering{{shape={joined(self.cluster)} pair={str(self.pair).lower()}}}"

    def _persistence(self) -> str:
        if self.scheduler == "none":
            return ""
        options = [f"scheduler={self.scheduler}"] if self.scheduler != "static" else []
        options.append(f"order={self.order}")
        options += [f"group={self.group}"] if self.order == "grouped" else []
        return f"persistence{{{' '.join(options)}}}"

    def _staging(self, stores_by_warpgroup: bool) -> str:
        if self.staging is None:
            return ""
        columns, buffers = self.staging
        ahead = f" ahead={self.ahead}" if self.ahead else ""
        vectors = f" vectors={self.vectors}" if self.vectors != THREADS else ""
        by = " by=warpgroup" if stores_by_warpgroup else ""
        return f"epilogue-staging{{columns={columns} buffers={buffers}{ahead}{vectors}{by}}}"


PLAIN = Schedule((0, 0, 0))
"""The schedule from which others are made by `but`."""
