"""How `lower-to-nvvm` emits each part of a kernel: one module a subject."""
