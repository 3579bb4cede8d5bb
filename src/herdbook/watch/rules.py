"""What log lines mean, as one table: a label, a pattern, and the reason. Pure: the first rule that matches names an event.

Causes stand before what they cause, since one event often shows both: a pull that failed for want of a name is a failed pull, and
a stack trace that ends in a deadlock is a deadlock. Nothing in this table asks where a line came from or when.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

REGRESSION = "product_regression"
COLD_IMAGE = "cold_image"
STARTUP = "startup_unhealthy"
MIGRATION_RACE = "migration_race"
CRASH = "crash_on_start"
NOISE = "noise"
UNEXPLAINED = "unexplained"  # something went wrong that no rule names: never quiet, never a regression


@dataclass(frozen=True)
class Rule:
    """An event that matches has this label."""

    name: str
    label: str
    pattern: re.Pattern[str]
    why: str
    hints: tuple[str, ...]  # one of them is in every text that matches: looked for first, at a hundredth of the time

    def matches(self, text: str, lower: str) -> bool:
        return any(hint in lower for hint in self.hints) and self.pattern.search(text) is not None


def rule(name: str, label: str, why: str, *alternatives: str) -> Rule:
    pattern = re.compile("|".join(alternatives), re.IGNORECASE | re.DOTALL | re.MULTILINE)
    return Rule(name, label, pattern, why, tuple(dict.fromkeys(hint for each in alternatives for hint in hints_of(each))))


def hints_of(alternative: str) -> list[str]:
    """Plain words of which a text must have one to match, in lower case: the longest run there is, or a group's branches; "" is
    in every text. What may be missing, or stands for something else than itself, is left out."""
    plain = re.sub(r"\\.|\[[^\]]*\]", "\0", alternative)
    found = [branches for group in re.findall(r"\(\?:([^()]*)\)(?![?*]|\{0)", plain) for branches in [group.split("|")]]
    while plain != (fewer := re.sub(r"\([^()]*\)(?:[?*+]|\{[\d,]*\})?", "\0", plain)):
        plain = fewer
    words = [[longest(plain)], *([longest(branch) for branch in branches] for branches in found)]
    return max(words, key=lambda each: len(min(each, key=len)))


def longest(plain: str) -> str:
    needed = re.sub(r".(?:[?*]|\{0[\d,]*\})\??|\{[\d,]*\}", "\0", plain)
    return max(re.split(r"[^\w /=#:'-]+", needed), key=len).lower()


RULES: tuple[Rule, ...] = (
    rule(
        "pull-failed",
        "image_pull_error",
        "the image never arrived, whatever stopped it: not merely slow",
        r"ErrImagePull",
        r"ImagePullBackOff",
        r"InvalidImageName",
        r"failed to pull (?:and unpack )?image",
        r"error pulling image",
        r"back-off pulling image",
        r"manifest (?:for \S+ )?(?:unknown|not found)",
        r"pull access denied",
        r"toomanyrequests: you have reached",
        r"image '?\S+'? not found",
        r"failed to resolve reference",
    ),
    rule(
        "out-of-memory",
        "oom",
        "the kernel, the platform or the runtime says that memory ran out",
        r"memory limit of .{1,40} exceeded",
        r"exceeded (?:its |the )?memory limit",
        r"oom[-_ ]?kill",
        r"oomkilled",
        r"oom-killer",
        r"out of memory",
        r"outofmemoryerror",
        r"\bMemoryError\b",
        r"std::bad_alloc",
        r"killed process \d+",
        r"exit(?:ed with)?(?: status| code)?:? 137",
        r"cannot allocate memory",
        r"\bENOMEM\b",
        r"failed to allocate memory",
        r"allowed memory size of \d+ bytes exhausted",
        r"reached heap limit",
        r"heap limit allocation failed",
    ),
    rule(
        "disk-full",
        "disk_full",
        "a write failed because a disk has no room, whatever was being written",
        r"no space left on device",
        r"\bENOSPC\b",
        r"disk quota exceeded",
        r"\bEDQUOT\b",
        r"(?:database or )?disk is full",
        r"could not extend file",
        r"out of disk space",
        r"DiskPressure",
    ),
    rule(
        "certificate-dates",
        "tls_expiry",
        "a certificate is out of its dates: no release changes that",
        r"certificate (?:has|is) expired",
        r"certificate (?:has expired|expired)",
        r"CERT_HAS_EXPIRED",
        r"certificate is not yet valid",
        r"expired certificate",
        r"cert(?:ificate)? .{0,40}\bexpired\b",
    ),
    rule(
        "name-not-found",
        "dns_failure",
        "a name could not be resolved",
        r"EAI_AGAIN",
        r"EAI_NONAME",
        r"getaddrinfo ENOTFOUND",
        r"getaddrinfo failed",
        r"temporary failure in name resolution",
        r"name resolution (?:failed|error)",
        r"name or service not known",
        r"nodename nor servname",
        r"no such host",
        r"could not resolve host",
        r"couldn't resolve host",
        r"server misbehaving",
        r"UnknownHostException",
        r"NameResolutionError",
        r"\bNXDOMAIN\b",
        r"\bSERVFAIL\b",
        r"failed to resolve '",
        r"dns (?:lookup|resolution) (?:failed|failure|timed out)",
    ),
    rule(
        "lock-cycle",
        "deadlock",
        "the database broke a cycle of locks: load and order of statements, seldom one release",
        r"deadlock (?:detected|found)",
        r"DeadlockDetected",
        r"LOCK_DEADLOCK",
        r"LockAcquisitionException",
        r"waits for \w+lock on .*blocked by",
        r"deadlocked on (?:lock|\{lock\})",
    ),
    rule(
        "no-connection-left",
        "pool_exhausted",
        "every connection was taken; who holds them is not in this line",
        r"QueuePool limit",
        r"connection pool (?:is )?(?:exhausted|full|timed? ?out)",
        r"pool (?:is )?exhausted",
        r"PoolTimeout",
        r"PoolExhausted",
        r"remaining connection slots are reserved",
        r"too many (?:clients|connections)",
        r"max(?:imum)? (?:number of )?(?:clients|connections) reached",
        r"timed out fetching a new connection from the connection pool",
        r"connection is not available, request timed out",
        r"timeout exceeded when trying to connect",
        r"could not obtain .{0,30}connection within",
        r"unable to acquire a connection",
        r"no more connections allowed",
    ),
    rule(
        "worker-too-slow",
        "worker_timeout",
        "a supervisor ended a worker that did not answer in time",
        r"worker timeout",
        r"worker with pid \d+ was terminated due to signal 6",
        r"harakiri",
        r"reached the maximum request timeout",
        r"task timed out after",
        r"script timed out before returning headers",
    ),
    rule(
        "no-instance",
        "capacity",
        "there was nowhere to run the request: scaling or quota",
        r"no available instance",
        r"FailedScheduling",
        r"insufficient (?:cpu|memory|pods)",
        r"\d+/\d+ nodes are available",
        r"rate exceeded\.?$",
        r"quota exceeded",
        r"resource_exhausted",
        r"resource exhausted",
        r"maximum number of (?:running )?(?:container )?instances",
        r"max[-_ ]instances",
        r"insufficient capacity",
        r"out of capacity",
    ),
    rule(
        "stream-cut",
        "stream_reset",
        "a response was cut while it streamed; a stack trace often comes with it and means nothing more",
        r"truncated response body",
        r"without sending complete message body",
        r"incomplete chunked read",
        r"IncompleteRead",
        r"ChunkedEncodingError",
        r"response ended prematurely",
        r"premature (?:close|end of)",
        r"ERR_INCOMPLETE_CHUNKED",
        r"ERR_STREAM_PREMATURE_CLOSE",
        r"RST_STREAM",
        r"stream (?:id \d+ )?(?:was |has been )?(?:reset|closed|cancell?ed|terminated)",
        r"\bGOAWAY\b",
        r"http2: stream closed",
        r"INTERNAL_ERROR; received from peer",
        r"client disconnected",
        r"ClientDisconnect",
        r"BrokenPipeError",
        r"broken pipe",
        r"context cancell?ed",
        r"socket hang up",
    ),
    rule(
        "upstream-gone",
        "upstream_reset",
        "a proxy lost the connection behind it: keep-alive or a pod going away",
        r"upstream connect error",
        r"disconnect/reset before headers",
        r"reset reason:",
        r"upstream prematurely closed",
        r"while reading response header from upstream",
        r"no healthy upstream",
        r"no live upstreams",
        r"while connecting to upstream",
        r"http response was malformed or connection to the instance had an error",
        r"connection reset by peer",
        r"\bECONNRESET\b",
    ),
    rule(
        "never-began",
        CRASH,
        "the program ended before it served anything",
        r"load_wsgi",
        r"worker failed to boot",
        r"failed to find attribute",
        r"failed to load (?:the )?application",
        r"error loading asgi app",
        r"CrashLoopBackOff",
        r"back-off restarting failed",
        r"container called exit\(\s*[1-9]",
        r"exited with (?:status|code)? ?:?\(?[1-9]\d*",
        r"exec format error",
        r"exec: .{1,80}(?:no such file|not found|permission denied)",
        r"(?:exec|container process) .{0,80}: (?:no such file or directory|permission denied)",
        r"executable file not found",
        r"ModuleNotFoundError",
        r"cannot find module",
        r"MODULE_NOT_FOUND",
        r"ClassNotFoundException",
        r"NoClassDefFoundError",
        r"error while loading shared libraries",
        r"application failed to start",
        r"application startup failed",
        r"goroutine 1 \[running\]:\s*main\.",
        r"address already in use",
        r"\bEADDRINUSE\b",
        r"terminated:? application failed to start",
        r"cannot open shared object file",
    ),
    rule(
        "schema-behind",
        MIGRATION_RACE,
        "code and schema disagree: for a moment while migrations run, or for good; time tells",
        r"(?:column|relation|table) \S+ does not exist",
        r"UndefinedColumn",
        r"UndefinedTable",
        r"no such (?:column|table)",
        r"unknown column",
        r"unknown table",
        r"invalid column name",
        r"table '?\S+'? doesn't exist",
        r"invalid object name",
    ),
    rule(
        "panic-in-request",
        REGRESSION,
        "the server's own code failed on a request, and the runtime says where",
        r"panic serving",
        r"panic recovered",
        r"recovered from panic",
        r"nil pointer dereference",
        r"NullPointerException",
        r"NullReferenceException",
        r"SIGSEGV",
    ),
    rule(
        "exception-in-request",
        REGRESSION,
        "an unhandled exception, and the request that met it: a stack trace alone is not enough",
        r"exception on /\S* \[[A-Z]+\]",
        r"(?:internal server error|unhandled (?:exception|error)|uncaught exception).{0,2000}?^\s*(?:traceback|at \S+|File \")",
        r"exception in asgi application",
        r"servlet\.service\(\) .* threw exception",
        r"(?:error|failed) (?:handling|processing) request.{0,2000}?(?:traceback|\n\s+at )",
        r"\b(?:GET|POST|PUT|PATCH|DELETE) /\S* .{0,60}\b500\b.{0,2000}?(?:traceback|\n\s+at |(?:Error|Exception): )",
        r"ActionView::Template::Error",
        r"ActionController::.{0,60}Error",
        r"Completed 500 Internal Server Error.{0,2000}?Error",
    ),
    rule(
        "mistake-in-code",
        REGRESSION,
        "an exception that only wrong code raises, at the end of a stack trace",
        r"(?:traceback \(most recent call last\)|^\s+at ).{0,8000}?^(?:\w+\.)*(?:TypeError|AttributeError|NameError)\b",
        r"(?:traceback \(most recent call last\)).{0,8000}?^(?:UnboundLocal|Assertion|Key|Index|ZeroDivision)Error\b",
        r"^(?:uncaught )?(?:TypeError|ReferenceError|RangeError): .{0,400}?\n\s+at ",
        r"NoMethodError.{0,80}undefined method",
        r"undefined method `?\S+'? for nil",
        r"TypeError: cannot read propert(?:y|ies) (?:'\w+' )?of (?:undefined|null)",
    ),
    rule(
        "not-ready-in-time",
        STARTUP,
        "a new instance did not answer its probe: slow, misconfigured or broken, which this line cannot tell",
        r"(?:startup|readiness|liveness)(?: (?:tcp|http|grpc))? ?probe.{0,60}(?:failed|timed out|errored)",
        r"startup probes? (?:failed|timed out)",
        r"failed to start and (?:then )?listen",
        r"is not ready and cannot serve traffic",
        r"container failed to become healthy",
        r"failed to become (?:ready|healthy)",
        r"HealthCheckContainerError",
        r"HEALTH_CHECK_CONTAINER_ERROR",
        r"the instance was not started",
        r"progress ?deadline ?exceeded",
        r"exceeded its progress deadline",
        r"(?:health[- ]?check|healthcheck).{0,60}(?:failed|failing|timed out|unhealthy)",
        r"\bunhealthy\b.{0,60}probe",
        r"container is unhealthy",
        r"failed (?:elb|container) health checks",
        r"did not (?:become ready|pass the health|start listening|respond to the health)",
        r"timed out waiting for .{0,60}(?:ready|start|healthy)",
    ),
)

# What a class may be of: a label that nothing is ever given would match nothing.
LABELS: tuple[str, ...] = tuple(sorted({each.label for each in RULES} | {COLD_IMAGE, UNEXPLAINED}))

# What a cause brings with it: seeing both is one story, not two.
EXPLAINS: dict[str, frozenset[str]] = {
    "image_pull_error": frozenset({STARTUP, COLD_IMAGE}),
    "oom": frozenset({STARTUP, CRASH, "upstream_reset", "stream_reset", "worker_timeout"}),
    "disk_full": frozenset({STARTUP, CRASH}),
    "dns_failure": frozenset({STARTUP, CRASH}),
    "tls_expiry": frozenset({STARTUP, CRASH}),
    "pool_exhausted": frozenset({"worker_timeout", "upstream_reset"}),
    CRASH: frozenset({STARTUP, "upstream_reset", "capacity"}),
    COLD_IMAGE: frozenset({STARTUP, "upstream_reset", "capacity"}),
    "capacity": frozenset({"upstream_reset"}),
    "worker_timeout": frozenset({"upstream_reset", "stream_reset"}),
    STARTUP: frozenset({"upstream_reset"}),
}

# A program that errs on its own account: with one of these, a slow start is not a slow image.
APPLICATION_ERROR = re.compile(
    r"Traceback \(most recent call last\)|^\s+at [\w$.<>]+ ?\(|^panic: |goroutine \d+ \["
    r"|\b(?:\w+\.)*\w*(?:Error|Exception): |\bFATAL\b|exited with|exit\([1-9]",
    re.MULTILINE,
)
# Levels below a warning say themselves that nothing is wrong.
HARMLESS = re.compile(r"^(?:[^\w]|[\d:.,TZ+-]+\s|\S{0,40}\s){0,6}?\[?\b(?:INFO|DEBUG|TRACE|NOTICE)\b\]?", re.MULTILINE)
PULLING = re.compile(r"reason: 'Pulling'|\bPulling\b.{0,20}\bimage\b|\bpulling image\b", re.IGNORECASE)
PULLED = re.compile(r"successfully pulled image", re.IGNORECASE)
PULLED_IN = re.compile(r"successfully pulled image .{0,200}? in (?:(\d+)h)?(?:(\d+)m(?!s))?(?:([\d.]+)s)?", re.IGNORECASE)
ERROR_LEVEL = re.compile(
    r"\b(?:ERROR|CRITICAL|FATAL|EMERGENCY|ALERT|PANIC)\b|\"\s5\d\d\s|\bstatus[=:\" ]+5\d\d\b|\bHTTP/\d\S* 5\d\d\b"
)
