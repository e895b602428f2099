"""The layout of TOSA's flatbuffer: the schema file is what the script makes of tosa-tools' own schema."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from scripts.data import schema as script
from tflq.base.files import resource
from tflq.formats.flatbuffer.layout import TOSA
from tflq.ir.ops import op_names

ROOT = Path(__file__).resolve().parents[4]


def test_schema_file_is_what_the_script_makes() -> None:
    text = script.generate_tosa()
    if text is None:
        pytest.skip("needs tosa-tools: pip install '.[tosa]'")
    assert Path(resource("schema/tosa_flatbuffer.json")).read_text() == text


def test_declarations_of_the_schema_language() -> None:
    schema = """
    enum Kind:uint32 { NONE = 0, ONE, FIVE = 5, SIX }  // a comment
    union Any { Leaf, Tree, }
    table Leaf { data: [ubyte] (force_align: 8); large:ulong = 0; on: bool = true; below: int32 = -1; }
    table Tree { names:[string]; kind:Kind; leaf:Leaf (required); any:Any; }
    """
    document = json.loads(script.tosa_text(schema))
    assert list(document) == ["about", "table", "enum", "union"]
    assert document["table"] == {
        "Leaf": "data:[uint8]@8 large:uint64 on:bool=1 below:int32=-1",
        "Tree": "names:[string] kind:Kind leaf:Leaf any:Any",
    }
    assert document["enum"] == {"Kind": "uint32 NONE ONE FIVE=5 SIX"}
    assert document["union"] == {"Any": "NONE Leaf Tree"}


def test_operators_and_their_attributes_have_one_order() -> None:
    operators, tables = TOSA.enum("Op").names, TOSA.union("Attribute").names
    assert operators.keys() == tables.keys()
    for code, name in operators.items():
        if code:
            assert tables[code].removesuffix("Attribute").lower() == name.replace("_", "").lower()


def test_every_op_of_the_dialect_has_an_operator() -> None:
    assert {name.removeprefix("tosa.").upper() for name in op_names("tosa")} <= TOSA.enum("Op").values.keys()


def test_kinds_of_fields() -> None:
    tensor, operator = TOSA.table("TosaTensor").by_name, TOSA.table("TosaOperator").by_name
    assert (tensor["data"].kind, tensor["data"].align) == ("vector", 8)
    assert operator["inputs"].kind == "strings"
    assert (operator["attribute"].kind, operator["inputs"].slot) == ("union", 3)
    assert TOSA.table("Version").by_name["_draft"].default is True
