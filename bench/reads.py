"""A point read in process, tracked as what its session saw, against one prepared SELECT of the same row.

The SELECT runs on the record's own file, over a plain connection, and fetches every column that the read answers with; what it
leaves out is what herdbook adds: checks, seals, decay, the log of what was read. The least SELECT there could be, of one value
out of two tables, is in the detail.
"""

from __future__ import annotations

import sqlite3
import tempfile
from collections.abc import Iterator
from pathlib import Path

from bench import notes
from bench.bare import BareRecord
from bench.product import filled, opened
from bench.timing import Claim, Result, Scale, interleave, ratios, seconds_each

ENTRIES = 1_000
READS = 1_000  # a turn
SAME_ROW = """
SELECT p.path, e.key, e.number, e.standing_version, v.number, v.value, v.why, v.kind, v.worked, v.confidence, v.applies_when,
       v.expires_at, v.links, v.origin, v.author, v.identity, v.session, v.box, v.at, v.seal, c.confidence, c.moves, c.recalls,
       c.observed, c.corroborated, c.held, c.failed, c.failed_since, c.affirmed, c.affirmed_at, c.last_type, c.last_ref,
       c.last_at, p.outcomes, p.successes
FROM path p
JOIN entry e ON e.tenant = p.tenant AND e.path = p.id
JOIN version v ON v.id = e.version
JOIN claim c ON c.tenant = e.tenant AND c.path = e.path AND c.entry = e.id AND c.digest = e.claim
WHERE p.tenant = 1 AND p.path = ? AND e.key = ?
"""


def claims(scale: Scale) -> Iterator[Result]:
    """All read the same thousand entries round and round."""
    places = list(notes.places_as_written(ENTRIES))
    with tempfile.TemporaryDirectory(prefix="bench-reads-") as home:
        record = Path(home) / "record.db"
        filled(record, places, scale.say)
        least = BareRecord(Path(home) / "bare.db")
        for entry, (path, key) in enumerate(places):
            least.write(path, key, notes.TEXTS[entry % len(notes.TEXTS)], notes.why(entry))
        with opened(record) as book:
            plain = sqlite3.connect(f"file:{record}?mode=ro", uri=True, isolation_level=None)
            turns = interleave(
                {
                    "select": lambda: seconds_each(
                        lambda number: plain.execute(SAME_ROW, places[number % ENTRIES]).fetchone(), READS
                    ),
                    "least": lambda: seconds_each(lambda number: least.read(*places[number % ENTRIES]), READS),
                    "record": lambda: seconds_each(lambda number: book.read(*places[number % ENTRIES]), READS),
                },
                scale.passes,
            )
            plain.close()
        least.close()
    us = {f"{name}_us": min(seconds) * 1e6 for name, seconds in turns.items()}
    yield Claim(
        name="read",
        says="a tracked point read in process, against a prepared SELECT of the same row",
        samples=ratios(turns["record"], turns["select"]),
        sense="at most",
        bound=5.0,
        detail=us,
    )
