"""Files of rows, written as they come: JSON lines, or Parquet in groups of rows, so that no dataset has to fit in a process."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final, Protocol

from herdbook.base.errors import ExtraMissing
from herdbook.slowloop.export.targets import Row, as_text, compact

GROUP_ROWS: Final = 2_000


class Rows(Protocol):
    """A file that rows are added to, each with itself as JSON; `close` gives its path."""

    count: int

    def add(self, row: Row, encoded: bytes) -> None: ...

    def close(self) -> Path: ...


class JsonLines:
    """One object a line, keys in order."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.count = 0
        self.file = path.open("wb")

    def add(self, row: Row, encoded: bytes) -> None:
        self.file.write(encoded + b"\n")
        self.count += 1

    def close(self) -> Path:
        self.file.close()
        return self.path


class Parquet:
    """Columns of one schema for every row: arguments and tools are JSON texts, since their shapes differ from call to call."""

    def __init__(self, path: Path, kind: str) -> None:
        try:
            import pyarrow
            import pyarrow.parquet
        except ImportError as problem:
            raise ExtraMissing.of("export", what="the writer of Parquet files") from problem
        self.path = path
        self.count = 0
        self.arrow = pyarrow
        self.schema = pyarrow.schema(columns(pyarrow, kind))
        self.file = pyarrow.parquet.ParquetWriter(path, self.schema, compression="zstd")
        self.waiting: list[Row] = []

    def add(self, row: Row, encoded: bytes) -> None:
        self.waiting.append({name: flat(value, name) for name, value in row.items()})
        self.count += 1
        if len(self.waiting) >= GROUP_ROWS:
            self.flush()

    def flush(self) -> None:
        if self.waiting:
            self.file.write_table(self.arrow.Table.from_pylist(self.waiting, schema=self.schema))
            self.waiting = []

    def close(self) -> Path:
        self.flush()
        self.file.close()
        return self.path


def columns(arrow: Any, kind: str) -> list[tuple[str, Any]]:
    """The columns of TRL's rows of this kind."""
    text = arrow.string()
    function = arrow.struct([("name", text), ("arguments", text)])
    call = arrow.struct([("id", text), ("type", text), ("function", function)])
    messages = arrow.list_(
        arrow.struct(
            [("role", text), ("content", text), ("name", text), ("tool_call_id", text), ("tool_calls", arrow.list_(call))]
        )
    )
    own = {
        "sft": [("prompt", messages), ("completion", messages), ("weight", arrow.float64())],
        "dpo": [("prompt", messages), ("chosen", messages), ("rejected", messages)],
        "kto": [("prompt", messages), ("completion", messages), ("label", arrow.bool_())],
        "reward": [("chosen", messages), ("rejected", messages)],
        "rl": [("prompt", messages), ("entity_path", text), ("accepted", arrow.list_(function))],
    }
    return [*own[kind], ("tools", text)]


def flat(value: Any, name: str) -> Any:
    if name == "tools":
        return compact(value)
    return as_text(value) if isinstance(value, list) and value and "role" in value[0] else value


def rows_file(folder: Path, split: str, target: str, kind: str) -> Rows:
    """The file for one split's rows."""
    if target == "parquet":
        return Parquet(folder / f"{split}.parquet", kind)
    return JsonLines(folder / f"{split}.jsonl")
