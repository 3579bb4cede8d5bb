"""What every store promises of jobs: one for each key however often it is put, never two workers at one, none lost."""

from __future__ import annotations

from functools import partial
from typing import Any

import pytest

from herdbook.base import limits
from herdbook.service.door import Service
from herdbook.testing.record_base import Contract
from herdbook.testing.record_book import Book, Desk, at_once, person, refused, told_at_once

QUEUE = "watch"
HALF_HOUR = 1800


def put(desk: Desk, key: str = "deploy-1", **more: Any) -> dict[str, Any]:
    return desk.do("job_put", queue=QUEUE, key=key, **{"body": {"sha": key}, **more})


def take(desk: Desk, worker: str = "w1", **more: Any) -> dict[str, Any] | None:
    job: dict[str, Any] | None = desk.do("job_take", queue=QUEUE, worker=worker, **more)["job"]
    return job


def held(job: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"job": job["job"], "worker": job["worker"], "attempt": job["attempt"], **more}


class JobsContract(Contract):
    """Jobs."""

    def test_a_key_is_one_job_however_often_it_is_put(self, ann: Desk) -> None:
        """One deploy would be watched twice."""
        first, second = put(ann), put(ann)
        assert (True, False, first["job"], 1) == (first["created"], second["created"], second["job"], second["repeats"])
        assert put(ann, "deploy-2")["created"]

    def test_deliveries_at_once_make_one_job_each(self, book: Book) -> None:
        """Three deliveries of one hook would race into two jobs."""
        desks = [person(book.open()) for _ in range(3)]
        works = [partial(put, desk, f"deploy-{n}") for n in range(20) for desk in desks]
        answers = told_at_once(works)
        assert 20 == sum(answer["created"] for answer in answers)
        assert 20 == len(desks[0].do("job_list", queue=QUEUE)["jobs"])

    def test_a_window_ends_and_again_does_not_wait_for_it(self, ann: Desk, book: Book) -> None:
        """An alert would never be looked at a second time, or each flap would be."""
        first = put(ann, "diagnosis-api", window_seconds=HALF_HOUR)
        book.clock.tick(seconds=HALF_HOUR - 1)
        assert not put(ann, "diagnosis-api", window_seconds=HALF_HOUR)["created"]
        again = put(ann, "diagnosis-api", window_seconds=HALF_HOUR, again=True)
        assert (True, 0) == (again["created"], again["repeats"])
        book.clock.tick(seconds=HALF_HOUR)
        assert put(ann, "diagnosis-api", window_seconds=HALF_HOUR)["created"]
        assert first["job"] != again["job"]

    def test_a_replayed_delivery_does_nothing(self, ann: Desk, book: Book) -> None:
        """What somebody recorded could be played again after the window."""
        first = put(ann, "diagnosis-api", delivery="d-1", window_seconds=HALF_HOUR)
        book.clock.tick(seconds=HALF_HOUR * 2)
        replay = put(ann, "diagnosis-api", delivery="d-1", window_seconds=HALF_HOUR)
        assert (first["job"], False, True, 0) == (replay["job"], replay["created"], replay["replayed"], replay["repeats"])

    def test_workers_at_once_never_share_a_job(self, book: Book) -> None:
        """Two boxes would watch one deploy."""
        desks = [person(book.open()) for _ in range(4)]
        for n in range(30):
            put(desks[0], f"deploy-{n}")
        taken: list[str] = []

        def work(desk: Desk, name: str) -> None:
            while (job := take(desk, name)) is not None:
                taken.append(job["job"])
                desk.do("job_done", **held(job))

        at_once([partial(work, desk, f"w{n}") for n, desk in enumerate(desks)])
        assert 30 == len(taken) == len(set(taken))

    def test_the_oldest_comes_first_and_a_worker_that_asks_again_gets_the_same(self, ann: Desk, book: Book) -> None:
        """An answer that was lost would leave a job leased to nobody."""
        first = put(ann, "deploy-1")
        book.clock.tick(seconds=1)
        put(ann, "deploy-2")
        job, same = take(ann), take(ann)
        assert job is not None
        assert (first["job"], job) == (job["job"], same)
        assert "deploy-2" == (take(ann, "w2") or {})["key"]
        assert take(ann, "w3") is None

    def test_what_a_dead_worker_held_goes_to_the_next_with_its_progress(self, ann: Desk, book: Book) -> None:
        """A job would be lost with its worker, or begun from nothing."""
        put(ann)
        job = take(ann)
        assert job is not None
        ann.do("job_beat", **held(job, progress={"box": "b-1"}))
        book.clock.tick(seconds=limits.JOB_LEASE_SECONDS_DEFAULT + 1)
        other = take(ann, "w2")
        assert other is not None
        assert (job["job"], 2, {"box": "b-1"}) == (other["job"], other["attempt"], other["progress"])
        for verb, more in (("job_beat", {}), ("job_done", {"result": "mine"})):
            with refused("conflict", saying="no longer this worker's"):
                ann.do(verb, **held(job, **more))
        assert "done" == ann.do("job_done", **held(other, result={"verdict": "quiet"}))["state"]

    def test_no_lease_outlives_the_budget(self, ann: Desk, book: Book) -> None:
        """A worker that hangs would hold its job for ever by beating."""
        put(ann, budget_seconds=100)
        job = take(ann)
        assert job is not None
        book.clock.tick(seconds=50)
        assert job["deadline_at"] == ann.do("job_beat", **held(job, lease_seconds=900))["lease_until"]
        book.clock.tick(seconds=50)
        with refused("conflict"):
            ann.do("job_beat", **held(job))

    def test_an_end_is_one_end(self, ann: Desk) -> None:
        """A retried ending would be refused, or count twice."""
        put(ann)
        job = take(ann)
        assert job is not None
        first = ann.do("job_done", **held(job, ok=False, result={"why": "no"}))
        assert first == ann.do("job_done", **held(job, ok=False, result={"why": "no"}))
        assert ("failed", None) == (first["state"], first["lease_until"])
        assert take(ann) is None

    def test_a_job_that_kills_its_workers_is_given_up_aloud(self, ann: Desk, book: Book) -> None:
        """It would be tried for ever, or vanish."""
        put(ann)
        for n in range(limits.JOB_ATTEMPTS_MAX):
            assert take(ann, f"w{n}") is not None
            book.clock.tick(seconds=limits.JOB_LEASE_SECONDS_DEFAULT + 1)
        assert take(ann, "last") is None
        [dead] = ann.do("job_reap", queue=QUEUE)["dead"]
        assert ("dead", "deploy-1") == (dead["state"], dead["key"])
        assert [] == ann.do("job_reap", queue=QUEUE)["dead"]
        assert [dead] == ann.do("job_list", queue=QUEUE)["jobs"]

    @pytest.mark.parametrize("verb", ["job_take", "job_list", "job_reap"])
    def test_who_may_put_may_do_nothing_else(self, service: Service, verb: str) -> None:
        """A dispatcher that is taken over could take jobs, and with them make boxes."""
        from dataclasses import replace

        dispatcher = Desk(service, replace(person(service).caller, scopes=frozenset({"dispatch", "read"})))
        assert put(dispatcher)["created"]
        with refused("forbidden"):
            dispatcher.do(verb, queue=QUEUE, **({"worker": "w"} if verb == "job_take" else {}))

    def test_tenants_have_queues_of_their_own(self, book: Book) -> None:
        """A tenant's deploy would be deduplicated against, or watched by, another's."""
        service = book.open()
        book.tenant_maker(2)
        ann, eve = person(service), person(service, "eve", tenant=2)
        assert put(ann, delivery="d")["created"]
        assert put(eve, delivery="d")["created"]
        job = take(ann)
        assert job is not None
        with refused("not_found"):
            eve.do("job_done", **held(job))
        assert 1 == len(eve.do("job_list", queue=QUEUE)["jobs"])
