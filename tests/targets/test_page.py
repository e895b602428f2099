"""docs/targets.md: its files are targets, its ports and constraints are those there are."""

from __future__ import annotations

import re
from pathlib import Path

from support.harness import argument

from tflq.ir.ops import Op
from tflq.ir.types import ElementType, UniformQuantizedType, i8, i16
from tflq.targets.constraints import CONSTRAINTS
from tflq.targets.load import load_target
from tflq.targets.signature import parse_signature

TEXT = (Path(__file__).resolve().parents[2] / "docs" / "targets.md").read_text(encoding="utf-8")
FILES = re.findall(r"```toml\n(.*?)```", TEXT, re.DOTALL)
(FUNCTION,) = re.findall(r"```python\n(.*?)```", TEXT, re.DOTALL)


def unary(name: str, x: ElementType, y: ElementType) -> Op:
    return Op(f"tfl.{name}", [argument((2,), x, "x")], [argument((2,), y, "y")])


def test_its_files_are_targets(tmp_path: Path) -> None:
    path = tmp_path / "npu.toml"
    path.write_text("\n".join(FILES))
    target = load_target(path)
    assert target.name == "npu"
    assert [*target.unsigned, *target.signed, *target.uniform] == ["add", "conv_2d"]
    q, wide = UniformQuantizedType.of(i8, 1 / 256, -128), UniformQuantizedType.of(i16, 1 / 256)
    assert target.judge(unary("logistic", q, q)).runs
    assert not target.judge(unary("logistic", q, wide)).runs
    assert "softmax = " in FILES[0]
    assert not target.judge(unary("softmax", q, q)).runs


def test_it_lists_every_constraint() -> None:
    listed = set(re.findall(r"^\| `(\w+)[^`]*` \|", TEXT.partition("| constraint |")[2], re.MULTILINE))
    assert listed == set(CONSTRAINTS)


def test_its_own_constraint(tmp_path: Path) -> None:
    try:
        exec(FUNCTION, {})  # noqa: S102 - the page's own text
        q = UniformQuantizedType.of(i8, 0.5)
        assert parse_signature("qi8 -> qi8; scale_below 1").broken(unary("abs", q, q)) is None
        assert parse_signature("qi8 -> qi8; scale_below 0.5").broken(unary("abs", q, q)) == "the scale is not below 0.5"
    finally:
        CONSTRAINTS.pop("scale_below", None)
