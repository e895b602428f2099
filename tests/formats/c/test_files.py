"""Files of C: all or none, names that the user or the model gives, the header, and what is refused."""

from __future__ import annotations

import hashlib
import re
import subprocess
from pathlib import Path
from typing import Final
from urllib.parse import unquote

import numpy as np
import pytest
from support.growing import activations
from support.harness import argument, const, one_op
from support.on_c import COMPILER, assert_passes, compiled, need_compiler, placed

import tflq
from tflq.cli import main
from tflq.formats.backend import Writing, backend
from tflq.formats.c.memory import Plan
from tflq.formats.c.names import comment, identifier
from tflq.formats.c.program import Program
from tflq.formats.c.unit import Unit
from tflq.formats.tflite.writer import write
from tflq.formats.tosa.write import tosa_bytes
from tflq.ir.module import Function, Module, Signature
from tflq.ir.ops import Buffer, Op, Value
from tflq.ir.types import TensorType, UniformQuantizedType, f32, i1, i8, i32
from tflq.numerics.kernel_sets import NAMES

MODELS: Final = Path(__file__).parents[3] / "models"
MODEL: Final = MODELS / "cnn_int8.tflite"
HOSTILE: Final = ("*/ int x; /*", "a\\", "??/", "\n#error", '"', "é*/", "\x00", "%2A/", "//", "@", "x" * 5000)
WORDS: Final = ("int", "9x", "a b", "a-b", "", "é", "x" * 65, "_x", "class", "int8_t", "a;b")


@need_compiler
@pytest.mark.parametrize("name", ["cnn_int8", "cnn_uint8", "cnn_int16x8", "arg_min", "log_softmax", "l2_normalization"])
def test_a_model_tests_itself(name: str, tmp_path: Path) -> None:
    tflq.convert(MODELS / f"{name}.tflite", tmp_path / "net.c")
    assert_passes(tmp_path / "net.c")
    header = subprocess.run(
        [COMPILER, "-x", "c++", "-std=c++17", "-Wall", "-Wextra", "-pedantic", "-fsyntax-only", tmp_path / "net.h"],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert "error" not in header.stderr


@pytest.mark.slow
@need_compiler
@pytest.mark.parametrize("kernel_set", NAMES)
def test_each_kernel_set_has_its_results(kernel_set: str, tmp_path: Path) -> None:
    """The self-test compares with the evaluator of the same conversion, verify with the integers of the TFLite file."""
    tflq.convert(MODEL, tmp_path / "net.c", kernel_set=kernel_set)
    assert f" * kernels: {kernel_set}; operators that differ: " in (tmp_path / "net.h").read_text()
    assert_passes(tmp_path / "net.c")
    integers = tflq.convert(MODEL, kernel_set=kernel_set).data
    result = tflq.verify(
        integers, tmp_path / "net.c", seeds=4, resolver="reference", interface=False, cc=f"{COMPILER} -O0"
    )
    assert result.equal


@pytest.mark.parametrize("name", ["reduce_sum", "concat"])
def test_a_source_of_tosa_that_tosa_does_not_allow_is_refused(name: str) -> None:
    x = argument((2, 3), i32)
    op = Op(f"tosa.{name}", [x], [Value(TensorType((2, 1 if name == "reduce_sum" else 3), i32), "y")], {"axis": 5})
    with pytest.raises(tflq.InvalidModelError, match="axis 5 is outside a rank of 2"):
        tflq.convert(tosa_bytes(Module([Function("main", [x], op.results, [op])])), format="c")


def test_a_long_chain_is_written_in_parts() -> None:
    """An expression is written by recursion, and is no deeper than Python allows."""
    text = tflq.convert(activations(600), format="c").files[".c"].decode()
    assert text.count("static void") > 1


def test_files_are_written_together_and_replaced_with_force_alone(tmp_path: Path) -> None:
    (tmp_path / "net.h").write_text("mine")
    with pytest.raises(tflq.FileError, match=r"net\.h: it exists already"):
        tflq.convert(MODEL, tmp_path / "net.c")
    assert not (tmp_path / "net.c").exists()
    assert (tmp_path / "net.h").read_text() == "mine"
    tflq.convert(MODEL, tmp_path / "net.c", force=True)
    first = (tmp_path / "net.c").read_bytes()
    conversion = tflq.convert(MODEL, tmp_path / "net.c", force=True)
    assert (tmp_path / "net.c").read_bytes() == first
    assert (tmp_path / "net.h").read_text().startswith("/*\n * net: cnn_int8.tflite, written by tflq ")
    assert hashlib.sha256(MODEL.read_bytes()).hexdigest() in first.decode()
    assert list(conversion.files) == [".c", ".h"]
    assert conversion.cost.bytes_out == sum(map(len, conversion.files.values()))


def test_the_command_takes_options_and_no_stream(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    assert (
        main.run(["convert", *map(str, (MODEL, tmp_path / "a.c")), "--data", "separate", "--name", "net", "--json"])
        == 0
    )
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.c", "a.h", "a_data.c"]
    assert f"{tmp_path / 'a_data.c'}" in capfd.readouterr().out
    assert "int net_run(" in (tmp_path / "a.h").read_text()
    assert main.run(["convert", str(MODEL), "-", "--format", "c"]) == 2
    assert "this format has several files, and a stream takes one" in capfd.readouterr().err
    assert main.run(["convert", str(MODEL), str(tmp_path / "b.tosa"), "--name", "net"]) == 2
    assert "a .tosa file has no option 'name'" in capfd.readouterr().err


def test_a_folder_gets_both_files_of_each_model(tmp_path: Path) -> None:
    models = [str(MODEL), str(MODELS / "pad.tflite")]
    assert main.run(["convert", *models, "-o", str(tmp_path / "out"), "--format", "c", "--workers", "1"]) == 0
    names = sorted(path.name for path in (tmp_path / "out").iterdir())
    assert names == ["cnn_int8.c", "cnn_int8.h", "pad.c", "pad.h"]


@need_compiler
@pytest.mark.parametrize("data", ["inline", "blob"])
def test_signatures_are_functions_of_one_file(data: str, tmp_path: Path) -> None:
    """They share constants and kernels; verify and its layers see both."""
    source, model = tmp_path / "net.c", MODELS / "two_signatures.tflite"
    conversion = tflq.convert(model, source, choices={"data": data})
    assert list(conversion.files)[:2] == [".c", ".h"]
    header = source.with_suffix(".h").read_text()
    for key in ("classify", "embed"):
        assert f"int net_{key}_run(const int8_t in0[256], int8_t out0[" in header
        assert f"#define NET_{key.upper()}_OUT0_SIZE" in header
    alone = [tflq.convert(model, format="c", signature=key).files[".h"].decode() for key in ("classify", "embed")]
    sizes = [int(text.partition("_CONSTANT_BYTES ")[2].split()[0]) for text in (header, *alone)]
    assert sizes[0] < sum(sizes[1:])
    result = tflq.verify(model, source, seeds=1, layers=True, cc=f"{COMPILER} -O0")
    assert result.equal
    assert {run.entry for run in result.runs} == {"classify", "embed"}
    assert result.layers is not None
    assert {each.entry for each in result.layers.every} == {"classify", "embed"}
    assert tflq.verify(source, source, seeds=1, cc=f"{COMPILER} -O0").equal
    if data == "inline":
        done = subprocess.run([compiled(source)], capture_output=True, text=True, check=False)
        assert done.stdout == "net_classify: pass\nnet_embed: pass\n"


@need_compiler
def test_signatures_of_hostile_keys_are_functions_of_their_own(tmp_path: Path) -> None:
    keys = ["a", "A", "a.b", "*/ int x; /*", "", "int", "x" * 500]
    xs = [argument((3,), i32) for _ in keys]
    ops = [Op("tosa.abs", [x], [Value(x.type, "y")], {}) for x in xs]
    functions = [Function(f"f{at}", [x], op.results, [op]) for at, (x, op) in enumerate(zip(xs, ops, strict=True))]
    signatures = [Signature(key, at, None, None) for at, key in enumerate(keys)]
    source = placed(backend("c").files(Module(functions, signatures), 0, None, Writing("net")), tmp_path, "net")
    compiled(source)
    header = source.with_suffix(".h")
    assert len({name.upper() for name in re.findall(r"int (net_\w+)_run", header.read_text())}) == len(keys)
    assert [unquote(key) for key in re.findall(r"Signature (.*)\. 0;", header.read_text())] == keys


@need_compiler
def test_a_signature_whose_key_begins_with_f_has_state(tmp_path: Path) -> None:
    """Functions that control flow calls, which have none, begin so, too."""
    functions: list[Function] = []
    state = {"name": "v"}
    variable = Op("tosa.variable", [const(np.asarray([5, -6, 7]), i8)], [], state)
    for key in ("first", "second"):
        x = argument((3,), i8)
        read = Op("tosa.variable_read", [], [Value(x.type, "y")], state)
        write = Op("tosa.variable_write", [x], [], state)
        functions.append(Function(key, [x], read.results, [*([] if functions else [variable]), read, write]))
    module = Module(functions, [Signature(f.name, at, None, None) for at, f in enumerate(functions)])
    source = placed(backend("c").files(module, 0, None, Writing("net")), tmp_path, "net")
    done = subprocess.run([compiled(source)], capture_output=True, text=True, check=False)
    assert done.stdout == "net_first: pass\nnet_second: pass\n"


def test_tosa_is_a_source_too(tmp_path: Path) -> None:
    tosa, direct = tmp_path / "net.tosa", tmp_path / "net.c"
    tflq.convert(MODEL, tosa)
    tflq.convert(tosa, direct)
    assert "int net_run(const int8_t in0[1728], int8_t out0[10], uint8_t *arena);" in (tmp_path / "net.h").read_text()


@need_compiler
@pytest.mark.parametrize("name", HOSTILE)
def test_a_name_of_a_tensor_stays_in_its_comment(name: str, tmp_path: Path) -> None:
    element = UniformQuantizedType.of(i8, 0.5, 0)
    values = [argument((2, 3), element, name) for _ in range(2)]
    model = one_op("tfl.relu", values[:1], values[1:], {})
    tflq.convert(model, tmp_path / "net.c")
    compiled(tmp_path / "net.c")
    text = (tmp_path / "net.h").read_text()
    assert text.isascii()
    assert set(comment(name, None)) <= set(comment("".join(map(chr, range(32, 127))), None))


@need_compiler
@pytest.mark.parametrize("stem", ["größe", "a b", "it's", "a%b", "日本", "\udcff"])
def test_a_header_is_included_by_its_name(stem: str, tmp_path: Path) -> None:
    """In a folder whose name C cannot include."""
    folder = tmp_path / 'a"b\n??/'
    folder.mkdir()
    tflq.convert(MODELS / "pad.tflite", folder / f"{stem}.c")
    assert tflq.verify(MODELS / "pad.tflite", folder / f"{stem}.c", seeds=1).equal


@pytest.mark.parametrize("stem", ['a"b', "a\\b", "a\nb", "a??b", "stdio", "String"])
def test_a_header_that_c_cannot_include_is_refused(stem: str, tmp_path: Path) -> None:
    with pytest.raises(tflq.OptionError, match="C cannot include a header of the name"):
        tflq.convert(MODELS / "pad.tflite", tmp_path / f"{stem}.c")
    assert not [*tmp_path.iterdir()]


def test_a_byte_of_a_name_that_is_not_utf8_is_that_byte() -> None:
    assert comment("a\udcffb") == "a%FFb"
    assert comment("\ud800é") == "%ED%A0%80%C3%A9"


@pytest.mark.parametrize("word", WORDS)
def test_a_word_of_c_is_no_name(word: str) -> None:
    with pytest.raises(tflq.OptionError, match="cannot begin the names of C's functions"):
        identifier(word)
    made = identifier(None, word)
    assert made.isidentifier()
    assert made.isascii()
    assert made not in WORDS


@pytest.mark.parametrize("name", ["cnn_int8", "cnn_uint8", "cnn_int16x8"])
def test_the_arena_is_nearly_the_least_that_there_is(name: str) -> None:
    module = tflq.convert(MODELS / f"{name}.tflite", format="c").module
    graph = Program(module).entries[0][1]
    plan: Plan = graph.plan
    spans = [*plan.spans.values(), *(span for row in plan.scratch for span in row)]
    last = max(span.last for span in spans)
    live = [sum(span.size for span in spans if span.first <= at <= span.last) for at in range(last + 1)]
    end = graph.size
    assert end <= 1.05 * max(live)
    for one in spans:
        for other in spans:
            apart = one.at + one.size <= other.at or other.at + other.size <= one.at
            over = one.at - other.at >= other.behind.get(one, end) or other.at - one.at >= one.behind.get(other, end)
            assert one is other or apart or over or one.last < other.first or other.last < one.first


@pytest.mark.parametrize(("ends", "type"), [((-128, 127), "int8_t"), ((-129, 5), "int16_t"), ((0, 40000), "int32_t")])
def test_constants_that_expressions_read_are_narrow(ends: tuple[int, int], type: str) -> None:
    unit = Unit()
    name = unit.numbers(np.asarray([*ends, 1]), i32)
    assert [key[0] for key, row in unit.constants.items() if row[0] == name] == [type]
    assert unit.numbers(np.asarray([1.5]), f32) != name


def test_an_open_batch_is_one(tmp_path: Path) -> None:
    element = UniformQuantizedType.of(i8, 0.5, 0)
    model = one_op("tfl.relu", [argument((None, 3), element)], [argument((None, 3), element, "y")], {})
    tflq.convert(model, tmp_path / "net.c")
    assert "const int8_t in0[3]" in (tmp_path / "net.h").read_text()
    tflq.convert(model, tmp_path / "net.c", batch=4, force=True)
    assert "const int8_t in0[12]" in (tmp_path / "net.h").read_text()


@need_compiler
def test_copies_of_windows_do_not_raise_the_arena(tmp_path: Path) -> None:
    """A product of 4000 inputs reads them where they are: a copy would be all of the arena."""
    x, y = (Value(TensorType((1, n), UniformQuantizedType.of(i8, 0.1)), name) for n, name in ((4000, "x"), (4, "y")))
    weights = np.random.default_rng(1).integers(-9, 10, (4, 4000)).astype(np.int8)
    w = Value(TensorType((4, 4000), UniformQuantizedType.of(i8, 0.01)), "w", buffer=Buffer.of(weights))
    op = Op("tfl.fully_connected", [x, w, None], [y], {})
    (tmp_path / "model.tflite").write_bytes(bytes(write(Module([Function("main", [x], [y], [op])]))))
    tflq.convert(tmp_path / "model.tflite", tmp_path / "net.c")
    assert int(re.findall(r"NET_ARENA_BYTES (\d+)", (tmp_path / "net.h").read_text())[0]) < 100
    assert_passes(tmp_path / "net.c")


@need_compiler
def test_constants_of_truth_values(tmp_path: Path) -> None:
    places, depth = argument((4,), i32, "places"), const(np.asarray(3), i32)
    on, off = (const(np.asarray(value), i1) for value in (True, False))
    model = one_op("tfl.one_hot", [places, depth, on, off], [argument((4, 3), i1, "y")], {"axis": -1})
    tflq.convert(model, tmp_path / "net.c")
    assert_passes(tmp_path / "net.c")
