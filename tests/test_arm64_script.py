"""The emulated interpreter of arm64: what starts it, and which processor it reads that it has."""

from __future__ import annotations

import shlex
from pathlib import Path

from scripts import arm64
from tflq.numerics.kernel_sets import NAMES


def test_each_processor_has_a_kernel_set_and_its_own_part(tmp_path: Path) -> None:
    (tmp_path / "system" / "proc").mkdir(parents=True)
    parts = {}
    for cpu, processor in arm64.PROCESSORS.items():
        words = shlex.split(arm64.python(tmp_path, "env A=1 qemu-aarch64", cpu, "3.11"))
        assert words[:5] == ["env", "A=1", "qemu-aarch64", "-cpu", cpu]
        assert words[-1] == str(tmp_path / "system/usr/bin/python3.11")
        assert processor.kernel_set in NAMES
        text = (tmp_path / "system" / "proc" / "cpuinfo").read_text()
        parts[cpu] = next(line for line in text.splitlines() if line.startswith("CPU part"))
    assert parts == {"neoverse-n1": "CPU part\t: 0xd0c", "cortex-a53": "CPU part\t: 0xd03"}


def test_what_is_unpacked_is_not_unpacked_again(tmp_path: Path) -> None:
    (tmp_path / "complete.txt").write_text("3.11")
    arm64.unpack(tmp_path, "3.11")
    assert [path.name for path in tmp_path.iterdir()] == ["complete.txt"]
