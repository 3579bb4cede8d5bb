"""What was attached to a request must not come back in its answer: not plain, not in a common encoding, not across two chunks.

Each find is overwritten with asterisks of the same length, so that lengths and ranges stay true. An upstream that means to leak a
credential has it already and can encode it in ways nobody foresees; this is against echoes: debug pages, error texts, mirrors.
"""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Iterable, Iterator
from html import escape
from typing import Final
from urllib.parse import quote, quote_plus

SECRET_CHARS_MIN: Final = 8  # shorter ones would be found in innocent text, and are no secrets
PIECE_BYTES_MIN: Final = 6


class Redactor:
    """Overwrites secrets in texts and in streams."""

    def __init__(self, secrets: Iterable[str]) -> None:
        found = {each for secret in secrets for each in forms(secret.encode()) if len(each) >= PIECE_BYTES_MIN}
        self.forms = tuple(sorted(found, key=lambda form: (-len(form), form)))
        self.longest = len(self.forms[0]) if self.forms else 0
        self.first_bytes = re.compile(b"[" + b"".join(re.escape(form[:1]) for form in self.forms) + b"]") if found else None
        self.any_form = re.compile(b"|".join(map(re.escape, self.forms))) if found else None

    def whole(self, data: bytes) -> bytes:
        stream = self.stream()
        return stream.feed(data) + stream.end()

    def stream(self) -> RedactedStream:
        return RedactedStream(self)

    def hold(self, data: bytes, start: int) -> int:
        """Where, from `start` on, an unfinished form may have begun; the end where none has."""
        if self.first_bytes is None:
            return len(data)
        for found in self.first_bytes.finditer(data, max(start, len(data) - self.longest + 1)):
            rest = data[found.start() :]
            if any(len(form) > len(rest) and form.startswith(rest) for form in self.forms):
                return found.start()
        return len(data)

    def clean(self, data: bytes) -> bool:
        return not any(form in data for form in self.forms)


class RedactedStream:
    """One body. What could be the beginning of a secret waits for the next chunk, and nothing else does."""

    def __init__(self, redactor: Redactor) -> None:
        self.redactor = redactor
        self.held = b""
        self.found = 0

    def feed(self, chunk: bytes) -> bytes:
        data = self.held + chunk
        if self.redactor.clean(data):
            kept = self.redactor.hold(data, 0)
            self.held = data[kept:]
            return data[:kept]
        return b"".join(self.cleaned(data))

    def cleaned(self, data: bytes) -> Iterator[bytes]:
        """The longest form wins at each place, as in the whole body: a beginning is waited for before a find is taken."""
        search = self.redactor.any_form
        assert search is not None, "without forms every text is clean"
        start = 0
        while True:
            waits = self.redactor.hold(data, start)
            found = search.search(data, start)
            if found is None or found.start() >= waits:
                self.held = data[waits:]
                yield data[start:waits]
                return
            self.found += 1
            yield data[start : found.start()] + b"*" * len(found[0])
            start = found.end()

    def end(self) -> bytes:
        """What still waits, as it is the end."""
        data, self.held = self.held, b""
        search = self.redactor.any_form
        return search.sub(lambda found: b"*" * len(found[0]), data) if search else data


def forms(secret: bytes) -> Iterator[bytes]:
    """A secret as echoes spell it: plain, in URLs, JSON, HTML, hexadecimal and base64, at any place within a longer text."""
    text = secret.decode()
    yield secret
    for quoted in (quote(text, safe=""), quote(text), quote_plus(text)):
        yield quoted.encode()
        yield re.sub("%[0-9A-F]{2}", lambda found: found[0].lower(), quoted).encode()
    yield escape(text).encode()
    yield escape(text, quote=False).encode()
    for said in (json.dumps(text), json.dumps(text, ensure_ascii=False)):
        yield said[1:-1].encode()
        yield said[1:-1].replace("/", "\\/").encode()
        yield json.dumps(said)[3:-3].encode()  # JSON within JSON, as in logs
    yield secret.hex().encode()
    yield secret.hex().upper().encode()
    for offset in range(3):
        yield from based(secret, offset)


def based(secret: bytes, offset: int) -> Iterator[bytes]:
    """The part of the base64 text that is the secret's alone, when it begins `offset` bytes into a group of three."""
    encoded = base64.b64encode(b"\0" * offset + secret).rstrip(b"=")
    first = (0, 2, 3)[offset]  # characters that the bytes before have a part in
    last = len(encoded) - ((len(secret) + offset) % 3 > 0)  # and the one that the bytes behind have
    core = encoded[first:last]
    yield core
    yield core.replace(b"+", b"-").replace(b"/", b"_")
