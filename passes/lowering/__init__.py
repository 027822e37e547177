"""How `select-instructions` emits each part of a kernel: one module a subject."""
