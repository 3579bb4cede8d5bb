"""Conformance: who was erased is told by no verb, seals hold as before, and what learned from them is named."""

from __future__ import annotations

from typing import Any

import pytest

from herdbook.record import vectors
from herdbook.testing.record_base import Contract
from herdbook.testing.record_book import ENTITY, Book, Desk, as_bytes, person, refused

SECRET = "Ännchen's own words"
HASH = "5d" * 32


def everything_told(desk: Desk) -> bytes:
    """All that verbs tell of the entity and its runs."""
    asked: list[tuple[str, dict[str, Any]]] = [
        ("brief", {"entity": ENTITY}),
        ("search", {"query": "Ännchen"}),
        ("search", {"query": "Ännchen", "entity": ENTITY}),
        ("list", {}),
        ("history", {"entity": ENTITY, "key": "tz"}),
        ("why", {"entity": ENTITY, "key": "tz"}),
        ("runs", {}),
        ("exposures", {}),
        ("changes", {}),
        ("erasures", {}),
        ("artefact_list", {}),
    ]
    return b"\n".join(as_bytes(desk.do(verb, **fields)) for verb, fields in asked)


class ErasingContract(Contract):
    """Erasing a subject."""

    @pytest.fixture
    def filled(self, ann: Desk) -> Desk:
        """Two agents' runs: one wrote an entry, the other was served it."""
        ann.begin("wrote", agent="robin")
        ann.write("tz", {"env": {"TZ": SECRET}}, session="wrote", why=SECRET)
        ann.do("record_context", session="wrote", name="user", text=SECRET)
        ann.do("record_action", session="wrote", tool="say", args={"words": SECRET}, result="ok")
        ann.outcome("wrote", ref="wrote.end", task_input=SECRET)
        ann.begin("served", agent="kim")
        ann.brief(session="served")
        ann.do("record_action", session="served", tool="look", args={}, result="ok")
        ann.outcome("served", ref="served.end", task_input="look around")
        return ann

    def test_nothing_tells_of_who_was_erased(self, filled: Desk) -> None:
        """Somebody who asked to be forgotten would still be read about."""
        words = as_bytes(SECRET)[1:-1]
        assert words in everything_told(filled)
        answer = filled.do("erase", kind="author", subject="robin", why="asked for")
        assert (1, 1, 1) == (answer["sessions"], answer["versions"], answer["readers"])
        after = everything_told(filled)
        assert (False, False) == (words in after, b"robin" in after)
        assert {"wrote": True, "served": False} == {run["session"]: run["erased"] for run in filled.do("runs")["runs"]}
        assert [] == next(run for run in filled.do("runs")["runs"] if run["session"] == "served")["reads"]
        for verb, fields in (
            ("trace", {"ref": "wrote"}),
            ("trace", {"ref": "wrote.end"}),
            ("read", {"entity": ENTITY, "key": "tz"}),
        ):
            with refused("erased"):
                filled.do(verb, **fields)
        assert b"whose seal" not in as_bytes(filled.brief())

    def test_the_words_of_its_tasks_are_forgotten(self, book: Book, filled: Desk) -> None:
        """What somebody was asked would still stand among what runs were asked, or a task be forgotten that others have too."""
        secret, shared = "ring up Ännchen about the lost parcel", "mend the build of the shop"
        for number, (agent, task) in enumerate([("pat", f"{secret}; {shared}"), ("pat", shared), ("lee", shared)]):
            filled.do("start_session", session=f"r-{number}", agent=agent, entity=ENTITY, task=task)
            filled.brief(session=f"r-{number}")
            filled.outcome(f"r-{number}", ref=f"o-{number}", used=["tz"])
            filled.do("attest", ref=f"o-{number}", exit_code=0)

        def asked(desk: Desk) -> set[str]:
            return {row[2] for row in desk.service.record.parts_asked(1, [ENTITY])}

        other = person(book.open())
        assert {secret, shared} <= asked(filled) & asked(other)
        filled.do("erase", kind="author", subject="pat")
        assert {secret, shared} & asked(filled) == {secret, shared} & asked(other) == {shared}
        filled.outcome("r-0", ref="o-again", used=["tz"])
        filled.do("attest", ref="o-again", exit_code=0)
        filled.do("revise_outcome", ref="o-again", type="failure")
        assert secret not in asked(filled)

    def test_what_was_sealed_stays_sealed(self, filled: Desk) -> None:
        """An erasure would look like a forgery, or hide one."""
        filled.do("erase", kind="author", subject="robin")
        assert "verified" == filled.do("trace", ref="served")["seal"]
        assert [] == filled.do("status")["problems"]
        filled.write("tz", {"env": {"TZ": "UTC"}})
        assert 2 == filled.read("tz")["version"]

    @pytest.mark.parametrize(
        ("kind", "subject", "sessions", "versions"),
        [
            ("session", "wrote", 1, 1),
            ("author", "kim", 1, 0),
            ("identity", "ann", 2, 1),
            ("entity", ENTITY.rpartition("/")[0] or ENTITY, 0, 1),
            ("text", "'S OWN WORDS", 1, 1),
        ],
    )
    def test_a_subject_is_found_by_its_kind(self, filled: Desk, kind: str, subject: str, sessions: int, versions: int) -> None:
        """Something of somebody would be missed, or somebody else erased."""
        found = filled.do("erase_preview", kind=kind, subject=subject)
        assert (sessions, versions) == (found["sessions"], found["versions"])
        assert (SECRET, []) == (filled.read("tz")["why"], filled.do("erasures")["erasures"])
        done = filled.do("erase", kind=kind, subject=subject)
        assert found == {name: done[name] for name in found}

    def test_what_learned_from_a_subject_is_named(self, filled: Desk) -> None:
        """A model would go on telling what the record no longer does."""
        rows, clean = (filled.do("artefact_keep", kind="dataset", name=name, hash=HASH)["artefact"] for name in ("rows", "clean"))
        filled.do("artefact_runs", artefact=rows, runs=["served"])  # whose briefing held what the other wrote
        filled.do("artefact_runs", artefact=clean, runs=["other"])
        model = filled.do("artefact_keep", kind="model", name="policy", hash=HASH, parents=[rows])["artefact"]
        found = filled.do("erase_preview", kind="author", subject="robin")["artefacts"]
        assert {rows: 1, model: 1} == {each["artefact"]: each["runs"] for each in found}

    def test_an_erasure_counts_once(self, filled: Desk) -> None:
        """A retry would fail, or a list of erasures grow with each."""
        first = filled.do("erase", kind="author", subject="robin", request_id="e-1")
        assert first == filled.do("erase", kind="author", subject="robin", request_id="e-1")
        with refused("not_found", saying="nothing of this author"):
            filled.do("erase", kind="author", subject="robin")
        with refused("request_conflict"):
            filled.do("erase", kind="author", subject="kim", request_id="e-1")
        [listed] = filled.do("erasures", kind="author", subject="robin")["erasures"]
        assert ("e-1", "ann", 1, 1) == tuple(listed[name] for name in ("erasure", "by", "sessions", "versions"))
        assert [] == filled.do("erasures", kind="author", subject="kim")["erasures"]

    def test_what_comes_later_is_not_erased(self, filled: Desk) -> None:
        """Whoever comes back would be silenced, and nobody told."""
        filled.do("erase", kind="author", subject="robin")
        filled.begin("again", agent="robin")
        filled.write("tz", {"env": {"TZ": "UTC"}}, session="again")
        assert "robin" == filled.read("tz")["author"]
        assert 1 == filled.do("erase_preview", kind="author", subject="robin")["versions"]

    def test_another_process_forgets_too(self, book: Book, filled: Desk) -> None:
        """A server that had read the text would go on telling it."""
        other = person(book.open())
        assert SECRET == other.read("tz")["why"]
        filled.do("erase", kind="author", subject="robin")
        with refused("erased"):
            other.read("tz")

    def test_what_was_read_before_an_erasure_is_not_kept_after_it(self, ann: Desk) -> None:
        """A search, or a model at work meanwhile, would keep the words or the meaning of who was forgotten."""
        ann.write("a", "midnight", entity="acme/ci")
        ann.write("b", "midnight", entity="other")
        record, tenant = ann.service.record, ann.caller.tenant
        read = record.text_behind(tenant, 10)
        ann.do("erase", kind="entity", subject="acme/ci", why="asked for")
        record.text_add(tenant, [(number, "midnight") for number in read])
        record.store.write(lambda tx: vectors.keep(tx, tenant, "s", [(number, b"v") for number in read]), tenant=tenant)
        assert (2, 1) == (len(read), len(record.text_match(tenant, ["midnight"], 10)))
        assert 1 == len(vectors.load(record.store, tenant, "s", read))

    def test_another_tenants_subject_is_not_there(self, book: Book, filled: Desk) -> None:
        """One customer could erase another's runs, or learn that they are."""
        book.tenant_maker(2)
        stranger = person(filled.service, "bob", tenant=2)
        with refused("not_found"):
            stranger.do("erase", kind="author", subject="robin")
        assert [] == stranger.do("erasures")["erasures"]
        assert SECRET == filled.read("tz")["why"]

    def test_a_short_text_and_half_a_question_are_refused(self, filled: Desk) -> None:
        """A slip would erase everything."""
        with refused("invalid_request"):
            filled.do("erase", kind="text", subject="e ")
        with refused("invalid_request"):
            filled.do("erasures", kind="author")
