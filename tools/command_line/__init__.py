"""What every command shares: flags, streams, progress, tables, and the child that reads files."""
