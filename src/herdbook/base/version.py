"""The version, in one place that costs nothing to import; the build reads it from here too."""

from __future__ import annotations

from typing import Final

VERSION: Final = "0.1.0"
