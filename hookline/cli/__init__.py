"""The command line: `hookline train`, `test`, `plan`, `hooks`, `sites` and `config`."""
