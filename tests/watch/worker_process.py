"""A worker in a process of its own, killed as if by the machine when it comes to a step. usage: HOME STEP [RECORD]"""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path

from tests.watch.staging import staging


def main() -> None:
    home, last, *record = Path(sys.argv[1]), *sys.argv[2:]

    def die(step: str) -> None:
        sys.stdout.write(f"{step}\n")
        sys.stdout.flush()
        if step == last:
            os.kill(os.getpid(), signal.SIGKILL)

    with staging(home, record="".join(record)) as stage:
        stage.on_step = die
        stage.worker("doomed", lease_seconds=1).once()


if __name__ == "__main__":
    main()
