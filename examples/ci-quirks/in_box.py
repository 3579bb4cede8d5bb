"""Run a command in a box that is there already, as `herdbook run -- python in_box.py PROVIDER PLACE BOX COMMAND...` does.

What the box is given are the variables that were set for this command; nothing else of this machine goes in.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

from herdbook.boxes.providers import by_name

STAYS_OUTSIDE = ("PATH", "HOME", "LANG", "LC_ALL", "LC_CTYPE", "PWD", "OLDPWD", "SHLVL", "_", "PYTHONPATH")


def main(provider: str, place: str, name: str, *command: str) -> int:
    boxes = by_name(provider, Path(place))
    box = next(box for box in boxes.list() if box.id == name)
    given = {key: value for key, value in os.environ.items() if key not in STAYS_OUTSIDE and not key.startswith("HERDBOOK_")}
    running = boxes.exec(box, [box.python, *command], env=given, timeout_seconds=60)
    for stream, data in running:
        os.write(1 if stream == "stdout" else 2, data)
    return running.exit.code


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
