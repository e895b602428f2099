"""Files that commands read, damaged at random: each is refused in a sentence, with exit code 2 or 3, or still valid."""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from support.damaging import damaged_bytes, damaged_json, damaged_lines, damaged_toml
from support.made_results import differing, passing, refused

from tflq.analysis.statistics import PointStatistics, Statistics, read_statistics, write_statistics
from tflq.base.documents import DocumentError, parse_json
from tflq.base.errors import FileError, InvalidModelError, OptionError
from tflq.base.files import resource
from tflq.formats.tflite.lowering.cost import load_costs
from tflq.formats.tosa.rules import load_target as load_tosa_target
from tflq.targets.load import load_kernels, load_target
from tflq.targets.target import RulesFile
from tflq.tools.quantize.methods import methods_of
from tflq.tools.quantize.peer_recipe import read_peer_recipe
from tflq.tools.quantize.recipe import Settings, opened_recipe, read_recipe
from tflq.tools.quantize.regions.fusion import patterns
from tflq.tools.quantize.regions.tensor_constraints import constrain_by_file, named_in
from tflq.tools.samples.labels import labels_of
from tflq.tools.sweep.baseline import compare, entry_of, merge, options_of, read_entries, write_baseline
from tflq.tools.sweep.fields import Answer
from tflq.tools.sweep.manifest import find_models, pin
from tflq.tools.sweep.page import markdown, summary_of, write, write_junit
from tflq.tools.sweep.store import Selection, read_results
from tflq.tools.sweep.task import Ending, Model, from_ending, new_result
from tflq.tools.verify.interface import reported
from tflq.tools.verify.runner import _Head
from tflq.tools.verify.runtimes import _Metadata

COUNT = 200
REFUSED = (FileError, InvalidModelError, OptionError)

SETTINGS = {
    "format": "tflq.sweep",
    "version": 1,
    "settings": {"targets": ["integer"], "only": [], "shard": [1, 2], "seconds": 300.0, "bytes": 1 << 32},
    "fingerprint": {"tflq": "2.0.0", "seeds": 2, "convert": {"mac": "float32"}, "cpu": "a CPU"},
    "sources": ["zoo"],
    "jobs": [["nets/net_0000", "integer"], ["nets/net_0001", "integer"]],
    "incomplete": ["part 2/2 is not among them"],
}
RESULTS = [passing(0), differing("off"), refused("no", "CUSTOM: unknown"), passing(1) | {"artifacts": "artifacts/x--y"}]
MANIFEST = f"""version = 1
targets = ["integer", "kernels"]

[[model]]
id = "net"
path = "net.tflite"
sha256 = "{"0" * 64}"
verified = true
inputs = "net.npz"
shapes = {{ image = [1, 8, 8, 3] }}

[[model]]
kaggle = "google/mobilenet/tfLite/one/1"
file = "*.tflite"
source = "a page"
targets = ["tosa"]

[[model.expect]]
status = "refused"
targets = ["tosa"]
reason = "a custom operator"

[[expect]]
match = "net*"
status = "original-fails"
reason = "an old operator"
"""
RECIPE = """[[rule]]
name = "block_?/*"
scheme = "int16x8"
range = "percentile:99.9"

[[rule]]
operator = "fully_connected"
from = "a"
to = "b"
scheme = "weight-only"
weights = "int4"
"""
TARGET = """[target]
name = "npu"
base = "integer"
entries = "all"

[kernels]
conv_2d = "qi8 qi8:0 qi32? -> qi8; multiplier_accumulator_scale"
abs = ["qi8 -> qi8", "qi16 -> qi16"]

[rescale]
unsigned = ["add"]

[builtins]
add = "f32 f32 -> f32 | i32 i32 -> i32"
mul = "f32 f32 -> f32"

[floats]
run = ["softmax"]
"""
TOSA = """[target]
profiles = ["pro_int"]
extensions = ["int16", "mine"]
level = "8k"

[extends]
mine = "pro_int"

[level.mine]
rank = 6

[extension.mine]
add = "i16 i16 -> i16"
"""
TENSORS = """[tensors]
"in" = "!quant.uniform<i8:f32, 0.5>"
"out*" = "!quant.any<i16:f32>"
"x" = "none"
"""
ROW = {"subgraph": 0, "operator": 3, "exception": "x", "warning": "it differs", "operands": ["qi8"]}
REPORT = {"format": "tflq.report", "version": 2, "rows": [ROW, ROW | {"operator": 4}], "warnings": []}
CALIBRATED = {"model_qsvs": {"a": {"min": [-1.5], "max": [[2.5]]}, "b": {}}, "metadata": {"num_samples_calibrated": 4}}
METADATA = {
    "tflq.exact_in": ["onnxruntime"],
    "tflq.tensors": {"conv": ["conv_1", -128, True, "int8"], "add": ["y", 0, False, "int32"]},
    "tflq.state": {"y": "state"},
    "tflq.start": {"x": [0, 1.5]},
}
HEAD = {
    "interpreter": "onnxruntime 1",
    "inputs": [["x", "int8", [None, 3]], ["state", "float32", [1]]],
    "outputs": [["y", "int8", [1]], ["z", "float32", []]],
    "metadata": {},
}
TENSOR = {
    "name": "x",
    "shape": [1],
    "shape_signature": [-1],
    "dtype": "int8",
    "scales": [0.5],
    "zero_points": [0],
    "axis": 0,
}
OPENED = {"interpreter": "litert", "entries": {"": {"inputs": [["x", TENSOR]], "outputs": [["y", TENSOR]]}}}


@dataclass(frozen=True)
class Kind:
    """Files of one kind: what they are called, a valid one, how it is damaged, and what reads it."""

    name: str
    valid: str
    damage: Callable[[str, random.Random], bytes]
    read: Callable[[Path], object]


def _baseline(path: Path) -> None:
    compare(read_entries(path), read_entries(path))
    options_of(path)


def _results(path: Path) -> None:
    path.with_name("sweep.json").write_text(json.dumps(SETTINGS))
    summary = summary_of(path.parent)
    markdown(summary)
    write_junit(read_results(path.parent), path.with_name("junit.xml"), missing=summary.missing)
    write_baseline(read_results(path.parent), path.with_name("baseline.json"))
    read_entries(path.with_name("baseline.json"))
    Selection(failed_from=path.parent).test()
    [entry_of(result) for result in read_results(path.parent)]


def _page(path: Path) -> None:
    path.with_name("sweep.json").write_text(json.dumps(SETTINGS))
    write(read_results(path.parent), path.with_name("index.html"), [path.parent], [], summary_of(path.parent))


def _settings(path: Path) -> None:
    lines = "".join(json.dumps(result) + "\n" for result in RESULTS)
    path.with_name("results.jsonl").write_text(lines)
    other = path.parent / "other"
    other.mkdir(exist_ok=True)
    (other / "results.jsonl").write_text("")
    (other / "sweep.json").write_text(json.dumps(SETTINGS | {"incomplete": []}))
    summary_of(path.parent)
    merge([path.parent, other], path.parent / "merged", force=True)


def _manifest(path: Path) -> None:
    find_models([path])
    pin(path, {"google/mobilenet/tfLite/one/1": "1" * 64})


def _statistics(path: Path) -> None:
    read_statistics(path)


def _target(path: Path) -> None:
    load_target(path)
    load_kernels(path)


def _tensors(path: Path) -> None:
    named_in(path)("in")
    try:
        constrain_by_file(MODULE, path)
    except OptionError as error:
        if "no tensor between kernels has such a name" not in str(error):
            raise


def _metadata(path: Path) -> None:
    texts = parse_json(path.read_bytes(), dict[str, object])
    texts = {key: json.dumps(value) for key, value in texts.items()}
    _Metadata(str(path), HEAD | {"metadata": texts})


def _answer(path: Path) -> None:
    """What a child of a sweep answers, which becomes a result."""
    found = from_ending(Ending("answer", parse_json(path.read_bytes(), Answer)))
    result = new_result(Model("net", path="net.tflite"), "integer", found, {"tflq": "2.0.0"})
    path.with_name("results.jsonl").write_text(json.dumps(result) + "\n")
    _page(path.with_name("results.jsonl"))


def _head(path: Path) -> None:
    parse_json(path.read_bytes(), _Head)


def _recipe(path: Path) -> None:
    file = opened_recipe(path)
    read_recipe(file, (), Settings("int8"))
    methods_of(file if isinstance(file, RulesFile) else None, "minmax")


def _labels(path: Path) -> None:
    labels_of(path.parent, path, "labels")


METHODS = 'range = "percentile:99.9"\nequalize = true\nheadroom = false\n'
_CONFIG = {
    "activation_tensor_config": {"num_bits": 8, "symmetric": False},
    "weight_tensor_config": {"num_bits": 8, "granularity": "BLOCKWISE_32"},
    "compute_precision": "INTEGER",
    "min_weight_elements": 3,
}
PEER = [{"regex": ".*", "operation": "*", "algorithm_key": "MSE", "op_config": _CONFIG}]
LABELS = "name,class\na.png,1\nb.png,2.5\n"


def _module() -> Any:
    import tflq

    return tflq.read(Path(__file__).parents[1] / "models" / "mul_per_axis.tflite")


MODULE = _module()


def _text_of(write: Callable[[Path], None], folder: Path) -> str:
    path = folder / f"valid-{len(list(folder.iterdir()))}"
    write(path)
    return path.read_text()


def kinds(folder: Path) -> Sequence[Kind]:
    """All kinds of files of text that commands read."""
    point = PointStatistics(
        9, -1.0, 2.0, 1, (-1.0, 0.0), (2.0, 1.0), (-1.0, None), (2.0, None), {-3: 4, 5: 5}, 1, 2, "d"
    )
    seen = Statistics({"conv": point, "never": PointStatistics(0)}, ("a", "b"))
    baseline = _text_of(lambda path: write_baseline(RESULTS, path), folder)
    lines = "".join(json.dumps(result) + "\n" for result in RESULTS)
    measured = {
        key: value for key, value in differing("x").items() if key not in ("format", "id", "model", "fingerprint")
    }
    return (
        Kind("baseline.json", baseline, damaged_json, _baseline),
        Kind("results.jsonl", lines, damaged_lines, _results),
        Kind("results.jsonl", lines, damaged_lines, _page),
        Kind("sweep.json", json.dumps(SETTINGS), damaged_json, _settings),
        Kind("models.toml", MANIFEST, damaged_toml, _manifest),
        Kind("statistics.json", _text_of(lambda path: write_statistics(path, seen), folder), damaged_json, _statistics),
        Kind("calibrated.json", json.dumps(CALIBRATED), damaged_json, _statistics),
        Kind("recipe.toml", METHODS + RECIPE, damaged_toml, _recipe),
        Kind("recipe.json", json.dumps(PEER), damaged_json, lambda path: read_peer_recipe(path, MODULE)),
        Kind("labels.csv", LABELS, lambda text, rng: damaged_bytes(text.encode(), rng), _labels),
        Kind("target.toml", TARGET, damaged_toml, _target),
        Kind("tosa.toml", TOSA, damaged_toml, load_tosa_target),
        Kind("tensors.toml", TENSORS, damaged_toml, _tensors),
        Kind("fusion.toml", Path(resource("rules/fusion.toml")).read_text(), damaged_toml, patterns),
        Kind("costs.json", Path(resource("rules/costs.json")).read_text(), damaged_json, load_costs),
        Kind("report.json", json.dumps(REPORT), damaged_json, reported),
        Kind("printed.json", json.dumps({"report": REPORT}), damaged_json, reported),
        Kind("metadata.json", json.dumps(METADATA), damaged_json, _metadata),
        Kind("head.json", json.dumps(OPENED), damaged_json, _head),
        Kind("answer.json", json.dumps(measured), damaged_json, _answer),
    )


with TemporaryDirectory() as _folder:
    KINDS = kinds(Path(_folder))


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS, ids=[f"{kind.name} {number}" for number, kind in enumerate(KINDS)])
def test_a_damaged_file_is_refused_in_a_sentence(tmp_path: Path, kind: Kind) -> None:
    rng = random.Random(KINDS.index(kind))
    accepted = 0
    (tmp_path / "net.tflite").write_bytes(b"")
    for _ in range(COUNT):
        path = tmp_path / kind.name
        path.write_bytes(kind.damage(kind.valid, rng))
        said = _refusal(kind, path)
        accepted += said is None
        assert said is None or (said and len(said) < 700)
    assert 0 < accepted < COUNT


def _refusal(kind: Kind, path: Path) -> str | None:
    """The sentence by which a file is refused; None for one that is still valid."""
    try:
        kind.read(path)
    except (*REFUSED, DocumentError) as error:
        named = isinstance(error, DocumentError) or str(error).startswith(str(path.parent))
        return str(error).splitlines()[0] if named else ""
    return None
