"""Begins a new TFLite operator: its declaration, a test that fails until it has a rule, and the index.

    python scripts/new_op.py tfl.foo arithmetic [OPERAND...]        operands by name; without any: input

The operator must be in schema/tflite.json, which has its attributes. Prints the next steps; docs/new-operator.md has
all of them.
"""

from __future__ import annotations

import argparse
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from tflq.formats.flatbuffer.layout import Field, enum, options_of, table  # noqa: E402
from tflq.ir.ops import dialect  # noqa: E402
from tflq.ir.ops import family as family_of  # noqa: E402

HINTS = {"bool": "bool", "float32": "float", "float64": "float"}

DECLARATION = '''

class {title}(Operator, name="tfl.{name}"):
    """TODO: the formula. Source: TODO."""

{slots}
    traits = ()
'''

TEST = '''"""{upper}: every stored value against the reference kernel."""

from __future__ import annotations

import numpy as np
import pytest
from support.harness import argument, one_op
from support.reference import assert_equals_kernel, every_value

from tflq.ir.types import ScalarType, UniformQuantizedType, i8, ui8


@pytest.mark.parametrize("storage", [i8, ui8])
@pytest.mark.parametrize("scale", [0.003, 0.1, 7.0])
def test_every_value(storage: ScalarType, scale: float) -> None:
    x = every_value(storage.dtype)
    elements = [UniformQuantizedType.of(storage, scale, storage.minimum + 100) for _ in range({count})]
    inputs = [argument(x.shape, element, f"x{{i}}") for i, element in enumerate(elements)]
    output = argument(x.shape, UniformQuantizedType.of(storage, 0.05, storage.minimum + 3), "y")
    model = one_op("tfl.{name}", inputs, [output], {attributes})
    assert_equals_kernel(model, [[np.roll(x, i) for i in range({count})]])
'''

NEXT = """
What comes next for {upper}:
1. {declaration}: the formula, the traits, constraints of attributes; `newest=` and `versions`;
   `infer`, unless a trait says the shapes of its results.
2. tflq/numerics: multipliers, ranges and tables as pure functions, with tests.
3. {rules}: `@rule({title})`, what a kernel computes. In one of tflq/legalize/*_real.py:
   `@rule({title}, order=2)`, what no kernel computes.
4. An evaluator, TOSA and ONNX, if it occurs on floats.
5. `make index`.
6. A sample in tflq/tools/coverage/samples_of_layers.py.
7. {test}: passes when the rule is right. Then: other types, invalid cases.
8. CHANGELOG.md.
docs/new-operator.md says more of each, and what some operators need besides. Then `make quick` and `make test`.
"""


def camel(name: str) -> str:
    """`hard_swish` → `HardSwish`."""
    return "".join(part[:1].upper() + part[1:] for part in name.split("_"))


def attribute(field: Field) -> str:
    """The line that declares an attribute with the schema's default."""
    if field.kind == "enum":
        hint, default = "str", repr(enum(field.type).names.get(int(field.default or 0))).replace("'", '"')
    elif field.kind == "scalar":
        hint, default = HINTS.get(field.type, "int"), repr(field.default)
    else:
        hint, default = "Any", "None"
    constraint = ", finite=True" if hint == "float" else ""
    return f"    {field.name}: {hint} = attribute(default={default}{constraint})"


def inserted(path: Path, pattern: str, added: str) -> None:
    """Writes `added` after the first match of a pattern. ValueError if nothing matches."""
    text = path.read_text(encoding="utf-8")
    found = re.search(pattern, text, re.MULTILINE | re.DOTALL)
    if found is None:
        raise ValueError(f"{path} does not look as expected: no {pattern!r}")
    path.write_text(text[: found.end()] + added + text[found.end() :], encoding="utf-8")


def begin(name: str, family: str, operands: list[str]) -> str:
    """Writes the files, and returns what is left to do. ValueError if the operator or its family cannot be."""
    upper, title = name.upper(), camel(name)
    if (declared := family_of(f"tfl.{name}")) is not None:
        raise ValueError(f"tfl.{name} is declared in tflq/dialects/tfl/{declared}.py")
    if upper not in enum("BuiltinOperator").values:
        raise ValueError(
            f"{upper} is not in schema/tflite.json: install a newer `tflite` package, or add the operator, its options "
            "table and the member of BuiltinOptions2 to schema/tflite_new.toml; then run `scripts/make_data.py schema`"
        )
    declaration = ROOT / "tflq" / "dialects" / "tfl" / f"{family}.py"
    if not declaration.is_file():
        raise ValueError(f"{declaration.relative_to(ROOT)} does not exist: families are {', '.join(families())}")
    folder = ROOT / "tests" / "legalize" / "reference"
    test = (folder / family if (folder / family).is_dir() else folder) / f"test_{name}.py"
    if test.exists():
        raise ValueError(f"{test.relative_to(ROOT)} exists already")
    options = options_of(upper)
    fields = [f for f in (table(options).fields if options else ()) if f.kind != "union_type"]
    slots = [f"    {each}: Value = operand()" for each in operands]
    lines = [*slots, "    output: Value = result()", *map(attribute, fields)]

    inserted(declaration, r"\Z", DECLARATION.format(title=title, name=name, slots="\n".join(lines)))
    inserted(declaration, r"from tflq\.dialects\.declare import ", "attribute, " if fields else "")
    if any("Any" in line for line in lines):
        inserted(declaration, r"from __future__ import annotations\n", "\nfrom typing import Any\n")
    attributes = "{" + ", ".join(f'"{f.name}": {f.default!r}' for f in fields if f.kind == "scalar") + "}"
    test.write_text(TEST.format(upper=upper, name=name, count=len(operands), attributes=attributes), encoding="utf-8")
    written = [declaration, test]
    for arguments in (("check", "--fix", "--quiet"), ("format", "--quiet")):
        subprocess.run([Path(sys.executable).with_name("ruff"), *arguments, *written], cwd=ROOT, check=True)
    subprocess.run([sys.executable, "scripts/make_index.py"], cwd=ROOT, check=True)
    names = {"declaration": declaration, "test": test, "rules": ROOT / "tflq" / "legalize" / f"{family}.py"}
    return NEXT.format(upper=upper, title=title, **{key: path.relative_to(ROOT) for key, path in names.items()})


def families() -> list[str]:
    """The files in tflq/dialects/tfl that declare operators."""
    found = dialect("tfl")
    assert found is not None
    return sorted(found.families)


def main() -> int:
    """Writes the files and prints the next steps. Exit code 2 if that cannot be."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("name", help="tfl.foo")
    parser.add_argument("family", help=f"one of {', '.join(families())}")
    parser.add_argument("operands", nargs="*", default=["input"], help="names of the operands")
    arguments = parser.parse_args()
    try:
        print(begin(arguments.name.removeprefix("tfl.").lower(), arguments.family, arguments.operands))
    except ValueError as error:
        print(f"new_op: {error}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
