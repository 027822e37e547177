"""Where the windows of generic addresses lie (PTX ISA §5.1), as the emulator places them."""

from __future__ import annotations

SHARED_WINDOW = 1 << 46
LOCAL_WINDOW = 1 << 45
PARAM_WINDOW = 3 << 44
CONST_WINDOW = 5 << 44
CODE_BASE = 7 << 44
"""Addresses of functions; nothing can be read or written there."""
GLOBAL_BASE = 0x7F00_0000_0000
SHARED_FIRST_OFFSET = 0x400
"""The first usable byte of a CTA's shared window: addresses of shared memory are never 0."""
WINDOW_SIZE = 1 << 40
