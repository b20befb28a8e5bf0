"""The command line: finds the commands, reads the arguments, turns errors into messages and exit codes.

Exit codes: 0 done, 1 the command could not do it (the message says why), 2 wrong usage.
"""

import argparse
import importlib
import os
import pkgutil
import sys

from . import __version__, commands
from .store import Store, ToolError


def find_commands():
    """Returns the command modules, by name. Adding a file to `commands` is all it takes to add a command."""
    names = [f"{commands.__name__}.{module.name}" for module in pkgutil.iter_modules(commands.__path__)]
    return sorted((importlib.import_module(name) for name in names), key=lambda command: command.NAME)


def build_parser():
    """Returns the parser with one sub-command for each module."""
    parser = argparse.ArgumentParser(
        prog="@PKG@",
        description="Keep @PLURAL@ in one JSON file.",
        epilog="The file is --file, else $@ENV@, else ~/.@PKG@.json.",
    )
    parser.add_argument("--file", metavar="PATH", help="the JSON file that holds the @PLURAL@")
    parser.add_argument("--version", action="version", version=f"@PKG@ {__version__}")
    choices = parser.add_subparsers(dest="command", metavar="COMMAND", required=True)
    for command in find_commands():
        sub = choices.add_parser(command.NAME, help=command.HELP, description=command.HELP[:1].upper() + command.HELP[1:] + ".")
        command.configure(sub)
        sub.set_defaults(run=command.run)
    return parser


def main(argv=None):
    """Runs one command and returns its exit code."""
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")
    args = build_parser().parse_args(argv)
    try:
        code = args.run(args, Store(args.file))
        sys.stdout.flush()
        return code
    except ToolError as error:
        print(f"@PKG@: error: {error}", file=sys.stderr)
        return 1
    except BrokenPipeError:
        # The reader went away, as in `@PKG@ list | head -1`; keep the interpreter from flushing again.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
