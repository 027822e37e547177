"""What a launch needs to know of a kernel, for the manifest."""
