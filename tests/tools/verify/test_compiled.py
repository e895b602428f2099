"""`tflq verify` on a source in C: equal where it is, different where the source is changed, and in words without a
compiler."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Final

import pytest
from support.on_c import need_compiler

import tflq
from tflq.cli import main
from tflq.tools.verify.compiled import compiler

MODEL: Final = Path(__file__).parents[3] / "models" / "cnn_int8.tflite"


@pytest.fixture
def source(tmp_path: Path) -> Path:
    tflq.convert(MODEL, tmp_path / "net.c")
    return tmp_path / "net.c"


@need_compiler
def test_a_conversion_is_equal_in_its_layers_too(source: Path) -> None:
    result = tflq.verify(MODEL, source, layers=True, seeds=1)
    assert result.equal
    assert result.layers is not None


@need_compiler
def test_a_changed_multiplier_is_found(source: Path) -> None:
    text = source.read_text()
    source.write_text(re.sub(r"(scale_two\(.*?, )(\d+|net_c\d+\[j\])", r"\1(1 << 30)", text, count=1))
    assert source.read_text() != text
    assert not tflq.verify(MODEL, source, seeds=2).equal


@need_compiler
def test_what_does_not_compile_or_ends_is_a_failure(source: Path) -> None:
    text = source.read_text()
    source.write_text(text.replace("return 0;", "return nothing;"))
    assert "it does not compile" in str(tflq.verify(MODEL, source).failures[0])
    source.write_text("return 0;\n".join(text.rsplit("return 0;\n}", 1)))
    failure = str(tflq.verify(MODEL, source).failures[0])
    assert f"{source}, behind its end" in failure
    assert "main.c" not in failure
    source.write_text(text.replace("return 0;", "*(volatile int *)0 = 1; return 0;"))
    assert "the program ended" in str(tflq.verify(MODEL, source).failures[0])


def test_a_cut_file_of_constants_is_named(tmp_path: Path) -> None:
    source, blob = tmp_path / "net.c", tmp_path / "net.bin"
    tflq.convert(MODEL, source, choices={"data": "blob"})
    size = blob.stat().st_size
    assert f"#define NET_CONSTANT_BYTES {size}\n" in source.with_suffix(".h").read_text()
    blob.write_bytes(blob.read_bytes()[:-1])
    with pytest.raises(tflq.InvalidModelError, match=rf"net\.bin have {size - 1} bytes, and its header says {size}"):
        tflq.verify(MODEL, source)
    blob.unlink()
    with pytest.raises(tflq.FileError, match=r"net\.bin"):
        tflq.verify(MODEL, source)


def test_without_a_compiler_it_says_so_in_a_line(source: Path, capfd: pytest.CaptureFixture[str]) -> None:
    before = os.environ.copy()
    assert main.run(["verify", str(MODEL), str(source), "--cc", "no-such-compiler -O1"]) == 2
    assert "there is no C compiler 'no-such-compiler'" in capfd.readouterr().err
    assert dict(os.environ) == before
    with pytest.raises(tflq.OptionError, match="there is no C compiler 'neither'"):
        tflq.verify(MODEL, source, cc="neither")


@need_compiler
def test_the_compiler_is_asked_to_optimize_as_the_command_says() -> None:
    assert compiler("cc -O1") == ["cc", "-O1"]
    assert compiler("cc") == ["cc", "-O2"]


def test_a_source_without_its_header_is_called_that(source: Path, capfd: pytest.CaptureFixture[str]) -> None:
    source.with_suffix(".h").unlink()
    assert main.run(["verify", str(MODEL), str(source)]) == 2
    said = f"{source}: its header {source.with_suffix('.h')} is not there; put it beside the source"
    assert said in capfd.readouterr().err


def test_a_source_of_others_is_no_model(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "a.c").write_text("int main(void) { return 0; }\n")
    (tmp_path / "a.h").write_text("")
    assert main.run(["verify", str(MODEL), str(tmp_path / "a.c")]) != 0
    assert "declares no NAME_run" in capfd.readouterr().err
