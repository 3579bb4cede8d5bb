"""What reaches a person's screen: lines, colours, JSON.

Everything the record holds was written by somebody else, so no text passes here without its control characters, bidirectional
overrides and lone surrogates made visible: a note must not be able to move the cursor, retitle the window or reorder a line.
Colour is used on terminals only, and not where NO_COLOR is set.
"""

from __future__ import annotations

import json
import os
import re
import sys
import unicodedata
from collections.abc import Callable, Iterable
from typing import Any, Final, TextIO

from herdbook.base.text import JOINERS

# Format characters, separators and private ones go with the controls: they can make a line look like another one.
ESCAPED_CATEGORIES: Final = frozenset({"Cc", "Cf", "Cs", "Zl", "Zp"})
COLOURS: Final = {"red": "31", "green": "32", "yellow": "33", "cyan": "36", "dim": "2", "bold": "1"}
CLIP_CHARS: Final = 160
NOT_PLAIN: Final = re.compile(r"[^\x20-\x7e]")


def dangerous(character: str) -> bool:
    return unicodedata.category(character) in ESCAPED_CATEGORIES and character not in JOINERS


def visible(character: str) -> str:
    """`\\x1b`, `\\u202e`: how a character that must not act is shown."""
    code = ord(character)
    if code < 0x100:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def escaped(text: str, keep: str, show: Callable[[str], str]) -> str:
    """The text with every dangerous character shown by `show`; those in `keep` pass."""

    def one(match: re.Match[str]) -> str:
        character = match.group()
        return character if character in keep or not dangerous(character) else show(character)

    return NOT_PLAIN.sub(one, text)


def line(text: object) -> str:
    """Any text as one harmless line: line ends are shown as `\\n`."""
    return escaped(str(text).replace("\n", "\\n").replace("\t", "\\t"), "", visible)


def prose(text: object) -> str:
    """Any text over as many lines as it has, harmless otherwise."""
    return escaped(str(text).replace("\r\n", "\n"), "\n\t", visible)


def clipped(text: object, chars_max: int = CLIP_CHARS) -> str:
    """One harmless line of at most this many characters, with its end marked where it was cut."""
    shown = line(text)
    return shown if len(shown) <= chars_max else shown[: chars_max - 1] + "…"


def compact(value: object, chars_max: int = CLIP_CHARS) -> str:
    """A JSON value on one line."""
    return clipped(json.dumps(value, ensure_ascii=False), chars_max)


def json_text(value: object) -> str:
    """JSON a machine reads and a terminal survives: dangerous characters are \\u escapes, which parse back to themselves."""
    text = json.dumps(value, ensure_ascii=False, indent=2, allow_nan=False)
    return escaped(text, "\n", lambda character: json.dumps(character)[1:-1])


class Terminal:
    """Where a command writes: answers to `out`, remarks to `remarks`; with `as_json`, one JSON value and no remarks."""

    def __init__(self, *, as_json: bool = False, out: TextIO | None = None, remarks: TextIO | None = None) -> None:
        self.as_json = as_json
        self.out = out or sys.stdout
        self.remarks = remarks or sys.stderr
        self.colours = coloured(self.out)

    def show(self, answer: object, lines: Iterable[str]) -> None:
        """The answer: as it is with --json, as these lines otherwise. Lines come already harmless."""
        if self.as_json:
            self.out.write(json_text(answer) + "\n")
        else:
            self.out.writelines(each + "\n" for each in lines)

    def remark(self, text: str) -> None:
        """Something said beside the answer, behind what was printed before it; never part of JSON."""
        if not self.as_json:
            self.out.flush()
            self.remarks.write(f"herdbook: {line(text)}\n")

    def progress(self, what: str) -> Callable[[int], None]:
        """A line that counts up in place beside the answer; silent where nobody watches."""
        watched = not self.as_json and self.remarks.isatty()

        def count(number: int) -> None:
            if watched:
                self.remarks.write(f"\r\x1b[K{number:,} {what}")
                self.remarks.flush()

        return count

    def paint(self, text: str, colour: str) -> str:
        """Coloured on a terminal, plain elsewhere."""
        return f"\x1b[{COLOURS[colour]}m{text}\x1b[0m" if self.colours else text


def coloured(stream: TextIO) -> bool:
    """Whether this stream may carry colours: see https://no-color.org."""
    return not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb" and stream.isatty()


def table(rows: Iterable[Iterable[str]], *, indent: str = "  ", gap: str = "  ") -> list[str]:
    """Rows of harmless texts with their columns aligned; the last column runs free, one without a word is left out."""
    columns = [column for column in zip(*rows, strict=True) if any(column)]
    filled = [list(row) for row in zip(*columns, strict=True)]
    if not filled:
        return []
    widths = [max(width(row[column]) for row in filled) for column in range(len(filled[0]) - 1)]
    return [indent + gap.join([*map(padded, row, widths), row[-1]]).rstrip() for row in filled]


def padded(text: str, columns: int) -> str:
    return text + " " * (columns - width(text))


def width(text: str) -> int:
    """Columns on a screen: wide scripts take two, marks none."""
    if text.isascii():
        return len(text)
    return sum(2 if unicodedata.east_asian_width(each) in "WF" else 0 if unicodedata.combining(each) else 1 for each in text)


Answer = dict[str, Any]
