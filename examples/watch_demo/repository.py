"""A real git repository, bare, with the toy in it: what releases are made from, and what the fake GitHub answers about."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Mapping
from pathlib import Path

TOY = Path(__file__).parent / "toy"
WHO = {
    "GIT_AUTHOR_NAME": "Ann",
    "GIT_AUTHOR_EMAIL": "ann@acme.example",
    "GIT_COMMITTER_NAME": "Ann",
    "GIT_COMMITTER_EMAIL": "ann@acme.example",
}


class Repository:
    """Plumbing only: no working copy, no configuration of the caller's."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.git("init", "--quiet", "--bare", "--initial-branch=main", str(path), here=False)
        self.first = self.commit("main", {f"toy/{file.name}": file.read_text() for file in TOY.glob("*.py")}, "The toy")

    def git(self, *words: str, stdin: bytes = b"", here: bool = True, env: dict[str, str] | None = None) -> str:
        command = ["git", *(["--git-dir", str(self.path)] if here else []), *words]
        clean = {"PATH": os.environ["PATH"], "HOME": str(self.path), "GIT_CONFIG_NOSYSTEM": "1", **WHO, **(env or {})}
        return subprocess.run(command, input=stdin, capture_output=True, check=True, env=clean).stdout.decode().rstrip("\n")

    def commit(self, branch: str, files: Mapping[str, str | bytes], message: str) -> str:
        """These files on top of a branch."""
        parent = self.head(branch)
        index = {"GIT_INDEX_FILE": str(self.path / f"index-{os.getpid()}-{branch.replace('/', '-')}")}
        self.git("read-tree", parent or "--empty", env=index) if parent else self.git("read-tree", "--empty", env=index)
        for path, content in files.items():
            data = content.encode() if isinstance(content, str) else content
            blob = self.git("hash-object", "-w", "--stdin", stdin=data)
            self.git("update-index", "--add", "--cacheinfo", f"100644,{blob},{path}", env=index)
        tree = self.git("write-tree", env=index)
        sha = self.git("commit-tree", tree, *(["-p", parent] if parent else []), "-m", message)
        self.git("update-ref", f"refs/heads/{branch}", sha)
        return sha

    def head(self, branch: str) -> str:
        return self.git("for-each-ref", "--format=%(objectname)", f"refs/heads/{branch}")

    def exists(self, sha: str) -> bool:
        try:
            return self.git("cat-file", "-t", sha) == "commit"
        except subprocess.CalledProcessError:
            return False

    def content(self, ref: str, path: str) -> tuple[str, bytes] | None:
        """(blob, bytes) of a file at a ref."""
        try:
            blob = self.git("rev-parse", "--verify", "--quiet", f"{ref}:{path}")
        except subprocess.CalledProcessError:
            return None
        command = ["git", "--git-dir", str(self.path), "cat-file", "blob", blob]
        return blob, subprocess.run(command, capture_output=True, check=True).stdout

    def check_out(self, sha: str, into: Path) -> Path:
        into.mkdir(parents=True)
        archive = subprocess.run(["git", "--git-dir", str(self.path), "archive", sha], capture_output=True, check=True).stdout
        subprocess.run(["tar", "-x", "-C", str(into)], input=archive, check=True)
        return into
