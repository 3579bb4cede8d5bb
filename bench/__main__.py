"""`python -m bench`: see bench/run.py; `python -m bench fleet`: see bench/fleet/command.py."""

from __future__ import annotations

import sys

if sys.argv[1:2] == ["fleet"]:
    from bench.fleet.command import main

    sys.exit(main(sys.argv[2:]))

from bench.run import main as measure

sys.exit(measure(sys.argv[1:]))
