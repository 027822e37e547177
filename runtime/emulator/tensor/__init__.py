"""The tensor core: its memory, descriptors, element formats, block scales and products."""
