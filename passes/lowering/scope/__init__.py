"""Context of all lowering patterns: the kernel, the rank of the CTA, positions in rings."""
