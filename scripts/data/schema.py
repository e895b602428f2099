"""schema/tflite.json and schema/tosa_flatbuffer.json: slot, type and default of every field of every table.

TOSA's come from tosa.fbs of tosa-tools. TFLite's come from the classes of the installed `tflite` package, one module
per table, enum or union: a table's `Start` gives its number of slots, its `Add*` functions slot, scalar type and
default, its accessors what an offset leads to. `schema/tflite_new.toml` adds what those classes do not say. The lines
are as `tflq/formats/flatbuffer/layout.py` reads them: in JSON, since every conversion does.
"""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Iterator, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any, TypeVar

SCHEMA = Path(__file__).resolve().parents[2] / "schema"
FBS_SCALARS = {"ubyte": "uint8", "ulong": "uint64"}
T = TypeVar("T")

UNIONS = ("BuiltinOptions", "BuiltinOptions2", "QuantizationDetails", "SparseIndexVector")
SCALAR_NAMES = {"Bool": "bool", "Float32": "float32", "Float64": "float64"}
ADD = re.compile(r"def \w+Add(\w+)\(builder, \w+\):\n +builder\.Prepend(\w+)Slot\((\d+), .*, ([^)]+)\)\n")


def snake(name: str) -> str:
    """`StrideW` -> `stride_w`."""
    return re.sub(r"(?<!^)(?=[A-Z])", "_", name).lower()


def scalar(name: str) -> str:
    """`Int32` -> `int32`."""
    return SCALAR_NAMES.get(name, name.lower())


def found(value: T | None, what: str) -> T:
    """What was looked for; ValueError if it is not there."""
    if value is None:
        raise ValueError(f"not found: {what}")
    return value


class Generator:
    """Turns the modules of the package into lines; `facts` is tflite_new.toml."""

    def __init__(self, package: Path, facts: dict[str, Any]) -> None:
        self.sources = {p.stem: p.read_text() for p in sorted(package.glob("[A-Z]*.py"))}
        self.facts = facts
        self.enums: dict[str, dict[str, int]] = {}
        self.widths: dict[str, str] = {}

    def tables(self) -> dict[str, str]:
        """Every table's line."""
        lines = {}
        for name, text in self.sources.items():
            if match := re.search(r"builder\.StartObject\((\d+)\)", text):
                fields = " ".join(self.fields(name, text, int(match[1])))
                lines[name] = f"{fields} {self.facts['append'].get(name, '')}".strip()
        return dict(sorted((lines | self.facts["table"]).items()))

    def fields(self, table: str, text: str, slots: int) -> Iterator[str]:
        known = {int(slot): (name, kind, default) for name, kind, slot, default in ADD.findall(text)}
        slot = 0
        while slot < slots:
            if slot in known:
                name, kind, default = known[slot]
                field = self.facts["rename"].get(snake(name), snake(name))
                base = field.removesuffix("_type")
                base = self.facts["rename"].get(base, base)
                if field.endswith("_type") and base in self.facts["union_of"]:
                    yield f"{base}:{self.facts['union_of'][base]}"
                    slot += 2
                    continue
                yield self.field(table, field, name, kind, default, text)
            else:
                yield self.facts["deprecated"][f"{table}.{slot}"]
            slot += 1

    def field(self, table: str, field: str, accessor: str, kind: str, default: str, text: str) -> str:
        enum_of = self.facts["enum_of"]
        own_enum = enum_of.get(f"{table}.{field}")
        body = re.search(rf"    def {accessor}\(self.*?\n\n", text, re.DOTALL)
        body = found(body, f"accessor of {table}.{field}")
        if kind != "UOffsetTRelative":
            plain = scalar(kind)
            if enum := own_enum or enum_of.get(field):
                plain = self.enum(enum, plain)
            number = float(default)
            return f"{field}:{plain}" + (f"={number:g}" if number else "")
        if "_tab.String(" in body[0]:
            return f"{field}:string"
        if child := re.search(r"from tflite\.(\w+) import", body[0]):
            return f"{field}:[{child[1]}]" if "_tab.Vector(" in body[0] else f"{field}:{child[1]}"
        item = re.search(r"number_types\.(\w+)Flags, a \+", body[0])
        element = scalar(found(item, f"elements of {table}.{field}")[1])
        if enum := own_enum:
            element = self.enum(enum, element)
        align = self.facts["align"].get(f"{table}.{field}")
        return f"{field}:[{element}]" + (f"@{align}" if align else "")

    def enum(self, name: str, scalar: str) -> str:
        """The enum's name, once its underlying type is noted; ValueError if fields of two types are said to hold it."""
        if self.widths.setdefault(name, scalar) != scalar:
            raise ValueError(f"{name} is both {self.widths[name]} and {scalar}")
        return name

    def members(self, name: str) -> str:
        """An enum's members in order of value."""
        pairs = re.findall(r"^    (\w+) = (-?\d+)$", self.sources[name], re.MULTILINE)
        added = [m.split("=") for m in self.facts["enum"].get(name, "").split()]
        values = {member: int(value) for member, value in [*pairs, *added]}
        out, last = [], -1
        for member, value in sorted(values.items(), key=lambda item: item[1]):
            out.append(member if value == last + 1 else f"{member}={value}")
            last = value
        return " ".join(out)

    def text(self) -> str:
        tables = self.tables()
        enums = sorted(self.widths)
        sections = {
            "table": tables,
            "enum": {n: f"{self.widths[n]} {self.members(n)}" for n in enums},
            "union": {n: self.members(n) for n in UNIONS},
            **{key: self.facts[key] for key in ("options", "oldest_tried", "runtime")},
        }
        return document("the `tflite` package and tflite_new.toml", sections)


def document(source: str, sections: dict[str, Any]) -> str:
    """The text of a file of sections."""
    about = f"Generated by scripts/make_schema.py from {source}: do not edit."
    return json.dumps({"about": about, **sections}, indent=1, ensure_ascii=False) + "\n"


def generate() -> str:
    """The text of schema/tflite.json."""
    origin = found(find_spec("tflite"), "the `tflite` package").origin
    facts = tomllib.loads((SCHEMA / "tflite_new.toml").read_text())
    return Generator(Path(found(origin, "the `tflite` package")).parent, facts).text()


def fbs_field(declaration: str) -> str:
    """`data: [ubyte] (force_align: 8)` -> `data:[uint8]@8`."""
    name, kind, default, align = found(
        re.fullmatch(r"(\w+) *: *(\[?\w+\]?)(?: *= *(\S+))?(?: *\((?:force_align: *(\d+)|required)\))?", declaration),
        declaration,
    ).groups()
    element = kind.strip("[]")
    kind = kind.replace(element, FBS_SCALARS.get(element, element))
    default = {"true": "1", "0": None}.get(default, default)
    return f"{name}:{kind}" + (f"={default}" if default else "") + (f"@{align}" if align else "")


def fbs_members(body: str) -> str:
    """Members of an enum, without values that follow from their place."""
    out, last = [], -1
    for member in filter(None, (m.strip() for m in body.split(","))):
        name, _, value = (part.strip() for part in member.partition("="))
        number = int(value) if value else last + 1
        out.append(name if number == last + 1 else f"{name}={number}")
        last = number
    return " ".join(out)


def tosa_text(schema: str) -> str:
    """The text of schema/tosa_flatbuffer.json, from that of tosa.fbs."""
    plain = re.sub(r"//.*", "", schema)
    sections: dict[str, dict[str, str]] = {"table": {}, "enum": {}, "union": {}}
    for kind, name, scalar, body in re.findall(r"(table|enum|union) (\w+) *:? *(\w*) *\{(.*?)\}", plain, re.DOTALL):
        if kind == "table":
            line = " ".join(fbs_field(" ".join(f.split())) for f in body.split(";") if f.strip())
        else:
            line = f"{scalar} {fbs_members(body)}" if kind == "enum" else f"NONE {fbs_members(body)}"
        sections[kind][name] = line
    lines = {section: dict(sorted(lines.items())) for section, lines in sections.items()}
    return document("tosa.fbs of the `tosa-tools` package", lines)


def generate_tosa() -> str | None:
    """The text of schema/tosa_flatbuffer.json; None where tosa-tools is not installed."""
    package = find_spec("tosa_serializer")
    if package is None or package.origin is None:
        return None
    return tosa_text((Path(package.origin).parents[1] / "bin" / "tosa.fbs").read_text())


def main(_: Sequence[str] = ()) -> None:
    """Writes both files; that of TOSA only where tosa-tools is installed."""
    texts = {SCHEMA / "tflite.json": generate(), SCHEMA / "tosa_flatbuffer.json": generate_tosa()}
    for target, text in texts.items():
        if text is None:
            print(f"{target.name} is left as it is: tosa-tools is not installed")
        else:
            target.write_text(text)
