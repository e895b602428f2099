"""Which functions of a registry are not found when only their op's family has been met.

    python families.py REGISTRY

Prints the names as JSON. Each family is asked in a process that has imported no other.
"""

from __future__ import annotations

import json
import os
import sys
from importlib import import_module
from pathlib import Path
from typing import Any

REGISTRIES = {
    "select": ("tflq.select.lowering", "lowering"),
    "evaluate": ("tflq.evaluate.registry", "evaluator"),
    "running": ("tflq.evaluate.registry", "running"),
    "tosa": ("tflq.tosa.lowering.registry", "lowering"),
    "laws": ("tflq.tosa.laws.registry", "law"),
}


def found(registry: Any, names: list[str]) -> list[str]:
    """Those of the names that have a function, asked in a process forked from this one."""
    reading, writing = os.pipe()
    child = os.fork()
    if not child:
        os.write(writing, json.dumps([name for name in names if registry.named(name) is not None]).encode())
        os._exit(0)
    os.close(writing)
    with os.fdopen(reading) as pipe:
        answer: list[str] = json.loads(pipe.read())
    os.waitpid(child, 0)
    return answer


def main() -> None:
    from tflq.ir.registry import dialect

    module, name = REGISTRIES[sys.argv[1]]
    registry = getattr(import_module(module), name)
    alone: set[str] = set()
    for prefix in ("tfl", "tosa", "quant", "ext"):
        declared = dialect(prefix)
        assert declared is not None
        for ops in declared.families.values():
            alone |= set(found(registry, [f"{prefix}.{op}" for op in ops]))
    everything = {name for name in registry.names() if name.partition(".")[0] in ("tfl", "tosa", "quant", "ext")}
    sys.stdout.write(json.dumps(sorted(everything - alone)))


if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
    main()
