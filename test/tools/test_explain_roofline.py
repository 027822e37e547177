"""`tilewright explain roofline`: counts beside ceilings, its picture, and what it refuses."""

import json
import re
from pathlib import Path

import pytest

from tilewright.compiler.schedule.chips.ceilings import HBM, L2, SHARED, ceilings_of
from tilewright.dialects.errors import CompileError
from tilewright.tools.roofline.model import Counts, Roofline
from tilewright.tools.roofline.plot import draw
from tilewright.tools.roofline.scale import why_not
from tilewright.tools.runs import references
from tilewright.tools.runs.inputs import make_tensors

pytestmark = pytest.mark.usefixtures("ptxas_for_a_share")
DOCS = Path(__file__).parents[2] / "docs"
SIZE = ("--m", 256, "--n", 256, "--k", 256)
OPERATIONS, MATRIX = 2 * 256**3, 2 * 256**2


@pytest.mark.parametrize(("target", "gpu"), [("h100", "H100"), ("sm_90a", "H200")])
def test_a_kernel_is_held_to_the_gpu_that_its_target_is(tilewright, target, gpu):
    size = ("--m", 64, "--n", 64, "--k", 64)
    ran = tilewright("explain", "roofline", *size, "--target", target, "--json")
    assert ran.status == 0, ran.err
    assert gpu in ran.json["gpu"]


def test_the_steps_of_the_page_have_the_bytes_of_their_tiles(tilewright, tmp_path):
    """Tiles of 128x128, and a pair's of 256x256; no swizzle moves a sector for every 16 bytes.

    Shared memory is written once and read once; a row of 16 bytes takes a pass of its own.
    """
    picture, names = tmp_path / "steps.svg", "v1a,v2a,v5"
    ran = tilewright("explain", "roofline", *SIZE, "--presets", names, "--svg", picture, "--json")
    assert ran.status == 0, ran.err
    rungs = {rung["name"]: rung for rung in ran.json["kernels"]}
    assert list(rungs) == names.split(",")
    for name, tiles, wasted, passes in (("v1a", 2, 2, 8), ("v2a", 2, 1, 1), ("v5", 1, 1, 1)):
        rung, loaded = rungs[name], 2 * tiles * MATRIX
        assert rung["operations"][0]["operations"] == OPERATIONS
        moved = {level: each["moved_bytes"] for level, each in rung["levels"].items()}
        assert moved[HBM] == 3 * MATRIX
        assert moved[L2] == wasted * loaded + MATRIX
        assert rung["levels"][L2]["asked_bytes"] == loaded + MATRIX
        assert (passes + 1) * loaded <= moved[SHARED] <= 1.01 * (passes + 1) * loaded
    assert rungs["v1a"]["limit"] == SHARED and rungs["v5"]["limit"] == HBM
    assert picture.read_text() == (DOCS / "roofline" / "steps.svg").read_text()
    _check_page(rungs)


def _check_page(rungs):
    """The page's table has the intensities and the speed below the roof of shared memory."""
    page, rate = (DOCS / "roofline.md").read_text(), ceilings_of("sm_100a").memory[SHARED]
    for name in ("v1a", "v2a", "v5"):
        row = re.search(rf"^\| `{name}` .*$", page, re.MULTILINE)[0].split("|")
        intensity = rungs[name]["levels"][SHARED]["intensity"]
        assert row[3].strip() == f"{intensity:.3g}"
        assert row[4].strip() == f"{min(2243, intensity * rate / 1e12):.0f}"


NAIVE = """.version 8.8
.target sm_90a
.address_size 64
.visible .entry naive(.param .u64 pa, .param .u64 pb, .param .u64 pc) {
  .reg .pred %p; .reg .b32 %row, %col, %k, %i; .reg .b64 %a, %b, %c, %at; .reg .f32 %x, %y, %s;
  ld.param.u64 %a, [pa]; ld.param.u64 %b, [pb]; ld.param.u64 %c, [pc];
  mov.u32 %row, %ctaid.x; mov.u32 %col, %tid.x; mov.u32 %k, 0; mov.f32 %s, 0f00000000;
L: mad.lo.u32 %i, %row, 8, %k; mad.wide.u32 %at, %i, 4, %a; ld.global.f32 %x, [%at];
  mad.lo.u32 %i, %k, 32, %col; mad.wide.u32 %at, %i, 4, %b; ld.global.f32 %y, [%at];
  fma.rn.f32 %s, %x, %y, %s; add.u32 %k, %k, 1; setp.lt.u32 %p, %k, 8; @%p bra L;
  mad.lo.u32 %i, %row, 32, %col; mad.wide.u32 %at, %i, 4, %c; st.global.f32 [%at], %s; ret; }
"""


@pytest.fixture
def naive(tmp_path):
    """C[16, 32] = A[16, 8] B[8, 32] in f32: a CTA a row, a thread an element."""
    shapes = {"a": [16, 8], "b": [8, 32], "c": [16, 32]}
    tensors = [
        {"name": name, "dtype": "f32", "shape": shape, "role": "output" if name == "c" else "input"}
        | ({} if name == "c" else {"contents": {"ramp": 1}})
        for name, shape in shapes.items()
    ]
    parameters = [{"pointer": name} for name in shapes]
    launch = {"entry": "naive", "grid": [16], "block": [32]}
    path = tmp_path / "naive.ptx"
    path.write_text(NAIVE)
    launch |= {"tensors": tensors, "parameters": parameters}
    (tmp_path / "launch.json").write_text(json.dumps({"schema": 1, **launch}))
    return path


def test_ptx_of_strangers_is_counted_as_its_launch_file_says(tilewright, naive):
    launch = naive.parent / "launch.json"
    ran = tilewright("explain", "roofline", naive, "--launch", launch, "--json")
    assert ran.status == 0, ran.err
    (found,) = ran.json["kernels"]
    assert ran.json["target"] == "sm_90a" and found["name"] == "naive"
    operations = {"unit": "threads", "type": "f32", "operations": 2 * 16 * 32 * 8}
    assert found["operations"] == [operations] and found["ctas"] == 16
    # A step of K: one element of A for the warp, a sector; a row of B of 128 bytes.
    assert found["levels"][L2]["moved_bytes"] == 16 * (8 * (32 + 128) + 128)
    assert found["levels"][HBM]["moved_bytes"] == 4 * (16 * 8 + 8 * 32 + 16 * 32)
    assert SHARED not in found["levels"] and found["limit"] == L2


def test_a_kernel_without_operations_is_refused(tilewright, naive):
    naive.write_text(NAIVE.replace("fma.rn.f32 %s, %x, %y, %s;", "mov.f32 %s, %x;"))
    ran = tilewright("explain", "roofline", naive, "--launch", naive.parent / "launch.json")
    assert ran.status == 1
    assert "naive: must perform operations of a known rate on sm_90a" in ran.err


# -- the model -------------------------------------------------------------------------------


def roofline(measured=None, **moved):
    bytes_moved = {HBM: 1, L2: 1, SHARED: 0, "tensor memory": 0} | moved
    counts = Counts("k", "sm_100a", 8, {("tensor core", "bf16"): 1000}, bytes_moved, bytes_moved)
    return Roofline(counts, ceilings_of("sm_100a"), measured)


def test_the_slowest_level_limits():
    found = roofline(**{HBM: 1000, L2: 4000})
    assert found.levels == [HBM, L2] and found.intensity(L2) == 0.25
    assert found.limit == L2 and found.at_least_us == pytest.approx(1e6 * 4000 / 21e12)
    assert found.attainable(HBM) == pytest.approx(8e12)


def test_compute_limits_where_little_is_moved():
    found = roofline()
    assert found.limit == "tensor core bf16"
    assert found.attainable(HBM) == found.peak == ceilings_of("sm_100a").rate("tensor core", "f16")


def test_marks_lie_at_the_measured_speed():
    found = roofline(measured=1e-3, **{HBM: 10, L2: 40})
    heights = re.findall(r"<path d=.*?translate\([\d.]+ ([\d.]+)\)", draw("t", [found]))
    assert heights[0] == heights[1]
    assert found.measured_rate == pytest.approx(1e12)


@pytest.mark.parametrize(("type_", "ratio"), [("tf32", 0.5), ("mxf8f6f4", 2), ("mxf4", 4)])
def test_types_have_their_share_of_the_rate_of_16_bits(type_, ratio):
    ceilings = ceilings_of("sm_100a")
    rate = ceilings.rate("tensor core", "bf16")
    assert rate == pytest.approx(2.25e15, rel=0.01)  # NVIDIA B200, dense
    assert ceilings.rate("tensor core", type_) == ratio * rate
    assert ceilings_of("sm_90a").rate("tensor core", "mxf4") is None


# -- bad input -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--m", 8), "a FILE or --m, --n and --k must be given, got no --n, --k"),
        ((*SIZE, "--ladder", "--presets", "v1a"), "--ladder must come without --presets"),
        ((*SIZE, "--ladder", "--preset", "v1a"), "spec flags alone, got --preset"),
        (("k.ptx",), "k.ptx must come with --launch LAUNCH.json, got none"),
        (("k.zip", "--launch", "l.json"), "--launch must come with a FILE of PTX"),
        ((*SIZE, "--launch", "l.json"), "--launch must come with a FILE of PTX"),
        (("k.ptx", "--launch", "l", "--preset", "v6"), "must come without --preset"),
        (("k.ptx", "--launch", "l", "--scale"), "--scale must come with a kernel of this compiler"),
        ((*SIZE, "--presets", "v9"), "preset: unknown name 'v9'"),
        ((*SIZE, "--target", "sm_70"), "target: unknown chip 'sm_70'"),
        ((*SIZE, "--svg", "no/such/a.svg"), "the folder 'no/such' must exist"),
        ((*SIZE, "--times", "no.json"), "no.json: must be a JSON file"),
        ((*SIZE, "--published"), "--published must come with --presets or --ladder"),
        (
            (*SIZE, "--presets", "v1a", "--published"),
            "--published: v1a was measured at 4096×4096×4096, got 256×256×256; take its shape",
        ),
    ],
)
def test_what_cannot_be_is_refused_in_one_line(tilewright, words, message):
    ran = tilewright("explain", "roofline", *words)
    assert ran.status != 0 and message in ran.err
    assert len(ran.err.strip().splitlines()) == 1


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("[1]", "must be an object of microseconds by name"),
        ('{"v9": 1}', "names must be of v1a, v2a, got 'v9'"),
        ('{"v1a": 0}', "v1a: must be microseconds above 0, got 0"),
        ('{"v1a": true}', "v1a: must be microseconds above 0, got True"),
        ('{"v1a": NaN}', "v1a: must be microseconds above 0, got nan"),
        ("{", "must be a JSON file"),
    ],
)
def test_bad_times_are_refused(tmp_path, content, message):
    from tilewright.tools.roofline.subject import read_times

    path = tmp_path / "times.json"
    path.write_text(content)
    with pytest.raises(CompileError, match=re.escape(message)):
        read_times(path, ["v1a", "v2a"])


def test_ptx_of_a_chip_without_ceilings_is_refused(tilewright, naive):
    naive.write_text(NAIVE.replace("sm_90a", "sm_75"))
    ran = tilewright("explain", "roofline", naive, "--launch", naive.parent / "launch.json")
    assert ran.status != 0
    assert "target: ceilings must be those of sm_100a, sm_90a, " in ran.err
    assert ", got 'sm_75'; name one" in ran.err


def test_ptx_for_a_chip_without_its_letter_is_held_to_that_chip():
    assert ceilings_of("sm_90") == ceilings_of("sm_90a")
    assert ceilings_of("sm_120").gpu == "RTX PRO 6000 Blackwell"


def test_ptx_is_held_to_the_gpu_that_is_named(tilewright, naive):
    naive.write_text(NAIVE.replace("sm_90a", "sm_80"))
    words = ("explain", "roofline", naive, "--launch", naive.parent / "launch.json", "--json")
    own, other = tilewright(*words).json, tilewright(*words, "--gpu", "rtx4090").json
    assert (own["gpu"], other["gpu"]) == ("NVIDIA A100 SXM, 40 GB", "GeForce RTX 4090")
    assert own["target"] == other["target"] == "sm_80"
    times = [found["kernels"][0]["at_least_us"]["threads f32"] for found in (own, other)]
    assert times[0] / times[1] == pytest.approx(82.6 / 19.5, rel=0.01)
    refused = tilewright(*words[:-1], "--target", "sm_90a", "--gpu", "a100")
    assert "gpu: must run PTX for sm_90a, got a100, an sm_80" in refused.err


@pytest.mark.parametrize(
    ("target", "gpu"), [("h100", "NVIDIA H100 SXM, 80 GB"), ("sm_90", "NVIDIA H200")]
)
def test_ptx_is_held_to_the_gpu_or_chip_that_is_its_target(tilewright, naive, target, gpu):
    launch = naive.parent / "launch.json"
    words = ("explain", "roofline", naive, "--launch", launch, "--json", "--target", target)
    assert tilewright(*words).json["gpu"] == gpu


CUBE = ("--m", 4096, "--n", 4096, "--k", 4096)


@pytest.mark.slow
def test_published_speeds_lie_below_their_roofs_on_the_page(tilewright, tmp_path, monkeypatch):
    made = {}

    def once(manifest, seed, _):
        """Numbers for two matrices of 4096x4096 take half a second, and five rungs take them."""
        declared = repr(manifest["tensors"])
        if declared not in made:
            made[declared] = make_tensors(manifest, seed)
        return made[declared]

    monkeypatch.setattr(references, "make_tensors", once)
    picture, names = tmp_path / "published.svg", "v1a,v2a,v3,v4,v5"
    words = ("--presets", names, "--scale", "--published", "--svg", picture, "--json")
    ran = tilewright("explain", "roofline", *CUBE, *words)
    for rung in ran.json["kernels"]:
        share = max(rung["at_least_us"].values()) / rung["measured_us"]
        assert 0.3 < share < 1.03, rung["name"]  # the clock is assumed
    assert picture.read_text() == (DOCS / "roofline" / "published.svg").read_text()


# -- scaling ---------------------------------------------------------------------------------


def test_two_clusters_scaled_are_the_whole_launch(tilewright):
    words = ("explain", "roofline", "--m", 256, "--n", 512, "--k", 128, "--preset", "v5", "--json")
    scaled, whole = tilewright(*words, "--scale").json, tilewright(*words).json
    assert scaled["scaled"] and not whole["scaled"]
    assert scaled["kernels"] == whole["kernels"]


MANIFEST = {
    "schedule": {"scheduler": "none", "tile": [128, 256, 64]},
    "cluster": [2, 1, 1],
    "tensors": [
        {"name": "a", "role": "input", "dtype": "bf16", "shape": [256, 64], "strides": [64, 1]},
        {"name": "c", "role": "output", "dtype": "bf16", "shape": [256, 256], "strides": [256, 1]},
    ],
}


def test_equal_clusters_may_be_scaled():
    assert why_not(MANIFEST) is None


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"cluster": [4, 1, 1]}, "M must be a multiple of 512, got 256"),
        ({"cluster": [2, 2, 1]}, "N must be a multiple of 512, got 256"),
        (
            {"preferred_cluster": [4, 1, 1]},
            "all clusters must have one shape, got [2, 1, 1] and a preferred one",
        ),
        (
            {"schedule": {"scheduler": "clc", "tile": [128, 256, 64]}},
            "tiles must not be handed out to CTAs that go on, got clc",
        ),
        (
            {"tensors": [MANIFEST["tensors"][0] | {"strides": [72, 1]}, MANIFEST["tensors"][1]]},
            "rows of a must be a multiple of 128 bytes",
        ),
    ],
)
def test_clusters_that_may_differ_are_not_scaled(change, reason):
    assert why_not(MANIFEST | change) == reason
