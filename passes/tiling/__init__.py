"""The product as the program of one CTA: `tiling`, and its parts."""
