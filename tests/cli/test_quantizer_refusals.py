"""What `tflq calibrate`, `quantize` and `debug` refuse: a sentence that says why, an exit code, and no file."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from support.float_nets import dense, net, samples, written

import tflq
from tflq.cli import main
from tflq.ir.module import Function, Module, Signature
from tflq.ir.ops import Op, Value
from tflq.ir.types import TensorType, f32

pytest.importorskip("ai_edge_litert", reason="needs the interpreter")
CALIBRATE = "calibrate model.tflite {} -o out.json"
STATED = "quantize model.tflite out.tflite --statistics good.json {}"
RULE = '[[rule]]\nname = "{}"\n'


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Networks, samples, statistics, recipes and targets, good and bad."""
    path = tmp_path_factory.mktemp("refusals")
    written(path, net())
    written(path, net(1), "other.tflite")
    data = samples(8)
    np.savez(path / "data.npz", given=data)
    np.savez(path / "none.npz", given=data[:0])
    np.savez(path / "shape.npz", given=data[:, :3])
    np.savez(path / "dtype.npz", given=data.astype(np.float64))
    np.savez(path / "missing.npz", one=data, two=data)
    np.savez(path / "empty.npz")
    np.savez(path / "nan.npz", given=np.where(np.arange(8) == 3, np.nan, data).astype(np.float32))
    (path / "cut.npz").write_bytes((path / "data.npz").read_bytes()[:300])
    (path / "bad").mkdir()
    for place in range(3):
        np.save(path / "bad" / f"{place}.npy", data[place])
    (path / "bad" / "1.npy").write_bytes((path / "bad" / "0.npy").read_bytes()[:140])
    (path / "images").mkdir()
    (path / "images" / "a.png").write_bytes(b"")
    (path / "classes" / "1").mkdir(parents=True)
    (path / "classes" / "1" / "a.png").write_bytes(b"")
    (path / "y.csv").write_text("1\n" * 8)
    (path / "metric.py").write_text("def metric(floats, quantized):\n    return 1.0\n")
    for name in ("model", "other"):
        found = path / ("good.json" if name == "model" else "other.json")
        tflq.calibrate(path / f"{name}.tflite", path / "data.npz", found)
    good = (path / "good.json").read_text()
    (path / "newer.json").write_text(json.dumps(json.loads(good) | {"version": 99}))
    (path / "cut.json").write_text(good[:500])
    tflq.quantize(path / "model.tflite", path / "int8.tflite", statistics=path / "good.json")
    few = {"op_config": {"weight_tensor_config": {"num_bits": 5, "granularity": "BLOCKWISE_x"}}}
    first = {"regex": "second", "operation": "*", "algorithm_key": "no_quantize"}
    (path / "peer.json").write_text(json.dumps([first, {"regex": ".*", "operation": "*"} | few]))
    (path / "regex.json").write_text(json.dumps([first | {"regex": "("}]))
    for name, text in {
        "typo": RULE.format("secnd") + 'scheme = "float"\n',
        "key": RULE.format("second") + 'sceme = "float"\n',
        "table": '[[rules]]\nname = "second"\n',
        "blocks": RULE.format("*") + 'scheme = "dynamic"\nweights = "int4"\nblocks = 32\n',
        "tanh": RULE.format("*") + 'scheme = "weight-only"\nweights = "int4"\n[[rule]]\noperator = "relu6"\n',
        "nothing": '[target]\nname = "npu"\n[kernels]\nrelu6 = []\n',
        "section": '[target]\nname = "npu"\n[[kernel]]\nop = "add"\n',
        "coupling": '[kernels]\ntanh = "qi8 -> qi8; same_scal"\n',
    }.items():
        (path / f"{name}.toml").write_text(text)
    return path


@pytest.mark.slow
@pytest.mark.parametrize(
    ("command", "code", "parts"),
    [
        (CALIBRATE.format("none.npz"), 2, ["there are no samples to calibrate with"]),
        (CALIBRATE.format("shape.npz"), 2, ["'given' has the shape (1, 8)", "row 0 of shape.npz (3,)"]),
        (CALIBRATE.format("dtype.npz"), 2, ["'given' is float32", "dtype.npz is float64"]),
        (CALIBRATE.format("missing.npz"), 2, ["has no array 'given', which is an input", "known are one, two"]),
        (CALIBRATE.format("empty.npz"), 2, ["has no array 'given'", "np.savez(path, name=array)"]),
        (CALIBRATE.format("nan.npz"), 2, ["nan.npz: sample 0 gives NaN or infinity at 'x'", "--ignore-nonfinite"]),
        (CALIBRATE.format("cut.npz"), 2, ["cut.npz: not a readable .npz file"]),
        (CALIBRATE.format("bad"), 2, ["1.npy: not a readable .npy file"]),
        (CALIBRATE.format("images"), 2, ["images need a mean and a scale", "--mean"]),
        (CALIBRATE.format("data.npz --signature run"), 2, ["no signature 'run'", "'serve'"]),
        (
            "calibrate merge good.json other.json -o out.json",
            2,
            ["other.json: the statistics of 'first' have another digest", "of one model"],
        ),
        ("quantize model.tflite out.tflite", 2, ["nothing in the network says how", "tflq calibrate"]),
        ("quantize model.tflite out.tflite --calibration nan.npz", 2, ["tflq calibrate --ignore-nonfinite"]),
        ("quantize model.tflite out.tflite --statistics other.json", 2, ["'first' are of another model"]),
        (
            "quantize model.tflite out.tflite --statistics newer.json",
            2,
            ["newer.json:1: ", "version: 99 is not version 1 to 2"],
        ),
        ("quantize model.tflite out.tflite --statistics cut.json", 2, ["cut.json:", "not a JSON file"]),
        (STATED.format("--statistics good.json"), 2, ["2 statistics have ranges of 'x'", "calibrate merge"]),
        (STATED.format("--calibration data.npz"), 2, ["either from statistics or from samples"]),
        (STATED.format("--recipe typo.toml"), 2, ["typo.toml:1", "no operator makes a tensor 'secnd'", "'second'"]),
        (STATED.format("--recipe key.toml"), 2, ["'sceme' is not a key of a rule", "did you mean 'scheme'?"]),
        (STATED.format("--recipe table.toml"), 2, ["'rules' is not a table", "did you mean 'rule'?"]),
        (STATED.format("--recipe tanh.toml"), 2, ["tanh.toml:5", "asks for nothing"]),
        (STATED.format("--recipe peer.json"), 2, ["peer.json: rule 1: weights='int5' is not known"]),
        (STATED.format("--recipe regex.json"), 2, ["regex.json: rule 0: 're:.*(?:().*'"]),
        (STATED.format("--recipe images"), 2, ["images: this is a folder; name a file"]),
        ("calibrate merge images -o out.json", 2, ["images: this is a folder; name a file"]),
        ("verify model.tflite int8.tflite --report images", 2, ["images: this is a folder; name a file"]),
        (STATED.format("--keep-float secnd"), 2, ["no operator makes a tensor 'secnd'", "'second'"]),
        (STATED.format("--keep-float ''"), 2, ["a pattern of what stays float is empty"]),
        (STATED.format("--target nothing.toml"), 2, ["no kernel for any operator", "list kernels"]),
        (STATED.format("--target section.toml"), 2, ["'kernel' is not a section", "'kernels'?"]),
        (STATED.format("--target coupling.toml"), 2, ["coupling.toml:2", "'same_scal' is not a constraint"]),
        (STATED.format("--io int16"), 2, ["input 'x' cannot be stored as integers", "--io float"]),
        (STATED.format("--weights int2"), 2, ["take weights of 4 bits at least, not int2", "take int4"]),
        ("quantize model.tflite out.tosa --statistics good.json", 2, ["out.tosa: the suffix says another format"]),
        ("quantize model.tflite out.tflite --scheme dynamic --weights int4 --blocks 32", 2, ["into blocks of 32"]),
        ("quantize int8.tflite out.tflite --calibration data.npz", 2, ["quantized already", "give the float network"]),
        ("quantize int8.tflite out.tflite --scheme float16", 2, ["quantized already"]),
        ("quantize data.npz out.tflite --scheme dynamic", 3, ["this is a zip archive"]),
        ("quantize model.tflite model.tflite --statistics good.json --force", 2, ["which is never replaced"]),
        ("quantize model.tflite int8.tflite --statistics good.json", 2, ["it exists already", "--force"]),
        ("debug model.tflite int8.tflite none.npz --html out.html", 2, ["there are no samples to compare on"]),
        ("debug model.tflite int8.tflite shape.npz --csv out.csv", 2, ["'given' has the shape (1, 8)"]),
        ("debug int8.tflite model.tflite data.npz --html out.html", 2, ["int8.tflite: this network is quantized"]),
    ],
)
def test_a_sentence_and_no_file(
    folder: Path,
    command: str,
    code: int,
    parts: list[str],
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(folder)
    before = {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    assert main.run(["" if word == "''" else word for word in command.split()]) == code
    (line,) = capsys.readouterr().err.splitlines()
    assert [part for part in parts if part not in line] == []
    assert {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()} == before


@pytest.mark.parametrize(
    "command",
    [
        "quantize model.tflite out.tflite --save-recipe {} --calibration images",
        "quantize model.tflite out.tflite --save-recipe {} --calibration classes",
        "quantize model.tflite out.tflite --save-recipe {} --calibration data.npz --labels {}",
        "quantize model.tflite {} --calibration data.npz --metric {} --max-drop 1",
        "quantize model.tflite out.tflite --save-recipe {} --calibration data.npz --recipe {}",
        "quantize model.tflite out.tflite --save-recipe {} --calibration data.npz --target {}",
        "quantize model.tflite out.tflite --save-recipe {} --calibration data.npz",
        "quantize model.tflite out.tflite --save-recipe {} --calibration data.npz --metric {} --max-drop 1",
        "calibrate model.tflite classes -o {}",
        "debug model.tflite int8.tflite classes --csv {}",
        "debug model.tflite int8.tflite data.npz --labels {} --html {}",
        "verify model.tflite int8.tflite --inputs classes --layers --html {}",
        "verify model.tflite int8.tflite --inputs data.npz --labels {} --layers --html {}",
        "reduce model.tflite --inputs classes -o {}",
    ],
)
def test_what_is_read_is_never_replaced(
    folder: Path, command: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The output is a file that the command reads, or one in a folder that it reads."""
    monkeypatch.chdir(folder)
    read = {"images": "images/a.png", "classes": "classes/1/a.png", "--metric": "metric.py", "--labels": "y.csv"}
    read |= {"--recipe": "tanh.toml", "--target": "nothing.toml", "data.npz": "data.npz"}
    file = next(name for word, name in read.items() if word in command.split())
    before = Path(file).read_bytes()
    assert main.run([*command.replace("{}", file).split(), "--force"]) == 2
    assert f"{file}: this is an input, which is never replaced" in capsys.readouterr().err
    assert Path(file).read_bytes() == before


def test_what_the_interpreter_does_not_run_is_no_error_of_ours(tmp_path: Path) -> None:
    x, y, z = (Value(TensorType(shape, f32), name) for shape, name in (((1, 8), "x"), ((1, 8), "y"), ((1, 2), "z")))
    ops = [dense(np.ones((8, 8), np.float32), x, y, "product"), Op("tfl.custom", [y], [z], {})]
    ops[1].attributes = {"custom_code": "Unheard"}
    written(tmp_path, Module([Function("main", [x], [z], ops)], [Signature("serve", 0, [("x", x)], [("z", z)])]))
    options = {"scheme": "dynamic", "calibration": list(samples(2))}
    with pytest.raises(tflq.InvalidModelError, match=r"model\.tflite: the interpreter does not run it: .*Unheard"):
        tflq.quantize(tmp_path / "model.tflite", tmp_path / "out.tflite", **options)  # type: ignore[arg-type]
    assert not (tmp_path / "out.tflite").exists()
