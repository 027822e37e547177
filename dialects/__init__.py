"""Dialects, layout algebra and target limits, on which all packages but `runtime` build.

The dialects have a folder each where they are large; beside them stand

    tile/, pipe, sm/              the dialects; tile_types and verify are what several take
    mlir, context                 the MLIR wheel, and contexts with the dialects in them
    dtypes, epilogue              element types and scalar ops
    layout, strided, fragments    where elements lie in shared memory and in registers
    target, mma_units             the chips and their MMAs, as data
    legality, *_legality          what these can hold and run: each rule once, without MLIR
"""
