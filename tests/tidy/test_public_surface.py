"""What people may rely on, pinned: a name is added or taken away on purpose, and the change log says so."""

from __future__ import annotations

import re

import herdbook
from herdbook.base.version import VERSION
from tests.tidy import tree

PUBLIC = ["Book", "Client", "HerdbookError", "__version__", "open"]


def test_the_public_names_are_these() -> None:
    """A name that came or went unnoticed would break somebody's program, or bind us to keep it."""
    assert sorted(PUBLIC) == sorted(herdbook.__all__)


def test_every_public_name_is_there() -> None:
    """A promised name that cannot be reached would fail in its user's hands."""
    assert [] == [name for name in herdbook.__all__ if getattr(herdbook, name, None) is None]


def test_the_version_has_one_source() -> None:
    """Two versions of the version would sooner or later disagree."""
    assert VERSION == herdbook.__version__
    assert re.fullmatch(r"\d+\.\d+\.\d+(?:\.dev\d+|rc\d+)?", VERSION)


def test_the_package_ships_its_data() -> None:
    """Without its marker, its types would be invisible to whoever installs it."""
    assert (tree.PACKAGE / "py.typed").is_file()
