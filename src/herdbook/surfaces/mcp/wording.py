"""What a tool says in words: short, within a budget, and with everything that others wrote inside code spans.

The structured content beside it holds the same answer as data, with long texts and lists cut and marked as cut.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

from herdbook.fastloop.lines import span, word
from herdbook.fastloop.tokens import estimate_tokens

Answer = dict[str, Any]
TOKENS_DEFAULT: Final = 2_000
VALUE_CHARS: Final = 400
TEXT_CHARS_MAX: Final = 2_000
LIST_ITEMS_MAX: Final = 50
WHOLE: Final = frozenset({"read", "export_training_data"})  # as data they are not cut: each has bounds of its own


def worded(verb: str, answer: Answer, notes: list[str], *, tokens_max: int) -> str:
    """The answer in words, what was understood first."""
    lines = [f"Note: {note}." for note in notes]
    lines += WORDS.get(verb, as_json)(answer)
    if answer.get("tracked") is False:
        lines.append("This was not tracked: it belongs to no run.")
    lines += [f"Warning: {warning}" for warning in answer.get("warnings") or ()]
    return within("\n".join(lines), tokens_max)


def within(text: str, tokens_max: int) -> str:
    """The text, or as many of its lines as fit, with a last one that says how many were left out."""
    if estimate_tokens(text) <= tokens_max:
        return text
    lines, kept, left = text.split("\n"), [], tokens_max - 30
    for line in lines:
        left -= estimate_tokens(line) + 1
        if left < 0:
            break
        kept.append(line)
    if len(kept) < len(lines) and left > -len(lines[len(kept)]):  # the one that did not fit, as far as it goes
        room = max(0, left + estimate_tokens(lines[len(kept)]) + 1)
        kept.append(f"{lines[len(kept)][:room]}…")
    return "\n".join([*kept, f"… {len(lines) - len(kept)} more lines: ask for less, or for one entry with `read`."])


def brief(answer: Answer) -> Iterator[str]:
    if not (answer["known"] or answer["refused"]):
        yield f"Nothing is known about {word(answer['entity'])} yet. What you find out, keep with `write`."
        if answer["similar"]:
            yield "Something is known about: " + ", ".join(map(word, answer["similar"]))
        return
    yield answer["markdown"].rstrip("\n")


def search(answer: Answer) -> Iterator[str]:
    for found in answer["results"]:
        yield entry_line(found)
    for refused in answer.get("refused") or ():
        yield f"- {word(refused['entity'])} {span(refused['key'])} was refused: {refused['message']}"
    if not answer["results"]:
        yield f"Nothing matches, among {answer['searched']} entries. Try other words, or `list`."


def entry_line(entry: Answer) -> str:
    """One entry on one line."""
    why = f"; why {quoted(entry['why'])}" if entry.get("why") else ""
    about = f"v{entry['version']}, {entry['standing']} {entry['confidence']:.2f}, by {word(entry['author'])}"
    dead = "a dead end, " if entry["worked"] is False else ""
    return f"- {word(entry['entity'])} {span(entry['key'])} = {quoted(entry['value'])} ({dead}{about}{why})"


def quoted(value: Any, chars_max: int = VALUE_CHARS) -> str:
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return span(text if len(text) <= chars_max else f"{text[: chars_max - 1]}…")


def read(answer: Answer) -> Iterator[str]:
    yield entry_line(answer | {"value": answer["value"]})
    text = json.dumps(answer["value"], ensure_ascii=False)
    if len(text) > VALUE_CHARS:
        yield f"In full: {span(text)}"
    if answer["current"] != answer["version"]:
        yield f"This is not the current version, which is {answer['current']}."
    if answer["beside"]:
        yield f"It does not stand yet. What last stood: {entry_line(answer['beside'])[2:]}"


def write(answer: Answer) -> Iterator[str]:
    done = "Wrote" if answer["created"] else "Already known, and affirmed:"
    after = f", superseding v{answer['supersedes']}" if answer["supersedes"] else ""
    yield f"{done} {word(answer['entity'])} {span(answer['key'])} v{answer['version']}{after} ({answer['standing']})."


def step(answer: Answer) -> Iterator[str]:
    yield f"Recorded as step {answer['n']} of run {span(answer['session'])}."


def outcome(answer: Answer) -> Iterator[str]:
    kind = "attested" if answer["attested"] else "a claim until somebody attests it"
    yield f"Outcome {span(answer['ref'])}: {answer['type']} ({kind})."
    for move in answer["moved"]:
        yield f"- {word(move['entity'])} {span(move['key'])} v{move['version']}: {move['before']:.3f} -> {move['after']:.3f}"
    if not answer["moved"]:
        yield "Nothing moved: this run was given nothing, or used nothing."
    if not answer["trainable"]:
        how = {"task_input": "task_input (send it with the outcome)", "actions": "actions (send them with `record_action`)"}
        yield f"It cannot be trained on. Missing: {', '.join(how.get(each, each) for each in answer['missing'])}."


def history(answer: Answer) -> Iterator[str]:
    yield f"{word(answer['entity'])} {span(answer['key'])}, oldest first:"
    for version in answer["versions"]:
        if version.get("value") is None and version.get("message"):
            yield f"- v{version['version']} was refused: {version['message']}"
        else:
            yield entry_line(version)


def diff(answer: Answer) -> Iterator[str]:
    yield f"{word(answer['entity'])} {span(answer['key'])}, v{answer['old']} -> v{answer['new']}:"
    for change in answer["changed"]:
        yield f"- {change['field']}: {quoted(change['old'])} -> {quoted(change['new'])}"


def explain(answer: Answer) -> Iterator[str]:
    name = f"{word(answer['entity'])} {span(answer['key'])}"
    yield f"{name}, now v{answer['current']}; {answer['base_rate']:.0%} of tries here end well."
    for claim in answer["claims"]:
        versions = ", ".join(f"v{number}" for number in claim["versions"])
        yield f"- {versions}: {claim['standing']}, confidence {claim['confidence']:.3f}, evidence {claim['evidence']:+.3f}"
        for move in claim["moves"]:
            yield f"  - {move['type']} {span(move['ref'])}: {move['before']:.3f} -> {move['after']:.3f}"


def trace(answer: Answer) -> Iterator[str]:
    yield f"Run {span(answer['session'])} of {word(answer['agent'])}, begun {answer['started_at']}."
    if answer["task"]:
        yield f"Task: {quoted(answer['task'])}"
    yield f"Read {len(answer['reads'])}, did {len(answer['actions'])}, wrote {len(answer['writes'])}."
    for action in answer["actions"]:
        yield f"- did {word(action['tool'])} {quoted(action.get('args'), 160)}"
    for told in answer["outcomes"]:
        yield f"- outcome {span(told['ref'])}: {told['type']}"


def listed(answer: Answer) -> Iterator[str]:
    for path in answer["paths"]:
        yield f"{word(path['entity'])}:"
        yield from (f"- {span(one['key'])} ({one['standing']})" for one in path["entries"])
    if not answer["paths"]:
        yield "There is nothing under this path."
    if answer["next"]:
        yield f"There is more: call `list` again with after={span(answer['next'])}"


def stats(answer: Answer) -> Iterator[str]:
    yield ", ".join(f"{count} {name}" for name, count in answer["counts"].items())
    yield f"Seals: {answer['seals']}."
    yield from (f"Problem: {problem}" for problem in answer["problems"])


def exported(answer: Answer) -> Iterator[str]:
    yield f"{len(answer['rows'])} rows ({answer['kind']}) of {answer['used_runs']} runs, out of {answer['runs']} looked at."
    if answer["rows_left_out"]:
        yield f"{answer['rows_left_out']} more rows are left out here: `herdbook export training` writes the whole set."
    if answer["more_runs_left_out"]:
        yield "There are more runs than were looked at: `herdbook export training` reads them all."
    if answer["scrubbed"]:
        yield "Blotted out: " + ", ".join(f"{count} x {kind}" for kind, count in answer["scrubbed"].items())
    for reason, told in answer["left_out"].items():
        yield f"- {told['runs']} runs left out, {reason}: such as {span(told['named'][0])}"
    yield from (span(json.dumps(row, ensure_ascii=False)) for row in answer["rows"])


def as_json(answer: Answer) -> Iterator[str]:
    yield json.dumps(cut(answer), ensure_ascii=False)


WORDS: Final[Mapping[str, Callable[[Answer], Iterator[str]]]] = {
    "brief": brief,
    "search": search,
    "read": read,
    "write": write,
    "record_action": step,
    "record_context": step,
    "attempt": step,
    "commit_outcome": outcome,
    "history": history,
    "diff": diff,
    "why": explain,
    "trace": trace,
    "list": listed,
    "status": stats,
    "export_training_data": exported,
}


def structured(verb: str, answer: Answer, notes: list[str]) -> Answer:
    """The answer as data, without what the words are; what is long is cut, unless it was asked for whole."""
    data = {name: value for name, value in answer.items() if name not in ("markdown", "text")}
    if verb not in WHOLE:
        data = cut(data)
    return data | ({"understood": notes} if notes else {})


def cut(value: Any) -> Any:
    """Long texts and lists, each ending in how much is missing."""
    if isinstance(value, str) and len(value) > TEXT_CHARS_MAX:
        return f"{value[:TEXT_CHARS_MAX]}… ({len(value) - TEXT_CHARS_MAX} characters more)"
    if isinstance(value, list):
        kept = [cut(each) for each in value[:LIST_ITEMS_MAX]]
        return kept if len(kept) == len(value) else [*kept, f"… {len(value) - len(kept)} more"]
    return {name: cut(each) for name, each in value.items()} if isinstance(value, dict) else value


def pretty(answer: Answer) -> str:
    """The whole answer for a person who asked for it."""
    return json.dumps(cut(answer), ensure_ascii=False, indent=2)
