"""The extension in Model Explorer itself: its server, started as a user starts it, finds it and gives its graphs."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tflq.tools.explorer import explore

pytest.importorskip("model_explorer", reason="needs Model Explorer: pip install '.[explorer]'")

ROOT = Path(__file__).resolve().parents[3]


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    """The address of a server with the extension."""
    with socket.socket() as free:
        free.bind(("localhost", 0))
        port = free.getsockname()[1]
    options = ["--extensions=tflq.tools.explorer", "--no_open_in_browser", "--skip_health_check", f"--port={port}"]
    process = subprocess.Popen(
        [sys.executable, "-m", "model_explorer", *options],
        env=os.environ | {"PYTHONPATH": str(ROOT)},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
    )
    address = f"http://localhost:{port}"
    try:
        for _ in range(120):
            assert process.poll() is None, process.communicate()[0].decode()
            try:
                urllib.request.urlopen(f"{address}/check_health", timeout=5).close()  # noqa: S310 - our own server
                break
            except (urllib.error.URLError, ConnectionError):
                time.sleep(0.5)
        yield address
    finally:
        process.kill()
        process.communicate()


def ask(address: str, path: str, request: dict[str, Any] | None = None) -> Any:
    data = None if request is None else json.dumps(request).encode()
    message = urllib.request.Request(  # noqa: S310 - our own server
        f"{address}{path}", data, {"Content-Type": "application/json"}
    )
    with urllib.request.urlopen(message, timeout=60) as answer:  # noqa: S310
        return json.load(answer)


def convert(address: str, path: Path, **settings: str) -> Any:
    command = {"cmdId": "convert", "extensionId": "tflq", "modelPath": str(path), "settings": settings}
    return ask(address, "/apipost/v1/send_command", {**command, "deleteAfterConversion": False})


def test_model_explorer_finds_the_extension(server: str) -> None:
    (found,) = [e for e in ask(server, "/api/v1/get_extensions") if e["id"] == "tflq"]
    assert (found["type"], found["fileExts"]) == ("adapter", ["tflite", "tosa"])


@pytest.mark.parametrize("target", [None, "tosa"])
def test_its_graphs_are_ours(server: str, models: Path, target: str | None) -> None:
    path = models / "two_signatures.tflite"
    answer = convert(server, path, **({"target": target} if target else {}))
    stages = explore(path, target).stages
    assert [c["label"] for c in answer["graphCollections"]] == ["before", "integer form", "after"]
    for got, want in zip(answer["graphCollections"], stages, strict=True):
        for graph, ours in zip(got["graphs"], want["subgraphs"], strict=True):
            assert (graph["id"], graph["nodes"]) == (ours["id"], ours["nodes"])


def test_a_file_that_is_no_model_is_an_error_there(server: str, tmp_path: Path) -> None:
    path = tmp_path / "no.tflite"
    path.write_bytes(b"nothing")
    assert "InvalidModelError" in convert(server, path)["error"]
