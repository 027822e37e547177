"""The command line: compile, opt, run, explain, ladder."""
