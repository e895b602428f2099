"""Measure which builtins on plain tensors a runtime computes as the reference kernels do: rules/runtimes/TOOL.toml.

    python scripts/measure_target.py openvino|onnxruntime|tflm|xnnpack [--check] [--environments FOLDER]
    python scripts/measure_target.py targets [--check]

Models of one builtin and of some in a row (target_trials.py, target_chains.py) run in the interpreter with its
reference kernels, and in the runtime, in a process that may die. A signature is listed if every trial of it gives the
same numbers. The runtime is in an environment of its own, which is made with the versions that target_tools.toml pins;
a runtime that cannot be installed is skipped, with a message and exit code 2. With --check nothing is written, and a
difference from the file is exit code 1. Of a tool with `kernels` quantized kernels are measured, too
(target_kernels.py). `targets` writes what the measured tables say into targets: [builtins] of rules/portable.toml, what
they have in common, and [builtins] and [kernels] of rules/tflm.toml, which are those of one.
"""

from __future__ import annotations

import argparse
import sys
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "tests")]

from scripts.target_chains import chains, edges  # noqa: E402
from scripts.target_kernels import Kind, kept_of, kernel_lines, kinds, quantized_trials  # noqa: E402
from scripts.target_running import (  # noqa: E402
    ENVIRONMENTS,
    REFERENCE,
    TOOLS,
    Job,
    Outcome,
    differing,
    environment,
    outcomes,
    words,
)
from scripts.target_trials import ACTIVATIONS, MOST, Trial, trials  # noqa: E402

MEASURED = [name for name, tool in TOOLS.items() if "says" in tool]
RUNTIMES = ROOT / "rules" / "runtimes"
PORTABLE = ROOT / "rules" / "portable.toml"
MICRO = ROOT / "rules" / "tflm.toml"
EXACT = "exact"
WORDS = 90  # characters that are kept of a message


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("tool", choices=[*MEASURED, "targets"])
    parser.add_argument("--check", action="store_true", help="compare with the file, and do not write it")
    parser.add_argument("--environments", type=Path, default=ENVIRONMENTS, help="folder of environments")
    a = parser.parse_args()
    if a.tool == "targets":
        found = {PORTABLE: f"[builtins]\n{common()}", MICRO: sections(RUNTIMES / "tflm.toml")}
        return max(settle(path, head_of(path) + text, check=a.check) for path, text in found.items())
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


def head_of(path: Path) -> str:
    """What a target's file says before its first measured section."""
    text = path.read_text()
    return text[: min(text.find(f"\n[{name}]\n") % (len(text) + 1) for name in ("builtins", "kernels")) + 1]


# --- running


def measured(tool: str, python: Path) -> str:
    """The table of a tool."""
    every = [*trials(), *edges(), *chains()]
    verdicts = compared(tool, python, every)
    judged = [(trial, verdict) for trial, verdict in zip(every, verdicts, strict=True) if verdict]
    refused = [f"{t.kernel}: {t.signature}" for t, verdict in zip(every, verdicts, strict=True) if not verdict]
    return table(tool, judged, refused, quantized(tool, python) if TOOLS[tool].get("kernels") else [])


def quantized(tool: str, python: Path) -> list[Kind]:
    """What a tool makes of models of quantized kernels."""
    every = kinds()
    rows = [(trial, kept_of(op), fitting) for trial, op, fitting in quantized_trials(every)]
    for (_, kept, fitting), verdict in zip(rows, compared(tool, python, [trial for trial, *_ in rows]), strict=True):
        for kind in fitting if verdict else ():
            kind.outcomes.append((kept, verdict))
    return every


def compared(tool: str, python: Path, every: Sequence[Trial]) -> list[str]:
    """What the results of a tool are; empty for a model that the reference kernels do not run."""
    jobs = [Job(t.model, ".tflite", [{f"in{i}": a for i, a in enumerate(t.inputs)}]) for t in every]
    want = outcomes(REFERENCE, Path(sys.executable), jobs)
    got = outcomes(tool, python, jobs)
    return ["" if isinstance(w, str) else judge(w, g) for w, g in zip(want, got, strict=True)]


def judge(want: Outcome, got: Outcome | str) -> str:
    """What the results of a tool are beside those of the reference kernels."""
    if isinstance(got, str):
        return f"refused: {words(got, WORDS)}"
    found = differing(want, got)
    if isinstance(found, str):
        return found
    return f"{found.wrong} of {found.elements} differ, by {found.apart:.3g} at most" if found.wrong else EXACT


# --- the table


KERNELS = """# Quantized kernels on up to 8 bits: of the lines of rules/kernels.toml those on which all models that were
# tried are exact, with further constraints where others are not."""


@dataclass(frozen=True, order=True)
class Kernel:
    """A kernel on types, and the activation that it fuses."""

    name: str
    signature: str
    activation: str

    def __str__(self) -> str:
        fused = "" if self.activation == "NONE" else f" with {self.activation}"
        return f"{self.name}: {self.signature}{fused}"


def table(tool: str, judged: Sequence[tuple[Trial, str]], refused: Sequence[str], every: Sequence[Kind] = ()) -> str:
    """The file's text: what is exact, as rules; chains and edges; and what is not exact, as comments."""
    right: dict[Kernel, bool] = {}
    for trial, verdict in judged:
        if trial.kernel:
            kernel = Kernel(trial.kernel, trial.signature, trial.activation)
            right[kernel] = right.get(kernel, True) and verdict == EXACT
    right = {kernel: exact and all(right.get(less, True) for less in fewer(kernel)) for kernel, exact in right.items()}
    first: dict[str, str] = {}
    for trial, verdict in judged:
        if trial.kernel and verdict != EXACT:
            first.setdefault(str(Kernel(trial.kernel, trial.signature, trial.activation)), verdict)
    lines = [
        "# Builtins on plain tensors that give what TFLite's reference kernels give, in",
        f"# {TOOLS[tool]['says']}: {', '.join(TOOLS[tool]['packages'])}.",
        "# The reference: ai-edge-litert with BUILTIN_REF. Measured by scripts/measure_target.py: do not edit.",
        "# Types and options as in rules/integer.json; only what is named here was tried.",
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
    if every:
        exact, wrong = kernel_lines(every, EXACT)
        lines += ["", KERNELS, "[kernels]", *exact, "", "# Of rules/kernels.toml, not exact for all models:"]
        lines += [f"# {text}" for text in wrong]
    return "\n".join(lines) + "\n"


def quoted(text: str) -> str:
    return text.replace("\\", "/").replace('"', "'")


def rules(kernels: Iterable[Kernel]) -> list[str]:
    """Lines of a section: signatures of one kernel with the same activations are one, separated by "|"."""
    fused: dict[tuple[str, str], set[str]] = {}
    every = set(kernels)
    for kernel in every.difference(*map(fewer, every)):
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


def fewer(kernel: Kernel) -> list[Kernel]:
    """The kernel of any number of operands ("f32*") on as many as were tried, which it takes, too."""
    head, star, rest = kernel.signature.partition("* -> ")
    return [replace(kernel, signature=f"{head}*{MOST} -> {rest}")] if star else []


def listed(path: Path) -> set[Kernel]:
    """The kernels of a measured table, one for each activation."""
    found: set[Kernel] = set()
    content: Mapping[str, str] = tomllib.loads(path.read_text())["builtins"]
    for name, line in content.items():
        for text in line.split(" | "):
            signature, _, options = text.partition("; fused_activation_function = ")
            found.update(Kernel(name, signature, activation) for activation in options.split() or ["NONE"])
    return found.union(*map(fewer, found))


def sections(path: Path) -> str:
    """The sections [builtins] and [kernels] of a measured table."""
    text = path.read_text()
    starts = [text.index(f"[{name}]\n") for name in ("builtins", "kernels")]
    return "\n".join(text[start : text.index("\n\n", start)] + "\n" for start in starts)


def common() -> str:
    """The lines of what all measured runtimes have."""
    tables = [listed(path) for path in sorted(RUNTIMES.glob("*.toml"))]
    return "\n".join(rules(set.intersection(*tables))) + "\n"


if __name__ == "__main__":
    sys.exit(main())
