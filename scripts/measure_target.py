"""Measure which builtins on plain tensors a runtime computes as the reference kernels do: rules/runtimes/TOOL.toml.

    python scripts/measure_target.py openvino|onnxruntime|tflm|xnnpack [--check] [--environments FOLDER]
    python scripts/measure_target.py portable [--check]

Models of one builtin and of some in a row (target_trials.py, target_chains.py) run in the interpreter with its
reference kernels, and in the runtime, in a process that may die. A signature is listed if every trial of it gives the
same numbers. The runtime is in an environment of its own, which is made with the versions that target_tools.toml pins;
a runtime that cannot be installed is skipped, with a message and exit code 2. With --check nothing is written, and a
difference from the file is exit code 1. `portable` writes [builtins] of rules/portable.toml: what the measured tables
have in common.
"""

from __future__ import annotations

import argparse
import sys
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from scripts.target_chains import chains, edges  # noqa: E402
from scripts.target_running import (  # noqa: E402
    ENVIRONMENTS,
    REFERENCE,
    TOOLS,
    Job,
    Outcome,
    compared,
    environment,
    outcomes,
    words,
)
from scripts.target_trials import ACTIVATIONS, Trial, trials  # noqa: E402

MEASURED = [name for name, tool in TOOLS.items() if "says" in tool]
RUNTIMES = ROOT / "rules" / "runtimes"
PORTABLE = ROOT / "rules" / "portable.toml"
EXACT = "exact"
WORDS = 90  # characters that are kept of a message


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("tool", choices=[*MEASURED, "portable"])
    parser.add_argument("--check", action="store_true", help="compare with the file, and do not write it")
    parser.add_argument("--environments", type=Path, default=ENVIRONMENTS, help="folder of environments")
    a = parser.parse_args()
    if a.tool == "portable":
        head, mark, _ = PORTABLE.read_text().partition("[builtins]\n")
        return settle(PORTABLE, f"{head}{mark}{common()}", check=a.check)
    python = environment(a.tool, a.environments)
    if python is None:
        return 2
    return settle(RUNTIMES / f"{a.tool}.toml", measured(a.tool, python), check=a.check)


def settle(path: Path, text: str, *, check: bool) -> int:
    """Writes the file, or compares with it."""
    if not check:
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
        return 0
    same = path.exists() and path.read_text() == text
    print(f"{path.relative_to(ROOT)} is {'as measured' if same else 'not what was measured'}")
    return 0 if same else 1


# --- running


def measured(tool: str, python: Path) -> str:
    """The table of a tool."""
    every = [*trials(), *edges(), *chains()]
    jobs = [Job(t.model, ".tflite", [{f"in{i}": a for i, a in enumerate(t.inputs)}]) for t in every]
    want = outcomes(REFERENCE, Path(sys.executable), jobs)
    got = outcomes(tool, python, jobs)
    judged = [(trial, judge(w, g)) for trial, w, g in zip(every, want, got, strict=True) if not isinstance(w, str)]
    refused = [f"{t.kernel}: {t.signature}" for t, w in zip(every, want, strict=True) if isinstance(w, str)]
    return table(tool, judged, refused)


def judge(want: Outcome, got: Outcome | str) -> str:
    """What the results of a tool are beside those of the reference kernels."""
    if isinstance(got, str):
        return f"refused: {words(got, WORDS)}"
    found = compared(want, got)
    if isinstance(found, str):
        return found
    return f"{found.wrong} of {found.elements} differ, by {found.apart:.3g} at most" if found.wrong else EXACT


# --- the table


@dataclass(frozen=True, order=True)
class Kernel:
    """A kernel on types, and the activation that it fuses."""

    name: str
    signature: str
    activation: str

    def __str__(self) -> str:
        fused = "" if self.activation == "NONE" else f" with {self.activation}"
        return f"{self.name}: {self.signature}{fused}"


def table(tool: str, judged: Sequence[tuple[Trial, str]], refused: Sequence[str]) -> str:
    """The file's text: what is exact, as rules; chains and edges; and what is not exact, as comments."""
    right: dict[Kernel, bool] = {}
    for trial, verdict in judged:
        if trial.kernel:
            kernel = Kernel(trial.kernel, trial.signature, trial.activation)
            right[kernel] = right.get(kernel, True) and verdict == EXACT
    first: dict[str, str] = {}
    for trial, verdict in judged:
        if trial.kernel and verdict != EXACT:
            first.setdefault(str(Kernel(trial.kernel, trial.signature, trial.activation)), verdict)
    lines = [
        "# Builtins on plain tensors that give what TFLite's reference kernels give, in",
        f"# {TOOLS[tool]['says']}: {', '.join(TOOLS[tool]['packages'])}.",
        "# The reference: ai-edge-litert with BUILTIN_REF. Measured by scripts/measure_target.py: do not edit.",
        "# Types and options as in rules/integer.toml; only what is named here was tried.",
        "",
        "[builtins]",
        *rules(kernel for kernel, exact in right.items() if exact),
        "",
        "# Edges, and builtins in a row, where runtimes put kernels and constants together.",
        "[chains]",
        *(f'"{trial.name}" = "{quoted(verdict)}"' for trial, verdict in judged if not trial.kernel),
        "",
        "# Not exact, by the first trial that was not:",
        *(f"# {signature}: {verdict}" for signature, verdict in first.items()),
        "",
        "# Not run by the reference kernels:",
        *(f"# {signature}" for signature in dict.fromkeys(refused)),
    ]
    return "\n".join(lines) + "\n"


def quoted(text: str) -> str:
    return text.replace("\\", "/").replace('"', "'")


def rules(kernels: Iterable[Kernel]) -> list[str]:
    """Lines of a section: signatures of one kernel with the same activations are one, separated by "|"."""
    fused: dict[tuple[str, str], set[str]] = {}
    for kernel in kernels:
        fused.setdefault((kernel.name, kernel.signature), set()).add(kernel.activation)
    lines: dict[str, list[str]] = {}
    for (name, signature), activations in sorted(fused.items()):
        if "NONE" in activations:
            others = [a for a in ACTIVATIONS if a in activations]
            known = f"; fused_activation_function = {' '.join(['NONE', *others])}" if name in FUSING else ""
            lines.setdefault(name, []).append(signature + known)
    return [f'{name} = "{" | ".join(texts)}"' for name, texts in sorted(lines.items())]


FUSING = ("add", "sub", "mul", "conv_2d", "depthwise_conv_2d", "max_pool_2d", "average_pool_2d", "fully_connected",
          "concatenation", "transpose_conv")  # fmt: skip
"""Kernels that can fuse an activation: their lines say which were exact."""


def listed(path: Path) -> set[Kernel]:
    """The kernels of a measured table, one for each activation."""
    found: set[Kernel] = set()
    content: Mapping[str, str] = tomllib.loads(path.read_text())["builtins"]
    for name, line in content.items():
        for text in line.split(" | "):
            signature, _, options = text.partition("; fused_activation_function = ")
            found.update(Kernel(name, signature, activation) for activation in options.split() or ["NONE"])
    return found


def common() -> str:
    """The lines of what all measured runtimes have."""
    tables = [listed(path) for path in sorted(RUNTIMES.glob("*.toml"))]
    return "\n".join(rules(set.intersection(*tables))) + "\n"


if __name__ == "__main__":
    sys.exit(main())
