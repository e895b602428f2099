"""Write the data that tflq reads, from packages that are installed and from measurements.

    python scripts/make_data.py schema                schema/tflite.json and tosa_flatbuffer.json: tables and enums
    python scripts/make_data.py kernels [OPTION ...]  rules/kernels.toml, as the interpreter is measured to compute
    python scripts/make_data.py schemes               rules/int8.toml, int16x8.toml and uint8.toml, from kernels.toml

Each is a module of scripts/data, which says what it does.
"""

from __future__ import annotations

import sys
from importlib import import_module
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "tests")]

NAMES: Final = ("schema", "kernels", "schemes")


def main() -> int:
    """Writes what the first argument names. Exit code 2 without one."""
    name, *arguments = sys.argv[1:] or [""]
    if name not in NAMES:
        print(__doc__, file=sys.stderr)
        return 2
    import_module(f"scripts.data.{name}").main(arguments)
    return 0


if __name__ == "__main__":
    sys.exit(main())
