"""From a window of logs, the state of the revisions and what is known, to a label with what it rests on. Pure.

A line is named by the table in rules.py. What it cannot say is decided by what stands around it: whether the old revision kept
serving, whether the new one became ready, whether errors stopped or went on. What even that cannot say is called ambiguous.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import TYPE_CHECKING

from herdbook.watch.findings import Classification, KnownClass, Line, RevisionState, Signals
from herdbook.watch.rules import (
    APPLICATION_ERROR,
    COLD_IMAGE,
    CRASH,
    ERROR_LEVEL,
    EXPLAINS,
    HARMLESS,
    MIGRATION_RACE,
    NOISE,
    PULLED,
    PULLED_IN,
    PULLING,
    REGRESSION,
    RULES,
    STARTUP,
    UNEXPLAINED,
    Rule,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    Named = tuple[Line, Rule]

SLOW_PULL_SECONDS = 20.0
SILENCE_SECONDS = 60.0  # errors that ended so long before the watch did have stopped
EVENT_CHARS_MAX = 16_000
LINE_CHARS_MAX = 4_000
CACHED_EVENTS = 20_000  # a watch asks again about the same lines, as often as it looks
EVIDENCE_LINES_MAX = 20
EVIDENCE_CHARS_MAX = 600
CONTINUES = re.compile(
    r"\s|(?:HINT|DETAIL|CONTEXT|STATEMENT|Caused by|During handling|The above exception)\b|goroutine \d|net/http|\}|$"
)
CLOCK = re.compile(r"\b(\d\d):(\d\d):(\d\d)\b")
REQUEST = re.compile(
    r"exception on /|panic serving|internal server error|\b(?:GET|POST|PUT|PATCH|DELETE)\b.{0,200}\b5\d\d\b",
    re.IGNORECASE | re.DOTALL,
)


def classify_from_logs(
    lines: Sequence[Line],
    state: RevisionState | None = None,
    known: Sequence[KnownClass] = (),
    *,
    until: float | None = None,  # when the watch ended, as the lines count time
) -> Classification:
    """The label of this window. Without a line that means anything it is noise."""
    state = state or RevisionState()
    happened = events(lines)
    named = [(event, found) for event in happened for found in [rule_of(event.text)] if found is not None]
    label, doubts, states = judged(happened, named, state, known, until)
    seen = tuple(dict.fromkeys(found.label for _, found in named))
    explained = EXPLAINS.get(label, frozenset()) | {label}
    ambiguous = tuple(
        dict.fromkeys([*doubts, *(other for other in seen if other not in explained and not_refined(other, label))])
    )
    evidence = tuple(dict.fromkeys(event.text[:EVIDENCE_CHARS_MAX] for event, _ in named))[:EVIDENCE_LINES_MAX]
    if not evidence:
        evidence = tuple(e.text[:EVIDENCE_CHARS_MAX] for e in happened if UNNAMED_EVIDENCE.get(label, never)(e.text))
    signals = Signals(
        lines=evidence[:EVIDENCE_LINES_MAX],
        states=states,
        rules=tuple(dict.fromkeys(found.name for _, found in named)),
        seen=tuple(dict.fromkeys([*seen, *([label] if label != NOISE else [])])),
        ambiguous_with=ambiguous,
    )
    return Classification(label, signals, None if label == NOISE else matching(happened, label, known))


def events(lines: Iterable[Line]) -> list[Line]:
    """Lines with what continues them: a stack trace, a hint, an indented rest are one event."""
    found: list[Line] = []
    tracing = False  # inside a stack trace, whose last line is the first that is not indented
    for line in lines:
        for text in map(bounded, line.text.split("\n")):
            begins = text.lstrip().startswith("Traceback (most recent call last)")
            joins = bool(found) and (tracing or begins or CONTINUES.match(text) is not None)
            if joins and len(found[-1].text) < EVENT_CHARS_MAX:
                found[-1] = Line(f"{found[-1].text}\n{text}", found[-1].at, found[-1].revision)
            else:
                found.append(Line(text, line.at, line.revision))
            tracing = begins or (tracing and (text[:1].isspace() or not text))
    return [event for event in found if event.text.strip()]


def bounded(text: str) -> str:
    """A line of megabytes by its two ends, which say what it is: patterns are tried on every one of its characters."""
    return text if len(text) <= LINE_CHARS_MAX else f"{text[: LINE_CHARS_MAX // 2]} ... {text[-LINE_CHARS_MAX // 2 :]}"


@lru_cache(maxsize=CACHED_EVENTS)
def rule_of(text: str) -> Rule | None:
    """The first rule this event matches; one that says of itself that nothing is wrong matches none."""
    lower = text.lower()
    found = next((each for each in RULES if each.matches(text, lower)), None)
    return None if found is None or (HARMLESS.match(text) and not APPLICATION_ERROR.search(text)) else found


def judged(
    happened: Sequence[Line], named: Sequence[Named], state: RevisionState, known: Sequence[KnownClass], until: float | None
) -> tuple[str, Sequence[str], tuple[str, ...]]:
    """(label, what it may be instead, the states that decided)."""
    labels = {found.label for _, found in named}
    order = [each.label for each in RULES]
    label = min(labels, key=order.index) if labels else NOISE
    if label == MIGRATION_RACE:
        return raced([event for event, found in named if found.label == MIGRATION_RACE], labels, until)
    if label == REGRESSION:
        return REGRESSION, (), went_on([event for event, found in named if found.label == REGRESSION], until)
    if label == STARTUP:
        return started_late(happened, state, known)
    if label == NOISE and pulled_slowly(happened):
        return COLD_IMAGE, (), (f"the image took {SLOW_PULL_SECONDS:g} s or more to arrive, and arrived",)
    if label == NOISE and any(went_wrong(event.text) for event in happened):
        return UNEXPLAINED, (), ("errors that no rule names",)
    return label, (), ()


def raced(events: Sequence[Line], labels: Iterable[str], until: float | None) -> tuple[str, Sequence[str], tuple[str, ...]]:
    """Code ahead of its schema: over once the migration is, or here to stay. The text is the same, so time decides."""
    last = max(event.at for event in events)
    if until is not None and last:
        if until - last >= SILENCE_SECONDS:
            return MIGRATION_RACE, (), (f"{len(events)} times, then silence for {until - last:.0f} s",)
        return REGRESSION, (), (f"{len(events)} times, and still {until - last:.0f} s before the watch ended",)
    in_requests = REGRESSION in labels or any(REQUEST.search(e.text) and APPLICATION_ERROR.search(e.text) for e in events)
    if in_requests:
        return REGRESSION, (MIGRATION_RACE,), ("it fails requests; whether it stops is not known",)
    return MIGRATION_RACE, (REGRESSION,), ("whether it stops is not known",)


def went_on(events: Sequence[Line], until: float | None) -> tuple[str, ...]:
    last = max(event.at for event in events)
    if until is None or not last:
        return ()
    return (f"{len(events)} times, the last {until - last:.0f} s before the watch ended",)


def started_late(
    happened: Sequence[Line], state: RevisionState, known: Sequence[KnownClass]
) -> tuple[str, Sequence[str], tuple[str, ...]]:
    """A probe that failed: a slow image only if nothing else is wrong and somebody can tell."""
    if any(APPLICATION_ERROR.search(event.text) for event in happened if not gcloud_says(event.text)):
        return CRASH, (), ("a probe failed, and the program erred on its own account",)
    match = matching(happened, COLD_IMAGE, [each for each in known if each.acting])
    if match is not None:
        return COLD_IMAGE, (), (f"the pattern of the known class {match.key} version {match.version}",)
    if state.old_serves and state.newest_ready:
        return (
            COLD_IMAGE,
            (),
            (f"{state.serving or 'the old revision'} kept serving", f"{state.newest or 'the new one'} became ready"),
        )
    if state.newest_ready is None:
        return STARTUP, (COLD_IMAGE, CRASH), ("how the new revision ended is not known",)
    return STARTUP, (), (f"{state.newest or 'the new revision'} {'is' if state.newest_ready else 'is not'} ready",)


def gcloud_says(text: str) -> bool:
    """A deploy tool that passes on a probe's failure begins with ERROR: that is not the program's own."""
    return not APPLICATION_ERROR.search(
        re.sub(r"^ERROR: |\b(?:rpc|probe|startup|Warning)\w* error: ", "", text, flags=re.IGNORECASE)
    )


def pulled_slowly(happened: Sequence[Line]) -> bool:
    """Whether an image arrived late: by what the platform says, by the lines' own times, or by the clock inside them."""
    began: Line | None = None
    for event in happened:
        if "pull" not in event.text.lower():
            continue
        told = PULLED_IN.search(event.text)
        if told and any(told.groups()):
            hours, minutes, seconds = (float(part or 0) for part in told.groups())
            if hours * 3600 + minutes * 60 + seconds >= SLOW_PULL_SECONDS:
                return True
        elif PULLED.search(event.text):
            if began is not None and between(began, event) >= SLOW_PULL_SECONDS:
                return True
        elif PULLING.search(event.text):
            began = event
    return False


def between(first: Line, second: Line) -> float:
    if first.at and second.at and first.at != second.at:
        return second.at - first.at
    clocks = [CLOCK.search(event.text) for event in (first, second)]
    if clocks[0] is None or clocks[1] is None:
        return 0.0
    before, after = (int(c[1]) * 3600 + int(c[2]) * 60 + int(c[3]) for c in (clocks[0], clocks[1]))
    return float((after - before) % 86_400)


def matching(happened: Sequence[Line], label: str, known: Sequence[KnownClass]) -> KnownClass | None:
    """The known class of this label with a pattern that one of the events matches; the most trusted first."""
    of_label = sorted((each for each in known if each.label == label), key=lambda each: (not each.acting, -each.confidence))
    return next((each for each in of_label if any(holds(p, e.text) for p in each.patterns for e in happened)), None)


def holds(pattern: str, text: str) -> bool:
    """A pattern is words that all occur, in any case: what a person writes down, and no pattern can be made to hang."""
    lower = text.lower()
    return bool(pattern.strip()) and all(word in lower for word in pattern.lower().split())


def is_about_an_image(text: str) -> bool:
    return PULLING.search(text) is not None or PULLED.search(text) is not None


@lru_cache(maxsize=CACHED_EVENTS)
def went_wrong(text: str) -> bool:
    return ERROR_LEVEL.search(text) is not None or (APPLICATION_ERROR.search(text) is not None and not HARMLESS.match(text))


def never(text: str) -> bool:
    return False


# What a label rests on where no rule has named an event.
UNNAMED_EVIDENCE: dict[str, Callable[[str], bool]] = {COLD_IMAGE: is_about_an_image, UNEXPLAINED: went_wrong}


def not_refined(other: str, label: str) -> bool:
    """Whether `other` is another story than `label`, rather than what `label` was refined from."""
    return (other, label) not in {
        (STARTUP, COLD_IMAGE),
        (STARTUP, CRASH),
        (MIGRATION_RACE, REGRESSION),
        (REGRESSION, MIGRATION_RACE),
    }
