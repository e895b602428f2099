"""Examples in docstrings run as they stand, in a folder that has the files they name."""

from __future__ import annotations

import ast
import re
import shutil
import textwrap
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.float_nets import net, written

import tflq

pytestmark = pytest.mark.usefixtures("forked")

ROOT = Path(__file__).resolve().parents[1]
FENCED = re.compile(r"```python\n(.*?)```", re.DOTALL)
DOCUMENTED = (ast.Module, ast.ClassDef, ast.FunctionDef)


def examples() -> Iterator[tuple[str, str]]:
    """A name for each, and its code."""
    for path in sorted((ROOT / "tflq").rglob("*.py")):
        text = path.read_text(encoding="utf-8")
        if "```python" not in text:
            continue
        for node in ast.walk(ast.parse(text)):
            docstring = ast.get_docstring(node) if isinstance(node, DOCUMENTED) else None
            for number, code in enumerate(FENCED.findall(docstring or "")):
                name = getattr(node, "name", path.stem)
                yield f"{path.relative_to(ROOT)}:{name}" + (f":{number}" if number else ""), textwrap.dedent(code)


EXAMPLES = dict(examples())


def test_every_public_call_and_class_of_results_has_one() -> None:
    named = {name.rpartition(":")[2] for name in EXAMPLES}
    assert {
        "bisect",
        "calibrate",
        "convert",
        "debug",
        "inspect",
        "quantize",
        "read",
        "reduce",
        "run_sweep",
        "verify",
        "write",
    } <= named
    assert {"Conversion", "Report", "Row", "Verification", "RuleBuilder", "Extension"} <= named


def test_what_they_name_is_there() -> None:
    """In bodies of functions, too, which do not run."""
    used = {word for code in EXAMPLES.values() for word in re.findall(r"\btflq\.(\w+)", code)}
    assert not {word for word in used - {"ir"} if not hasattr(tflq, word)}


@pytest.mark.slow
@pytest.mark.parametrize("name", EXAMPLES)
def test_it_runs(name: str, models: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    code = EXAMPLES[name]
    if any(word in code for word in ("verify", "bisect", "reduce", "run_sweep", "calibrate", "quantize(")):
        pytest.importorskip("ai_edge_litert", reason="needs the interpreter: pip install '.[verify]'")
    if "run_sweep" in code:
        pytest.importorskip("jinja2", reason="needs pages: pip install '.[verify]'")
    (tmp_path / "models").mkdir()
    for place in ("in.tflite", "model.tflite", "models/model.tflite"):
        shutil.copy(models / "log_softmax.tflite", tmp_path / place)
    if "tflq.verify(" in code:
        tflq.convert(tmp_path / "in.tflite", tmp_path / "out.tflite")
    if "float.tflite" in code:
        written(tmp_path, net(), "float.tflite")
    monkeypatch.chdir(tmp_path)
    exec(compile(code, name, "exec"), {"__name__": name, "tflq": tflq})  # noqa: S102 - our own documentation
