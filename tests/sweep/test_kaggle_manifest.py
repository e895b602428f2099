"""models/kaggle.toml: what it lists is complete and says where it is from."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from urllib.parse import urlparse

import pytest

from tflq.errors import OptionError
from tflq.sweep.manifest import read_manifest
from tflq.sweep.task import Model

KINDS = {"audio", "classification", "detection", "image", "pose", "segmentation", "text", "video"}
QUANTIZED = ("int8", "uint8", "quant", "metadata")


@pytest.fixture(scope="module")
def listed(models: Path) -> list[Model]:
    return read_manifest(models / "kaggle.toml")


def test_it_lists_models_of_every_kind(listed: list[Model]) -> None:
    assert len(listed) >= 60
    assert {model.id.split("/")[0] for model in listed} == KINDS
    quantized = [m for m in listed if any(word in m.kaggle.split("/")[3].split("-") for word in QUANTIZED)]
    assert 15 <= len(quantized) <= len(listed) - 15


def test_every_model_is_there_once(listed: list[Model]) -> None:
    for names in ([m.id for m in listed], [m.kaggle for m in listed]):
        assert [name for name, count in Counter(names).items() if count > 1] == []


def test_every_model_has_a_page_and_is_pinned_or_says_that_it_is_not(listed: list[Model]) -> None:
    for model in listed:
        assert model.kaggle.split("/")[2] == "tfLite", model.id
        page = urlparse(model.source)
        assert page.scheme == "https", model.id
        assert page.netloc.endswith((".dev", ".com")), model.id
        assert not page.netloc.endswith("kaggle.com"), model.id
        assert model.verified == bool(model.sha256), model.id


@pytest.mark.parametrize(
    "handle", ["owner/model/tfLite/v", "owner/model/tfLite/v/0", "a/b/c/d/e/1", "a/b/tfLite/../1x"]
)
def test_a_handle_has_five_parts(handle: str, tmp_path: Path) -> None:
    path = tmp_path / "m.toml"
    path.write_text(f'[[model]]\nkaggle = "{handle}"\n')
    with pytest.raises(OptionError, match="owner/model/tfLite/variation/version"):
        read_manifest(path)
