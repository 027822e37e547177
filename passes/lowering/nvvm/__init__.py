"""The pass `lower-to-nvvm`: each op of `sm` by a pattern of its own."""
