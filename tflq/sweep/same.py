"""Whether two sweeps are of the same: what each was started with, and how to say what differs."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import Any, Final

__all__ = ["differences", "other_options"]

_WORDS: Final[Mapping[str, str]] = {
    "seconds": "--timeout",
    "bytes": "--memory",
    "max_lsb": "--max-lsb",
    "tflq": "tflq",
    "commit": "tflq's commit",
    "interpreter": "the interpreter",
    "resolver": "the kernels",
    "tosa": "the TOSA reference model",
    "numpy": "numpy",
    "python": "Python",
    "platform": "the platform",
    "cpu": "the CPU",
}
"""What parts of `sweep.json` are called that are not an option of the same name."""
_SHOWN: Final[Mapping[str, Callable[[Any], str]]] = {
    "bytes": lambda value: str(value >> 20),
    "shard": lambda value: "/".join(map(str, value)),
}


def differences(before: Mapping[str, Any], now: Mapping[str, Any], free: Collection[str] = ()) -> list[str]:
    """What differs between what two sweeps were started with (`settings` and `fingerprint` of `sweep.json`), as
    "--target integer (now --target kernels)". free: parts that may differ."""
    told = []
    for part in ("settings", "fingerprint"):
        a, b = before.get(part, {}), now.get(part, {})
        told += _other(a, b, {*free, "convert"}) + other_options(a.get("convert", {}), b.get("convert", {}))
    return told


def other_options(before: Mapping[str, Any], now: Mapping[str, Any]) -> list[str]:
    """The options of a conversion that are not the same, as `differences` says them."""
    return _other(before, now)


def _other(before: Mapping[str, Any], now: Mapping[str, Any], free: Collection[str] = ()) -> list[str]:
    keys = sorted(key for key in {*before, *now} - {*free} if before.get(key) != now.get(key))
    return [f"{_said(key, before.get(key))} (now {_said(key, now.get(key))})" for key in keys]


def _said(key: str, value: Any) -> str:
    """A setting as it is given in the command."""
    name = _WORDS.get(key) or f"--{key.replace('_', '-')}"
    if key == "targets":
        return " ".join(f"--target {target}" for target in value or ())
    if key == "xnnpack":
        return "--xnnpack" if value else "--no-xnnpack"
    if value in (None, "", [], False):
        return f"without {name}"
    if value is True:
        return name
    shown = _SHOWN.get(key, _listed)(value)
    return f"{name} {shown}"


def _listed(value: Any) -> str:
    return ",".join(map(str, value)) if isinstance(value, (list, tuple)) else str(value)
