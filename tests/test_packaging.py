"""The data files are found from a checkout, an editable install and a wheel alike."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
import sysconfig
import tomllib
import venv
from pathlib import Path
from typing import Any

import pytest

import tflq
from tflq.base.files import resource

EXTRAS = {
    "PIL",
    "ai_edge_litert",
    "distributed",
    "jinja2",
    "kagglehub",
    "model_explorer",
    "onnx",
    "onnxruntime",
    "openvino",
    "tensorflow",
    "tflite_micro",
    "tosa_reference_model",
}
ROOT = Path(__file__).resolve().parents[1]
DATA = [path for folder in ("schema", "rules") for path in (ROOT / folder).rglob("*.*")]
FILES = sorted(path.relative_to(ROOT).as_posix() for path in DATA)


AT_THE_ROOT = {
    *(".ci", ".gitignore", "ARCHITECTURE.md", "CHANGELOG.md", "CONTRIBUTING.md", "LICENSE", "Makefile", "README.md"),
    *("benchmarks", "docs", "examples", "mkdocs.yml", "models", "pyproject.toml", "rules", "schema", "scripts"),
    *("tests", "tflq"),
}


def test_the_root_of_the_repository_holds_what_belongs_there() -> None:
    if not (ROOT / ".git").exists():
        pytest.skip("not a checkout: no repository to look at")
    listing = ["git", "ls-files"]
    files = subprocess.run(listing, cwd=ROOT, check=True, capture_output=True, text=True).stdout
    assert {line.split("/")[0] for line in files.splitlines()} == AT_THE_ROOT


@pytest.mark.parametrize("name", FILES)
def test_checkout(name: str) -> None:
    assert Path(resource(name)).read_bytes() == (ROOT / name).read_bytes()


def test_what_is_told_to_install_is_in_the_checkout() -> None:
    """`tflq` is on no index: `pip install '.[verify]'`."""
    asked = "pip install " + "tflq"
    files = [path for folder in ("tests", "tflq", "docs", "benchmarks") for path in (ROOT / folder).rglob("*.*")]
    texts = [path for path in (*files, ROOT / "README.md") if path.suffix in (".py", ".md", ".ipynb")]
    assert len(texts) > 500
    assert not [str(path) for path in texts if asked in path.read_text(encoding="utf-8")]


def test_paths_in_pages_are_there() -> None:
    """Paths that begin with a folder of the checkout, in what people write; `<family>` stands for any name."""
    missing = []
    for page in (*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")):
        if page.name == "CHANGELOG.md":
            continue
        for path in re.findall(
            r"`((?:tflq|tests|scripts|benchmarks|examples|models|schema)/[\w./<>-]*)`", page.read_text("utf-8")
        ):
            pattern = re.sub(r"<\w+>", "*", path.rstrip("/"))
            if not any(ROOT.glob(pattern)):
                missing.append(f"{page.name}: {path}")
    assert not missing


def test_a_file_that_is_not_there() -> None:
    with pytest.raises(FileNotFoundError, match="the installation is incomplete"):
        resource("schema/nothing.toml")


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with an sdist, and the wheel that is built from it."""
    for module in ("build", "hatchling"):
        pytest.importorskip(module, reason="needs the build tools: pip install '.[dev]'")
    folder = tmp_path_factory.mktemp("dist")
    run(sys.executable, "-m", "build", "--no-isolation", "--outdir", folder, ROOT)
    return folder


def run(*command: object, **options: Any) -> str:
    done = subprocess.run([*map(str, command)], capture_output=True, text=True, check=False, **options)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_sdist_and_wheel_are_as_an_index_wants_them(built: Path) -> None:
    pytest.importorskip("twine", reason="needs twine: pip install '.[dev]'")
    files = sorted(built.iterdir())
    assert [path.name for path in files] == [
        f"tflq-{tflq.__version__}-py3-none-any.whl",
        f"tflq-{tflq.__version__}.tar.gz",
    ]
    assert "FAILED" not in run(sys.executable, "-m", "twine", "check", "--strict", *files)


def test_the_wheel_converts_in_an_environment_of_its_own(built: Path, tmp_path: Path) -> None:
    """The dependencies are this environment's: they are read behind what the wheel installs."""
    pytest.importorskip("pip", reason="needs pip")
    (wheel,) = built.glob("*.whl")
    venv.create(tmp_path / "env", symlinks=True)
    python = tmp_path / "env" / "bin" / "python"
    run(sys.executable, "-m", "pip", "--python", python, "install", "--quiet", "--no-deps", "--no-index", wheel)
    site = Path(run(python, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))").strip())
    (site / "dependencies.pth").write_text(sysconfig.get_path("purelib"))
    code = f"import tflq.base.files as r\nfor name in {FILES!r}: print(r.resource(name))"
    assert run(python, "-P", "-c", code, cwd=tmp_path).split() == [str(site / "tflq" / name) for name in FILES]
    command = tmp_path / "env" / "bin" / "tflq"
    assert tflq.__version__ in run(command, "--version", cwd=tmp_path)
    assert "ABS" in run(command, "ops", "--operator", "abs", cwd=tmp_path)
    source, made = ROOT / "models" / "cnn_int8.tflite", tmp_path / "made.tflite"
    run(command, "convert", source, made, cwd=tmp_path)
    assert made.read_bytes() == tflq.convert(source).data


def test_what_is_declared_is_imported_and_what_is_imported_is_declared() -> None:
    """All that a plain install needs, and nothing else; extras are imported where they are asked for."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    declared = {re.split(r"[<>=~!; ]", line)[0] for line in project["dependencies"]}
    imported: set[str] = set()
    for path in (ROOT / "tflq").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            names += [node.module] if isinstance(node, ast.ImportFrom) and node.module and not node.level else []
            imported.update(name.partition(".")[0] for name in names)
    others = imported - {"tflq", "_typeshed", *sys.stdlib_module_names}  # the latter: types of the standard library
    assert declared == others - EXTRAS


def test_the_changelog_has_the_version() -> None:
    assert f"\n## {tflq.__version__} (" in (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
