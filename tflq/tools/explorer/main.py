"""An extension for Model Explorer: `model-explorer x.tflite --extensions=tflq.tools.explorer`.

Model Explorer imports `main` of each module that it is given and finds the adapters by their base class. A .tflite file
on its command line opens with its own adapter: choose "tflq" next to the file on its first page, or, in Python,
`config.add_model_from_path("x.tflite", adapterId="tflq")`.
"""

from __future__ import annotations

from typing import Any

from model_explorer import Adapter, AdapterMetadata, ModelExplorerGraphs
from model_explorer.graph_builder import Graph, GraphCollection

from tflq.tools.explorer import explore

__all__ = ["TflqAdapter"]


class TflqAdapter(Adapter):  # type: ignore[misc] # its package may be missing, or is not typed
    """A model before conversion, in the integer form, and after, as three collections of graphs."""

    metadata = AdapterMetadata(
        id="tflq",
        name="tflq",
        description="Quantized TFLite models and TOSA files: before conversion, the integer form, after.",
        source_repo="",
        fileExts=["tflite", "tosa"],
    )

    def convert(self, model_path: str, settings: dict[str, Any]) -> ModelExplorerGraphs:
        """The graphs of a file. Model Explorer shows the messages of errors."""
        explored = explore(model_path, settings.get("target"))
        return {
            "graphCollections": [
                GraphCollection(label=stage["label"], graphs=[Graph(**graph) for graph in stage["subgraphs"]])
                for stage in explored.stages
            ]
        }
