"""The command line: a file a command in `commands/`, a folder for each subject."""
