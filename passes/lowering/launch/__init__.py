"""What a launch needs to know about a kernel, for the manifest."""
