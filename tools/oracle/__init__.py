"""The reference: evaluates linalg on tensors in float64, independently of the compiler.

Nothing here is shared with the compiler. It reads the text through upstream MLIR's own parser and
upstream's `linalg-generalize-named-ops`, knows neither `normalize` nor a manifest, and evaluates
op by op in float64 with the limits that any float32 code may reach (`runtime.judge.intervals`).
"""
