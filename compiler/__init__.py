"""From a spec, linalg or arrays to a kernel; `tilewright` has the public names."""
