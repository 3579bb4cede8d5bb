"""Conformance: versions, claims, and what may be written at all."""

from __future__ import annotations

import time
import unicodedata
from functools import partial
from typing import Any

import pytest

from herdbook.base.errors import HerdbookError
from herdbook.testing.record_base import Contract
from herdbook.testing.record_book import ENTITY, Book, Desk, at_once, box, person, refused, told_at_once

NOT_PART_OF_A_CLAIM: dict[str, Any] = {
    "why": "another reason",
    "links": [{"rel": "see_also", "entity": ENTITY, "key": "other"}],
    "expires_at": "2030-01-01T00:00:00Z",
}
PART_OF_A_CLAIM: dict[str, dict[str, Any]] = {
    "value": {"value": 2},
    "value's type": {"value": 1.0},
    "kind": {"kind": "belief"},
    "worked": {"kind": "experience", "worked": False},
    "applies_when": {"applies_when": "under-load"},
}
UNFIT_KEYS = ["", " ", "key\n", "a\x00b", "\u202eabc", "\ud800", "\u200b", "x" * 257, "a\x7fb"]
UNFIT_VALUES: dict[str, Any] = {
    "not a number": float("nan"),
    "infinity": {"a": float("-inf")},
    "a key that is a number": {1: 2},
    "a set": {"a": {3}},
    "5,000 digits": 10**5000,
    "64 KiB and one": "x" * (64 * 1024 - 1),
    "a lone surrogate": "\ud800",
    "a lone surrogate in a key": {"\udfff": 1},
    "bytes": b"bytes",
}
UNFIT_CONFIDENCES = [float("nan"), float("inf"), -0.1, 1.0000001, "0.8", True]


class WritingContract(Contract):
    """Versions 1..n, one of them current; trust belongs to the claim; nothing unfit is kept."""

    def test_versions_are_numbered_and_one_is_current(self, ann: Desk) -> None:
        """A missing, doubled or second current version would make "what is known" a matter of luck."""
        for number in range(1, 6):
            answer = ann.write("port", number)
            assert (number, True, number - 1 or None) == (answer["version"], answer["created"], answer["supersedes"])
        assert [1, 2, 3, 4, 5] == [version["version"] for version in ann.history("port")]
        assert [1, 2, 3, 4, 5] == [version["value"] for version in ann.history("port")]
        assert (5, 5) == (ann.read("port")["version"], ann.read("port")["value"])

    def test_many_writers_leave_no_gap(self, book: Book) -> None:
        """Writers that meet on one key would lose each other's versions, or be told to try again."""
        desks = [person(book.open(), f"writer-{n}") for n in range(2)] * 2

        def write(n: int) -> list[tuple[int, float, float]]:
            desk, told = desks[n], []
            for i in range(12):
                desk.write(f"own-{n}-{i}", i)
                begun = time.perf_counter()
                told.append((desk.write("shared", f"{n}-{i}")["version"], begun, time.perf_counter()))
            return told

        told = sorted(one for of_one in told_at_once([partial(write, n) for n in range(4)]) for one in of_one)
        assert list(range(1, 49)) == [number for number, _, _ in told]
        begun_before = 0.0
        for _, begun, ended in told:
            assert begun_before <= ended, "one that began after another had ended got the lower number"
            begun_before = max(begun_before, begun)
        assert list(range(1, 49)) == [version["version"] for version in desks[0].history("shared")]
        assert 48 == desks[1].read("shared")["version"]
        assert 49 == desks[0].brief(tokens=64_000)["known"]

    def test_a_read_never_goes_back(self, book: Book) -> None:
        """Somebody who has seen version 5 would be shown version 4."""
        writer, reader = person(book.open()), person(book.open())
        writer.write("port", 0)

        def write() -> list[int]:
            return [writer.write("port", n)["version"] for n in range(1, 40)]

        def read() -> list[int]:
            seen = [0]
            while seen[-1] < 40:
                seen.append(reader.read("port")["version"])
            return seen

        _, seen = told_at_once([write, read])
        assert sorted(seen) == seen

    def test_a_changed_claim_starts_over(self, ann: Desk) -> None:
        """A new value would inherit the trust that another one earned."""
        ann.write("port", 1, confidence=0.6)
        ann.run("s", used=["port"])
        answer = ann.write("port", 2)
        assert ("new", 0.5, "unproven") == (answer["claim"], answer["confidence"], answer["standing"])
        assert (0.5, 0) == (ann.read("port")["confidence"], ann.read("port")["moves"])
        assert 0.618 == pytest.approx(ann.read("port", version=1)["confidence"])

    @pytest.mark.parametrize("what", PART_OF_A_CLAIM)
    def test_each_part_of_a_claim_makes_another_claim(self, ann: Desk, what: str) -> None:
        """Two things that differ in this would share their trust."""
        ann.write("port", 1)
        changed = {"value": 1} | PART_OF_A_CLAIM[what]
        assert "new" == ann.write("port", changed.pop("value"), **changed)["claim"]
        assert 2 == len(ann.claims("port"))

    @pytest.mark.parametrize("field", NOT_PART_OF_A_CLAIM)
    def test_what_is_said_about_a_claim_leaves_its_trust_alone(self, ann: Desk, field: str) -> None:
        """Explaining a thing better would throw away what is known of it."""
        ann.write("other", 0)
        ann.write("port", 1)
        ann.run("s", used=["port"])
        answer = ann.write("port", 1, **{field: NOT_PART_OF_A_CLAIM[field]})
        assert ("restated", 2, True) == (answer["claim"], answer["version"], answer["created"])
        assert 0.515 == pytest.approx(answer["confidence"])
        assert [2, 1] == sorted(ann.claim("port")["versions"], reverse=True)

    def test_a_restated_confidence_is_ignored_and_said(self, ann: Desk) -> None:
        """Whoever repeats a claim loudly enough would make it trusted."""
        ann.write("port", 1, confidence=0.6)
        answer = ann.write("port", 1, why="since I say so", confidence=0.99)
        assert 0.6 == answer["confidence"] == ann.read("port")["confidence"]
        assert any("0.99" in warning and "ignored" in warning for warning in answer["warnings"])
        assert [] == ann.write("port", 1, why="a third reason")["warnings"]

    def test_fifty_identical_writes_are_one_version(self, book: Book, ann: Desk) -> None:
        """A loop that writes what it wrote before would bury the history."""
        first = ann.write("port", 1)
        book.clock.tick(days=3)
        for _ in range(49):
            answer = ann.write("port", 1, confidence=0.9)
            assert ("affirmed", 1, False, None) == (*map(answer.get, ("claim", "version", "created", "supersedes")),)
            assert any("0.9" in warning for warning in answer["warnings"])
        entry = ann.read("port")
        assert (1, 49, 0.5) == (entry["version"], entry["affirmed"], entry["confidence"])
        assert (first["at"], 3.0) == (entry["at"], entry["age_days"])
        assert entry["affirmed_at"] > entry["at"]
        assert 0.5 == entry["effective_confidence"], "what was affirmed today has not faded"
        assert 1 == len(ann.history("port"))

    def test_going_back_to_an_old_claim_finds_its_trust(self, ann: Desk) -> None:
        """Returning to what worked would begin at nothing, or at the trust of what failed."""
        ann.write("port", 1)
        ann.run("s", used=["port"])
        ann.write("port", 2)
        ann.run("t", "critical_failure", used=["port"])
        answer = ann.write("port", 1, why="back to the old one")
        assert ("returned", 3) == (answer["claim"], answer["version"])
        assert 0.515 == pytest.approx(answer["confidence"])
        assert {(1, 3): 0.515, (2,): 0.425} == {
            tuple(claim["versions"]): round(claim["confidence"], 6) for claim in ann.claims("port")
        }

    def test_compare_and_swap(self, ann: Desk) -> None:
        """Somebody who decided on what they had read would overwrite what they had not."""
        with refused("version_conflict", saying="version 0"):
            ann.write("port", 1, if_version=1)
        assert 1 == ann.write("port", 1, if_version=0)["version"]
        with refused("version_conflict", saying="version 1"):
            ann.write("port", 2, if_version=0)
        assert 2 == ann.write("port", 2, if_version=1)["version"]
        assert [1, 2] == [version["value"] for version in ann.history("port")]

    def test_one_of_many_swaps_wins(self, book: Book) -> None:
        """Two writers would both believe that theirs came next."""
        desks = [person(book.open()), person(book.open())] * 4
        desks[0].write("port", 0)
        answers = at_once([partial(desk.write, "port", 10 + n, if_version=1) for n, desk in enumerate(desks)])
        assert 1 == sum(isinstance(answer, dict) for answer in answers)
        assert {"version_conflict"} == {answer.code for answer in answers if isinstance(answer, HerdbookError)}
        assert 2 == len(desks[0].history("port"))

    def test_what_is_derived_is_trusted_no_more_than_its_source(self, ann: Desk, box_a: Desk) -> None:
        """A box would launder what it read by writing it again in somebody's name."""
        box_a.write("found", "run this")
        assert "agent" == ann.read("found")["origin"]
        link = {"entity": ENTITY, "key": "found"}
        ann.write("plain", 1)
        ann.write("seen", 1, links=[link | {"rel": "see_also"}])
        ann.write("derived", 1, links=[link | {"rel": "derived_from"}])
        ann.write("again", 1, links=[{"rel": "derived_from", "entity": ENTITY, "key": "derived", "version": 1}])
        origins = {key: ann.read(key)["origin"] for key in ("plain", "seen", "derived", "again")}
        assert {"plain": "operator", "seen": "operator", "derived": "agent", "again": "agent"} == origins

    def test_a_link_to_nothing_is_refused(self, ann: Desk) -> None:
        """A pedigree would name ancestors that never were, and half an entry would be left behind."""
        ann.write("there", 1)
        links: list[dict[str, Any]] = [
            {"key": "nowhere"},
            {"key": "there", "version": 2},
            {"key": "there", "entity": "acme/elsewhere"},
        ]
        for link in links:
            with refused("unknown_entry", saying=link["key"]):
                ann.write("new", 1, links=[{"rel": "supports", "entity": ENTITY, **link}])
        with refused("not_found"):
            ann.read("new")

    def test_what_has_expired_is_retired(self, book: Book, ann: Desk) -> None:
        """A password that ran out last week would still be acted on."""
        ann.write("token", "t", expires_at="2026-01-02T00:00:00Z")
        assert "unproven" == ann.standing("token")
        book.clock.tick(days=1)
        assert "retired" == ann.standing("token")
        briefing = ann.brief()
        assert ([], 1) == (briefing["entries"], briefing["left_out"]["expired"])

    def test_a_key_is_one_key_in_every_spelling_of_unicode(self, ann: Desk) -> None:
        """Two programs that spell an accent differently would keep two truths."""
        for form in ("NFC", "NFD"):
            ann.write(unicodedata.normalize(form, "café/é"), form, entity=unicodedata.normalize(form, "acmé/ü"))
        assert 2 == len(ann.history(unicodedata.normalize("NFD", "café/é"), entity="acmé/ü"))

    @pytest.mark.parametrize("key", ["a/b", "../../etc/passwd", ".", "支付/沙箱", "x" * 256, "'; --", "%00", "0", "a  b"])
    def test_a_key_is_only_text(self, ann: Desk, key: str) -> None:
        """A key that looks like a path, a query or a number would reach something else."""
        ann.write(key, 1)
        assert (key, 1) == (ann.read(key)["key"], ann.read(key)["value"])
        assert [key] == [entry["key"] for entry in ann.brief()["entries"]]

    @pytest.mark.parametrize("key", UNFIT_KEYS, ids=ascii)
    def test_an_unfit_key_is_refused(self, ann: Desk, key: str) -> None:
        """A name that nobody can see or type would be kept."""
        with pytest.raises(HerdbookError) as caught:
            ann.write(key, 1)
        assert 400 <= caught.value.status < 500
        assert 0 == ann.do("status")["counts"]["versions"]

    @pytest.mark.parametrize("confidence", UNFIT_CONFIDENCES, ids=repr)
    def test_an_unfit_confidence_is_refused(self, ann: Desk, confidence: object) -> None:
        """Not-a-number would become full trust in the first clamp it meets."""
        with pytest.raises(HerdbookError) as caught:
            ann.write("port", 1, confidence=confidence)
        assert 400 == caught.value.status
        assert 0 == ann.do("status")["counts"]["versions"]

    @pytest.mark.parametrize("confidence", [0, 0.0, -0.0, 1, 1.0, 5e-324, 0.1 + 0.2], ids=repr)
    def test_every_confidence_within_bounds_is_kept_as_it_is(self, book: Book, ann: Desk, confidence: float) -> None:
        """A number would come back from the store as another one, and its seal would not hold."""
        ann.write("port", 1, confidence=confidence)
        assert confidence == person(book.open()).read("port")["confidence"]

    def test_no_confidence_means_one_half(self, ann: Desk) -> None:
        """A fresh note would begin as a certainty, or as a lie."""
        assert 0.5 == ann.write("port", 1, confidence=None)["confidence"] == ann.read("port")["confidence"]

    @pytest.mark.parametrize("what", UNFIT_VALUES)
    def test_an_unfit_value_is_refused(self, ann: Desk, what: str) -> None:
        """What one reader reads and another cannot would be kept."""
        with pytest.raises(HerdbookError) as caught:
            ann.write("port", UNFIT_VALUES[what])
        assert 400 <= caught.value.status < 500
        assert 0 == ann.do("status")["counts"]["versions"]

    def test_a_value_nested_without_end_is_refused(self, ann: Desk) -> None:
        """One request would take the process down."""
        value: list[Any] = []
        for _ in range(100_000):
            value = [value]
        with refused("too_large", saying="64"):
            ann.write("port", value)
        while value:  # take it apart by hand: freeing it would recurse as deep
            value = value.pop()

    @pytest.mark.parametrize(
        "value", [None, True, 0, "", [], {}, "支付沙箱", {"b": 1, "a": [1.5, None]}, 10**299, "\x00 ", 1e308]
    )
    def test_a_value_comes_back_as_it_went(self, book: Book, ann: Desk, value: object) -> None:
        """What was read would not be what was written."""
        ann.write("port", value)
        found = person(book.open()).read("port")["value"]
        assert (value, type(value)) == (found, type(found))

    def test_only_an_experience_worked_or_not(self, ann: Desk) -> None:
        """A fact would be listed among the dead ends."""
        with refused("invalid_value", saying="experience"):
            ann.write("port", 1, worked=False)
        ann.write("port", 1, kind="experience", worked=False)
        assert ["port"] == [entry["key"] for entry in ann.brief()["dead_ends"]]

    def test_the_author_is_who_the_session_says(self, ann: Desk, service: Any) -> None:
        """A note would be signed by whoever the body names."""
        desk = box(service, "box-c")
        desk.begin("run", agent="agent-x")
        desk.write("port", 1, session="run")
        ann.write("other", 1)
        names = ("author", "identity", "session", "box", "origin")
        assert ["agent-x", "fleet", "run", "box-c", "agent"] == [ann.read("port")[name] for name in names]
        assert ["ann", "ann", None, None, "operator"] == [ann.read("other")[name] for name in names]

    def test_unknown_fields_are_refused(self, ann: Desk) -> None:
        """A misspelt field would be dropped without a word."""
        with refused("invalid_request", saying="confidense"):
            ann.write("port", 1, confidense=0.9)
        with refused("invalid_request", saying="tenant"):
            ann.write("port", 1, tenant=2)
        with refused("not_found", saying="overwrite"):
            ann.do("overwrite", entity=ENTITY, key="port")
