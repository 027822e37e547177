"""What MMAs and threads multiply: operands, tiles, scales, weights."""
