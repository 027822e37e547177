"""What `tilewright explain layout`, `swizzle` and `scales` draw."""
