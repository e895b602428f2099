"""Lint, types and the tests of what changed, in under two minutes: what to run between two edits.

    python scripts/quick.py [--base main] [--seconds 100] [--list]

What changed is what differs from the commit where this branch left `--base`, and what git does not know yet. Its tests,
the closest first:

1. changed test files; for a changed module, the test file or the folder of its name below the same folder of `tests/`,
   and those of its family in every room if it declares operators; for any other file, the test files that name it;
2. those that import a changed module;
3. the other test files of the same folder;
4. the other test files of the same room (`tflq/X` → `tests/X`).

They run in that order, without those marked `slow`, until they are done or the time is over, and it says so if the time
was over. `make test`, `make test-slow` and `make test-long` run everything.
"""

from __future__ import annotations

import argparse
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from pathlib import Path, PurePosixPath

ROOT = Path(__file__).resolve().parents[1]
CHECKS = (("ruff", "format", "--check"), ("ruff", "check"), ("lint-imports",), ("mypy",))
FAR = 4  # the rank of test files that are not run
NO_TESTS_LEFT = 5  # pytest's exit code: nothing was collected


def changed_files(base: str) -> list[str]:
    """Paths below the root that differ from where the branch left `base`, or that git does not know.

    ValueError if there is no such branch."""
    fork = next((f for name in (base, f"origin/{base}") if (f := _git("merge-base", name, "HEAD"))), None)
    if fork is None:
        raise ValueError(f"there is no branch '{base}' to compare with: name one with --base")
    changed = _git("diff", "--name-only", fork[0]) + _git("ls-files", "--others", "--exclude-standard")
    return sorted(set(changed))


def _git(*arguments: str) -> list[str]:
    done = subprocess.run(["git", *arguments], cwd=ROOT, capture_output=True, text=True, check=False)
    return done.stdout.split() if done.returncode == 0 else []


class Suite:
    """The files of `tests/`, and which of them to run for a changed file."""

    def __init__(self, texts: dict[str, str]) -> None:
        self._texts = texts
        self.files = sorted(path for path in texts if PurePosixPath(path).name.startswith("test_"))

    @classmethod
    def read(cls) -> Suite:
        """Those of this work tree."""
        found = ((path.relative_to(ROOT).as_posix(), path) for path in (ROOT / "tests").rglob("*.py"))
        return cls({name: path.read_text(encoding="utf-8") for name, path in found})

    def of(self, changed: Sequence[str]) -> list[str]:
        """The test files for changed files, the closest first."""
        ranked = {file: min(self._distance(file, path) for path in changed) for file in self.files} if changed else {}
        return sorted((file for file, rank in ranked.items() if rank < FAR), key=lambda file: (ranked[file], file))

    @cache  # noqa: B019  one object a run
    def _closest(self, path: str) -> frozenset[str]:
        """The test files of rank 0 for one changed file."""
        parts = PurePosixPath(path)
        if path in self._texts:
            return frozenset({path}) if path in self.files else frozenset(self._importing(module(path, "tests/")))
        if not path.startswith("tflq/"):
            return frozenset(self._matching(rf"\b{re.escape(parts.name)}\b|\bscripts\.{re.escape(parts.stem)}\b"))
        stem = parts.parent.name if parts.name == "__init__.py" else parts.stem
        named = re.compile(rf"(.*/)?{re.escape(stem)}/.*|(.*/)?test_{re.escape(stem)}(_\w+)?\.py")
        folder = "tests/" if is_family(path) else f"tests/{PurePosixPath(*parts.parts[1:]).parent}/".replace("/./", "/")
        return frozenset(f for f in self.files if f.startswith(folder) and named.fullmatch(f.removeprefix(folder)))

    @cache  # noqa: B019  one object a run
    def _users(self, path: str) -> frozenset[str]:
        """The test files that import a changed module."""
        return frozenset(self._importing(module(path))) if path.startswith("tflq/") else frozenset()

    def _distance(self, file: str, path: str) -> int:
        if file in self._closest(path):
            return 0
        if file in self._users(path):
            return 1
        folders = PurePosixPath(path).parent.parts[1:] if path.startswith("tflq/") else ()
        if not folders:
            return FAR
        if str(PurePosixPath(file).parent) == str(PurePosixPath("tests", *folders)):
            return 2
        return 3 if file.startswith(f"tests/{folders[0]}/") else FAR

    def _importing(self, name: str) -> set[str]:
        """The test files that import a module, also by way of modules that they share."""
        users: set[str] = set()
        names = [name]
        while names:
            parent, _, last = names.pop().rpartition(".")
            pattern = rf"^\s*(?:from|import) {re.escape(f'{parent}.{last}' if parent else last)}\b"
            if parent:
                pattern += rf"|^\s*from {re.escape(parent)} import (?:\([^)]*|[^\n]*)\b{re.escape(last)}\b"
            new = set(self._matching(pattern, self._texts)) - users
            users |= new
            names += [module(user, "tests/") for user in new.difference(self.files)]
        return users.intersection(self.files)

    def _matching(self, pattern: str, among: Sequence[str] | dict[str, str] = ()) -> Iterator[str]:
        wanted = re.compile(pattern, re.MULTILINE)
        return (file for file in (among or self.files) if wanted.search(self._texts[file]))


def module(path: str, below: str = "") -> str:
    """The name by which the module of a file is imported: `tflq/ir/ops.py` → `tflq.ir.ops`."""
    parts = PurePosixPath(path.removeprefix(below)).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def is_family(path: str) -> bool:
    """Whether it declares the operators of a family: all rooms name their files by it."""
    return bool(re.fullmatch(r"tflq/dialects/(tfl|tosa|quant|ext)/(?!__init__)\w+\.py", path))


def _printed(lines: Iterable[str]) -> Iterator[str]:
    for line in lines:
        print(line, end="", flush=True)
        yield line


def run_tests(files: Sequence[str], seconds: float) -> int:
    """pytest's exit code; also 0 where the time was over and nothing had failed until then."""
    command = [sys.executable, "-m", "pytest", "-q", "-n", "2", "--maxfail=5", "-m", "not slow", *files]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True, process_group=0) as process:
        assert process.stdout is not None
        signal.signal(signal.SIGALRM, lambda *_: os.killpg(process.pid, signal.SIGINT))
        signal.setitimer(signal.ITIMER_REAL, max(seconds, 1))
        lines = list(_printed(process.stdout))
        signal.setitimer(signal.ITIMER_REAL, 0)
    over = any("KeyboardInterrupt" in line for line in lines)
    failed = any(re.match(r"(FAILED|ERROR) ", line) for line in lines)
    if over:
        print(f"The time was over: not all of the {len(files)} test files ran. `make test` runs them.")
    return int(failed) if over else process.returncode * (process.returncode != NO_TESTS_LEFT)


def main() -> int:
    """Runs the checks and the tests. Exit code 1 if one of them fails."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--base", default="main", help="the branch to compare with")
    parser.add_argument("--seconds", type=float, default=100, help="for everything")
    parser.add_argument("--list", action="store_true", help="print the test files, and run nothing")
    arguments = parser.parse_args()
    started = time.monotonic()
    changed = changed_files(arguments.base)
    files = Suite.read().of(changed)
    if arguments.list:
        print("\n".join(files))
        return 0
    for check in CHECKS:
        tool, *options = check
        if subprocess.run([Path(sys.executable).with_name(tool), *options], cwd=ROOT, check=False).returncode:
            return 1
    if not files:
        print(f"No tests are close to the {len(changed)} changed files.")
        return 0
    return int(run_tests(files, arguments.seconds - (time.monotonic() - started)) != 0)


if __name__ == "__main__":
    sys.exit(main())
