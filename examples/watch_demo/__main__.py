"""`python -m examples.watch_demo`: the watcher's two stories, on this machine, with no account anywhere."""

from __future__ import annotations

import tempfile
import time
from pathlib import Path

from examples.watch_demo.play import Play
from examples.watch_demo.stage import open_stage


def main() -> None:
    began = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="herdbook-watch-") as folder:
        stage = open_stage(Path(folder))
        try:
            played = Play(stage, lambda line: print(line, flush=True)).perform()
            print(
                f"\n{len(played.watches)} watches, {len(stage.chat.texts)} messages, boxes left: {len(stage.boxes_left())}, "
                f"in {time.monotonic() - began:.0f} s"
            )
            print("The last message people got:\n" + "\n".join(f"  | {line}" for line in stage.chat.texts[-1].splitlines()))
        finally:
            stage.close()


if __name__ == "__main__":
    main()
