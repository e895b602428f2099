"""The layout tables against the classes that the `tflite` package has for the same schema."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any

import flatbuffers
import pytest
import tflite

from scripts.data import schema
from tflq.base.files import resource
from tflq.formats.flatbuffer.codec import decode, encode
from tflq.formats.flatbuffer.layout import Field, enum, options_of, table, union

MODULES = {
    path.stem: import_module(f"tflite.{path.stem}")
    for path in sorted(Path(inspect.getfile(tflite)).parent.glob("[A-Z]*.py"))
}
TABLES = [name for name, module in MODULES.items() if hasattr(module, "Start")]
NAMESPACES = [name for name in MODULES if name not in TABLES]
UNIONS = ["BuiltinOptions", "BuiltinOptions2", "QuantizationDetails", "SparseIndexVector"]


def camel(name: str) -> str:
    return "".join(part[:1].upper() + part[1:] for part in name.split("_"))


def adder(module: ModuleType, field: Field) -> Callable[[Any, Any], None] | None:
    """The function that adds a field to a table; deprecated fields and those newer than the package have none."""
    found: Callable[[Any, Any], None] | None = getattr(module, f"Add{camel(field.name)}", None)
    return found


def numbers(name: str) -> list[Field]:
    """A table's numbers that can differ from their default and that the package knows."""
    fields = [f for f in table(name).fields if f.kind == "scalar" or (f.kind == "enum" and len(enum(f.type).names) > 1)]
    return [f for f in fields if adder(MODULES[name], f)]


def another(field: Field) -> int:
    """A number that is not the field's default."""
    return 0 if field.default else 1


@pytest.mark.parametrize("name", TABLES)
def test_numbers_that_the_package_writes_are_read_from_the_same_fields(name: str) -> None:
    module = MODULES[name]
    for field in numbers(name):
        builder = flatbuffers.Builder()
        module.Start(builder)
        add = adder(module, field)
        assert add is not None
        add(builder, another(field))
        builder.Finish(module.End(builder))
        value = decode(bytes(builder.Output()), name)[field.name]
        assert value == (enum(field.type).names[another(field)] if field.kind == "enum" else another(field)), field


@pytest.mark.parametrize("name", TABLES)
def test_numbers_written_are_what_the_package_reads(name: str) -> None:
    cls = getattr(MODULES[name], name)
    fields = numbers(name)
    values = {f.name: enum(f.type).names[another(f)] if f.kind == "enum" else another(f) for f in fields}
    read = cls.GetRootAs(encode(values, name))
    for field in fields:
        assert getattr(read, camel(field.name))() == another(field), field


@pytest.mark.parametrize("name", TABLES)
def test_defaults_are_those_of_the_package(name: str) -> None:
    builder = flatbuffers.Builder()
    MODULES[name].Start(builder)
    builder.Finish(MODULES[name].End(builder))
    data = bytes(builder.Output())
    theirs, ours = getattr(MODULES[name], name).GetRootAs(data), decode(data, name)
    for field in numbers(name):
        value = enum(field.type).values[ours[field.name]] if field.kind == "enum" else ours[field.name]
        assert value == getattr(theirs, camel(field.name))(), field


@pytest.mark.parametrize("name", NAMESPACES)
def test_members_are_those_of_the_package(name: str) -> None:
    declared = union(name) if name in UNIONS else enum(name)
    theirs = {k: v for k, v in vars(getattr(MODULES[name], name)).items() if not k.startswith("_")}
    assert {k: declared.values[k] for k in theirs} == theirs
    assert len(declared.names) == len(declared.values)


def test_schema_file_is_what_the_script_makes_of_the_package() -> None:
    assert Path(resource("schema/tflite.json")).read_text() == schema.generate()


def test_every_layout_can_be_parsed_and_its_slots_are_dense() -> None:
    for name in [*TABLES, "BlockwiseQuantization", "MultiAxisQuantization", "ExternalBuffer", "StablehloCaseOptions"]:
        fields = table(name).fields
        assert [f.slot for f in fields] == list(range(len(fields)))
        assert len({f.name for f in fields}) == len(fields)


@pytest.mark.parametrize(
    ("operator", "options"),
    [
        ("CONV_2D", "Conv2DOptions"),
        ("L2_NORMALIZATION", "L2NormOptions"),
        ("REDUCE_ALL", "ReducerOptions"),
        ("STABLEHLO_CASE", "StablehloCaseOptions"),
        ("STABLEHLO_COMPOSITE", "StableHLOCompositeOptions"),
        ("LOGISTIC", None),
        ("CUSTOM", None),
    ],
)
def test_options_of_an_operator(operator: str, options: str | None) -> None:
    assert options_of(operator) == options


def test_a_missing_resource_says_where_it_was_looked_for() -> None:
    with pytest.raises(FileNotFoundError, match=r"schema/none\.toml is neither in .*tflq"):
        resource("schema/none.toml")
