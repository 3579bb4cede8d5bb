"""Who wrote each line of a file, as git knows it; nobody where git knows nothing."""

from __future__ import annotations

import re
import subprocess
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

SECONDS_MAX: Final = 20
LINE: Final = re.compile(r"[0-9a-f]{40,64} \d+ (\d+)")


def authors_of(path: Path) -> dict[int, str]:
    """`Name, date` by line. Mail addresses stay out of the record."""
    command = ["git", "-C", str(path.parent), "blame", "--line-porcelain", "--", path.name]
    try:
        answer = subprocess.run(command, capture_output=True, timeout=SECONDS_MAX, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return {}
    found: dict[int, str] = {}
    number, author = 0, ""
    for line in answer.stdout.decode("utf-8", "replace").splitlines() if answer.returncode == 0 else ():
        if begun := LINE.match(line):
            number = int(begun[1])
        elif line.startswith("author "):
            author = line.removeprefix("author ")
        elif line.startswith("author-time ") and author != "Not Committed Yet":
            day = datetime.fromtimestamp(int(line.split()[1]), UTC).date()
            found[number] = f"{author}, {day}"
    return found
