"""The table of tools: each names a verb, and is there when its verb is there. What it takes is made from the verb's own form."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

import msgspec

from herdbook.service.verbs import VERBS, Verb

Schema = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Tool:
    """One tool: a verb in the words of whoever picks tools by their description."""

    name: str
    verb: str
    title: str
    text: str  # when to call it; what it takes is the verb's own form
    destructive: bool = False
    fixed: Mapping[str, Any] = field(default_factory=dict)  # fields the tool decides, and does not show
    required: tuple[str, ...] = ()  # beyond what the verb itself requires
    hidden: tuple[str, ...] = ()  # fields of the verb that belong to another tool


TOOLS: Final = (
    Tool("brief", "brief", "What is known", "Call this first: what is known about `entity`, for your `task`, best first."),
    Tool("search", "search", "Search entries", "Find entries by words, under `entity` or everywhere."),
    Tool("read", "read", "Read an entry", "One entry in full: its value, why it is so, who wrote it, how far it may be trusted."),
    Tool(
        "write",
        "write",
        "Write an entry",
        "Keep what you found out and the next run needs, with `why`. The same key again supersedes; nothing is lost.",
        required=("key", "value"),
        hidden=("approach",),
    ),
    Tool(
        "dead_end",
        "write",
        "Keep a dead end",
        "Keep what you tried and what did not work, by `approach` or by key and value, so that no run tries it again.",
        fixed={"kind": "experience", "worked": False},
        required=("why",),
    ),
    Tool("record_action", "record_action", "Record an action", "One thing you did: the tool, its arguments, its result."),
    Tool("record_context", "record_context", "Record what was given", "Something you were given: a prompt, a file, a message."),
    Tool(
        "attempt",
        "attempt",
        "Record an attempt",
        "How one try within the run went. A failed one charges what it `used`, even when the run ends well.",
    ),
    Tool(
        "commit_outcome",
        "commit_outcome",
        "Commit the outcome",
        "Call this last: how the run ended (success, minor_failure, failure or critical_failure), which of the entries you were "
        "given you `used`, and what you were asked to do. It moves the trust of what was used.",
    ),
    Tool("history", "history", "History of an entry", "Every version of an entry, oldest first, with its author and its why."),
    Tool("diff", "diff", "Compare versions", "What changed between two versions of an entry: by default the last two."),
    Tool(
        "explain",
        "why",
        "Explain trust",
        "Why an entry is trusted as it is: every move of its trust, with the outcome behind it.",
    ),
    Tool("trace", "trace", "Reconstruct a run", "A run by its outcome's ref or its session: task, reads, actions, outcome."),
    Tool("list", "list", "List entries", "Entity paths under a prefix, with the entries at each."),
    Tool("stats", "status", "State of the record", "Counts, seals and problems of the whole record."),
    Tool(
        "retrain",
        "retrain",
        "Retrain the ranker",
        "Fit a ranker to what was shown and what came of it. It is kept and judged; a person lets it rank.",
    ),
    Tool(
        "calibrate",
        "calibrate",
        "Calibrate trust",
        "What outcomes should do to confidence at a path, and how fast it should fade. A person puts it into force.",
        fixed={"promote": False},
    ),
    Tool(
        "export_training_data",
        "export_training_data",
        "Export training data",
        "The first rows of a training set out of the runs, without secrets, and how much was left out and why.",
    ),
    Tool("prove", "prove", "Prove the effect", "Whether what is read makes runs better, with an interval."),
)

# What a field means to whoever fills it in. Names that mean one thing in every verb stand here once.
FIELDS: Final = {
    "entity": "a path such as acme/checkout/tests",
    "key": "the entry's key",
    "value": 'any JSON; {"env": {"NAME": "text"}} is set for later runs once it stands',
    "approach": "what was tried and did not work, in place of a key: the same words again are the same entry",
    "why": "the reason it is so",
    "kind": "fact, belief (fades faster) or experience; of a training set: sft, dpo, kto, reward or rl",
    "worked": "for an experience: whether it worked",
    "confidence": "from 0 to 1; 0.5 unless you know better",
    "applies_when": "the observable that makes it applicable",
    "expires_at": "ISO 8601 time after which it no longer counts",
    "links": "other entries it comes from, supports or contradicts",
    "if_version": "only if this is its current version; 0: only if there is none",
    "request_id": "send the same one again to retry without doing it twice",
    "session": "the run this belongs to; leave it out to use this connection's own",
    "task": "what is to be done",
    "tokens": "at most so many tokens of briefing",
    "names": "also name what was left out",
    "explain": "also say why each entry has its place: the score and rank of every leg",
    "query": "words to look for",
    "limit": "at most so many",
    "after": "the `next` of the page before",
    "version": "this version instead of the current one",
    "type": "success, minor_failure, failure or critical_failure",
    "ref": "a name for this outcome: sent twice it counts once; for trace: an outcome's ref or a session",
    "task_input": "what the run was asked to do; without it the run cannot be trained on",
    "used": "what was acted on: keys you were given, or {entity, key, version}",
    "observed": "conditions that occurred, in the words of `applies_when`",
    "artifacts": "what it left behind: commits, files, links",
    "verified_by": "who says so; kept as a claim",
    "tool": "what was called",
    "args": "its arguments",
    "result": "what it gave back; for attempt: success or failure",
    "ok": "whether it worked",
    "note": "what was seen",
    "name": "what it was",
    "text": "what it said",
    "method": "logistic or gbm; by default the better one, if any is",
    "weight": "the ranker's part of the score, from 0 to 1; by default the best of a few",
    "attested": "only runs that somebody outside the box vouches for",
    "old": "the earlier version",
    "new": "the later version",
}

# What agents that know a similar tool call these fields. Taken where the verb has no field of that name, and said.
ALIASES: Final = {
    "entity_path": "entity",
    "outcome_type": "type",
    "outcome_ref": "ref",
    "memory_type": "kind",
    "causal_entry_keys": "used",
    "tool_name": "tool",
    "arguments": "args",
    "label": "name",
    "summary": "text",
}


@dataclass(frozen=True, slots=True)
class Offered:
    """A tool whose verb is there, with the form it takes."""

    tool: Tool
    verb: Verb
    schema: Schema

    @property
    def tracked(self) -> bool:
        """Whether it belongs to a run."""
        return "session" in self.properties

    @property
    def properties(self) -> Schema:
        found: Schema = self.schema["properties"]
        return found


def offered(entity: str | None = None) -> Iterator[Offered]:
    """The tools whose verbs are there, in order; with a default for `entity` none requires it."""
    for tool in TOOLS:
        if tool.verb in VERBS:
            verb = VERBS[tool.verb]
            yield Offered(tool, verb, schema_of(tool, verb, entity=entity))


def schema_of(tool: Tool, verb: Verb, *, entity: str | None) -> Schema:
    """The verb's form as JSON Schema, without what the tool decides, and with what each field is for."""
    _, shared = msgspec.json.schema_components([verb.request], ref_template="#/$defs/{name}")
    own = shared.pop(verb.request.__name__)
    unseen = {*tool.fixed, *tool.hidden}
    properties = {name: described(name, form) for name, form in own["properties"].items() if name not in unseen}
    required = {*own.get("required", ()), *tool.required} - {"session"}
    if entity is not None and "entity" in required:
        required.discard("entity")
        properties["entity"] = {**properties["entity"], "default": entity}
    schema: Schema = {"type": "object", "properties": properties, "additionalProperties": False}
    if required:
        schema["required"] = [name for name in properties if name in required]
    if shared:
        schema["$defs"] = shared
    return schema


def described(name: str, form: Schema) -> Schema:
    """A field as it is shown: that it may be null goes without saying where it may be left out."""
    choices = [choice for choice in form.get("anyOf", ()) if choice != {"type": "null"}]
    if len(choices) == 1:
        form = {**choices[0], **{name: value for name, value in form.items() if name != "anyOf"}}
    shown = {key: value for key, value in form.items() if not (key == "default" and value in (None, []))}
    return {**shown, "description": FIELDS[name]} if name in FIELDS else shown
