"""One drawn graph, converted in every form and compared with itself at other sizes."""

from __future__ import annotations

import multiprocessing
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import tflq
from resizing.checks import losses
from resizing.graphs import drawn

FORMS: Mapping[str, Mapping[str, Any]] = {
    "integer": {},
    "kernels": {"target": "kernels"},
    "float32": {"mac": "float32"},
}


@dataclass
class Examined:
    number: int
    model: bytes
    text: str
    lost: dict[str, list[str]]
    runs: int
    announced: bool


def examine(seed: int, number: int) -> Examined:
    """In a process of its own, since the interpreter can end it."""
    graph = drawn(seed, number)
    made: dict[str, bytes] = {}
    lost: dict[str, list[str]] = {}
    announced: list[str] = []
    for form, options in FORMS.items():
        try:
            conversion = tflq.convert(graph.model, **options)
            made[form] = conversion.data
            if conversion.report.counts["float"] or conversion.report.warnings:
                announced.append(form)
        except tflq.TflqError as error:
            lost[form] = [f"not converted: {error}"]
    receiver, sender = multiprocessing.Pipe(duplex=False)
    child = multiprocessing.get_context("fork").Process(
        target=_tell, args=(sender, graph.model, made, graph.resizes, announced)
    )
    child.start()
    sender.close()
    try:
        found, runs = receiver.recv() if receiver.poll(60) else ({form: ["resize: no end in 60 s"] for form in made}, 1)
    except EOFError:
        found, runs = {form: ["resize: the interpreter ends the process"] for form in made}, 1
    child.kill()
    child.join()
    return Examined(number, graph.model, graph.text, {**found, **lost}, runs, bool(announced))


def _tell(sender: Any, *arguments: Any) -> None:
    sender.send(losses(*arguments))
