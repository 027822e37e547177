"""The host's side of a launch: its shape, parameters, names, processes and its start."""
