"""The `hookline` command: declarations in `commands/`, one implementation module per command."""
