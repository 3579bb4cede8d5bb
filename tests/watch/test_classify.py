"""What logs are taken for: the labelled samples, what stands around a line, and what must never be called a regression."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from herdbook.watch.classify import LINE_CHARS_MAX, classify_from_logs, events, rule_of
from herdbook.watch.findings import KnownClass, Line, RevisionState
from herdbook.watch.rules import EXPLAINS, RULES, Rule

SAMPLES = [json.loads(line) for line in (Path(__file__).parent / "log_samples.jsonl").read_text(encoding="utf-8").splitlines()]
PROBE = (
    'ERROR Default STARTUP TCP probe failed 1 time consecutively for container "api" on port 3002. The instance was not started.'
)
TRACEBACK = 'Traceback (most recent call last):\n  File "/app/main.py", line 3, in <module>\nValueError: no port'
AUGUST = KnownClass(
    "acme/deploy", "incident-2026-08-14-api-startup-probe-timeout", 1, "cold_image", ("startup probe failed",), "observed"
)
MISSING_COLUMN = "ProgrammingError: column relay.used_on does not exist"
NOISE = [
    "INFO 127.0.0.1 - GET /TypeError/panic HTTP/1.1 200 OK",
    "[INFO] retrying after KeyError: 'a'",
    "DEBUG exception handling is on; no traceback will be kept",
    "WARNING DeprecationWarning: np.float is deprecated",
    "Started server process [1]",
    "GET /health 200 1ms",
    "TypeError",
    "a customer wrote: Traceback (most recent call last) is all I see",
    "2026-01-01T00:00:00Z INFO Internal Server Error page was translated",
    'type: Normal reason: Pulled Container image "registry.example/web" already present on machine',
    'Successfully pulled image "registry.example/web" in 1.402s (1.402s including waiting)',
]


def lines(*texts: str, at: float = 0.0, every: float = 1.0) -> list[Line]:
    return [Line(text, at + number * every if at else 0.0) for number, text in enumerate(texts)]


@pytest.mark.parametrize("sample", SAMPLES, ids=[f"{n}-{sample['right_label']}" for n, sample in enumerate(SAMPLES)])
@pytest.mark.parametrize("whole", [True, False], ids=["as one entry", "line by line"])
def test_every_labelled_sample_comes_out_right(sample: dict[str, str], whole: bool) -> None:
    """A known kind of trouble would be called another, and perhaps drafted."""
    texts = [sample["text"]] if whole else sample["text"].split("\n")
    assert sample["right_label"] == classify_from_logs(lines(*texts)).label


@pytest.mark.parametrize("text", NOISE)
def test_noise_is_never_a_regression(text: str) -> None:
    """A draft would be opened over a line that means nothing."""
    assert "product_regression" != classify_from_logs(lines(text)).label


@given(st.lists(st.text("abcijkl \t0123456789:.[]()-/\n\u00e9\u4e2d", max_size=200), max_size=20))
def test_no_text_without_an_error_is_a_regression(texts: list[str]) -> None:
    """Some string of characters would be enough for a draft."""
    assert classify_from_logs(lines(*texts)).label in {"noise", "unexplained"}


@given(st.lists(st.sampled_from([sample["text"] for sample in SAMPLES] + NOISE + [TRACEBACK]), max_size=6))
def test_any_mixture_is_answered_and_says_what_it_saw(texts: list[str]) -> None:
    """A window of several troubles would be told as one, without a doubt."""
    found = classify_from_logs(lines(*texts))
    labels = {each.label for each in RULES} | {"noise", "unexplained", "cold_image"}
    assert found.label in labels
    if found.label != "noise":
        assert () != found.signals.lines
    unsaid = set(found.signals.seen) - {found.label, *EXPLAINS.get(found.label, ()), *found.signals.ambiguous_with}
    assert unsaid <= {"startup_unhealthy", "migration_race", "product_regression"}


def test_a_slow_start_is_a_cold_image_only_if_the_old_one_serves_and_the_new_one_came() -> None:
    """An outage would be waved through as a slow image, or a slow image would page somebody."""
    came = RevisionState("api-1", "api-2", newest_ready=True, old_serves=True)
    assert "cold_image" == classify_from_logs(lines(PROBE), came).label
    assert () == classify_from_logs(lines(PROBE), came).signals.ambiguous_with
    for state in (RevisionState("api-1", "api-2", newest_ready=False, old_serves=True), RevisionState(newest_ready=True)):
        assert "startup_unhealthy" == classify_from_logs(lines(PROBE), state).label
    assert "cold_image" in classify_from_logs(lines(PROBE)).signals.ambiguous_with


def test_a_known_class_settles_a_slow_start_at_once() -> None:
    """What was learned the first time would have to be found out again."""
    found = classify_from_logs(lines(PROBE), known=[AUGUST])
    assert ("cold_image", AUGUST, ()) == (found.label, found.matched, found.signals.ambiguous_with)
    proposed = replace(AUGUST, standing="unproven")
    assert "startup_unhealthy" == classify_from_logs(lines(PROBE), known=[proposed]).label
    stranger = KnownClass("acme/deploy", "incident-other", 1, "cold_image", ("another service",), "observed")
    assert "startup_unhealthy" == classify_from_logs(lines(PROBE), known=[stranger]).label


@pytest.mark.parametrize("error", [TRACEBACK, "panic: assertion failed", "FATAL: cannot open config", "app exited with status 3"])
def test_a_probe_failure_with_an_error_of_the_program_is_no_cold_image(error: str) -> None:
    """The adversarial twin of the slow start: a crash would be learned as harmless."""
    came = RevisionState("api-1", "api-2", newest_ready=True, old_serves=True)
    found = classify_from_logs(lines(error, PROBE), came, [AUGUST])
    assert "crash_on_start" == found.label


def test_a_missing_column_is_told_apart_by_its_course() -> None:
    """A race that was over would be drafted, or a regression would be left to time."""
    seven = lines(*[MISSING_COLUMN] * 7, at=1000.0)
    assert "migration_race" == classify_from_logs(seven, until=1540.0).label
    assert "product_regression" == classify_from_logs(lines(*[MISSING_COLUMN] * 54, at=1000.0, every=10.0), until=1540.0).label
    assert ("product_regression",) == classify_from_logs(lines(MISSING_COLUMN)).signals.ambiguous_with


def test_a_stack_trace_is_not_by_itself_a_regression() -> None:
    """Any exception whatever would be taken for our own mistake."""
    assert "unexplained" == classify_from_logs(lines(TRACEBACK)).label
    cut = 'Traceback (most recent call last):\n  File "h.py", line 1, in f\nhttpcore.RemoteProtocolError: incomplete chunked read'
    assert "stream_reset" == classify_from_logs(lines(cut)).label


def test_what_a_cause_brings_along_is_not_a_second_story() -> None:
    """A killed container's failed probe would make it ambiguous, and two real troubles would not."""
    assert () == classify_from_logs(lines("Reason: OOMKilled", PROBE)).signals.ambiguous_with
    both = classify_from_logs(lines("http: panic serving 1.2.3.4: nil pointer dereference", "certificate has expired"))
    assert ("tls_expiry", ("product_regression",)) == (both.label, both.signals.ambiguous_with)


def test_a_stack_trace_is_one_event() -> None:
    """Its last line would be judged without the request that met it."""
    found = events(lines("INFO before", "ERROR Exception on /a [GET]", *TRACEBACK.split("\n"), "INFO next"))
    assert ["INFO before", f"ERROR Exception on /a [GET]\n{TRACEBACK}", "INFO next"] == [event.text for event in found]


def test_every_rule_says_why_and_can_fire() -> None:
    """A rule that nobody can argue with, or that never matches, would stay for ever."""
    assert [] == [each.name for each in RULES if len(each.why) < 20]
    assert len(RULES) == len({each.name for each in RULES})


@pytest.mark.parametrize("text", ["waits for xlock on ", "GET / 500 ", "Traceback (most recent call last): ", "a."])
def test_a_line_of_megabytes_is_read_by_its_ends(text: str) -> None:
    """One line would keep the watch busy beyond its budget: patterns are tried on every character of it."""
    [event] = events([Line(text * 300_000 + "\n  Reason: OOMKilled")])
    assert LINE_CHARS_MAX * 2 > len(event.text)
    assert "oom" == classify_from_logs([Line(f"{text * 300_000}Reason: OOMKilled")]).label


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.name)
@settings(max_examples=30, deadline=None, suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_what_a_rule_is_looked_for_by_is_in_all_that_it_matches(rule: Rule, data: st.DataObject) -> None:
    """A rule would be passed over for texts that it is for: the words that stand in for it are a guess about its pattern."""
    text = data.draw(st.from_regex(rule.pattern))
    if text.isascii():  # a long s is an s to a pattern, and to nobody else
        assert rule.matches(text, text.lower())


def test_every_rule_is_looked_for_by_words() -> None:
    """One that every line has would have its pattern tried on every line: a service that logs much could not be watched."""
    assert [] == [(each.name, hint) for each in RULES for hint in each.hints if len(hint) < 4]


def test_the_same_line_is_judged_once() -> None:
    """A watch of nine minutes looks fifty times: a busy log would be judged anew each time, past the budget."""
    lines = [Line(f"GET /search {number}") for number in range(1_000)]
    rule_of.cache_clear()
    for _ in range(3):
        classify_from_logs(lines)
    assert 1_000 == rule_of.cache_info().misses
