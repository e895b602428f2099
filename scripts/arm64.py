"""kernel_sets.py with the interpreter of an arm64 machine, emulated by qemu-user: on a Neoverse N1 and on a Cortex-A53.

    python scripts/arm64.py FOLDER... [--cpu neoverse-n1 cortex-a53] [--qemu qemu-aarch64] [--root build/arm64]
                            [--form integer float32 portable] [--seeds 1] [--json FILE]

The models of the folders are converted here under the set of each processor, and compared as kernel_sets.py says with
their originals in an aarch64 build of ai-edge-litert. Debian's packages and the wheels of that are downloaded by
apt-get and pip and unpacked into the root, once. It runs on Debian and what derives from it; nothing is installed, but
qemu-user must be. WORDS of --qemu may be several. Not for CI: a network takes from seconds to minutes.
"""

from __future__ import annotations

import argparse
import shlex
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Final, NamedTuple

ROOT: Final = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from scripts import kernel_sets  # noqa: E402

LIBRARIES: Final = (
    *("libc6", "libgcc-s1", "libstdc++6", "zlib1g", "libexpat1", "libffi8", "libbz2-1.0", "liblzma5"),
    *("libsqlite3-0", "libssl3", "libuuid1"),
)
PYTHON: Final = ("python{}", "python{}-minimal", "libpython{}-minimal", "libpython{}-stdlib")
"""Debian's packages of a Python of a version."""
WHEELS: Final = ("ai-edge-litert==2.3.*", "numpy")
DIRECTORIES: Final = ("usr/lib/aarch64-linux-gnu", "lib/aarch64-linux-gnu")


class Processor(NamedTuple):
    """The kernel set of a processor, and what the interpreter reads of it in /proc/cpuinfo to choose its kernels."""

    kernel_set: str
    variant: int
    part: int
    features: str

    @property
    def text(self) -> str:
        """/proc/cpuinfo."""
        return (
            f"processor\t: 0\nBogoMIPS\t: 50.00\nFeatures\t: {self.features}\nCPU implementer\t: 0x41\n"
            f"CPU architecture: 8\nCPU variant\t: {self.variant:#x}\nCPU part\t: {self.part:#x}\nCPU revision\t: 1\n\n"
        )


_FIRST: Final = "fp asimd evtstrm aes pmull sha1 sha2 crc32"
PROCESSORS: Final = {
    "neoverse-n1": Processor(
        "xnnpack-2.3-arm64", 3, 0xD0C, f"{_FIRST} atomics fphp asimdhp cpuid asimdrdm lrcpc dcpop asimddp ssbs"
    ),
    "cortex-a53": Processor("xnnpack-2.3-arm64-a53", 0, 0xD03, f"{_FIRST} cpuid"),
}


def unpack(root: Path, version: str) -> None:
    """Unpacks Debian's packages for arm64, with a Python of a version, and the wheels, if they are not there."""
    stamp = root / "complete.txt"
    if stamp.exists() and stamp.read_text() == version:
        return
    shutil.rmtree(root, ignore_errors=True)
    for folder in ("lists/partial", "archives/partial", "system/proc"):
        (root / folder).mkdir(parents=True)
    (root / "status").touch()
    options = {
        "APT::Architecture": "arm64",
        "APT::Architectures": "arm64",
        "Dir::State::lists": root / "lists",
        "Dir::State::status": root / "status",
        "Dir::Cache": root,
        "Dir::Cache::archives": root / "archives",
        "APT::Sandbox::User": "",
    }
    words = ["apt-get", "-q", *(word for name, value in options.items() for word in ("-o", f"{name}={value}"))]
    subprocess.run([*words, "update"], check=True)
    packages = [*LIBRARIES, *(name.format(version) for name in PYTHON)]
    subprocess.run([*words, "download", *packages], check=True, cwd=root / "archives")
    for package in (root / "archives").glob("*.deb"):
        subprocess.run(["dpkg", "-x", str(package), str(root / "system")], check=True)
    platforms = [f"--platform=manylinux_2_{minor}_aarch64" for minor in (17, 27, 28)]
    binary = ["--only-binary=:all:", *platforms, f"--python-version={version}", "--implementation=cp"]
    pip = [sys.executable, "-m", "pip", "install", "-q", f"--target={root / 'wheels'}"]
    subprocess.run([*pip, *binary, "--platform=manylinux2014_aarch64", *WHEELS], check=True)
    stamp.write_text(version)


def python(root: Path, qemu: str, cpu: str, version: str) -> str:
    """The words that start an emulated Python, once /proc/cpuinfo is that of the processor."""
    system = root / "system"
    (system / "proc" / "cpuinfo").write_text(PROCESSORS[cpu].text)
    variables = {
        "PYTHONHOME": str(system / "usr"),
        "PYTHONPATH": str(root / "wheels"),
        "LD_LIBRARY_PATH": ":".join(str(system / folder) for folder in DIRECTORIES),
    }
    settings = [word for name, value in variables.items() for word in ("-E", f"{name}={value}")]
    words = [*shlex.split(qemu), "-cpu", cpu, "-L", str(system), *settings, str(system / f"usr/bin/python{version}")]
    return shlex.join(words)


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folders", nargs="+")
    parser.add_argument("--cpu", nargs="+", choices=PROCESSORS, default=list(PROCESSORS))
    parser.add_argument("--qemu", default="qemu-aarch64")
    parser.add_argument("--root", type=Path, default=ROOT / "build" / "arm64")
    parser.add_argument("--python-version", default="3.11", help="of Debian's python3 here")
    options, others = parser.parse_known_args(arguments)
    root: Path = options.root.resolve()
    unpack(root, options.python_version)
    for cpu in options.cpu:
        words = python(root, options.qemu, cpu, options.python_version)
        print(f"{cpu}:", flush=True)
        kernel_sets.main([PROCESSORS[cpu].kernel_set, *options.folders, "--python", words, *others])


if __name__ == "__main__":
    main()
