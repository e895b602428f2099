"""Every option that names an output: no input is replaced, no other file without --force, and what is written is whole.

The options are those of the commands themselves; one that is not listed here fails.
"""

from __future__ import annotations

import io
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stdout
from dataclasses import dataclass
from pathlib import Path

import click
import numpy as np
import pytest
from support.float_nets import net, samples

import tflq
from tflq.base import files
from tflq.cli import main
from tflq.cli import output as streams
from tflq.cli.main import GROUPS

resource = pytest.importorskip("resource", reason="needs limits of file size")

PRECIOUS = b"precious"
SWEPT = {"format": "tflq.sweep", "version": 1, "settings": {}, "fingerprint": {}, "sources": [], "jobs": []}
LIMIT = 16


@dataclass(frozen=True)
class Case:
    """A command line with an output.

    option: the command, and its parameter. line: with {input}, which becomes the output, too; {model}, another input;
    and {d}, the folder for all. file: what the option has written, in {d}. kind: of the input: "model", "text",
    "float" (a network, and samples for it), "statistics", "arrays", "baseline", or "swept": the folder of a sweep,
    whose results are the file.
    prints: whether the command says something beside.
    """

    option: str
    line: str
    file: str
    kind: str = "model"
    prints: bool = True


CASES = (
    Case("convert paths", "convert {input} {d}/out.tflite", "out.tflite"),
    Case("convert report_path", "convert {input} {d}/out.tflite --report {d}/report.json", "report.json"),
    Case("convert dump_ir", "convert {input} {d}/out.tflite --dump-ir {d}/ir", "ir/00-read.mlir", "text"),
    Case("convert folder", "convert {input} -o {d}/out", "out/model.tflite"),
    Case("verify page", "verify {input} {model} --layers --html {d}/page.html", "page.html"),
    Case("reduce destination", "reduce {input} --target tosa --fallback error -o {d}/part.tflite", "part.tflite"),
    Case("reduce destination", "reduce {model} --inputs {input} -o {d}/part.tflite", "part.npz", "arrays"),
    Case("calibrate run destination", "calibrate {input} {input}.npz -o {d}/s.json", "s.json", "float"),
    Case("calibrate merge destination", "calibrate merge {input} -o {d}/s.json", "s.json", "statistics"),
    Case("debug csv", "debug {input} {input} {input}.npz --csv {d}/rows.csv", "rows.csv", "float"),
    Case("debug html", "debug {input} {input} {input}.npz --html {d}/page.html", "page.html", "float"),
    Case(
        "quantize save_recipe",
        "quantize {input} {d}/out.tflite --scheme weight-only --keep-float positive --save-recipe {d}/recipe.toml",
        "recipe.toml",
        "float",
    ),
    Case("quantize destination", "quantize {input} {d}/out.tflite --scheme weight-only", "out.tflite", "float"),
    Case("opt destination", "opt {input} -o {d}/out.mlir", "out.mlir", prints=False),
    Case("sweep run folder", "sweep {model} -o {d}/out --baseline {input}", "out/baseline.json", "baseline"),
    Case("sweep merge into", "sweep merge {input} -o {d}/out", "out/results.jsonl", "swept"),
)
REWRITES = {"convert cache", "sweep run cache"}
"""Folders whose files a command may rewrite, which their help says."""
NAMES = [f"{case.option}: {case.file}" for case in CASES]


def commands(command: click.Command, name: str) -> Iterator[tuple[str, click.Command]]:
    if isinstance(command, click.Group):
        for inner, each in command.commands.items():
            yield from commands(each, f"{name} {inner}")
    else:
        yield name, command


def outputs() -> dict[str, click.Parameter]:
    """The parameters that name files that need not be there."""
    context = click.Context(main.group)
    found = {}
    for name in main.COMMANDS:
        command = main.group.get_command(context, name)
        assert command is not None
        for whole, each in commands(command, name):
            for parameter in each.params:
                kind = parameter.type
                if isinstance(kind, click.Path) and not isinstance(kind, streams._Model) and not kind.exists:
                    found[f"{whole} {parameter.name}"] = parameter
    return found


def test_every_output_is_listed() -> None:
    assert {*outputs()} == {case.option for case in CASES} | REWRITES


def test_what_may_rewrite_says_so() -> None:
    for name in REWRITES:
        option = outputs()[name]
        assert isinstance(option, click.Option)
        assert "rewrites" in (option.help or "")
    sweep = main.group.get_command(click.Context(main.group), "sweep")
    assert isinstance(sweep, click.Group)
    options = {option.name: option for option in sweep.commands["run"].params}
    for name in ("pin", "resume"):
        assert "rewrites" in getattr(options[name], "help", "")
    assert "rewrites" in (sweep.commands["page"].help or "")
    assert {*main.COMMANDS} == {name for group in GROUPS.values() for name in group}


def make_input(kind: str, path: Path, models: Path) -> Path:
    """Makes an input of a kind; what to name on the command line."""
    path.parent.mkdir(parents=True, exist_ok=True)
    source = models / "pad.tflite"
    if kind == "model":
        shutil.copy(source, path)
    elif kind == "text":
        path.write_bytes(tflq.convert(source, format="mlir").data)
    elif kind == "float":
        path.write_bytes(tflq.write(net()))
        np.savez(f"{path}.npz", given=samples(2))
    elif kind == "statistics":
        path.write_text('{"format": "tflq.statistics", "version": 1, "points": {}}')
    elif kind == "arrays":
        path.write_bytes(b"arrays")
    elif kind == "baseline":
        path.write_text('{"format": "tflq.sweep-baseline", "version": 1, "entries": []}')
    else:
        path.write_bytes(b"")
        path.with_name("sweep.json").write_text(json.dumps(SWEPT))
        return path.parent
    return path


def run(case: Case, given: Path, d: Path, models: Path, *more: str) -> int:
    line = case.line.format(input=given, model=models / "pad.tflite", d=d)
    return main.run([*line.split(), *more])


def tree(folder: Path) -> dict[str, bytes]:
    """The bytes of all files but the locks of sweeps."""
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file() and path.name != "lock"
    }


@pytest.mark.parametrize("by", ["its name", "hard link", "symbolic link"])
@pytest.mark.parametrize("case", CASES, ids=NAMES)
def test_no_input_is_replaced(
    case: Case, by: str, models: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    alias = tmp_path / case.file
    own = alias if by == "its name" else tmp_path / "in" / alias.name
    given = make_input(case.kind, own, models)
    if by != "its name":
        alias.parent.mkdir(exist_ok=True)
        alias.hardlink_to(own) if by == "hard link" else alias.symlink_to(own)
    before = tree(tmp_path)
    assert run(case, given, tmp_path, models, "--force") == 2
    assert tree(tmp_path) == before
    refused = "this is a link" if by == "symbolic link" and "sweep" in case.option else "an input"
    assert refused in capsys.readouterr().err


@pytest.mark.parametrize("case", CASES, ids=NAMES)
def test_no_file_is_replaced_without_force(
    case: Case, models: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    given = make_input(case.kind, tmp_path / "in" / Path(case.file).name, models)
    place = tmp_path / case.file
    place.parent.mkdir(exist_ok=True)
    place.write_bytes(PRECIOUS)
    before = tree(tmp_path)
    assert run(case, given, tmp_path, models) == 2
    assert tree(tmp_path) == before
    assert "exists already" in capsys.readouterr().err


@contextmanager
def full_disk() -> Iterator[None]:
    """No file grows beyond a few bytes: a write is cut short first, and the next fails. No bytecode is written, which
    would be cut short without an error."""
    before, bytecode = resource.getrlimit(resource.RLIMIT_FSIZE), sys.dont_write_bytecode
    sys.dont_write_bytecode = True
    resource.setrlimit(resource.RLIMIT_FSIZE, (LIMIT, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
        sys.dont_write_bytecode = bytecode


def elsewhere(case: Case, folder: Path, models: Path) -> Path:
    """An input that is none of the outputs."""
    name = "results.jsonl" if case.kind == "swept" else f"model{Path(case.file).suffix}"
    return make_input(case.kind, folder / "in" / name, models)


WRITING = [case for case in CASES if case.option not in ("reduce destination", "sweep run folder")]
"""Commands that come to write on any model; `reduce` writes where a conversion fails, a sweep in a test of its own."""


@pytest.mark.parametrize("existing", [False, True], ids=["a new file", "--force"])
@pytest.mark.parametrize("case", WRITING, ids=[f"{case.option}: {case.file}" for case in WRITING])
def test_a_full_disk_is_an_error_and_nothing_is_lost(
    case: Case,
    existing: bool,
    models: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    given = elsewhere(case, tmp_path, models)
    if existing:
        (tmp_path / case.file).parent.mkdir(exist_ok=True)
        (tmp_path / case.file).write_bytes(PRECIOUS)
    write = files._write

    def full(path: str, *rest: object) -> None:
        if Path(path).name == Path(case.file).name or case.kind == "swept":
            with full_disk():
                write(path, *rest)  # type: ignore[arg-type]
        else:
            write(path, *rest)  # type: ignore[arg-type]

    monkeypatch.setattr(files, "_write", full)
    code = run(case, given, tmp_path, models, *(["--force"] if existing else []))
    assert code == 2
    assert "File too large" in capsys.readouterr().err
    kept = PRECIOUS if existing else None
    assert tree(tmp_path).get(case.file) == kept
    assert not [path for path in tmp_path.rglob("*") if path.name.startswith(".")]


@contextmanager
def closed_stdout() -> Iterator[None]:
    """Standard output is a pipe that nobody reads any more."""
    reading, writing = os.pipe()
    os.close(reading)
    try:
        with redirect_stdout(io.TextIOWrapper(io.BufferedWriter(streams._Whole(writing, "a pipe")))):
            yield
    finally:
        os.close(writing)


@pytest.mark.parametrize("case", WRITING, ids=[f"{case.option}: {case.file}" for case in WRITING])
def test_a_closed_pipe_costs_what_is_printed_alone(case: Case, models: Path, tmp_path: Path) -> None:
    given = elsewhere(case, tmp_path, models)
    with closed_stdout():
        code = run(case, given, tmp_path, models)
    assert code == (141 if case.prints else 0)
    assert (tmp_path / case.file).is_file()
    if case.option.startswith("convert"):
        assert (tmp_path / "out").exists() or tflq.read(tmp_path / "out.tflite").main.ops


def test_a_full_disk_loses_no_sweep(
    models: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """What --force is to replace stays where the first file cannot be written."""
    pytest.importorskip("ai_edge_litert", reason="needs the interpreter: pip install '.[verify]'")
    pytest.importorskip("jinja2", reason="needs jinja2: pip install '.[html]'")
    out = tmp_path / "out"
    (out / "artifacts").mkdir(parents=True)
    for name in ("results.jsonl", "index.html", "artifacts/x"):
        (out / name).write_bytes(PRECIOUS)
    before, write = tree(out), files._write

    def full(path: str, *rest: object) -> None:
        with full_disk():
            write(path, *rest)  # type: ignore[arg-type]

    monkeypatch.setattr(files, "_write", full)
    assert main.run(["sweep", str(models / "pad.tflite"), "-o", str(out), "--force"]) == 2
    assert "File too large" in capsys.readouterr().err
    assert tree(out) == before


@pytest.mark.parametrize("name", ["index.html", "summary.md", "junit.xml", "baseline.json", "sweep.json", "lock"])
def test_a_sweep_replaces_no_file_of_others(name: str, models: Path, tmp_path: Path) -> None:
    pytest.importorskip("ai_edge_litert", reason="needs the interpreter: pip install '.[verify]'")
    pytest.importorskip("jinja2", reason="needs jinja2: pip install '.[html]'")
    (tmp_path / name).write_bytes(PRECIOUS)
    assert main.run(["sweep", str(models / "pad.tflite"), "-o", str(tmp_path)]) == 2
    assert (tmp_path / name).read_bytes() == PRECIOUS


def test_a_sweep_removes_none_of_its_models(models: Path, tmp_path: Path) -> None:
    pytest.importorskip("ai_edge_litert", reason="needs the interpreter: pip install '.[verify]'")
    pytest.importorskip("jinja2", reason="needs jinja2: pip install '.[html]'")
    model = tmp_path / "artifacts" / "model.tflite"
    make_input("model", model, models)
    assert main.run(["sweep", str(model.parent), "-o", str(tmp_path), "--force"]) == 2
    assert model.read_bytes() == (models / "pad.tflite").read_bytes()


@pytest.mark.slow
@pytest.mark.parametrize("unbuffered", ["", "1"])
@pytest.mark.parametrize(
    "line",
    [
        "convert {} - -q",
        "convert {} - --format mlir",
        "ops --operator abs --json",
        "ops --operator abs",
        "inspect {} --ir",
        "opt {}",
        "convert -h",
    ],
)
def test_standard_output_is_whole_or_an_error(line: str, unbuffered: str, models: Path, tmp_path: Path) -> None:
    model = models / "cnn_int8.tflite"
    command = [sys.executable, "-m", "tflq", *line.format(model).split()]

    def limit() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (600, 600))

    out = tmp_path / "out"
    env = {**os.environ, "PYTHONUNBUFFERED": unbuffered, "PYTHONDONTWRITEBYTECODE": "1"}  # it would be cut short, too
    with out.open("wb") as file:
        done = subprocess.run(command, stdout=file, stderr=subprocess.PIPE, env=env, preexec_fn=limit, check=False)
    assert done.returncode == 2
    assert done.stderr.decode().endswith("tflq: standard output: File too large\n")
    assert b"Traceback" not in done.stderr
    assert out.stat().st_size == 600


def test_a_closed_standard_output_is_no_place_for_files(models: Path, tmp_path: Path) -> None:
    """The next file that is opened must not get its number, and with it what is printed."""
    command = f'"{sys.executable}" -m tflq convert "$1" "$2" >&-'
    out = tmp_path / "out.tflite"
    arguments = [str(models / "pad.tflite"), str(out)]
    done = subprocess.run(["/bin/sh", "-c", command, "sh", *arguments], capture_output=True, check=False)
    assert done.returncode == 2
    assert b"standard output: Bad file descriptor" in done.stderr
    assert out.read_bytes() == tflq.convert(models / "pad.tflite").data


def test_standard_streams_are_inputs_and_outputs_too(models: Path, tmp_path: Path) -> None:
    """A model that comes by standard input is not replaced, and standard output does not go to the end of one."""
    model = Path(shutil.copy(models / "pad.tflite", tmp_path))
    before = model.read_bytes()
    tflq_ = [sys.executable, "-m", "tflq", "convert"]
    with model.open("rb") as file:
        done = subprocess.run([*tflq_, "-", str(model), "--force"], stdin=file, capture_output=True, check=False)
    assert done.returncode == 2
    with model.open("ab") as file:
        done = subprocess.run([*tflq_, str(model), "-", "-q"], stdout=file, stderr=subprocess.PIPE, check=False)
    assert (done.returncode, model.read_bytes()) == (2, before)
    assert b"never replaced" in done.stderr


@pytest.mark.parametrize(
    "line",
    [
        "convert {m} {d}/x.tflite --report {d}/./x.tflite",
        "convert {m} {d}/x.tflite --report {d}/link/x.tflite",
        "convert {m} {d}/00-read.mlir --dump-ir {d}",
        "reduce {m} -o {d}/x.npz",
    ],
)
def test_two_outputs_are_two_files(line: str, models: Path, tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(tmp_path)
    assert main.run(line.format(m=models / "pad.tflite", d=tmp_path).split()) == 2
    assert tree(tmp_path) == {}


def test_names_that_differ_in_case_are_one_file_where_folders_are(
    models: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    line = ["convert", str(models / "pad.tflite"), str(tmp_path / "x.tflite"), "--report", str(tmp_path / "X.TFLITE")]
    with monkeypatch.context() as patch:
        patch.setattr(files, "_ignores_case", lambda _: True)
        assert main.run(line) == 2
    assert tree(tmp_path) == {}
    assert main.run(line) == 0


def test_a_file_that_comes_meanwhile_is_not_replaced(tmp_path: Path) -> None:
    place = tmp_path / "x"

    def pieces() -> Iterator[bytes]:
        place.write_bytes(PRECIOUS)
        yield b"new"

    with pytest.raises(tflq.FileError, match="exists already"):
        files.replace_file(place, pieces(), force=False)
    assert tree(tmp_path) == {"x": PRECIOUS}


def test_of_several_files_all_are_written_or_none(tmp_path: Path) -> None:
    def failing() -> Iterator[bytes]:
        yield b"half"
        raise OSError(28, "No space left on device")

    (tmp_path / "a").write_bytes(PRECIOUS)
    with pytest.raises(tflq.FileError, match="No space left"):
        files.replace_files([(tmp_path / "a", [b"new"]), (tmp_path / "b", failing())])
    assert tree(tmp_path) == {"a": PRECIOUS}


@pytest.mark.slow
def test_a_pipe_whose_reader_ends_is_an_error(models: Path, tmp_path: Path) -> None:
    pipe = tmp_path / "out"
    os.mkfifo(pipe)
    model = models / "cnn_int8.tflite"
    command = [sys.executable, "-m", "tflq", "convert", str(model), str(pipe), "--format", "tflite"]
    process = subprocess.Popen(command, stderr=subprocess.PIPE)
    with pipe.open("rb") as file:
        assert len(file.read(10)) == 10
    assert process.communicate()[1].decode().split() == f"tflq: {pipe}: Broken pipe".split()
    assert process.returncode == 2
