"""A bundle of kernels for any M and any batch in bands of matrices: what is written comes back, a
launch gets the kernel for its rows of its number of matrices, and damaged ones are refused."""

import json
import random
import zipfile
from dataclasses import replace

import pytest
import torch

from tilewright.compiler.bundle_writer import as_bundle, write_several
from tilewright.compiler.driver import compile_matmul
from tilewright.compiler.spec import ROWS_MOST, MatmulSpec
from tilewright.runtime import BundleError, load, read_bundle
from tilewright.runtime.bundles.bundle import manifest_hash
from tilewright.runtime.bundles.several import bands_of, number_of

N, K = 40, 72
MANY = (3, ROWS_MOST)
KERNELS = {
    "64x16x64 swap=true": ((1, 16, 1, 2), (1, 9, *MANY)),
    "64x32x64": ((17, ROWS_MOST, 1, 2), (10, 64, *MANY)),
    "128x32x64": ((65, ROWS_MOST, *MANY),),
}
"""By the tiles of a kernel the least and the most rows of its ranges, and those of matrices."""


@pytest.fixture(scope="module")
def kernels():
    found = []
    for tile, ranges in KERNELS.items():
        least, most = min(each[0] for each in ranges), max(each[1] for each in ranges)
        sizes = {"batch": 4, "least_m": least, "most_m": most}
        spec = MatmulSpec(min(most, 4096), N, K, dynamic_m=True, dynamic_batch=True, **sizes)
        passes = f"tiling{{tile={tile}}},tma-insertion,swizzle-selection"
        made = compile_matmul(spec, target="sm_90a", pipeline=passes)
        found.append(replace(made, ranges=ranges))
    return found


@pytest.fixture
def folder(tmp_path, kernels):
    return write_several(tmp_path / "kernels", kernels).path


def change(folder, edit, name="manifest.json"):
    """Rewrites a manifest of a bundle folder and its hash of itself, which is returned."""
    manifest = json.loads((folder / name).read_text())
    edit(manifest)
    manifest["hashes"]["manifest.json"] = manifest_hash(manifest)
    (folder / name).write_text(json.dumps(manifest))
    return manifest["hashes"]["manifest.json"]


def test_each_size_has_the_kernel_that_is_for_it(tmp_path, kernels):
    path = write_several(tmp_path / "kernels.zip", kernels).path
    names = {f"{n}.{file}" for n in range(3) for file in ("kernel.ptx", "kernel.cubin")}
    names |= {f"{n}.manifest.json" for n in range(3)} | {"manifest.json"}
    assert set(zipfile.ZipFile(path).namelist()) == names
    bundle = read_bundle(path)
    assert [each.ptx for each in bundle.kernels] == [as_bundle(each).ptx for each in kernels]
    for m in (1, 9, 10, 16, 17, 64, 65, 1000):
        for batch in (1, 2, 3, 500):
            (tile,) = [
                tile
                for tile, ranges in KERNELS.items()
                for least, most, fewest, largest in ranges
                if least <= m <= most and fewest <= batch <= largest
            ]
            taken = bundle.at(m, batch).manifest["schedule"]
            told = f"{'x'.join(map(str, taken['tile']))}{' swap=true' * taken.get('swapped', 0)}"
            assert told == tile, (m, batch)


def test_calls_are_right_on_both_sides_of_each_bound(folder):
    kernel, generator = load(folder), torch.Generator().manual_seed(5)
    for m, batch in ((9, 2), (10, 3), (16, 1), (17, 2), (65, 3), (0, 3), (5, 0)):
        a, b = (torch.randn(batch, each, K, generator=generator).bfloat16() for each in (m, N))
        out = torch.full((batch, m, N), torch.nan, dtype=torch.bfloat16)
        wanted = a.double() @ b.double().mT
        assert kernel(a, b, out=out) is out
        assert ((out.double() - wanted).abs() <= 2**-7 * wanted.abs() + 1e-3).all()


def test_ranges_of_any_bands_come_back_by_their_sizes():
    """Random tables, looked up at every bound and beside it, against a walk over all ranges."""
    chance = random.Random(3)
    for _ in range(10):
        starts = [1, *sorted(chance.sample(range(2, 40), chance.randint(0, 5)))]
        kernels = [[] for _ in range(4)]
        for fewest, end in zip(starts, [*starts[1:], ROWS_MOST + 1], strict=True):
            rows = [1, *sorted(chance.sample(range(2, 99), chance.randint(0, 6)))]
            for least, stop in zip(rows, [*rows[1:], ROWS_MOST + 1], strict=True):
                kernels[chance.randrange(4)].append((least, stop - 1, fewest, end - 1))
        bands = bands_of(kernels)
        for m in (*range(1, 100), ROWS_MOST):
            for batch in (*range(1, 41), ROWS_MOST):
                (number,) = [
                    number
                    for number, own in enumerate(kernels)
                    for least, most, fewest, largest in own
                    if least <= m <= most and fewest <= batch <= largest
                ]
                assert number_of(bands, m, batch) == number


@pytest.mark.parametrize(
    ("edit", "said"),
    [
        (lambda m: m["bands"][0].update(least=2), "bands: must begin with 1 matrix, got 2"),
        (lambda m: m["bands"][1].update(least=1), "bands: must begin in order, got 1 behind 1"),
        (
            lambda m: m["bands"][1]["ranges"][0].update(least=2),
            "bands[1].ranges: must begin with 1 row, got 2",
        ),
        (
            lambda m: m["bands"][1]["ranges"][2].update(least=10),
            "bands[1].ranges: must begin in order, got 10 behind 10",
        ),
        (
            lambda m: m["bands"][0]["ranges"].reverse(),
            "bands[0].ranges: must begin with 1 row, got 17",
        ),
        (
            lambda m: m["bands"][1]["ranges"][1].update(kernel=2),
            "bands: must be 10 to 2147483647 for kernel 1, as the kernel is, got 17 to 2147483647",
        ),
        (
            lambda m: m["bands"][0]["ranges"][0].update(kernel=2),
            "bands: must name each of 3 kernels, in the order of their first ranges, got 2, 1, 0",
        ),
        (
            lambda m: m["bands"][0]["ranges"][0].update(kernel=3),
            "must name each of 3 kernels, in the order of their first ranges, got 3, 1, 0, 2",
        ),
        (lambda m: m["kernels"][0].update(most=15), "must be 1 to 15 for kernel 0, as the kernel"),
        (lambda m: m["bands"][0].pop("ranges"), "bands[0]: must have the field 'ranges', got none"),
        (lambda m: m["bands"][0].update(ranges=[]), "ranges: must have 1 to 512 items, got 0"),
        (lambda m: m.update(bands=m["bands"][:1]), "bands: must have 2 to 64 items, got 1"),
        (lambda m: m.update(bands=m["bands"] * 33), "bands: must have 2 to 64 items, got 66"),
        (lambda m: m.update(size="batch"), "size: must be 'm', got 'batch'"),
        (lambda m: m.update(schema=5), "must have the field 'ranges', got none"),
        (lambda m: m["hashes"].pop("1.manifest.json"), "must have the field '1.manifest.json'"),
        (lambda m: m["bands"][0].update(least="1"), "bands[0].least: must be an integer from 1"),
        (lambda m: m["bands"][0].update(least=0), "bands[0].least: must be an integer from 1"),
    ],
)
def test_a_damaged_table_is_refused(folder, edit, said):
    change(folder, edit)
    with pytest.raises(BundleError) as caught:
        read_bundle(folder)
    assert said in str(caught.value)


def test_bands_of_a_kernel_that_knows_its_batch_are_refused(folder, kernels, tmp_path):
    """A kernel of one matrix in the place of one for any batch, with hashes that fit."""
    spec = MatmulSpec(4096, N, K, dynamic_m=True, least_m=65, most_m=ROWS_MOST)
    one = compile_matmul(spec, target="sm_90a", pipeline=kernels[2].pipeline)
    other = write_several(tmp_path / "one", [one]).path
    for name in ("manifest.json", "kernel.ptx", "kernel.cubin"):
        (folder / f"2.{name}").write_bytes((other / name).read_bytes())
    own = json.loads((other / "manifest.json").read_text())["hashes"]["manifest.json"]
    change(folder, lambda m: m["hashes"].update({"2.manifest.json": own}))
    with pytest.raises(BundleError, match="bands: must be of kernels for any batch, got one for m"):
        read_bundle(folder)
