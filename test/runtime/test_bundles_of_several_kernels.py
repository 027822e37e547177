"""A bundle of several kernels by their rows: what is written comes back, each launch gets the one
whose rows it has, and what does not fit together is refused."""

import copy
import json
import os
import pickle
import zipfile
from dataclasses import replace

import pytest
import torch

from tilewright.compiler.bundle_writer import as_bundle, several, write_several
from tilewright.compiler.driver import compile_matmul
from tilewright.compiler.spec import ROWS_MOST, MatmulSpec
from tilewright.runtime import BundleError, LaunchError, load, read_bundle
from tilewright.runtime.bundles.bundle import manifest_hash, sha256
from tilewright.runtime.bundles.several import KERNELS_MAX, validate_several

N, K = 40, 72
BOUNDS = ((1, 16), (17, 64), (65, ROWS_MOST))
TILES = ("64x16x64 swap=true", "64x16x64", "128x32x64")


@pytest.fixture(scope="module")
def kernels():
    return [
        compile_matmul(
            MatmulSpec(min(most, 4096), N, K, dynamic_m=True, least_m=least, most_m=most),
            target="sm_90a",
            pipeline=f"tiling{{tile={tile}}},tma-insertion,swizzle-selection",
        )
        for (least, most), tile in zip(BOUNDS, TILES, strict=True)
    ]


@pytest.fixture(params=["kernels.zip", "kernels"])
def path(request, tmp_path, kernels):
    return write_several(tmp_path / request.param, kernels).path


@pytest.fixture
def folder(tmp_path, kernels):
    return write_several(tmp_path / "kernels", kernels).path


def refusal(path) -> str:
    with pytest.raises(BundleError) as refused:
        read_bundle(path)
    return str(refused.value)


def change(folder, name, edit, seal=True):
    """Rewrites a manifest of a bundle folder, and its hash of itself where `seal` says so."""
    file = folder / name
    manifest = json.loads(file.read_text())
    edit(manifest)
    if seal:
        manifest["hashes"]["manifest.json"] = manifest_hash(manifest)
    file.write_text(json.dumps(manifest))


def operands(m: int) -> tuple[torch.Tensor, torch.Tensor]:
    generator = torch.Generator().manual_seed(m)
    a, b = (torch.randn(rows, K, generator=generator) for rows in (m, N))
    return a.bfloat16(), b.bfloat16()


@pytest.mark.parametrize(
    "again", [copy.copy, copy.deepcopy, lambda it: pickle.loads(pickle.dumps(it))]
)
def test_a_copy_takes_any_rows_too(again, kernels):
    kernel = load(several(kernels), "emulator")
    found = again(kernel)
    assert type(found) is type(kernel)
    for m in (3, 20):
        assert torch.equal(found(*operands(m)), kernel(*operands(m)))


@pytest.mark.parametrize("wrong", [None, [[1.0] * K] * N, "b"])
def test_what_is_no_array_is_refused_where_there_are_no_rows_too(wrong, kernels):
    kernel = load(several(kernels), "emulator")
    a, b = operands(0)
    assert kernel(a, b).shape == (0, N)
    for rows in (a, operands(1)[0]):
        with pytest.raises(LaunchError, match=r"tensor 'b': must be torch\.bfloat16 or numpy"):
            kernel(rows, wrong)


def test_kernels_come_back_as_they_were_written(path, kernels):
    bundle = read_bundle(path)
    assert [each.ptx for each in bundle.kernels] == [as_bundle(each).ptx for each in kernels]
    assert [each.cubin for each in bundle.kernels] == [each.assembled.cubin for each in kernels]
    assert all(each.path == path and not each.others for each in bundle.kernels)
    names = {f"m{least}.{file}" for least, _ in BOUNDS for file in ("kernel.ptx", "kernel.cubin")}
    names |= {f"m{least}.manifest.json" for least, _ in BOUNDS} | {"manifest.json"}
    found = zipfile.ZipFile(path).namelist() if path.suffix else os.listdir(path)
    assert set(found) == names


def test_each_number_of_rows_has_its_kernel(kernels):
    bundle = several(kernels)
    for m in (1, 16, 17, 64, 65, 10**6):
        tile = bundle.at(m).manifest["schedule"]["tile"]
        assert tile[:2] == ([64, 16] if m <= 64 else [128, 32])
        assert bool(bundle.at(m).manifest["schedule"].get("swapped")) == (m <= 16)
    with pytest.raises(LaunchError, match="M must be 1 to 16, got 0; pass more"):
        bundle.at(0)
    with pytest.raises(LaunchError, match="got 2147483648; multiply in parts"):
        bundle.at(2**31)
    for sizes in ((True,), (5.0,), (), (1, 2)):
        with pytest.raises(LaunchError, match="sizes must be an int for M, got "):
            bundle.at(*sizes)


SHARED = (((1, 16), (40, 64)), ((17, 39), (65, 99)), ((100, ROWS_MOST),))


@pytest.fixture(scope="module")
def shared():
    """Kernels of which two have two ranges each, that lie between those of the other."""
    tiles = (("64x16x64", 1, 64), ("64x32x64", 17, 99), ("128x32x64", 100, ROWS_MOST))
    return [
        replace(
            compile_matmul(
                MatmulSpec(min(most, 4096), N, K, dynamic_m=True, least_m=least, most_m=most),
                target="sm_90a",
                pipeline=f"tiling{{tile={tile}}},tma-insertion,swizzle-selection",
            ),
            ranges=ranges,
        )
        for (tile, least, most), ranges in zip(tiles, SHARED, strict=True)
    ]


def test_as_many_kernels_as_may_share_sizes_come_back(tmp_path, kernels):
    """Each for one number of rows, by the same code; the last for all others."""
    ranges = [*((m, m) for m in range(1, KERNELS_MAX)), (KERNELS_MAX, ROWS_MOST)]
    several = []
    for least, most in ranges:
        manifest = copy.deepcopy(kernels[-1].manifest)
        manifest["parameters"][-1] |= {"least": least, "most": most}
        several.append(replace(kernels[-1], manifest=manifest))
    bundle = read_bundle(write_several(tmp_path / "kernels.zip", several).path)
    assert len(bundle.kernels) == KERNELS_MAX and bundle.at(KERNELS_MAX - 1).manifest["grid"]


def test_a_kernel_may_serve_several_ranges(tmp_path, shared):
    path = write_several(tmp_path / "kernels.zip", shared).path
    bundle = read_bundle(path)
    assert json.loads(zipfile.ZipFile(path).read("manifest.json"))["schema"] == 5
    tiles = {0: [64, 16], 1: [64, 32], 2: [128, 32]}
    for number, ranges in enumerate(SHARED):
        for m in (min(rows, 10**6) for each in ranges for rows in each):
            assert bundle.at(m).manifest["schedule"]["tile"][:2] == tiles[number], m
    kernel = load(path)
    for m in (16, 17, 40, 66):
        a, b = operands(m)
        wanted = a.double() @ b.double().T
        assert ((kernel(a, b).double() - wanted).abs() <= 2**-7 * wanted.abs() + 1e-3).all()


@pytest.mark.parametrize(
    ("edit", "said"),
    [
        (lambda m: m["ranges"][0].update(least=2), "ranges: must begin with 1 row, got 2"),
        (lambda m: m["ranges"][2].update(least=17), "ranges: must begin in order, got 17 behind"),
        (
            lambda m: m["ranges"][1].update(kernel=2),
            "ranges: must name each of 3 kernels, in the order of their first ranges, got 0, 2, 1",
        ),
        (
            lambda m: m["ranges"][3].update(kernel=0),
            "ranges: must be 1 to 64 for kernel 0, as the kernel is, got 1 to 99",
        ),
        (
            lambda m: m["ranges"][4].update(kernel=3),
            "must name each of 3 kernels, in the order of their first ranges, got 0, 1, 3",
        ),
        (lambda m: m["kernels"][0].update(most=63), "must be 1 to 63 for kernel 0, as the kernel"),
        (lambda m: m["kernels"][0].update(least=65), "must be for some rows each, got 65 to 64"),
        (lambda m: m.pop("ranges"), "must have the field 'ranges'"),
        (lambda m: m.update(schema=4), "kernels: must go on from 65 rows, got 17"),
    ],
)
def test_ranges_that_do_not_fit_their_kernels_are_refused(tmp_path, shared, edit, said):
    folder = write_several(tmp_path / "kernels", shared).path
    change(folder, "manifest.json", edit)
    assert said in refusal(folder)


def test_a_call_takes_the_kernel_for_its_rows(path):
    kernel = load(path)
    for m in (0, 3, 16, 17, 70):
        a, b = operands(m)
        wanted = a.double() @ b.double().T
        assert ((kernel(a, b).double() - wanted).abs() <= 2**-7 * wanted.abs() + 1e-3).all()
    tiles = {m: kernel.at(m).manifest["schedule"]["tile"] for m in (3, 70)}
    assert tiles == {3: [64, 16, 64], 70: [128, 32, 64]}


def test_equal_kernels_give_equal_bytes_and_one_is_a_bundle_of_its_own(tmp_path, kernels):
    for name in ("one.zip", "two.zip"):
        write_several(tmp_path / name, kernels)
    assert (tmp_path / "one.zip").read_bytes() == (tmp_path / "two.zip").read_bytes()
    write_several(tmp_path / "alone.zip", kernels[2:])
    assert read_bundle(tmp_path / "alone.zip").manifest["schema"] == 2


def test_a_file_that_is_gone_or_changed_is_refused(folder):
    (folder / "m17.kernel.ptx").write_text("// another\n")
    assert "m17.kernel.ptx: must have the SHA-256 of the manifest" in refusal(folder)
    (folder / "m17.kernel.ptx").unlink()
    assert "must hold m17.kernel.ptx, got none" in refusal(folder)


def test_a_kernel_of_another_bundle_is_refused(folder, kernels):
    manifest: dict = dict(as_bundle(kernels[1]).manifest) | {"pipeline": "another"}
    own: dict = dict(manifest["hashes"])
    manifest["hashes"] = own | {"manifest.json": manifest_hash(manifest)}
    (folder / "m17.manifest.json").write_text(json.dumps(manifest))
    assert "m17.manifest.json: must have the SHA-256 of the manifest" in refusal(folder)


def hashed(edit):
    """The change of a kernel's manifest with all hashes made to fit."""

    def both(folder):
        change(folder, "m17.manifest.json", edit)
        made = json.loads((folder / "m17.manifest.json").read_text())["hashes"]["manifest.json"]
        change(folder, "manifest.json", lambda m: m["hashes"].update({"m17.manifest.json": made}))

    return both


def of_any_launch(edit):
    """The same of a kernel whose PTX does not say for which launch it was made."""

    def both(folder):
        path = folder / "m17.kernel.ptx"
        path.write_text(path.read_text().partition("// launch")[0])
        made = {"kernel.ptx": sha256(path.read_bytes())}
        hashed(lambda m: [edit(m), m["hashes"].update(made)])(folder)

    return both


def of_another_chip(folder):
    """The same of a kernel's PTX and manifest that say sm_100a."""
    path = folder / "m17.kernel.ptx"
    path.write_text(path.read_text().replace(".target sm_90a", ".target sm_100a"))
    made = {"kernel.ptx": sha256(path.read_bytes())}
    hashed(lambda m: m.update(target="sm_100a", hashes=m["hashes"] | made))(folder)


@pytest.mark.parametrize(
    ("edit", "said"),
    [
        (
            of_any_launch(lambda m: m["parameters"][-1].update(least=20)),
            "kernels: must be of 17 to 64 rows as the kernel is, got 20 to 64",
        ),
        (
            of_another_chip,
            "kernels: all must have the same target, got another from 17 rows on",
        ),
        (
            of_any_launch(lambda m: m["parameters"][-1].pop("most")),
            "kernels: must be of 17 to 64 rows as the kernel is, got 17 to None",
        ),
        (
            hashed(lambda m: m["parameters"][-1].update(least=65)),
            "parameters: must have least up to most of a size, got 65 and 64",
        ),
    ],
)
def test_kernels_that_do_not_fit_together_are_refused(folder, edit, said):
    edit(folder)
    assert said in refusal(folder)


MOST = {"least": 65, "most": ROWS_MOST}


@pytest.mark.parametrize(
    ("kernels_said", "said"),
    [
        ([MOST], "kernels: must have 2 to 64 items, got 1"),
        ([MOST] * 65, "kernels: must have 2 to 64 items, got 65"),
        ([{"least": 2, "most": 64}, MOST], "kernels: must go on from 1 rows, got 2"),
        ([{"least": 1, "most": 63}, MOST], "kernels: must go on from 64 rows, got 65"),
        ([{"least": 1, "most": 65}, MOST], "kernels: must go on from 66 rows, got 65"),
        (
            [{"least": 1, "most": 64}, {"least": 65, "most": 70}],
            "kernels: must go on from 71 rows, got 2147483648",
        ),
        (
            [{"least": 1, "most": 9}, {"least": 10, "most": 9}, {"least": 10, "most": ROWS_MOST}],
            "kernels: must be for some rows each, got 10 to 9",
        ),
        ([{"least": 1, "most": "64"}, MOST], "kernels[0].most: must be an integer from 1"),
        (
            [{"least": 1, "most": 64}, MOST],
            "hashes: must have the field 'm1.manifest.json', got none",
        ),
    ],
)
def test_ranges_of_rows_that_leave_some_out_are_refused(kernels_said, said):
    head = {"format": "tilewright-bundle", "schema": 4, "size": "m"}
    manifest = {**head, "kernels": kernels_said, "hashes": {"manifest.json": "0"}}
    with pytest.raises(BundleError) as caught:
        validate_several(manifest, "manifest")
    assert said in str(caught.value)


@pytest.mark.parametrize(
    ("edit", "said"),
    [
        (lambda m: m.update(schema=5), "must have the field 'ranges', got none"),
        (lambda m: m.update(schema=6), "must have the field 'bands', got none"),
        (lambda m: m.update(schema=8), "schema: must be 2 or 3, got 8"),
        (lambda m: m.update(size="n"), "size: must be 'm' or 'batch' or 'k', got 'n'"),
        (lambda m: m.update(format="zip"), "format: must be 'tilewright-bundle', got 'zip'"),
        (lambda m: m["kernels"].pop(), "kernels: must go on from 65 rows, got 2147483648"),
    ],
)
def test_a_manifest_of_several_that_breaks_a_rule_is_refused(folder, edit, said):
    change(folder, "manifest.json", edit)
    assert said in refusal(folder)


def test_a_change_without_its_hash_is_refused(folder):
    change(folder, "manifest.json", lambda m: m.update(author="x"), seal=False)
    assert "manifest.json: must have the SHA-256" in refusal(folder)


def test_rows_of_boxes_that_no_launch_says_are_refused(kernels):
    manifest = copy.deepcopy(dict(as_bundle(kernels[1]).at(20).manifest))
    manifest["parameters"] = [each for each in manifest["parameters"] if each["kind"] != "size"]
    manifest["parameters"][0]["box"][1] = {"size": "m", "most": 64}
    from tilewright.runtime.bundles.manifest import validate

    with pytest.raises(BundleError, match="must have numbers alone where no launch says a size"):
        validate(manifest)


def test_files_are_read_up_to_a_limit_together(folder, monkeypatch):
    from tilewright.runtime.bundles import bundle_files

    monkeypatch.setattr(bundle_files, "TOTAL_LIMIT_BYTES", 10_000)
    assert "must be files of at most 10000 bytes together, got more" in refusal(folder)
