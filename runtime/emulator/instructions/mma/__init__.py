"""Products in registers, of warps and warpgroups: mma.sync, wmma, wgmma, and ldmatrix."""
