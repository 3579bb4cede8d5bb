"""Every limit in one place, with the relations between them asserted. Units come last in a name."""

from __future__ import annotations

from typing import Final

ENTITY_PATH_CHARS_MAX: Final = 512
ENTITY_PATH_PARTS_MAX: Final = 16
KEY_CHARS_MAX: Final = 256
NAME_CHARS_MAX: Final = 128  # agents, tools, providers, labels
ID_CHARS_MAX: Final = 128  # session ids, request ids, outcome refs
WHY_CHARS_MAX: Final = 4_000
TASK_CHARS_MAX: Final = 64 * 1024
APPLIES_WHEN_CHARS_MAX: Final = 256
QUERY_CHARS_MAX: Final = 4_000

VALUE_BYTES_MAX: Final = 64 * 1024  # the default; a setting may move it up to VALUE_BYTES_CEILING
CACHE_BYTES_MAX: Final = 256 * 1024 * 1024  # what a process keeps in memory of what it was asked about; see the setting
VALUE_BYTES_CEILING: Final = 512 * 1024
VALUE_DEPTH_MAX: Final = 64
INTEGER_DIGITS_MAX: Final = 300  # a float's own range; longer digit strings are data, not numbers
LINKS_MAX: Final = 32
USED_MAX: Final = 1_000
OBSERVED_MAX: Final = 100

REQUEST_BYTES_MAX: Final = 1024 * 1024
HEADER_BYTES_MAX: Final = 64 * 1024
HEADER_SECONDS_MAX: Final = 10
BODY_SECONDS_MAX: Final = 30
STOP_SECONDS_MAX: Final = 20

BRIEFING_TOKENS_DEFAULT: Final = 2_000
BRIEFING_TOKENS_MIN: Final = 64
BRIEFING_TOKENS_MAX: Final = 64_000
BRIEFING_ENTRIES_MAX: Final = 200
SEARCH_RESULTS_DEFAULT: Final = 20
LIST_PAGE_DEFAULT: Final = 100
PAGE_MAX: Final = 1_000

BOX_LEASE_SECONDS_DEFAULT: Final = 120
BOX_LEASE_SECONDS_MAX: Final = 24 * 3600

JOB_LEASE_SECONDS_DEFAULT: Final = 60
JOB_BUDGET_SECONDS_DEFAULT: Final = 900  # one attempt, from taking the job to its end
JOB_BUDGET_SECONDS_MAX: Final = 24 * 3600
JOB_WINDOW_SECONDS_MAX: Final = 366 * 24 * 3600
JOB_PROGRESS_BYTES_MAX: Final = 512 * 1024  # and of its result: what a worker found out before it may say what follows
JOB_ATTEMPTS_MAX: Final = 5  # after so many workers that died over it, a job is given up
BOX_PASS_SECONDS_MAX: Final = 15 * 60

MCP_CONNECTIONS_MAX: Final = 100  # that one key has open at a server at once
MCP_IDLE_SECONDS_MAX: Final = 30 * 60  # without a request, until a connection is let go and its run ended

SPANS_MAX: Final = 2_000  # of OpenTelemetry, in one request

LEARNT_RUNS_MAX: Final = 20_000  # the newest so many runs are looked at
ROUTE_ENTITIES_MAX: Final = 100  # paths that a model is tried at
EXPORTED_ROWS_MAX: Final = 100  # rows of a training set in one answer
EXPORTED_ANSWER_BYTES_MAX: Final = 256 * 1024
ARTEFACT_RUNS_MAX: Final = 5_000  # of a dataset, told at once
CARD_CHARS_MAX: Final = 32 * 1024

KEYS_LIVE_MAX: Final = 1_000  # of a tenant; whoever runs the server may give its admin one more
KEY_SECONDS_MAX: Final = 10 * 366 * 24 * 3600
KEY_GRACE_SECONDS_MAX: Final = 30 * 24 * 3600  # how long a key that was rotated away may go on
BOX_KEY_SECONDS_MAX: Final = 24 * 3600
REACH_PATTERNS_MAX: Final = 32  # entity-path patterns of one key
CONNECTIONS_MAX: Final = 64  # names of connections that one key or box may use

GATEWAY_PATH_BYTES_MAX: Final = 8 * 1024
GATEWAY_PATH_PARTS_MAX: Final = 128
GATEWAY_BODY_BYTES_MAX: Final = 32 * 1024 * 1024  # of a request; answers have no limit, as they are not kept
GATEWAY_CALLS_MAX: Final = 16  # of one box at once
GATEWAY_BOX_CALLS_MAX: Final = 100_000  # of one box in its life, over all connections
GATEWAY_BOX_BYTES_UP_MAX: Final = 4 * 1024**3  # that one box sends
GATEWAY_BOX_BYTES_DOWN_MAX: Final = 16 * 1024**3  # that one box receives
GATEWAY_CONNECT_SECONDS_MAX: Final = 10
GATEWAY_SILENCE_SECONDS_MAX: Final = 300  # between two bytes of an answer

assert VALUE_BYTES_MAX <= VALUE_BYTES_CEILING < REQUEST_BYTES_MAX, "one value must fit in one request"
assert TASK_CHARS_MAX * 4 < REQUEST_BYTES_MAX, "a task must fit in one request"
assert BRIEFING_TOKENS_MIN <= BRIEFING_TOKENS_DEFAULT <= BRIEFING_TOKENS_MAX
assert GATEWAY_PATH_BYTES_MAX < HEADER_BYTES_MAX, "a path must fit in the head of a request"
