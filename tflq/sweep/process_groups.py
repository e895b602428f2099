"""What process groups use of the machine, and ending them."""

from __future__ import annotations

import ctypes
import os
import signal
import subprocess
import sys
from collections import Counter
from contextlib import suppress
from pathlib import Path
from typing import Final

__all__ = ["die_with_parent", "kill_group", "kills_by_system", "resident_bytes"]

PROC: Final = Path("/proc")
PR_SET_PDEATHSIG: Final = 1


def resident_bytes() -> Counter[int]:
    """Resident memory of each process group, in bytes; pages that several of its processes share count for each."""
    found: Counter[int] = Counter()
    if not (PROC / "self/stat").exists():
        return _asked_of_ps()
    page = os.sysconf("SC_PAGE_SIZE")
    for name in os.listdir(PROC):
        if name.isdigit():
            with suppress(OSError):  # it has ended
                fields = (PROC / name / "stat").read_bytes().rpartition(b")")[2].split()
                found[int(fields[2])] += int(fields[21]) * page
    return found


def _asked_of_ps() -> Counter[int]:
    found: Counter[int] = Counter()
    listed = subprocess.run(["ps", "-axo", "pgid=,rss="], capture_output=True, text=True, check=True).stdout  # noqa: S607
    for line in listed.splitlines():
        group, kibibytes = line.split()
        found[int(group)] += int(kibibytes) << 10
    return found


def kill_group(group: int) -> None:
    """Ends all processes of a group; none is left is no error."""
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(group, signal.SIGKILL)


def die_with_parent() -> None:
    """The system kills this process when its parent ends, however that ends (Linux)."""
    if sys.platform == "linux":
        ctypes.CDLL(None, use_errno=True).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


def kills_by_system() -> int:
    """How many processes the system has killed for want of memory since it started (Linux)."""
    with suppress(OSError):
        for line in (PROC / "vmstat").read_text().splitlines():
            if line.startswith("oom_kill "):
                return int(line.split()[1])
    return 0
