"""What `herdbook.open` answers: a client that also begins runs of their own, and that a notebook shows as people read it.

It promises all that `Client` does, local or remote. What is only for whoever sits at a keyboard stands here, and not in the file
that is pushed into boxes.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final, Self

from herdbook.client import Client, HttpTransport

Answer = dict[str, Any]
TABLES: Final = ("results", "versions", "entries")  # lists of entries, whichever an answer has
COLUMNS: Final = ("entity", "key", "version", "value", "standing", "confidence")
ROWS_MAX: Final = 50
CELL_CHARS_MAX: Final = 80


class Session(str):
    """The name of a book's run, and a way to begin another: `with book.session(task="...") as run:`."""

    book: Book

    def __call__(
        self, *, agent: str | None = None, task: str | None = None, entity: str | None = None, session: str | None = None
    ) -> Book:
        """A book over the same record whose run is its own, from its first call to the end of the `with`.

        What is not said is as in the book it came from, but for the task: another run is another task.
        """
        own = self.book
        run = Book(
            own.transport,
            agent=agent or own.agent,
            task=task,
            entity=entity or own.entity,
            session=session,
            spool=own.spool.path if own.spool else "",
            timeout_seconds=own.timeout_seconds,
        )
        run.lent = True
        return run


class Shown(Answer):
    """An answer that a notebook shows as people read it."""

    def _repr_markdown_(self) -> str | None:
        if "markdown" in self:
            return str(self["markdown"])
        found = next((self[name] for name in TABLES if isinstance(self.get(name), list)), None)
        return None if found is None else "\n".join(table(self, found))


class Book(Client):
    """A client of a record, which it keeps open until it is closed; a run that came from `session()` leaves it open."""

    lent = False  # the record belongs to the book this came from

    @property
    def session(self) -> Session:
        named = Session(vars(self)["session"])
        named.book = self
        return named

    @session.setter
    def session(self, name: str) -> None:
        vars(self)["session"] = str(name)

    def __enter__(self) -> Self:
        return self

    def close(self) -> None:
        """End the run, if it is this book's; let go of the record, unless another book holds it."""
        if not self.lent:
            super().close()
        elif self.begun and self.ours:
            self.end_session()

    def call(self, verb: str, fields: Answer, deadline_seconds: float | None = None) -> Answer:
        """Any verb by name."""
        return Shown(super().call(verb, fields, deadline_seconds))

    def send(self, verb: str, fields: Answer, until: float) -> Answer:
        return super().send(verb, {**fields, "session": str(fields["session"])} if "session" in fields else fields, until)

    def _repr_markdown_(self) -> str:
        where = self.transport.url if isinstance(self.transport, HttpTransport) else "this process"
        about = f", about {cell(self.entity)}" if self.entity else ""
        return f"herdbook in {cell(where)}: run {cell(str(self.session))} of {cell(self.agent)}{about}"


def table(answer: Mapping[str, Any], rows: list[Any]) -> Iterator[str]:
    """Entries as a table; what is left out is said."""
    yield f"| {' | '.join(COLUMNS)} |"
    yield "|---" * len(COLUMNS) + "|"
    for row in rows[:ROWS_MAX]:
        yield f"| {' | '.join(cell(row.get(name, answer.get(name))) for name in COLUMNS)} |"
    if len(rows) > ROWS_MAX:
        yield f"\n{len(rows) - ROWS_MAX} more rows."


def cell(value: Any) -> str:
    """What others wrote, as code: it is no markup, and ends no cell."""
    from herdbook.fastloop.lines import span  # here, since few books are shown

    if value is None:
        return ""
    text = f"{value:.3f}" if isinstance(value, float) else str(value)
    short = text if len(text) <= CELL_CHARS_MAX else f"{text[: CELL_CHARS_MAX - 1]}…"
    return span(short).replace("|", "\\|")
