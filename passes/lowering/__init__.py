"""The passes after a schedule, but for `expand-loops`, in their order:

    planning/     assign-threads and plan-memory
    barriers/     pipes-to-barriers: pipes as waits and arrivals on mbarriers
    select_instructions, program, patterns
                  select-instructions: threads, and an op of `tile`, a pattern
    nvvm/         lower-to-nvvm: an op of `sm`, a pattern

`patterns` lists the patterns of select-instructions by what multiplies. They stand in:

    tcgen05/, wgmma/, mma_sync/, fma/    products of each unit: plain, with block scales, of
                                         weights that threads widen, of f32 that they split
    copies/       operands on their way to shared memory: by TMA, and by threads
    epilogue/     from sums to results: what a thread reads, computes and stores
    scales/       scales in f32 that threads multiply products by
    operands/     tiles in shared memory, as MMAs and threads read them
    registers/    accumulators, fragments and vectors that threads hold
    tiles/        which tile, matrix and group of rows a CTA computes
    scope/        what every pattern knows: the kernel, the place of the CTA, positions in rings
    launch/       what a launch needs to know, for the manifest
"""
