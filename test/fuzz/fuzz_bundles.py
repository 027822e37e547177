"""Damage a bundle in random ways, and hold its reader to one of two answers.

    python test/fuzz/fuzz_bundles.py --count 5000 --seed 0

Damage (bytes of the zip, its members, values of the manifest) is refused with BundleError, or the
bundle comes back as it was made. Where the manifest is changed and its hash made to fit, as by
somebody who means it, it may be another sound bundle: then a launch on the emulator ends well or
with a DeviceError, nothing else. Whatever else happens is printed with its seed; exit status 1.
"""

from __future__ import annotations

import argparse
import collections
import copy
import io
import json
import random
import sys
import tempfile
import time
import warnings
import zipfile
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

PIPELINE = "normalize,tiling{tile=64x32x64},tma-insertion,lower-to-nvvm"
MOST_SECONDS = 20
VALUES: tuple[Any, ...] = (
    *(0, 1, -1, 2, 3, 7, 16, 255, 2**31, 2**32, 2**47, 2**63 - 1, 2**63, 2**64, 10**30),
    *(0.5, 1e308, float("nan"), float("inf"), True, False, None, "", "a", "c", "none", "\ud800"),
    *("x" * 70_000, "../../x", "f32", "s8", "128B", [], {}, [[]], [1, 1, 1], [2**20] * 3),
)
METHODS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA)


@dataclass(frozen=True)
class Outcome:
    """What became of a bundle: "refused", "as made", "another" or what is wrong."""

    seed: int
    kind: str
    detail: str = ""

    @property
    def is_fault(self) -> bool:
        """Whether the reader must be mended."""
        return self.kind not in ("refused", "as made", "another", "refused at launch")


@cache
def whole() -> bytes:
    """A zip of a small kernel with tensor maps and a bias."""
    from tilewright.compiler import driver
    from tilewright.compiler.bundle_writer import write_bundle
    from tilewright.compiler.spec import MatmulSpec

    compiled = driver.compile_matmul(MatmulSpec(64, 32, 64, c_dtype="f32"), pipeline=PIPELINE)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "kernel.zip"
        write_bundle(path, compiled.manifest, compiled.ptx, compiled.assembled.cubin)
        return path.read_bytes()


@cache
def members() -> dict[str, bytes]:
    """The files of that zip."""
    with zipfile.ZipFile(io.BytesIO(whole())) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def judge(seed: int, launches: bool = True) -> Outcome:
    """Damage the bundle as the seed says and read it."""
    draw = random.Random(seed)
    damage = draw.choice((_flip, _cut, _splice, _members, _values, _sealed_values, _sealed_values))
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        path = Path(folder) / "kernel.zip"
        path.write_bytes(damage(draw))
        started = time.perf_counter()
        outcome = _read(seed, path, launches and damage is _sealed_values)
    if (seconds := time.perf_counter() - started) > MOST_SECONDS:
        return Outcome(seed, "slow", f"{seconds:.1f} s")
    if outcome.kind == "another" and damage is not _sealed_values:
        return Outcome(seed, "believed", damage.__name__)
    return outcome


def _read(seed: int, path: Path, launches: bool) -> Outcome:
    from tilewright.runtime import BundleError, read_bundle

    try:
        bundle = read_bundle(path)
    except BundleError as error:
        return Outcome(seed, "refused", str(error))
    except BaseException as error:
        return Outcome(seed, "internal error", f"{type(error).__name__}: {error}")
    files = members()
    found = (bundle.manifest, bundle.ptx.encode(), bundle.cubin)
    if found == (json.loads(files["manifest.json"]), files["kernel.ptx"], files["kernel.cubin"]):
        return Outcome(seed, "as made")
    return _launched(seed, bundle) if launches else Outcome(seed, "another")


def _launched(seed: int, bundle: Any) -> Outcome:
    from tilewright.runtime import DeviceError
    from tilewright.runtime.launch.devices import open_device
    from tilewright.tools.runs.inputs import make_tensors

    if max(tensor["shape"][0] for tensor in bundle.manifest["tensors"]) > 4096:
        return Outcome(seed, "another", "too large to run")
    try:
        tensors = make_tensors(bundle.manifest, seed)
        open_device("emulator").launch(bundle, tensors, seed, check="off", max_steps=20_000)
    except DeviceError as error:
        return Outcome(seed, "refused at launch", str(error))
    except Exception as error:
        return Outcome(seed, "failed at launch", f"{type(error).__name__}: {error}")
    return Outcome(seed, "another")


def _flip(draw: random.Random, zipped: bytes = b"") -> bytes:
    content = bytearray(zipped or whole())
    for _ in range(draw.choice((1, 1, 2, 8))):
        content[draw.randrange(len(content))] ^= 1 << draw.randrange(8)
    return bytes(content)


def _cut(draw: random.Random) -> bytes:
    content, place = whole(), draw.randrange(len(whole()))
    return draw.choice((content[:place], content[place:], content[:place] + bytes(40)))


def _splice(draw: random.Random) -> bytes:
    """A piece of the zip copied over, or into, another place; often of its directory at the end."""
    content = whole()
    near_end = len(content) - 300 if draw.random() < 0.7 else 0
    start, to = (draw.randrange(near_end, len(content)) for _ in range(2))
    piece = content[start : start + draw.randrange(1, 60)]
    after = to if draw.random() < 0.3 else to + len(piece)
    return content[:to] + piece + content[after:]


def _members(draw: random.Random) -> bytes:
    """Members swapped, dropped, doubled, renamed, added, or compressed otherwise."""
    entries = list(members().items())
    change, at = draw.randrange(6), draw.randrange(3)
    name, content = entries[at]
    if change == 0:
        entries[at] = (name, entries[at - 1][1])
    elif change == 1:
        del entries[at]
    elif change == 2:
        entries.append((name, draw.choice((content, b"", content + b" "))))
    elif change == 3:
        entries[at] = (draw.choice(("", "/", "../", "a/", "\udcff"[:0] + "ü")) + name, content)
    elif change == 4:
        extra = draw.choice(("/etc/passwd", "../../x", "a\\..\\b", "notes.txt", "é" * 99))
        entries += [(f"{extra}{i}", b"x") for i in range(draw.choice((1, 5, 100)))]
    zipped = _zipped(entries, draw.choice(METHODS))
    return _flip(draw, zipped) if draw.random() < 0.5 else zipped


def _values(draw: random.Random) -> bytes:
    """Values of the manifest changed, its hash of itself left alone."""
    return _with_manifest(_changed(draw))


def _sealed_values(draw: random.Random) -> bytes:
    """Values of the manifest changed, and its hash made to fit where there is one."""
    from tilewright.runtime.bundles.bundle import manifest_hash

    manifest = _changed(draw)
    try:
        manifest["hashes"]["manifest.json"] = manifest_hash(manifest)
    except (KeyError, TypeError, AttributeError):
        pass
    return _with_manifest(manifest)


def _changed(draw: random.Random) -> Any:
    manifest = json.loads(members()["manifest.json"])
    change_values(manifest, draw, (0.1, 0.3, 0.5))
    return manifest


def change_values(
    said: Any,
    draw: random.Random,
    odds: tuple[float, float, float],
    named: float = 0.0,
    names: Sequence[str] = (),
    factors: Sequence[int] = (1,),
) -> None:
    """Change values of an object in place: some are left out, taken from elsewhere, counted up or
    down (where they are integers), or become one of VALUES, by these odds, each on top of the one
    before. Up to `named`, another of `names` is given a value. Counting adds a multiple, too."""
    left_out, copied, counted = odds
    for _ in range(draw.choice((1, 1, 1, 2, 5))):
        held = list(places(said))
        holder, key = draw.choice(held)
        change = draw.random()
        if change < left_out:
            del holder[key]
        elif change < copied:
            other, name = draw.choice(held)
            holder[key] = json.loads(json.dumps(other[name]))
        elif change < counted and type(holder[key]) is int:
            first, *others = (factor * holder[key] for factor in factors)
            holder[key] += draw.choice((-1, 1, first, 16, *others))
        elif change < named and isinstance(holder, dict):
            holder[draw.choice(names)] = copy.deepcopy(draw.choice(VALUES))
        else:
            holder[key] = copy.deepcopy(draw.choice(VALUES))


def places(value: Any) -> list[tuple[Any, Any]]:
    """Every place that holds a value, as (list or object, key)."""
    keys = list(value) if isinstance(value, dict) else range(len(value))
    found = [(value, key) for key in keys]
    inner = [value[key] for key in keys if isinstance(value[key], dict | list)]
    return found + [place for each in inner for place in places(each)]


def _with_manifest(manifest: Any) -> bytes:
    text = json.dumps(manifest).encode()
    return _zipped({**members(), "manifest.json": text}.items(), zipfile.ZIP_DEFLATED)


def _zipped(entries: Any, method: int) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", method) as archive:
        for name, content in entries:
            archive.writestr(name, content)
    return buffer.getvalue()


def main() -> int:
    """Judge the bundles of `--count` seeds from `--seed` on."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--count", type=int, default=5000)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    counts: collections.Counter[str] = collections.Counter()
    for seed in range(options.seed, options.seed + options.count):
        outcome = judge(seed)
        counts[outcome.kind] += 1
        if outcome.is_fault:
            print(f"seed {seed}: {outcome.kind}: {outcome.detail[:600]}", flush=True)
        if seed % 1000 == 999:
            print(f"{seed + 1}: {dict(counts)}", flush=True)
    print(f"{options.count} bundles from seed {options.seed} on: {dict(counts)}")
    return int(any(Outcome(0, kind).is_fault for kind in counts))


if __name__ == "__main__":
    sys.exit(main())
