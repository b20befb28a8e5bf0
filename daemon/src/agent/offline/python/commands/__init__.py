"""One module for each command.

A command has `NAME`, `HELP`, `configure(parser)` and `run(args, store)`, which returns the exit code.
"""
