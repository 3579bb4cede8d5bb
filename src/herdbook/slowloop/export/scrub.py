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
from functools import lru_cache, partial
from typing import Any, Final, NamedTuple

import msgspec

from herdbook.base.errors import ExtraMissing
from herdbook.base.redaction import SHAPES
from herdbook.slowloop.export.anchors import Needs, Screen, needs
from herdbook.slowloop.export.drafts import Draft, Message

Found = tuple[str, str]  # (kind, the text itself)

CACHED_TEXTS_MAX: Final = 16_384  # tasks, prompts and lines of output come again and again
CACHED_CHARS_MAX: Final = 512  # of one of them, so that all take tens of megabytes at most
EMAIL: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._%+-]{0,63}@[A-Za-z0-9-]{1,63}(?:\.[A-Za-z0-9-]{1,63})*\.[A-Za-z]{2,24}")
CARD: Final = re.compile(r"(?<![\d.])\d(?:[ -]?\d){12,18}(?![\d.])")
IBAN: Final = re.compile(r"\b[A-Z]{2}\d{2}(?: ?[A-Z0-9]{1,4}){3,8}\b")
SSN: Final = re.compile(r"(?<![\d-])\d{3}-\d{2}-\d{4}(?![\d-])")
IBAN_BEGINS: Final = re.compile(r"[A-Z]{2}\d\d ?[A-Z0-9]")
CARD_DIGITS: Final = "0" * 13
QUOTES: Final = "\"'"
BEHIND: Final = Needs(frozenset({"authorization: ", "bearer ", "basic "}), 0)
CREDENTIAL: Final = "credential"  # of a shape that is known, where no detector has a name for it


class Detector(NamedTuple):
    """What finds one kind, and what is asked before it is tried, at a small part of its cost: nearly every text has nothing."""

    kind: str
    by_line: bool  # whether it is shown one line at a time, or the whole text
    needs: tuple[Needs, ...]  # of each of its patterns
    may_hold: Callable[[str, str], object]  # asked, of a text and its shape, where it has what one of them needs
    find: Callable[[str], Iterable[str]]


class Scrubber:
    """Replaces what should not be taught by `[REDACTED:kind]`. Raises ExtraMissing where the scanners are not installed."""

    def __init__(self) -> None:
        self.detectors = [*secret_detectors(), *credential_shapes(), *personal_checks()]
        self.screen = Screen([each.needs for each in self.detectors])
        self.found: Counter[str] = Counter()
        self.clear: set[str] = set()  # prompts in which nothing was found
        self.encode = msgspec.json.Encoder(order="deterministic").encode
        self.cached_clean = lru_cache(CACHED_TEXTS_MAX)(self._clean)
        self.cached_row = lru_cache(CACHED_TEXTS_MAX)(self._in_row)  # texts differ, their lines much less

    def draft(self, draft: Draft) -> tuple[Draft, Counter[str]]:
        """The draft without them, and how many of each kind there were."""
        counts: Counter[str] = Counter()
        text = "\n".join(dict.fromkeys("\n".join(self.unseen(draft)).split("\n")))  # each line once
        if not self.suspects(text):
            self.remember(draft)
            return draft, counts
        prompt, steps = ([self.message(each, counts) for each in messages] for messages in (draft.prompt, draft.steps))
        task, _ = self.clean(draft.task_input)  # counted where it is said
        tools = None if draft.tools is None else json.loads(self.text(self.written(draft.tools), counts))
        self.found += counts
        return msgspec.structs.replace(draft, prompt=prompt, steps=steps, task_input=task, tools=tools), counts

    def unseen(self, draft: Draft) -> list[str]:
        """All that is looked at, but for prompts that were found clean before."""
        clear = self.clear
        texts = [each["content"] for each in draft.prompt if each["content"] not in clear]
        if draft.task_input not in clear:
            texts.append(draft.task_input)
        if draft.tools is not None:
            texts.append(self.written(draft.tools))
        for step in draft.steps:
            texts.append(step["content"])
            if "tool_calls" in step:
                texts += [self.written(call["function"]["arguments"]) for call in step["tool_calls"]]
        return texts

    def written(self, arguments: Any) -> str:
        """As people write it, with a space after each colon: that is what the scanners' patterns were made for."""
        return msgspec.json.format(self.encode(arguments), indent=0).decode()

    def remember(self, draft: Draft) -> None:
        if len(self.clear) > CACHED_TEXTS_MAX:
            self.clear.clear()
        self.clear.update(each["content"] for each in draft.prompt if len(each["content"]) <= CACHED_CHARS_MAX)
        if len(draft.task_input) <= CACHED_CHARS_MAX:
            self.clear.add(draft.task_input)

    def suspects(self, text: str) -> list[Detector]:
        """Those that are worth trying on a text."""
        looks, numbers = self.screen.suspects(text)
        return [each for number in sorted(numbers) if (each := self.detectors[number]).may_hold(text, looks)] if numbers else []

    def message(self, message: Message, counts: Counter[str]) -> Message:
        """One message; arguments are scanned as one text, since a name beside a value is what makes it a secret."""
        told = {**message, "content": self.text(message["content"], counts)}
        if "tool_calls" in message:
            told["tool_calls"] = [self.call(call, counts) for call in message["tool_calls"]]
        return told

    def call(self, call: dict[str, Any], counts: Counter[str]) -> dict[str, Any]:
        written = self.written(call["function"]["arguments"])
        cleaned = self.text(written, counts)
        return call if cleaned == written else {**call, "function": {**call["function"], "arguments": json.loads(cleaned)}}

    def text(self, text: str, counts: Counter[str]) -> str:
        cleaned, kinds = self.clean(text)
        counts.update(kinds)
        return cleaned

    def clean(self, text: str) -> tuple[str, tuple[str, ...]]:
        """A text without them, and the kind of each."""
        return self.cached_clean(text) if len(text) <= CACHED_CHARS_MAX else self._clean(text)

    def _clean(self, text: str) -> tuple[str, tuple[str, ...]]:
        kinds = []
        for kind, secret in sorted(set(self.findings(text)), key=lambda each: (-len(each[1]), each[0] == CREDENTIAL, each)):
            if secret in text:
                text = text.replace(secret, f"[REDACTED:{kind}]")
                kinds.append(kind)
        return text, tuple(kinds)

    def findings(self, text: str) -> Iterator[Found]:
        """What is in a text: secrets line by line, as they are known by what stands beside them, personal data in all of it."""
        suspects = self.suspects(text)
        if any(each.by_line for each in suspects):
            for row in text.splitlines():
                yield from self.cached_row(row) if len(row) <= CACHED_CHARS_MAX else self._in_row(row)
        yield from ((each.kind, found) for each in suspects if not each.by_line for found in each.find(text))

    def _in_row(self, row: str) -> tuple[Found, ...]:
        tried = (each for each in self.suspects(row) if each.by_line)
        found = ((each.kind, secret.strip(QUOTES)) for each in tried for secret in each.find(row))
        return tuple((kind, plain) for kind, plain in found if len(plain) > 3 and not plain.startswith("[REDACTED:"))


def secret_detectors() -> list[Detector]:
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
    return [Detector(kind_of(plugin.secret_type), True, *screen(plugin), secrets_by(plugin)) for plugin in plugins]


def credential_shapes() -> list[Detector]:
    """What is kept out of the record by its shape, kept out of rows as well: keys that detect-secrets does not know, and all of a
    private key, of which it names the first line only."""
    return [Detector(named(each.pattern), False, (needed(each),), anything, partial(shaped, each)) for each in SHAPES]


def named(pattern: str) -> str:
    return "private_key" if "PRIVATE KEY" in pattern else "json_web_token" if "eyJ" in pattern else CREDENTIAL


def needed(shape: re.Pattern[str]) -> Needs:
    """Of a shape; of what it looks back at nothing is read off, and that is told here."""
    return BEHIND if "bearer" in shape.pattern else Needs(frozenset("@"), 0) if "://" in shape.pattern[:8] else needs(shape)


def shaped(shape: re.Pattern[str], text: str) -> Iterator[str]:
    """What has this shape; within quotes, for what stands behind them is another text, or the end of the JSON it is in."""
    found = (match[0].split('"')[0].rstrip("\\") for match in shape.finditer(text))
    return (each for each in found if len(each) > 3 and not each.startswith("[REDACTED:"))


def secrets_by(plugin: Any) -> Callable[[str], Iterator[str]]:
    """What one detector finds in a line, its own threshold applied. Where its pattern has groups it would name only a part."""
    grouped = [pattern for pattern in getattr(plugin, "denylist", ()) if pattern.groups]

    def secrets(row: str) -> Iterator[str]:
        found = [each.secret_value for each in plugin.analyze_line(filename="", line=row) if each.secret_value]
        yield from (match[0] for pattern in grouped for match in pattern.finditer(row) if found)
        yield from found

    return secrets


def screen(plugin: Any) -> tuple[tuple[Needs, ...], Callable[[str, str], object]]:
    """What a text must have for this detector to find anything in a line of it."""
    from detect_secrets.plugins import jwt, keyword
    from detect_secrets.plugins.base import RegexBasedDetector
    from detect_secrets.plugins.high_entropy_strings import HighEntropyStringsPlugin

    if isinstance(plugin, keyword.KeywordDetector):
        return (needs(re.compile("|".join(keyword.DENYLIST), re.IGNORECASE)),), anything
    if isinstance(plugin, HighEntropyStringsPlugin):  # so many bits a character take at least so many different ones
        least = math.ceil(2**plugin.entropy_limit)
        quoted = re.compile(f"['\"][{re.escape(plugin.charset)}]{{{least},}}['\"]").search
        return (Needs(frozenset(QUOTES), least),), lambda text, looks: quoted(text)
    by_pattern = (RegexBasedDetector.analyze_string, jwt.JwtTokenDetector.analyze_string)
    if isinstance(plugin, RegexBasedDetector) and type(plugin).analyze_string in by_pattern:
        return tuple(needs(pattern) for pattern in plugin.denylist), anything
    return (Needs(frozenset(), 0),), anything


def anything(text: str, looks: str) -> bool:
    return True


def kind_of(name: str) -> str:
    return re.sub(r"[^a-z0-9]+", "_", name.lower()).strip("_")


def personal_checks() -> list[Detector]:
    """What finds personal data, each candidate checked by its own check digits or numbering plan."""
    try:
        import phonenumbers
        from stdnum import iban, luhn
        from stdnum.us import ssn
    except ImportError as problem:
        raise ExtraMissing.of("export", what="the scanner for personal data") from problem

    def phones(text: str) -> Iterator[str]:
        return (match.raw_string for match in phonenumbers.PhoneNumberMatcher(text, None))

    def check(
        kind: str,
        pattern: re.Pattern[str],
        is_valid: Callable[[str], bool],
        may_hold: Callable[[str, str], object] = anything,
    ) -> Detector:
        return Detector(
            kind,
            False,
            (needs(pattern),),
            may_hold,
            lambda text: (found[0] for found in pattern.finditer(text) if is_valid(found[0])),
        )

    return [
        check("email", EMAIL, bool),
        Detector("phone", False, (Needs(frozenset("+"), 0),), anything, phones),
        check("payment_card", CARD, lambda text: bool(luhn.is_valid(re.sub(r"[ -]", "", text))), has_digits_of_card),
        check("bank_account", IBAN, lambda text: bool(iban.is_valid(text)), lambda text, looks: IBAN_BEGINS.search(text)),
        check("social_security", SSN, lambda text: bool(ssn.is_valid(text))),
    ]


def has_digits_of_card(text: str, looks: str) -> bool:
    return CARD_DIGITS in looks.replace(" ", "").replace("-", "")
