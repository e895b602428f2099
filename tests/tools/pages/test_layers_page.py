"""The page of operator results."""

from __future__ import annotations

import re
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pytest
from support.harness import argument, one_op
from support.planted import plant, wrong_shift

import tflq
from tflq.cli import main
from tflq.conversion.convert import integer_form
from tflq.ir.types import f32
from tflq.tools.pages import formula, layers_page, parameters, real_multipliers, steps

VOID = {"meta", "input", "br"}


class Page(HTMLParser):
    """Checks that tags are closed in order, and collects the text of each row, and what is loaded."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.rows: list[tuple[str, str]] = []
        self.loaded: list[str] = []
        self.feed(text)
        self.close()
        assert not self.open

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        attributes = dict(attrs)
        self.loaded += [
            v or "" for k, v in attributes.items() if k in ("src", "href") and not (v or "").startswith("#")
        ]
        if tag == "tr" and "class" in attributes:
            self.rows.append((attributes["class"] or "", ""))
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if self.rows and "tbody" in self.open:
            kind, text = self.rows[-1]
            self.rows[-1] = kind, " ".join(f"{text} {data}".split())


@pytest.fixture
def pair(models: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[Path, Path]:
    """A model, and a conversion in which one channel of operator 2 is shifted wrongly."""
    pytest.importorskip("ai_edge_litert", reason="needs the interpreter: pip install '.[verify]'")
    with monkeypatch.context() as patch:
        plant(wrong_shift, patch)
        tflq.convert(models / "cnn_int16x8.tflite", tmp_path / "b.tflite")
    return models / "cnn_int16x8.tflite", tmp_path / "b.tflite"


def test_every_layer_in_order_and_the_first_divergence(pair: tuple[Path, Path], tmp_path: Path) -> None:
    out = tmp_path / "layers.html"
    assert main.run(["verify", *map(str, pair), "--layers", "--html", str(out)]) == 5
    page = Page(out.read_text(encoding="utf-8"))
    assert page.loaded == []
    ops = tflq.read(pair[0]).main.ops
    heads, more = page.rows[::2], page.rows[1::2]
    assert [text.split()[:2] for _, text in heads] == [
        [str(i), op.name.partition(".")[2].upper()] for i, op in enumerate(ops)
    ]
    kinds = [kind for kind, _ in heads]
    assert kinds[:3] == ["is-equal", "is-equal", "is-differs first"]
    assert sum("first" in kind for kind in kinds) == 1
    found = tflq.verify(*pair, layers=True).layers
    assert found is not None
    for d in found.diverging:
        assert f"{d.difference.differing} of {d.difference.elements}" in heads[d.operator][1]
    assert "First divergence" in more[2][1]
    assert "stride_w" in more[2][1]
    assert "s 22 to 23, 16 channels, rounded once, half up" in more[2][1]


def test_a_page_of_equal_models_has_no_divergence(models: Path, tmp_path: Path) -> None:
    pytest.importorskip("ai_edge_litert", reason="needs the interpreter: pip install '.[verify]'")
    path = models / "two_signatures.tflite"
    text = layers_page(path, tflq.verify(path, path, layers=True, seeds=1))
    page = Page(text)
    assert "First divergence" not in text
    assert {kind for kind, _ in page.rows} == {"is-equal", "more is-equal"}
    assert {text.partition(":")[0] for _, text in page.rows[::2]} >= {"classify", "embed"}


def test_names_are_escaped(tmp_path: Path) -> None:
    pytest.importorskip("ai_edge_litert", reason="needs the interpreter: pip install '.[verify]'")
    path = tmp_path / "a.tflite"
    path.write_bytes(one_op("tfl.neg", [argument((2,), f32)], [argument((2,), f32, "<script>alert(1)</script>")], {}))
    text = layers_page(path, tflq.verify(path, path, layers=True))
    assert "<script" not in text
    assert "&lt;script&gt;" in text


def test_html_needs_layers(models: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = str(models / "pad.tflite")
    assert main.run(["verify", path, path, "--html", "x.html"]) == 2
    assert "--layers" in capsys.readouterr().err


def test_formulas_have_the_numbers(models: Path) -> None:
    module = tflq.read(models / "cnn_uint8.tflite")
    form = integer_form(tflq.read(models / "cnn_uint8.tflite"))
    made = [op for op in form.ops() if op.location is not None and op.location.operator == 0]
    conv, rescale = (formula(op) for op in made[-2:])
    assert re.search(r"= Σ \(x - 128\) · \(w - \d+\) \+ b; w uint8\[16,3,3,3\], pad \[0, 1, 0, 1\]", conv)
    a = made[-1].attributes
    assert f"x · {a['multiplier'][0]} / 2^{a['shift'][0]} (= " in rescale
    real = float(real_multipliers(module.main.ops[0]))
    np.testing.assert_allclose(a["multiplier"][0] / 2.0 ** int(a["shift"][0]), real, rtol=1e-6)
    shown = dict(parameters(module.main.ops[0]))
    assert shown["fused_activation_function"] == "RELU6"
    assert shown["input 0"].startswith("uint8[1,24,24,3], scale ")


def test_steps_are_numbered_and_refer_to_each_other(models: Path) -> None:
    source = tflq.read(models / "cnn_int8.tflite")
    operands = {
        (0, n): [value.name if value is not None else "" for value in op.operands]
        for n, op in enumerate(source.main.ops)
    }
    found = steps(integer_form(tflq.read(models / "cnn_int8.tflite")), operands)
    assert "Σ (input 0 + 1) · w + b" in found[0, 0][0]
    assert "saturate(#1 · M[c]" in found[0, 0][1]
    add = found[0, 3]
    assert source.main.ops[3].short_name == "add"
    assert [re.search(r"= \w+\(([^)]*)\)", line)[1] for line in add[:6]] == [  # type: ignore[index]
        *("input 0", "#1, [-63]", "#2, [524288]", "input 1", "#4, [-128]", "#5, [1048576]")
    ]
    assert "saturate(#6 ·" in add[6]
    assert "add(#3, #7)" in add[7]
    for lines in found.values():
        for number, line in enumerate(lines, 1):
            assert all(int(other) < number for other in re.findall(r"#(\d+)", line))


def test_a_page_numbers_the_steps(pair: tuple[Path, Path]) -> None:
    text = layers_page(pair[0], tflq.verify(*pair, layers=True, seeds=1))
    assert '<span class="step">#2</span> int16[1,12,12,16] = saturate(#1 ·' in text


def test_real_multiplier_of_what_has_none() -> None:
    data = one_op("tfl.neg", [argument((2,), f32)], [argument((2,), f32, "y")], {})
    assert real_multipliers(tflq.read(data).main.ops[0]) == ""
