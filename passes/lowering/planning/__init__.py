"""The passes `assign-threads` and `plan-memory`: who runs an op, and where everything lies."""
