"""The whole client in one file, standard library only, Python >= 3.8: what is pushed into a cold box.

It promises that a tell (write, action, outcome, ...) keeps one id however often it is sent, that a call ends by its deadline, and
that an outage is said: asks raise `unreachable`, tells go to the spool if there is one and are delivered later, in order, once.
It refuses to follow redirects, to take another answer for herdbook's, and to merge variables that could run code.
"""

# fmt: off
from __future__ import annotations

import json
import os
import sys
import time

TYPE_CHECKING = False  # `typing` costs a third of an interpreter's start; type checkers know this name
if TYPE_CHECKING:
    import socket
    from collections.abc import Callable, Container, Iterable, Mapping, Sequence
    from typing import IO, Any, Protocol

    Answer = dict[str, Any]
    Answers = list[Answer]  # `list` is a verb of the client
    Text = str | None
    Count = int | None
    class Transport(Protocol):  # the in-process service, or HTTP; its errors have code, message, status, retry and details
        def call(self, verb: str, fields: Answer) -> Answer: ...
URL_DEFAULT = "unix:/run/herdbook.sock"
TIMEOUT_SECONDS = 10.0  # the whole of a call: connecting, retries and pauses included
AWAY_SECONDS = 3.0  # after a failure, tells go straight to the spool for this long instead of waiting one by one
TRIES_MAX, PAUSE_SECONDS, PAUSE_SECONDS_MAX = 6, 0.05, 1.0
LINE_BYTES_MAX, HEADERS_MAX, ANSWER_BYTES_MAX = 64 * 1024, 200, 64 * 1024 * 1024
ID_FIELD = dict.fromkeys(("write", "record_action", "record_context", "attempt", "revise_outcome"), "request_id")
ID_FIELD["commit_outcome"] = "ref"
SPOOLED = ("start_session", "write", "record_action", "record_context", "attempt", "commit_outcome", "end_session")
BORN = ("session", "agent", "task", "entity")
TRACKED = ("brief", "read", "search", *SPOOLED[1:-1])  # they belong to a session, and begin it
# Variables that make the next process run, load or trust something else; `*` is any beginning or ending.
RISKY = (
    "PATH ENV IFS HOME SHELL SHELLOPTS BASH* PS4 PROMPT_COMMAND EDITOR VISUAL PAGER BROWSER LD_* DYLD_* GCONV_PATH HOSTALIASES"
    " PYTHONPATH PYTHONSTARTUP PYTHONHOME PYTHONINSPECT PYTHONBREAKPOINT PYTHONEXECUTABLE PYTHONUSERBASE PYTHONWARNINGS PYTEST_*"
    " NODE_OPTIONS NODE_PATH NODE_EXTRA_CA_CERTS NODE_TLS_REJECT_UNAUTHORIZED NPM_CONFIG_* PERL* RUBY* CLASSPATH *JAVA_OPTIONS"
    " JAVA_TOOL_OPTIONS GIT_* PIP_* UV_* MAKEF* SSL_CERT_* *_CA_BUNDLE *_PROXY HERDBOOK_* *_OPTS *_WRAPPER *FLAGS CC CXX LD AR"
    " CARGO_* RUSTUP_* DOTNET_* COR_* OPENSSL_* GLIBC_* MALLOC_* COVERAGE_* ZDOTDIR LUA_* PHP* DOCKER_* KUBECONFIG VIRTUAL_ENV"
    " BUNDLE_* GEM_* XDG_* TAR_OPTIONS LESS* INPUTRC AWS_* SSH_* GPG* CONDA_* TMPDIR GOPATH GOROOT GOENV GOPROXY"
)

class HerdbookError(Exception):
    """A refusal or an outage: `code` is stable, `message` says what to do, `retry` whether the same call can help later."""
    def __init__(self, code: str, message: str, status: int = 400, *, retry: bool = False, details: Answer | None = None) -> None:
        super().__init__(message)
        self.code, self.message, self.status, self.retry, self.details = code, message, status, retry, details or {}
        self.away = retry or code == "unreachable"
        self.again_seconds: float | None = None  # None: another try within this call cannot help

def new_id(prefix: str) -> str: return f"{prefix}_{os.urandom(10).hex()}"
def picked(fields: Mapping[str, Any], *names: str) -> Answer: return {n: fields[n] for n in names if fields.get(n) is not None}

def encode(fields: Answer) -> bytes:
    """JSON, or the typed refusal the server would give: `json` alone would send NaN and turn the object key 1 into "1"."""
    try:
        if not has_text_keys(fields):
            raise TypeError("an object key is not text")
        return json.dumps(fields, allow_nan=False).encode("ascii")
    except RecursionError:
        raise HerdbookError("too_large", "the value is nested too deeply: send a flatter one", 413) from None
    except (TypeError, ValueError) as problem:
        raise HerdbookError("invalid_value", f"this is not JSON the record can keep: {problem}") from None
def has_text_keys(value: object) -> bool:
    if isinstance(value, dict):
        return all(isinstance(name, str) and has_text_keys(member) for name, member in value.items())
    return not isinstance(value, (list, tuple)) or all(map(has_text_keys, value))

def split_url(url: str) -> tuple[str, Any, str]:
    """(scheme, socket path or (host, port), path prefix); what could smuggle a header or a password is refused."""
    import re  # json has loaded it already
    if unix := re.fullmatch(r"unix:(?://)?([^:?#\x00-\x1f]+)(?::(/[!\"$->@-~]*))?", url):
        return "unix", unix[1], (unix[2] or "").rstrip("/")
    if http := re.fullmatch(r"(https?)://(?:\[([\da-fA-F:.]+)\]|([A-Za-z0-9._-]+))(?::([0-9]{1,5}))?(/[!\"$->@-~]*)?", url):
        return http[1], (http[2] or http[3], int(http[4] or (443 if http[1] == "https" else 80))), (http[5] or "").rstrip("/")
    raise HerdbookError("invalid_request", f"{url[url.rfind('@') + 1 :]!r} is no address: http(s)://host:port/prefix, unix:/path")

def receive(sock: socket.socket, until: float) -> tuple[int, dict[str, str], bytes, bool]:
    """One HTTP/1.1 answer: (status, headers, body, whether the connection stays good). http.client doubles the start-up time."""
    held = bytearray()
    def take(size: int = -1) -> bytes:  # a line, unless it is told how much
        while (end := size if size >= 0 else held.find(b"\n") + 1 or LINE_BYTES_MAX) > len(held):
            sock.settimeout(max(0.001, until - time.monotonic()))
            piece = sock.recv(65536) if end <= ANSWER_BYTES_MAX else b""
            if not piece or time.monotonic() > until:
                raise ConnectionError("timed out" if piece else "it closed the connection without a whole answer")
            held.extend(piece)
        taken = bytes(held[:end])
        del held[:end]
        return taken

    status, version, headers, body = 100, b"", {"": ""}, bytearray()
    while status < 200:  # interim answers are skipped
        version, code = take().split(None, 2)[:2]
        status, headers = int(code), {}
        while len(headers) < HEADERS_MAX and (line := take().decode("latin-1").strip()):
            headers[line.partition(":")[0].lower()] = line.partition(":")[2].strip()
    if headers.get("transfer-encoding", "").lower() == "chunked":
        while size := int(take().partition(b";")[0], 16):
            body += take(size + 2)[:-2]
        while take().strip():  # trailers
            pass
    elif status not in (204, 304):
        body += take(int(headers["content-length"]))
    keep = version == b"HTTP/1.1" and headers.get("connection", "").lower() != "close" and not held
    return status, headers, bytes(body), keep

class HttpTransport:
    """`POST {prefix}/v1/{verb}` through TCP, TLS or a unix socket. Threads may share one."""
    def __init__(self, url: str, key: str | None = None, timeout: float = TIMEOUT_SECONDS) -> None:
        self.url, self.timeout = url, timeout
        self.scheme, self.address, self.prefix = split_url(url)
        if key and not (key.isascii() and key.isprintable() and " " not in key):
            raise HerdbookError("invalid_request", "the key holds characters no key has: copy it again")
        host = "localhost" if self.scheme == "unix" else ("[%s]:%d" if ":" in self.address[0] else "%s:%d") % self.address
        self.head = f"Host: {host}\r\nContent-Type: application/json\r\n" + (f"Authorization: Bearer {key}\r\n" if key else "")
        self.idle: dict[int, socket.socket] = {}  # by process, because of forks; taken and put in one step, because of threads
    def call(self, verb: str, fields: Answer, deadline_seconds: float | None = None) -> Answer:
        """One verb, with retries inside the deadline. A tell without an id, and an attest, are never sent twice."""
        until = time.monotonic() + (self.timeout if deadline_seconds is None else deadline_seconds)
        again = verb != "attest" and (verb not in ID_FIELD or ID_FIELD[verb] in fields)
        body, pause, tries = encode(fields), PAUSE_SECONDS, 1
        while True:
            answer = self.attempt(verb, body, until, again=again)
            if isinstance(answer, dict):
                return answer
            wait = max(answer.again_seconds or 0.0, pause * (0.5 + os.urandom(1)[0] / 512))
            if answer.again_seconds is None or tries == TRIES_MAX or time.monotonic() + wait >= until:
                raise answer
            time.sleep(wait)
            pause, tries = min(pause * 2, PAUSE_SECONDS_MAX), tries + 1
    def attempt(self, verb: str, body: bytes, until: float, *, again: bool) -> Answer | HerdbookError:
        sent, whole, sock = False, True, self.idle.pop(os.getpid(), None) if again else None
        reused = sock is not None
        head = f"POST {self.prefix}/v1/{verb} HTTP/1.1\r\n{self.head}Content-Length: {len(body)}\r\n\r\n"
        try:
            sock = sock or self.opened(until)
            sock.settimeout(max(0.001, until - time.monotonic()))
            if self.scheme == "unix" and not reused:
                sock.connect(self.address)
            sent = True
            try:
                sock.sendall(head.encode("ascii") + body)
            except ConnectionError:
                whole = False  # it may have answered before it had read everything: that this is too large
            status, headers, data, keep = receive(sock, until)
        except (OSError, ValueError, KeyError) as problem:
            if sock:
                sock.close()
            if reused and time.monotonic() < until:  # most likely closed by the server meanwhile: at once, on a new connection
                return self.attempt(verb, body, until, again=again)
            why = problem.strerror or str(problem) if isinstance(problem, OSError) else "it does not speak HTTP/1.1"
            again = again or not sent
            advice = "check HERDBOOK_URL and that it runs" if again else "it may have been carried out: look before you repeat it"
            error = HerdbookError("unreachable", f"no answer from {self.url}: {why}; {advice}", 503, retry=again)
            error.again_seconds = 0.0 if again else None
            return error
        if not (keep and whole) or self.idle.setdefault(os.getpid(), sock) is not sock:
            sock.close()
        return self.judge(status, headers, data, again=again)
    def opened(self, until: float) -> socket.socket:
        import socket
        if self.scheme == "unix":
            return socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)  # to be connected by whoever can close it
        sock = socket.create_connection(self.address, max(0.001, until - time.monotonic()) / 2)  # a host may have two addresses
        if self.scheme == "http":
            return sock
        import ssl
        return ssl.create_default_context().wrap_socket(sock, server_hostname=self.address[0])
    def judge(self, status: int, headers: Mapping[str, str], data: bytes, *, again: bool) -> Answer | HerdbookError:
        try:
            answer: Answer = dict(json.loads(data))
            if 200 <= status < 300:
                return answer
            error = dict(answer["error"])
            failed = HerdbookError(error.pop("code"), error.pop("message"), status, retry=error.pop("retry"), details=error)
        except (ValueError, TypeError, KeyError, RecursionError):
            message = f"{self.url} answered {status}, but not as herdbook does: check the address and its prefix"
            failed = HerdbookError("unreachable", message, status, retry=status == 429 or not 400 <= status < 500)
        if status in (429, 503) or (status in (502, 504) and again):
            failed.again_seconds = float(headers["retry-after"]) if headers.get("retry-after", "").isdigit() else 0.0
        return failed
    def close(self) -> None:
        while self.idle:
            self.idle.popitem()[1].close()

class Spool:
    """Tells that could not be delivered: JSON lines with their ids, `#` before a settled one. Processes may share it."""
    def __init__(self, path: str) -> None: self.path = os.path.abspath(os.path.expanduser(path))
    def pending(self) -> bool: return os.path.exists(self.path) and os.path.getsize(self.path) > 0
    def locked(self, suffix: str = "", flags: int = 0) -> IO[bytes]:
        """The file, open and ours until it is closed; nobody keeps it while talking to a server."""
        import fcntl
        file = os.fdopen(os.open(self.path + suffix, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | flags, 0o600), "r+b", buffering=0)
        fcntl.flock(file, fcntl.LOCK_EX)
        return file
    def append(self, lines: Iterable[Answer], suffix: str = "") -> None:
        """Durable when it returns. What a crash tore before stays a line of its own."""
        data = b"".join(encode(line) + b"\n" for line in lines)
        with self.locked(suffix, os.O_APPEND) as file:
            end = file.seek(0, os.SEEK_END)
            data = b"\n" + data if end and os.pread(file.fileno(), 1, end - 1) != b"\n" else data
            while data:
                data = data[file.write(data) :]
            os.fsync(file.fileno())
    def deliver(self, send: Callable[[str, Answer], object], until: float) -> Answer:
        """Send the lines in order until done, out of time or `send` fails; refused ones are set aside in `<spool>.refused`."""
        place, delivered, left, refused = 0, 0, 0, []  # type: int, int, int, Answers
        with self.locked() as file:
            lines = file.read().splitlines(keepends=True)
        for line in lines:
            if line[:1] != b"#" and time.monotonic() >= until:
                left += 1
            elif line[:1] != b"#":
                problem = self.refusal(line, send)
                self.settle(place, line, problem)
                delivered, refused = delivered + (not problem), refused + ([problem] if problem else [])
            place += len(line)
        return {"delivered": delivered, "refused": refused, "left": left or int(self.pending())}
    def refusal(self, line: bytes, send: Callable[[str, Answer], object]) -> Answer | None:
        """Send one line: None when it is delivered, the line with its error when the record refused it."""
        told: Answer = {}
        try:
            told = json.loads(line)
            send(SPOOLED[SPOOLED.index(told["verb"])], told["fields"])  # no client spools another verb
            return None
        except (ValueError, KeyError, TypeError, RecursionError):
            return {"line": line.decode("utf-8", "replace"), "error": {"code": "torn", "message": "no client wrote this line"}}
        except HerdbookError as error:
            if error.away or error.status >= 500 or error.status == 401:  # not this line's fault
                raise
            return {**told, "error": {"code": error.code, "message": error.message, **error.details}}
    def settle(self, place: int, line: bytes, problem: Answer | None) -> None:
        with self.locked() as file:
            if os.pread(file.fileno(), len(line), place) == line:  # else another process has settled it meanwhile
                if problem:
                    self.append([problem], ".refused")
                os.pwrite(file.fileno(), b"#", place)
                if file.seek(0, os.SEEK_END) == place + len(line):
                    file.truncate(0)

class Client:
    """The verbs of the record. Its session begins with the first call that belongs to one; `session=""` keeps out of sessions."""
    def __init__(self, transport: Transport | None = None, *, url: Text = None, agent: Text = None, task: Text = None,
                 entity: Text = None, session: Text = None, key: Text = None, spool: Text = None,
                 timeout_seconds: float = TIMEOUT_SECONDS, tracked: bool = True) -> None:
        if transport is None and url is None:  # the environment's key goes to the environment's address only
            url, key = os.environ.get("HERDBOOK_URL") or URL_DEFAULT, key or os.environ.get("HERDBOOK_KEY")
        self.transport = transport or HttpTransport(url or "", key, timeout_seconds)
        self.agent, self.task, self.entity = agent or os.environ.get("HERDBOOK_AGENT") or "agent", task, entity
        self.session = (new_id("s") if session is None else session) if tracked else ""
        spool = os.environ.get("HERDBOOK_SPOOL") if spool is None else spool
        self.spool = Spool(spool) if spool and isinstance(self.transport, HttpTransport) else None
        self.refused: Answers = []  # lines of the spool the record refused; the file `<spool>.refused` keeps them
        self.timeout_seconds, self.away_until = timeout_seconds, 0.0
        self.begun, self.ours, self.introduced = False, session is None, bool(agent or os.environ.get("HERDBOOK_AGENT"))
    def __enter__(self) -> Client: return self
    def __exit__(self, *problem: object) -> None:
        try:
            self.close()
        except Exception:  # because the error that ended the run must not be replaced by this one
            if problem[0] is None:
                raise
    def close(self) -> None:
        """End the session this client began (one it was given stays open) and let go of the transport."""
        if self.begun and self.ours:
            self.end_session()
        getattr(self.transport, "close", lambda: None)()
    def call(self, verb: str, fields: Answer, deadline_seconds: float | None = None) -> Answer:
        """Any verb by name; what is None is not sent. Ids, session and spool are seen to here."""
        until = time.monotonic() + (self.timeout_seconds if deadline_seconds is None else deadline_seconds)
        fields = {name: field for name, field in fields.items() if name != "self" and (field is not None or name == "value")}
        if verb in ID_FIELD:
            fields.setdefault(ID_FIELD[verb], new_id("o" if verb == "commit_outcome" else "r"))
        if "used" in fields:
            fields["used"] = [one if isinstance(one, str) else picked(one, "entity", "key", "version") for one in fields["used"]]
        calls = [(verb, fields)]
        if verb in TRACKED and self.session:
            fields["session"] = self.session
            self.entity = self.entity or fields.get("entity")
            calls = calls if self.begun else [("start_session", picked(vars(self), *BORN)), *calls]
        try:
            try:
                self.catch_up(until, tell=verb in SPOOLED)
                if len(calls) > 1:
                    self.begun = bool(self.send(*calls[0], until))
                    del calls[0]
                return self.send(verb, fields, until)
            except HerdbookError as error:
                if not (self.spool and verb in SPOOLED and error.away):
                    raise
                self.spool.append({"verb": verb, "fields": fields} for verb, fields in calls)
                self.begun, self.away_until = self.begun or len(calls) > 1, time.monotonic() + AWAY_SECONDS
                return {"spooled": True, "because": error.message, **picked(fields, "session", "request_id", "ref")}
        except OSError as problem:
            raise HerdbookError("unreachable", f"the spool cannot be used: {problem}", 503) from problem
    def send(self, verb: str, fields: Answer, until: float) -> Answer:
        deadline = (max(0.0, until - time.monotonic()),) if isinstance(self.transport, HttpTransport) else ()
        try:
            return self.transport.call(verb, fields, *deadline)
        except Exception as problem:  # because each transport has its own; who does not say its agent may join another's run
            if verb != "start_session" or self.ours or self.introduced or getattr(problem, "code", "") != "request_conflict":
                raise
            return {"session": self.session, "existed": True}
    def catch_up(self, until: float, *, tell: bool) -> None:
        """The spool first, in half the time. A tell must not overtake what is left of it; an ask may."""
        try:
            if (tell and time.monotonic() < self.away_until) or self.flush((until - time.monotonic()) / 2)["left"]:
                raise HerdbookError("unreachable", "what was told before is still in the spool", 503, retry=True)
        except HerdbookError:
            if tell:
                raise
    def flush(self, timeout_seconds: float | None = None) -> Answer:
        """Deliver the spool: {delivered, refused, left}. Raises `unreachable` while the server is away; nothing is lost by it."""
        until = time.monotonic() + (self.timeout_seconds if timeout_seconds is None else timeout_seconds)
        if not self.spool or not self.spool.pending():
            return {"delivered": 0, "refused": [], "left": 0}
        report = self.spool.deliver(lambda verb, fields: self.send(verb, fields, until), until)
        self.refused += report["refused"]
        return report
    def start_session(self, *, session: str = "", agent: str = "", task: Text = None, entity: Text = None) -> Answer:
        self.session, self.agent = session or self.session or new_id("s"), agent or self.agent
        self.task, self.entity = task or self.task, entity or self.entity
        self.begun = bool(answer := self.call("start_session", picked(vars(self), *BORN)))
        return answer
    def end_session(self) -> Answer:
        self.ours = False
        return self.call("end_session", {"session": self.session})
    def brief(self, entity: str, *, task: Text = None, tokens: Count = None, names: bool = False,
              deadline_seconds: float | None = None) -> Answer:
        """What is known; `unreachable` when the record cannot say, never an empty briefing."""
        self.task = self.task or task
        return self.call("brief", {"entity": entity, "task": task, "tokens": tokens, "names": names or None}, deadline_seconds)
    def read(self, entity: str, key: str, *, version: Count = None) -> Answer: return self.call("read", locals())
    def search(self, query: str, *, entity: Text = None, limit: Count = None) -> Answer: return self.call("search", locals())
    def write(self, entity: str, key: Text = None, value: Any = None, *, approach: Text = None, why: Text = None,
              kind: str = "fact", worked: bool | None = None, confidence: float | None = None, applies_when: Text = None,
              expires_at: Text = None, links: Any = None, request_id: Text = None, if_version: Count = None) -> Answer:
        """The next version of an entry, nothing is overwritten; with `if_version` only on top of that one, 0: of none."""
        return self.call("write", locals())
    def dead_end(self, entity: str, key: Text = None, value: Any = None, *, why: str, **more: Any) -> Answer:
        """What does not work: a key and a value, or `approach="what was tried"` alone; `more` is what `write` takes."""
        return self.write(entity, key, value, **{"confidence": 0.8, **more}, why=why, kind="experience", worked=False)
    def action(self, tool: str, args: Any = None, result: Any = None, *, ok: bool | None = None,
               request_id: Text = None) -> Answer:
        """One tool call of the run, as it happened."""
        return self.call("record_action", locals())
    def context(self, name: str, text: str, *, request_id: Text = None) -> Answer: return self.call("record_context", locals())
    record_action, record_context = action, context  # by the verbs' own names too
    def attempt(self, result: str, used: Iterable[Any] = (), note: Text = None, *, request_id: Text = None) -> Answer:
        """How one try went, "success" or "failure": a failed one charges what it used, even when the run ends well."""
        return self.call("attempt", locals())
    def commit_outcome(self, *said: str, ref: Text = None, type: Text = None, task_input: Text = None,
                       used: Iterable[Any] | None = None, observed: Sequence[str] | None = None, artifacts: Any = None,
                       verified_by: Text = None) -> Answer:
        """What happened: `(type)` or `(ref, type)`. `used` takes keys, entries of a briefing, or {entity, key, version}."""
        words = [word for word in (ref, *said, type) if word is not None]
        if len(words) > 2 or not (said or type):
            raise TypeError("an outcome has a type, or a ref and a type: commit_outcome('build-17', 'success')")
        named = {"ref": words[0] if words[1:] else None, "type": words[-1], "task_input": task_input or self.task, "used": used}
        return self.call("commit_outcome", {**named, "observed": observed, "artifacts": artifacts, "verified_by": verified_by})
    def attest(self, ref: str, *, exit_code: Count = None, result: Text = None, note: Text = None, session: Text = None,
               box: Text = None) -> Answer: return self.call("attest", locals())
    def revise_outcome(self, ref: str, type: str, *, why: Text = None, request_id: Text = None) -> Answer:
        """It was something else after all: appended, and trust becomes what it would have been."""
        return self.call("revise_outcome", locals())
    def history(self, entity: str, key: str) -> Answer: return self.call("history", locals())
    def diff(self, entity: str, key: str, old: Count = None, new: Count = None) -> Answer: return self.call("diff", locals())
    def list(self, entity: Text = None, *, after: Text = None, limit: Count = None) -> Answer: return self.call("list", locals())
    def trace(self, ref: str) -> Answer: return self.call("trace", locals())
    def why(self, entity: str, key: str) -> Answer: return self.call("why", locals())
    def box_open(self, **fields: Any) -> Answer: return self.call("box_open", fields)
    def box_beat(self, **fields: Any) -> Answer: return self.call("box_beat", fields)
    def box_close(self, **fields: Any) -> Answer: return self.call("box_close", fields)
    def box_list(self, **fields: Any) -> Answer: return self.call("box_list", fields)
    def status(self) -> Answer: return self.call("status", {})

def environment(briefing: Mapping[str, Any], *, allow: Container[str] = ()) -> tuple[dict[str, str], Answers]:
    """(the variables to set, what was left out and why): `value["env"]` of the acting set, entries ranked earlier first."""
    merged, left_out = {}, []  # type: dict[str, str], Answers
    for block in ("entries", "contested", "dead_ends"):
        for entry in briefing.get(block) or ():
            found = entry["value"].get("env", {}) if isinstance(entry["value"], dict) else {}
            for name, text in found.items() if isinstance(found, dict) else [("", found)]:
                reason = objection(block, entry, name, text, allow, said=merged.get(name, text))
                if reason:
                    left_out.append({"entity": entry["entity"], "key": entry["key"], "name": name, "reason": reason})
                else:
                    merged[name] = text
    return merged, left_out
def objection(block: str, entry: Mapping[str, Any], name: str, text: object, allow: Container[str], *, said: object) -> str:
    import fnmatch
    risky = any(fnmatch.fnmatchcase(name.upper(), pattern) for pattern in RISKY.split())
    reasons = (
        (block == "dead_ends" or entry.get("worked") is False, "dead end"),
        (block == "contested" or entry.get("acting") is not True, str(entry.get("standing") or "unproven")),
        (not isinstance(text, str), "not a string"),
        (not (name.isidentifier() and name.isascii()) or "\0" in str(text), "not a variable a process can have"),
        (risky and name not in allow, "decides what other programs run or trust: allow it by name"),
        (said != text, "an entry ranked before it says otherwise"),
    )
    return next((reason for applies, reason in reasons if applies), "")
COMMANDS = {  # the client's method, what it is for, its arguments: `=json` a type, `*` several, `!` required, `?` not
    "brief": ("brief", "what is known about an entity path, best first", "entity --task --tokens=int --deadline-seconds=float"),
    "read": ("read", "one entry", "entity key --version=int"),
    "search": ("search", "entries whose text matches", "query --entity --limit=int"),
    "write": ("write", "the next version of an entry", "entity key value=json --why --kind --confidence=float --applies-when"),
    "dead-end": ("dead_end", "what does not work", "entity key? value?=json --approach --why! --confidence=float --applies-when"),
    "action": ("action", "one tool call of the run", "tool --args=json --result=json --ok=json"),
    "attempt": ("attempt", "how one try went, success or failure", "result --used* --note"),
    "outcome": ("commit_outcome", "what happened", "type --ref --task-input --used* --observed* --artifacts=json"),
    "flush": ("flush", "deliver the spool", "--timeout-seconds=float"),
}
HELP = {  # of the arguments, wherever they stand
    "entity": "a path such as acme/checkout/tests", "key": "the entry's key", "value": "JSON, or else text; - reads it",
    "query": "what to look for", "tool": "what was called", "args": "what it was called with, as JSON", "note": "what was seen",
    "result": "success or failure", "--result": "what it gave back, as JSON", "ok": "true or false", "task": "what is to be done",
    "type": "success, minor_failure, failure or critical_failure", "ref": "a name for it: sent twice it counts once",
    "task-input": "what the run was asked to do", "tokens": "the budget of the briefing", "version": "this one, not the current",
    "limit": "at most this many", "kind": "fact, belief or experience", "confidence": "from 0 to 1", "why": "why it is so",
    "applies-when": "when it counts", "approach": "what was tried, instead of key and value", "used": "keys this run was served",
    "observed": "what occurred", "artifacts": "what it left (JSON)", "deadline-seconds": "at most (2)", "timeout-seconds": "(10)",
}
EPILOG = f"""\
environment:
  HERDBOOK_URL      where the record answers, as http(s)://HOST[:PORT] or unix:PATH (default {URL_DEFAULT})
  HERDBOOK_KEY      the key that its server asks for
  HERDBOOK_AGENT    who is asking or writing (default agent)
  HERDBOOK_SESSION  the run that commands without --session NAME belong to (default: each to one of its own)
  HERDBOOK_SPOOL    the file that keeps what is told while the record is away
example: python3 client.py brief acme/ci --task "make the tests pass" --session monday
exit codes: 0 done, 1 refused or not found, 2 not understood, 3 unavailable"""

def json_or_text(text: str) -> Any:
    """JSON where it reads as JSON, else the text; `-` is standard input. An object key given twice is refused."""
    def unique(pairs: Sequence[tuple[str, Any]]) -> Answer:
        if len(dict(pairs)) < len(pairs):
            raise HerdbookError("invalid_value", "an object key appears twice: send it once")
        return dict(pairs)
    try:
        return json.loads(sys.stdin.read() if text == "-" else text, object_pairs_hook=unique)
    except json.JSONDecodeError as problem:
        return problem.doc
    except RecursionError:
        raise HerdbookError("too_large", "the value is nested too deeply: send a flatter one", 413) from None
READERS: Answer = {"json": json_or_text, "int": int, "float": float, "": str}
def run(argv: Sequence[str] | None) -> int:
    import argparse
    look: Answer = {"epilog": EPILOG, "formatter_class": argparse.RawDescriptionHelpFormatter}
    parser = argparse.ArgumentParser(prog="client.py", description="The record, from inside a box.", **look)
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", required=True)
    first = list(sys.argv[1:2] if argv is None else argv[:1])
    for name in first if first and first[0] in COMMANDS else COMMANDS:  # the others would only cost time
        _, purpose, arguments = COMMANDS[name]
        command = commands.add_parser(name, help=purpose, description=purpose, **look)
        command.add_argument("--json", action="store_true", dest="as_json", help="print the whole answer as one line of JSON")
        for word, _, kind in (argument.partition("=") for argument in arguments.split()):
            how: Answer = {"required": True} if "!" in word else {"nargs": word[-1].replace("*", "+")} if word[-1] in "*?" else {}
            how["help"] = HELP.get(word) or HELP[word.strip("-*!?")]
            command.add_argument(word.strip("*!?"), type=READERS[kind], default=argparse.SUPPRESS, **how)
        command.add_argument("--session", metavar="NAME", help="the run this belongs to (HERDBOOK_SESSION; a fresh one)")
    asked = vars(parser.parse_args(argv))
    method, as_json = COMMANDS[asked.pop("command")][0], asked.pop("as_json")
    home = os.environ.get("XDG_STATE_HOME") or os.path.expanduser("~")
    server = "".join(letter if letter.isalnum() else "-" for letter in os.environ.get("HERDBOOK_URL") or URL_DEFAULT)[-100:]
    spool = os.path.join(home if os.access(home, os.W_OK) else f"{os.sep}tmp", f".herdbook-spool-{os.getuid()}-{server}")
    session = asked.pop("session") or os.environ.get("HERDBOOK_SESSION") or None
    client = Client(session=session, spool=os.environ.get("HERDBOOK_SPOOL") or spool,
                    timeout_seconds=2.0 if method == "brief" else TIMEOUT_SECONDS)  # a box must start even if the record hangs
    answer = getattr(client, method)(**asked)
    text = json.dumps(answer, ensure_ascii=False, indent=None if as_json else 2)
    print(text if as_json else answer.get("markdown") or text, flush=True)
    if answer.get("spooled"):
        print("herdbook: unavailable: kept in the spool, sent with the next call that gets through", file=sys.stderr)
    if client.refused:
        print(f"herdbook: earlier calls were refused ({len(client.refused)}): see <spool>.refused", file=sys.stderr)
    if client.begun and client.ours and not as_json:
        print(f"herdbook: to go on in this session: export HERDBOOK_SESSION={client.session}", file=sys.stderr)
    return 1 if method == "flush" and answer["refused"] else 0
def main(argv: Sequence[str] | None = None) -> int:
    """The command line: one sentence on standard error instead of a traceback."""
    try:
        return run(argv)
    except (BrokenPipeError, KeyboardInterrupt) as stopped:
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)  # what is left unprinted stays so, without a complaint
        return 130 if isinstance(stopped, KeyboardInterrupt) else 141
    except (HerdbookError, OSError) as error:
        away = getattr(error, "away", True)
        print(f"herdbook: {'unavailable: ' if away else ''}{error}", file=sys.stderr)
        return 3 if away else 1

if __name__ == "__main__":
    code = main()
    sys.stderr.flush()
    os._exit(code)  # taking the interpreter down in order would cost another tenth of the time
