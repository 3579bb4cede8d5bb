"""numpy and LightGBM, imported when they are needed, with an error that names the extra they come with."""

from __future__ import annotations

import importlib
from typing import Any

from herdbook.base.errors import ExtraMissing


def numpy() -> Any:
    """numpy, for everything that fits."""
    return wanted("numpy", extra="learn", what="numpy, which fitting needs,")


def lightgbm() -> Any:
    """LightGBM, for boosted trees."""
    return wanted("lightgbm", extra="rank", what="LightGBM")


def wanted(name: str, *, extra: str, what: str) -> Any:
    try:
        return importlib.import_module(name)
    except ImportError as problem:
        raise ExtraMissing.of(extra, what=what) from problem
