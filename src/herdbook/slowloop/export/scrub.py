"""Secrets and personal data are taken out before a row is written, and counted by kind.

Secrets by detect-secrets with all its detectors; telephone numbers, payment cards, bank accounts and social security numbers by
phonenumbers and python-stdnum, which check them; e-mail addresses by their form. It does not find names of people or postal
addresses, and says so in the dataset's card. All of it works offline.
"""

from __future__ import annotations

import json
import math
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from functools import lru_cache
from typing import Any, Final

import msgspec

from herdbook.base.errors import ExtraMissing
from herdbook.slowloop.export.drafts import Draft, Message

Found = tuple[str, str]  # (kind, the text itself)

CACHED_TEXTS_MAX: Final = 65_536  # tens of megabytes: tasks, prompts and lines of output come again and again
EMAIL: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._%+-]{0,63}@[A-Za-z0-9-]{1,63}(?:\.[A-Za-z0-9-]{1,63})*\.[A-Za-z]{2,24}")
CARD: Final = re.compile(r"(?<![\d.])\d(?:[ -]?\d){12,18}(?![\d.])")
IBAN: Final = re.compile(r"\b[A-Z]{2}\d{2}(?: ?[A-Z0-9]{1,4}){3,8}\b")
SSN: Final = re.compile(r"(?<![\d-])\d{3}-\d{2}-\d{4}(?![\d-])")
NAMES_OF_SECRETS: Final = ("key", "pass", "pwd", "secret", "contrase")  # one of them is in every name the keyword detector knows
QUOTES: Final = "\"'"


class Scrubber:
    """Replaces what should not be taught by `[REDACTED:kind]`. Raises ExtraMissing where the scanners are not installed."""

    def __init__(self) -> None:
        self.detectors = secret_detectors()
        self.checks = personal_checks()
        self.found: Counter[str] = Counter()
        self.clean = lru_cache(CACHED_TEXTS_MAX)(self._clean)
        self.in_row = lru_cache(CACHED_TEXTS_MAX)(self._in_row)  # texts differ, their lines much less

    def draft(self, draft: Draft) -> tuple[Draft, Counter[str]]:
        """The draft without them, and how many of each kind there were."""
        counts: Counter[str] = Counter()
        prompt, steps = ([self.message(each, counts) for each in messages] for messages in (draft.prompt, draft.steps))
        self.found += counts
        return msgspec.structs.replace(draft, prompt=prompt, steps=steps), counts

    def message(self, message: Message, counts: Counter[str]) -> Message:
        """One message; arguments are scanned as one text, since a name beside a value is what makes it a secret."""
        told = {**message, "content": self.text(message["content"], counts)}
        if "tool_calls" in message:
            told["tool_calls"] = [self.call(call, counts) for call in message["tool_calls"]]
        return told

    def call(self, call: dict[str, Any], counts: Counter[str]) -> dict[str, Any]:
        written = json.dumps(call["function"]["arguments"], ensure_ascii=False, sort_keys=True)
        cleaned = self.text(written, counts)
        return call if cleaned == written else {**call, "function": {**call["function"], "arguments": json.loads(cleaned)}}

    def text(self, text: str, counts: Counter[str]) -> str:
        cleaned, kinds = self.clean(text)
        counts.update(kinds)
        return cleaned

    def _clean(self, text: str) -> tuple[str, tuple[str, ...]]:
        found = sorted(set(self.secrets(text)) | set(self.personal(text)), key=lambda each: (-len(each[1]), each))
        kinds = []
        for kind, secret in found:
            if secret in text:
                text = text.replace(secret, f"[REDACTED:{kind}]")
                kinds.append(kind)
        return text, tuple(kinds)

    def secrets(self, text: str) -> Iterator[Found]:
        for row in text.splitlines():
            yield from self.in_row(row)

    def _in_row(self, row: str) -> tuple[Found, ...]:
        found = ((kind, secret.strip(QUOTES)) for kind, detector in self.detectors for secret in detector(row))
        return tuple((kind, plain) for kind, plain in found if len(plain) > 3 and not plain.startswith("[REDACTED:"))

    def personal(self, text: str) -> Iterator[Found]:
        for kind, check in self.checks:
            for found in check(text):
                yield kind, found


def secret_detectors() -> list[tuple[str, Callable[[str], Iterable[str]]]]:
    """Every detector of detect-secrets, by the kind of secret it knows."""
    try:
        from detect_secrets.core.plugins import initialize
        from detect_secrets.core.plugins.util import get_mapping_from_secret_type_to_class
        from detect_secrets.settings import default_settings
    except ImportError as problem:
        raise ExtraMissing.of("export", what="the scanner for secrets") from problem
    with default_settings():
        classes: Iterable[type] = get_mapping_from_secret_type_to_class().values()
        plugins: list[Any] = [initialize.from_plugin_classname(each.__name__) for each in classes]
    return [(kind_of(plugin.secret_type), secrets_by(plugin)) for plugin in plugins]


def secrets_by(plugin: Any) -> Callable[[str], Iterator[str]]:
    """What one detector finds in a line, its own threshold applied. Where its pattern has groups it would name only a part."""
    grouped = [pattern for pattern in getattr(plugin, "denylist", ()) if pattern.groups]
    may_hold = screen(plugin)

    def secrets(row: str) -> Iterator[str]:
        if not may_hold(row):
            return
        found = [each.secret_value for each in plugin.analyze_line(filename="", line=row) if each.secret_value]
        yield from (match[0] for pattern in grouped for match in pattern.finditer(row) if found)
        yield from found

    return secrets


def screen(plugin: Any) -> Callable[[str], object]:
    """What a line must have for this detector to find anything, asked at a tenth of its cost: nearly every line has nothing."""
    from detect_secrets.plugins import keyword
    from detect_secrets.plugins.base import RegexBasedDetector
    from detect_secrets.plugins.high_entropy_strings import HighEntropyStringsPlugin

    if isinstance(plugin, keyword.KeywordDetector):
        named = re.compile("|".join(keyword.DENYLIST), re.IGNORECASE).search
        return lambda row: any(word in row.casefold() for word in NAMES_OF_SECRETS) and named(row)
    if isinstance(plugin, HighEntropyStringsPlugin):  # so many bits a character take at least so many different ones
        least = math.ceil(2**plugin.entropy_limit)
        return re.compile(f"['\"][{re.escape(plugin.charset)}]{{{least},}}['\"]").search
    if isinstance(plugin, RegexBasedDetector) and type(plugin).analyze_string is RegexBasedDetector.analyze_string:
        searches = [pattern.search for pattern in plugin.denylist]
        return searches[0] if len(searches) == 1 else lambda row: any(search(row) for search in searches)
    return lambda row: True


def kind_of(name: str) -> str:
    return re.sub(r"[^a-z0-9]+", "_", name.lower()).strip("_")


def personal_checks() -> list[tuple[str, Callable[[str], Iterable[str]]]]:
    """What finds personal data, each candidate checked by its own check digits or numbering plan."""
    try:
        import phonenumbers
        from stdnum import iban, luhn
        from stdnum.us import ssn
    except ImportError as problem:
        raise ExtraMissing.of("export", what="the scanner for personal data") from problem

    def phones(text: str) -> Iterator[str]:
        if "+" in text:
            for match in phonenumbers.PhoneNumberMatcher(text, None):
                yield match.raw_string

    def matching(pattern: re.Pattern[str], is_valid: Callable[[str], bool]) -> Callable[[str], Iterator[str]]:
        return lambda text: (found[0] for found in pattern.finditer(text) if is_valid(found[0]))

    return [
        ("email", matching(EMAIL, bool)),
        ("phone", phones),
        ("payment_card", matching(CARD, lambda text: bool(luhn.is_valid(re.sub(r"[ -]", "", text))))),
        ("bank_account", matching(IBAN, lambda text: bool(iban.is_valid(text)))),
        ("social_security", matching(SSN, lambda text: bool(ssn.is_valid(text)))),
    ]
