"""Conformance: what datasets and models were made from is kept as it was told, and what became of them is appended."""

from __future__ import annotations

from typing import Any

from herdbook.testing.record_base import Contract
from herdbook.testing.record_book import Book, Desk, person, refused

HASH = "5d" * 32


def dataset(desk: Desk, name: str = "sft", **more: Any) -> dict[str, Any]:
    return desk.do("artefact_keep", kind="dataset", name=name, hash=HASH, **more)


class ArtefactsContract(Contract):
    """The register of the slow loop."""

    def test_an_artefact_is_kept_once(self, ann: Desk) -> None:
        """A retry would make a second dataset of one."""
        first = dataset(ann, lineage={"kind": "sft"}, card="# a card")
        assert first == dataset(ann, lineage={"kind": "sft"}, card="# a card")
        assert [first] == ann.do("artefact_list")["artefacts"]
        assert ("made", {"kind": "sft"}, "# a card", "ann") == tuple(first[name] for name in ("status", "lineage", "card", "by"))

    def test_what_became_of_it_is_appended(self, ann: Desk) -> None:
        """Nobody could tell why a model that was promoted no longer is."""
        model = ann.do("artefact_keep", kind="model", name="policy", hash=HASH, metrics={"gain": 0.1})["artefact"]
        ann.do("artefact_set", artefact=model, status="refused", why="it does not gain", request_id="r-1")
        told = ann.do("artefact_set", artefact=model, status="retired", why="a better one", request_id="r-2")
        assert told == ann.do("artefact_set", artefact=model, status="retired", why="a better one", request_id="r-2")
        assert ["candidate", "refused", "retired"] == [state["status"] for state in told["history"]]
        assert ("retired", {"gain": 0.1}) == (told["status"], told["metrics"])

    def test_a_run_is_found_in_what_learned_from_it(self, ann: Desk) -> None:
        """Somebody who asks to be forgotten would live on in a model."""
        rows, other = dataset(ann)["artefact"], dataset(ann, "other")["artefact"]
        ann.do("artefact_runs", artefact=rows, runs=["run-1", "run-2"])
        ann.do("artefact_runs", artefact=rows, runs=["run-1"])
        ann.do("artefact_runs", artefact=other, runs=["run-3"])
        first = ann.do("artefact_keep", kind="model", name="first", hash=HASH, parents=[rows])["artefact"]
        second = ann.do("artefact_keep", kind="model", name="second", hash=HASH, parents=[first, other])["artefact"]
        found = {
            run: {each["artefact"] for each in ann.do("artefact_list", run=run)["artefacts"]}
            for run in ("run-1", "run-3", "run-4")
        }
        assert {"run-1": {rows, first, second}, "run-3": {other, second}, "run-4": set()} == found

    def test_what_makes_no_sense_is_refused(self, ann: Desk) -> None:
        """Lineage would end in the void, or a dataset be promoted."""
        rows = dataset(ann)["artefact"]
        with refused("invalid_value"):
            ann.do("artefact_set", artefact=rows, status="refused")
        with refused("invalid_value"):
            ann.do("artefact_keep", kind="model", name="m", hash="five")
        with refused("not_found"):
            ann.do("artefact_keep", kind="model", name="m", hash=HASH, parents=["nobody"])
        model = ann.do("artefact_keep", kind="model", name="m", hash=HASH)["artefact"]
        with refused("invalid_value"):
            ann.do("artefact_runs", artefact=model, runs=["run-1"])

    def test_another_tenants_artefacts_are_not_there(self, book: Book, ann: Desk) -> None:
        """One customer would see what another trains on."""
        rows = dataset(ann)["artefact"]
        ann.do("artefact_runs", artefact=rows, runs=["run-1"])
        book.tenant_maker(2)
        stranger = person(ann.service, "bob", tenant=2)
        assert [] == stranger.do("artefact_list")["artefacts"] + stranger.do("artefact_list", run="run-1")["artefacts"]
        with refused("not_found"):
            stranger.do("artefact_runs", artefact=rows, runs=["run-1"])
