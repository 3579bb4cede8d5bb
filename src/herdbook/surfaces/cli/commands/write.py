"""The next version of an entry. Nothing is overwritten: the version before stays readable, with its author and its why."""

from __future__ import annotations

import argparse
from typing import Any

from herdbook.base import limits, strict_json, text
from herdbook.record.trust import FRESH_CONFIDENCE
from herdbook.surfaces.cli.entries import decimal, standing
from herdbook.surfaces.cli.inputs import finite, link, value_of
from herdbook.surfaces.cli.invocation import Invocation
from herdbook.surfaces.cli.parser import number, whole_number
from herdbook.surfaces.cli.terminal import Answer, line

EXAMPLES = """\
example:
  $ herdbook write acme/ci tz '{"env": {"TZ": "UTC"}}' --why "the date tests compare against UTC midnight"
  $ herdbook write acme/checkout/tests retry-budget 3 --why "the payment sandbox rejects the first two calls"
  $ herdbook write acme/checkout/tests retry-budget 5 --why "under load it rejects the first four" --if-version 1
  $ echo "the fixture needs a seeded database" | herdbook write acme/ci seed-first - --text --why "migrations read it"

VALUE is JSON; --text takes it as the text it is. The same value again is no new version: it is affirmed."""

SAID = {
    "new": "new",
    "restated": "states a claim this entry made before, and keeps its trust",
    "returned": "goes back to an earlier claim, and finds its trust again",
    "affirmed": "was there already: affirmed",
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.description = "Write the next version of an entry. It supersedes the one before; nothing is overwritten."
    add_entry_arguments(parser, confidence=FRESH_CONFIDENCE)
    parser.add_argument("--kind", choices=("fact", "belief", "experience"), help="beliefs fade faster, experiences slower (fact)")
    worked = parser.add_mutually_exclusive_group()
    worked.add_argument("--worked", dest="worked", action="store_const", const=True, help="it was tried, and it worked")
    worked.add_argument("--failed", dest="worked", action="store_const", const=False, help="it was tried, and it did not")


def add_entry_arguments(parser: argparse.ArgumentParser, *, confidence: float, nargs: str | None = None) -> None:
    """What a write and a dead end have in common; `nargs` is how often the key and the value are given."""
    parser.add_argument("entity", metavar="ENTITY", help="a path such as acme/checkout/tests")
    parser.add_argument("key", metavar="KEY", nargs=nargs, help="the entry's key; slashes and dots in it are only text")
    parser.add_argument("value", metavar="VALUE", nargs=nargs, help="any JSON; - reads it from the standard input")
    parser.add_argument("--text", action="store_true", help="VALUE is text, not JSON")
    parser.add_argument("--why", metavar="TEXT", help="why it is true: what the next reader decides by")
    parser.add_argument("--confidence", metavar="X", type=number, help=f"how sure the author is, from 0 to 1 ({confidence})")
    parser.add_argument("--applies-when", metavar="TEXT", help="the condition that must have occurred for it to count")
    parser.add_argument("--expires-at", metavar="TIME", help="ISO 8601; from then on it is retired")
    parser.add_argument(
        "--link", metavar="REL:ENTITY#KEY", action="append", help="derived_from, supports, contradicts or see_also; repeatable"
    )
    parser.add_argument(
        "--if-version", metavar="N", type=whole_number, help="only if this is the current one; 0: only if there is none"
    )
    parser.add_argument("--request-id", metavar="ID", help="the same id again gets the first answer, never a second version")


def run(invocation: Invocation) -> int:
    args = invocation.args
    return written(invocation, kind=args.kind, worked=args.worked, confidence=args.confidence)


def written(invocation: Invocation, *, kind: str | None, worked: bool | None, confidence: float | None) -> int:
    """Send it and say what became of it. All arguments are read before anything is sent."""
    args = invocation.args
    entry = entry_of(invocation)
    fields: dict[str, Any] = {
        "why": args.why,
        "kind": kind,
        "worked": worked,
        "confidence": finite(confidence, what="confidence"),
        "applies_when": args.applies_when,
        "expires_at": args.expires_at,
        "links": [link(each) for each in args.link] if args.link else None,
        "if_version": args.if_version,
        "request_id": args.request_id,
    }
    if args.no_session and invocation.settings.agent:
        agent = invocation.settings.agent
        invocation.terminal.remark(
            f"warning: {agent} is not kept as the author, since an agent is known by its run: leave out --no-session"
        )
    belongs = invocation.run(entity=args.entity)
    answer = invocation.ask("write", entry, session=belongs.session if belongs else None, **fields)
    return invocation.show_of_run(answer, lines(answer, invocation), belongs)


def entry_of(invocation: Invocation) -> dict[str, Any]:
    """What is written, checked here already: a refusal must not leave a run behind in which nothing happened."""
    args, settings = invocation.args, invocation.settings
    if args.why is not None:
        text.prose(args.why, what="why", chars_max=limits.WHY_CHARS_MAX)
    if getattr(args, "approach", None) is not None:
        approach = text.prose(args.approach, what="approach", chars_max=limits.WHY_CHARS_MAX)
        return {"entity": text.entity_path(args.entity), "approach": approach}
    value = value_of(args.value, as_text=args.text)
    strict_json.canonical(value, bytes_max=limits.VALUE_BYTES_CEILING if invocation.remote else settings.value_bytes_max)
    return {"entity": text.entity_path(args.entity), "key": text.key(args.key), "value": value}


def lines(answer: Answer, invocation: Invocation) -> list[str]:
    claim = str(answer.get("claim", "new"))
    said = SAID.get(claim, line(claim))
    if answer.get("supersedes"):
        said += f", supersedes v{answer['supersedes']}"
    first = f"{line(answer.get('entity', ''))}  {line(answer.get('key', ''))}  v{answer.get('version')}  {said}"
    second = f"  {standing(answer, invocation.terminal)} · confidence {decimal(answer.get('confidence'))}"
    for warning in answer.get("warnings") or []:
        invocation.terminal.remark(f"warning: {warning}")
    return [first, second]
