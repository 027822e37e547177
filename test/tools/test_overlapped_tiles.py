"""Stores of a tile beside the next tile's MMAs, by the order of events that a trace has."""

import json

PASSES = (
    "tiling{tile=128x32x64},tma-insertion,swizzle-selection,epilogue-staging{columns=16 ahead=2},"
    "pipelining{stages=3},warp-specialization,persistence{ctas=1}"
)
RESIDUAL = """
#rows = affine_map<(m, n) -> (m, n)>
func.func @f(%a: tensor<128x64xbf16>, %b: tensor<96x64xbf16>, %e: tensor<128x96xbf16>)
    -> tensor<128x96xbf16> {
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<128x96xf32>
  %init = linalg.fill ins(%zero : f32) outs(%empty : tensor<128x96xf32>) -> tensor<128x96xf32>
  %sum = linalg.matmul indexing_maps = [affine_map<(i, j, k) -> (i, k)>,
      affine_map<(i, j, k) -> (j, k)>, affine_map<(i, j, k) -> (i, j)>]
    ins(%a, %b : tensor<128x64xbf16>, tensor<96x64xbf16>)
    outs(%init : tensor<128x96xf32>) -> tensor<128x96xf32>
  %into = tensor.empty() : tensor<128x96xbf16>
  %c = linalg.generic {indexing_maps = [#rows, #rows, #rows],
      iterator_types = ["parallel", "parallel"]}
    ins(%sum, %e : tensor<128x96xf32>, tensor<128x96xbf16>) outs(%into : tensor<128x96xbf16>) {
  ^bb0(%x: f32, %y: bf16, %out: bf16):
    %wide = arith.extf %y : bf16 to f32
    %all = arith.addf %x, %wide : f32
    %last = arith.truncf %all : f32 to bf16
    linalg.yield %last : bf16
  } -> tensor<128x96xbf16>
  return %c : tensor<128x96xbf16>
}
"""


def test_a_tile_is_stored_while_the_next_is_multiplied(tilewright, tmp_path):
    """One CTA has three tiles and two accumulators: the MMAs of the second are done before the
    first is stored, and those of the third begin before the second is."""
    source, trace = tmp_path / "residual.mlir", tmp_path / "trace.json"
    source.write_text(RESIDUAL)
    ran = tilewright("run", source, "--target", "sm_100a", "--pipeline", PASSES, "--trace", trace)
    assert ran.status == 0, ran.err
    events = [e for e in json.loads(trace.read_text())["traceEvents"] if e.get("ph") == "X"]
    multiplied = sorted((e["ts"], e["ts"] + e["dur"]) for e in events if e["name"][:4] == "mma ")
    writes = [e for e in events if "tensor store" in e["name"] and "(write)" in e["name"]]
    stored = sorted(e["ts"] + e["dur"] for e in writes)
    assert len(multiplied) == 3 * 4 and len(stored) == 3 * 2
    (_, second), (third, _) = multiplied[7], multiplied[8]
    assert second < stored[1] and third < stored[3]
