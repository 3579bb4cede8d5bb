"""The server's log as JSON, one object a line, for whoever collects logs.

A request's line has its id, its verb and what came of it, and never what was said in it.
"""

from __future__ import annotations

import json
import logging
from typing import TextIO

from herdbook.base.clock import iso

FORMATS = ("text", "json")
TEXT = "%(asctime)s %(levelname)s %(name)s %(message)s"


class JsonLines(logging.Formatter):
    """A record as one object. What a message holds as an object, as the access log's does, becomes its members."""

    def format(self, record: logging.LogRecord) -> str:
        line = {"at": iso(int(record.created * 1_000_000)), "level": record.levelname.lower(), "logger": record.name}
        said = record.getMessage()
        members = json.loads(said) if record.name == "herdbook.access" else {"message": said}
        trace = {"exception": self.formatException(record.exc_info)} if record.exc_info else {}
        return json.dumps(line | members | trace, ensure_ascii=False)


def start_logging(stream: TextIO, *, level: str, form: str) -> None:
    """What is said goes to this stream, in this form."""
    handler = logging.StreamHandler(stream)
    handler.setFormatter(JsonLines() if form == "json" else logging.Formatter(TEXT))
    logging.basicConfig(handlers=[handler], level=level.upper())
