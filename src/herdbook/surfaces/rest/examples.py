"""One request for each verb, as the schema shows them. In this order they tell one story, which a test sends to a real server."""

from __future__ import annotations

from typing import Any, Final

ENTRY: Final = {"entity": "acme/checkout/tests", "key": "retry-budget"}
BOX: Final = {"box": "box-7f3a"}
SESSION: Final = {"session": "run-41"}
JOB: Final = {"job": "job-7f3a", "worker": "watcher-1", "attempt": 1}
REF: Final = {"ref": "ci-8841"}

REQUESTS: Final[dict[str, dict[str, Any]]] = {
    "box_open": {**BOX, "provider": "bubblewrap", "isolation": "namespace", "label": "checkout", "owner": "builder-2/4711/88123"},
    "box_beat": {**BOX, "lease_seconds": 120},
    "box_promote": {**BOX},
    "box_runs": {**BOX},
    "start_session": {**SESSION, "agent": "fixer", "entity": "acme/checkout/tests", "task": "make the checkout tests pass"},
    "write": {
        **ENTRY,
        "value": {"env": {"PAYMENT_RETRIES": "3"}},
        "why": "the payment sandbox rejects the first two calls of a run",
        "confidence": 0.6,
        **SESSION,
        "request_id": "w-1",
    },
    "contradictions": {"entity": "acme/checkout/tests"},
    "brief": {"entity": "acme/checkout/tests", **SESSION, "task": "the checkout tests fail", "tokens": 1_200},
    "read": {**ENTRY, **SESSION},
    "search": {"query": "payment retries", "entity": "acme/checkout", "limit": 5},
    "list": {"entity": "acme", "limit": 50},
    "record_action": {
        **SESSION,
        "tool": "bash",
        "args": {"command": "make test"},
        "result": "4 passed",
        "ok": True,
        "request_id": "a-1",
    },
    "record_spans": {
        "resource_spans": [
            {
                "resource": {"attributes": [{"key": "service.name", "value": {"stringValue": "fixer"}}]},
                "scopeSpans": [
                    {
                        "spans": [
                            {
                                "traceId": "5b8efff798038103d269b633813fc60c",
                                "spanId": "eee19b7ec3c1b174",
                                "name": "execute_tool bash",
                                "startTimeUnixNano": "1767225600000000000",
                                "attributes": [
                                    {"key": "gen_ai.operation.name", "value": {"stringValue": "execute_tool"}},
                                    {"key": "gen_ai.tool.name", "value": {"stringValue": "bash"}},
                                    {"key": "gen_ai.conversation.id", "value": {"stringValue": "41"}},
                                ],
                            }
                        ]
                    }
                ],
            }
        ]
    },
    "record_context": {**SESSION, "name": "README.md", "text": "Run the tests with make test.", "request_id": "c-1"},
    "attempt": {**SESSION, "result": "success", "used": [ENTRY], "note": "passed at once", "request_id": "t-1"},
    "commit_outcome": {**SESSION, **REF, "type": "success", "task_input": "make the checkout tests pass", "used": [ENTRY]},
    "attest": {**REF, "exit_code": 0, "note": "the exit code of make test, as the host saw it"},
    "revise_outcome": {**REF, "type": "minor_failure", "why": "one test was skipped", "request_id": "r-1"},
    "history": {**ENTRY},
    "diff": {**ENTRY, "old": 1, "new": 1},
    "why": {**ENTRY},
    "trace": {**REF},
    "runs": {"entity": "acme/checkout", "limit": 100},
    "tune": {"entity": "acme/checkout", "values": {"holdback": 0.15}, "why": "to see which notes help", "request_id": "u-1"},
    "tuning": {"entity": "acme/checkout/tests"},
    "exposures": {"entity": "acme/checkout", "limit": 100},
    "prove": {"entity": "acme/checkout"},
    "embed": {"limit": 32},
    "retrain": {"entity": "acme/checkout"},
    "rankers": {"shadow": True},
    "calibrate": {"entity": "acme/checkout"},
    "rollback": {"what": "calibration", "entity": "acme/checkout", "request_id": "u-2"},
    "export_training_data": {"kind": "sft", "entity": "acme/checkout", "limit": 5},
    "artefact_keep": {"kind": "dataset", "name": "checkout-sft", "hash": "5d" * 32, "lineage": {"kind": "sft", "entity": "acme"}},
    "artefact_runs": {"artefact": "e0804d7e4165e85c", "runs": ["run-41"]},
    "artefact_set": {"artefact": "e0804d7e4165e85c", "status": "withdrawn", "why": "too few runs", "request_id": "d-1"},
    "artefact_list": {"kind": "dataset"},
    "model_route": {"alias": "fixer", "upstream": "laptop", "name": "base", "request_id": "m-1"},
    "model_promote": {
        "artefact": "e0804d7e4165e85c",
        "alias": "fixer",
        "upstream": "laptop",
        "name": "tuned",
        "request_id": "m-2",
    },
    "model_rollback": {"alias": "fixer", "why": "it asks for more than it needs", "request_id": "m-3"},
    "model_routes": {"compare": True},
    "model_call": {
        "alias": "fixer",
        "n": 1,
        **SESSION,
        "agent": "fixer",
        "messages": [{"role": "user", "content": "make the tests pass"}],
        "answer": "Which ones?",
    },
    "promote": {"ranker": "3f0c5a9d1e7b2460", "entity": "acme/checkout", "why": "better in shadow", "request_id": "u-3"},
    "end_session": {**SESSION},
    "erase_preview": {"kind": "author", "subject": "fixer"},
    "erasures": {},
    "key_create": {"name": "checkout-ci", "role": "writer", "reach": ["acme/checkout"], "attest": True, "rate_minute": 600},
    "key_rotate": {"name": "checkout-ci", "grace_seconds": 3_600},
    "key_list": {},
    "key_revoke": {"name": "checkout-ci"},
    "outcomes": {"entity": "acme/checkout", "type": "failure", "limit": 20},
    "changes": {"after": "latest", "entity": "acme/checkout"},
    "audit": {"who": "checkout-ci", "since": "2026-01-01T00:00:00Z", "limit": 20},
    "tenant_create": {"tenant": "globex", "quota_day": 100_000},
    "tenant_limit": {"tenant": "globex", "rate_minute": 6_000},
    "tenant_admit": {"tenant": "globex"},
    "tenant_list": {},
    "box_pass": {**BOX, "reach": ["acme/checkout"], "connections": ["github"], "seconds": 300},
    "box_check": {"token": "hbx_eyJib3giOiJib3gtN2YzYSJ9.c2lnbmVk"},
    "box_close": {**BOX, "detail": "exit 0"},
    "box_list": {"label": "checkout", "limit": 10},
    "job_put": {
        "queue": "watch",
        "key": "deploy-1f0c9a2b7d4e",
        "job": "job-7f3a",
        "body": {"sha": "1f0c9a2b7d4e"},
        "delivery": "72d3162e-cc78-11e3-81ab-4c9367dc0958",
        "budget_seconds": 900,
    },
    "job_take": {"queue": "watch", "worker": "watcher-1", "lease_seconds": 60},
    "job_list": {"queue": "watch", "open": True, "limit": 20},
    "job_reap": {"queue": "watch"},
    "job_beat": {**JOB, "lease_seconds": 60, "progress": {"box": "box-7f3a"}},
    "job_done": {**JOB, "result": {"verdict": "quiet"}},
    "status": {},
    "erase": {"kind": "session", "subject": "run-41", "why": "asked for on the 3rd", "request_id": "e-1"},
}
