"""What a source means: linalg on tensors evaluated as it is written, to judge what was compiled.

Nothing here is shared with the compiler. It reads the text through upstream MLIR's own parser and
upstream's `linalg-generalize-named-ops`, knows neither `normalize` nor a manifest, and evaluates
op by op in float64 with the limits that any float32 code may reach (`runtime.judge.intervals`).
"""
