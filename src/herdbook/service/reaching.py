"""What each verb and each field reaches: declared here, in one table, and denied to a key of limited reach where it is not.

A verb is `SCOPED` when all it asks goes through the record it is given, which shows a key what it reaches and nothing else;
`BOXES` when it is about boxes, which stand beside the paths; `TENANT` when it is about all of a tenant, so that only a key which
reaches everything may do it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from herdbook.base import text
from herdbook.base.errors import Forbidden
from herdbook.base.reach import Reach

SCOPED: Final = "scoped"
BOXES: Final = "boxes"
TENANT: Final = "tenant"

VERBS: Final = {
    **dict.fromkeys(
        ("start_session", "end_session", "brief", "contradictions", "read", "search", "history", "diff", "list", "write"), SCOPED
    ),
    **dict.fromkeys(
        ("record_action", "record_context", "record_spans", "attempt", "commit_outcome", "attest", "revise_outcome"), SCOPED
    ),
    **dict.fromkeys(("trace", "outcomes", "why", "changes", "model_call"), SCOPED),
    **dict.fromkeys(("box_open", "box_beat", "box_close", "box_list", "box_pass", "box_check"), BOXES),
    **dict.fromkeys(("retrain", "rankers", "promote", "calibrate", "rollback"), TENANT),
    **dict.fromkeys(("key_create", "key_list", "key_revoke", "key_rotate", "audit"), TENANT),
    **dict.fromkeys(("status", "tune", "tuning", "exposures", "embed", "prove"), TENANT),
    **dict.fromkeys(("tenant_create", "tenant_list", "tenant_limit", "tenant_admit"), TENANT),
    **dict.fromkeys(("runs", "export_training_data", "artefact_keep", "artefact_runs", "artefact_set", "artefact_list"), TENANT),
    **dict.fromkeys(("box_promote", "box_runs"), TENANT),
    **dict.fromkeys(("erase_preview", "erase", "erasures"), TENANT),
    **dict.fromkeys(("model_route", "model_promote", "model_rollback", "model_routes"), TENANT),
    **dict.fromkeys(("job_put", "job_take", "job_beat", "job_done", "job_list", "job_reap"), TENANT),
}

# What a field of the first two kinds of verbs names, one word for one thing wherever it stands. A name that is not here is of no
# verb yet.
PATH, ENTRIES, ENTRY, RUN, BOX, FREE = "path", "entries", "entry", "run", "box", "free"
FIELDS: Final = {
    "entity": PATH,
    "links": ENTRIES,  # each a path and a key; those outside are answered as missing
    "used": ENTRIES,
    "key": ENTRY,  # beside an entity
    "session": RUN,
    "ref": RUN,
    "resource_spans": FREE,  # their paths are looked at one by one, their runs as any
    "box": BOX,
    "reach": FREE,  # of a pass: it has to be within the caller's own
    **dict.fromkeys(
        ("agent", "task", "query", "value", "approach", "why", "kind", "worked", "confidence", "applies_when", "expires_at"), FREE
    ),
    **dict.fromkeys(("tokens", "names", "explain", "version", "limit", "old", "new", "after", "request_id", "if_version"), FREE),
    **dict.fromkeys(("tool", "args", "result", "ok", "name", "text", "note", "type", "task_input", "observed"), FREE),
    **dict.fromkeys(
        ("alias", "n", "unit", "messages", "tools", "answer", "prompt_tokens", "answer_tokens", "milliseconds"), FREE
    ),
    **dict.fromkeys(("artifacts", "verified_by", "exit_code", "provider", "isolation", "label", "owner"), FREE),
    **dict.fromkeys(("lease_seconds", "detail", "live", "connections", "seconds", "token", "competes", "claim"), FREE),
}


def check(reach: Reach, verb: str, request: Any, *, tells: bool) -> None:
    """Refuse what a key of limited reach may not do. What it may not see is no refusal: the record answers that as missing.

    To write somewhere is no question: it is refused by the key alone, whatever is there.
    """
    if reach.everything:
        return
    if VERBS.get(verb, TENANT) == TENANT:
        raise Forbidden(f"{verb} is about all of a tenant: use a key that reaches every path")
    fields: Sequence[str] = request.__struct_fields__
    for name in fields:
        kind = FIELDS.get(name)
        if kind is None:
            raise Forbidden(f"{verb} takes a field {name!r} of which no reach is known: use a key that reaches every path")
        path = getattr(request, name) if kind == PATH and tells else None
        if path is not None and not reach.covers(text.entity_path(path)):
            raise Forbidden(f"this key does not reach {path!r}: use one whose patterns cover it")
