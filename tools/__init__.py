"""The command line: a file for each command in `commands/`, a folder for what it explains or runs."""
