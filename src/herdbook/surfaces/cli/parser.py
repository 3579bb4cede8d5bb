"""How a command line is read: the options every command has, help that ends in an example, and mistakes told in one sentence."""

from __future__ import annotations

import argparse
import textwrap
from contextlib import suppress
from typing import Any, Final, NoReturn

from herdbook.surfaces.cli.problems import Usage

# What every command knows, unless it makes no sense there; it may also stand before the command.
OPTIONS: Final[dict[str, dict[str, Any]]] = {
    "json": {"action": "store_true", "help": 'print one JSON value; a refusal is {"error": {...}}'},
    "url": {"metavar": "URL", "help": "ask the server there: http://, https:// or unix:PATH (HERDBOOK_URL)"},
    "record": {"metavar": "PATH", "help": "use the record in this file (HERDBOOK_RECORD)"},
    "agent": {"metavar": "NAME", "help": "who is asking or writing (HERDBOOK_AGENT; your login name)"},
    "session": {"metavar": "NAME", "help": "the run this belongs to (HERDBOOK_SESSION; a fresh one)"},
    "no-session": {"action": "store_true", "help": "belong to no run: nothing read is remembered as read"},
}
SHARED: Final = tuple(OPTIONS)
SHARED_WITH_VALUE: Final = tuple(f"--{name}" for name, option in OPTIONS.items() if "metavar" in option)


WIDTH: Final = 110


class Parser(argparse.ArgumentParser):
    """A parser that raises instead of printing and leaving, so that --json and the exit code hold for mistakes too."""

    def error(self, message: str) -> NoReturn:
        raise Usage(f"{shortened(message)} (see {self.prog} --help)")


def shortened(message: str, chars_max: int = 300) -> str:
    """argparse repeats what it did not understand; nobody needs 5,000 digits of it."""
    return message if len(message) <= chars_max else message[:chars_max] + "…"


class Help(argparse.RawDescriptionHelpFormatter):
    """Keeps our lines as written, and shows what an option is when it is not given only where the help says so."""

    def __init__(self, prog: str, **options: Any) -> None:
        super().__init__(prog, max_help_position=30, width=WIDTH, **options)


def command_parser(command: str, *, summary: str) -> Parser:
    """An empty parser for one command."""
    return Parser(prog=f"herdbook {command}", description=summary, formatter_class=Help, allow_abbrev=False)


def read(parser: Parser, words: list[str]) -> argparse.Namespace:
    """A command line, in any order: argparse by itself takes what is optional only right behind what is required."""
    try:
        return parser.parse_args(words)
    except Usage:
        if "--" in words:
            raise
        with suppress(Usage, TypeError):  # the second is for commands that have commands of their own
            return parser.parse_intermixed_args(words)
        raise


def finish(parser: argparse.ArgumentParser, *, shared: tuple[str, ...], examples: str) -> None:
    """What every command's help ends with: the shared options, and the examples."""
    parser.description = "\n".join(textwrap.fill(line, WIDTH) for line in (parser.description or "").split("\n"))
    parser.epilog = parser.epilog or examples
    add_shared(parser, shared)


def add_shared(parser: argparse.ArgumentParser, shared: tuple[str, ...]) -> None:
    """The shared options, behind the command's own. One that makes no sense here is on no command line, but in the arguments."""
    group = parser.add_argument_group("everywhere")
    for name, option in OPTIONS.items():
        if name in shared:
            # A command may have an option of the same name that means more, as `demo --json` does.
            with suppress(argparse.ArgumentError):
                group.add_argument(f"--{name}", **option)
        else:
            parser.set_defaults(**{name.replace("-", "_"): False if "action" in option else None})


def split(argv: list[str]) -> tuple[list[str], str | None, list[str]]:
    """Shared options before the command, the command, and what is behind it."""
    position = 0
    while position < len(argv) and argv[position].startswith("-"):
        position += 2 if argv[position] in SHARED_WITH_VALUE else 1
    if position >= len(argv):
        return argv, None, []
    return argv[:position], argv[position], argv[position + 1 :]


def whole_number(text: str) -> int:
    """argparse names the function in its message, and repeats the text: both are kept short."""
    digits = text.removeprefix("-")
    if not (digits.isascii() and digits.isdigit() and len(digits) <= 18):
        raise argparse.ArgumentTypeError(f"{text[:40]!r} is not a whole number")
    return int(text)


def number(text: str) -> float:
    """A number as people write it; whether it is within [0, 1] is the record's to say."""
    try:
        return float(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text[:40]!r} is not a number") from None
