"""The command line: compile, opt, run."""
