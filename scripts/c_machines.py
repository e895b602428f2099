"""Builds the self-tests of networks in C for other machines, runs them in qemu, and prints how many pass at each level
of optimization. A self-test compares with the checksum of tflq's evaluator, so that all that pass have the same bits.

    scripts/c_machines.py MODEL_OR_FOLDER... [--count 20] [--levels 0123] [--only aarch64]

Of folders it takes the `--count` smallest networks that are written and have a self-test. Machines whose compiler or
emulator is not there are named and left out: Debian has them as gcc-arm-linux-gnueabihf, gcc-aarch64-linux-gnu,
gcc-riscv64-linux-gnu, qemu-user, gcc-arm-none-eabi, libnewlib-arm-none-eabi and qemu-system-arm.
"""

from __future__ import annotations

import argparse
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Final, NamedTuple

ROOT: Final = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

import tflq  # noqa: E402
from tflq.base.errors import TflqError  # noqa: E402

BOARD: Final = ROOT / "examples" / "board"
FLAGS: Final = ("-std=c99", "-ffp-contract=off", "-DNET_MAIN")


class Machine(NamedTuple):
    """The commands that compile a program, before the sources and behind them, and that run it."""

    compiler: tuple[str, ...]
    libraries: tuple[str, ...]
    runner: tuple[str, ...]

    @property
    def missing(self) -> list[str]:
        return [each for each in (self.compiler[0], *self.runner[:1]) if shutil.which(each) is None]

    def passes(self, source: Path, level: str) -> bool:
        """Whether the self-test of a source passes."""
        program = source.with_suffix(".elf")
        command = [*self.compiler, *FLAGS, f"-O{level}", str(source), *self.libraries, "-o", str(program), "-lm"]
        subprocess.run(command, check=True)
        ended = subprocess.run([*self.runner, str(program)], capture_output=True, text=True, timeout=600, check=False)
        return ended.returncode == 0 and ": pass" in ended.stdout and ": fail" not in ended.stdout


_QEMU: Final = ("qemu-system-arm", "-M", "mps2-an385", "-nographic", "-semihosting", "-monitor", "none", "-kernel")
_START: Final = (str(BOARD / "start.c"), "-nostartfiles", "-T", str(BOARD / "an385.ld"), "--specs=rdimon.specs")
MACHINES: Final = {
    "native": Machine(("cc",), (), ()),
    "armhf": Machine(("arm-linux-gnueabihf-gcc", "-static"), (), ("qemu-arm",)),
    "aarch64": Machine(("aarch64-linux-gnu-gcc", "-static"), (), ("qemu-aarch64",)),
    "riscv64": Machine(("riscv64-linux-gnu-gcc", "-static"), (), ("qemu-riscv64",)),
    "mps2-an385": Machine(("arm-none-eabi-gcc", "-mcpu=cortex-m3", "-mthumb"), _START, _QEMU),
}


def sources(models: list[Path], folder: Path) -> Iterator[tuple[Path, Path]]:
    """Models that are written with a self-test, the smallest first, and the source of each."""
    for number, model in enumerate(sorted(models, key=lambda path: path.stat().st_size)):
        source = folder / str(number) / "net.c"
        source.parent.mkdir()
        try:
            tflq.convert(model, source, choices={"data": "inline"})
        except TflqError:
            continue
        if "int main(" in source.read_text():
            yield model, source


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", nargs="+", type=Path)
    parser.add_argument("--count", type=int, default=20)
    parser.add_argument("--levels", default="0123")
    parser.add_argument("--only", choices=MACHINES)
    options = parser.parse_args()
    models = [m for each in options.models for m in (sorted(each.rglob("*.tflite")) if each.is_dir() else [each])]
    failed = 0
    with tempfile.TemporaryDirectory() as folder:
        networks = list(islice(sources(models, Path(folder)), options.count))
        for model, _ in networks:
            print(f"{model.stat().st_size:8} {model.name}")
        print(f"| machine | {' | '.join(f'-O{level}' for level in options.levels)} |")
        print("|---" * (1 + len(options.levels)) + "|")
        for name, machine in MACHINES.items():
            if options.only not in (None, name):
                continue
            if machine.missing:
                print(f"| {name} | not run: there is no {' and no '.join(machine.missing)} |")
                continue
            cells = []
            for level in options.levels:
                other = [model.name for model, source in networks if not machine.passes(source, level)]
                failed += len(other)
                cells.append(f"{len(networks) - len(other)} of {len(networks)}" + "".join(f", not {n}" for n in other))
            print(f"| {name} | {' | '.join(cells)} |", flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
