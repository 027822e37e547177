"""The passes `assign-threads` and `plan-memory`."""
