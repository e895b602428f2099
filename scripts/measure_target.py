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
import subprocess
import sys
import tempfile
import tomllib
import venv
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "tests")]

from scripts.target_chains import chains, edges  # noqa: E402
from scripts.target_kernels import Kind, kept_of, kernel_lines, kinds, quantized_trials  # noqa: E402
from scripts.target_trials import ACTIVATIONS, MOST, Trial, trials  # noqa: E402

TOOLS: dict[str, dict[str, Any]] = tomllib.loads((Path(__file__).parent / "target_tools.toml").read_text())
WORKER = Path(__file__).with_name("target_worker.py")
RUNTIMES = ROOT / "rules" / "runtimes"
PORTABLE = ROOT / "rules" / "portable.toml"
MICRO = ROOT / "rules" / "tflm.toml"
REFERENCE = "reference"
EXACT = "exact"
WORDS = 90  # characters that are kept of a message


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("tool", choices=[*TOOLS, "targets"])
    parser.add_argument("--check", action="store_true", help="compare with the file, and do not write it")
    parser.add_argument("--environments", type=Path, default=ROOT / "build" / "runtimes", help="folder of environments")
    a = parser.parse_args()
    if a.tool == "targets":
        found = {PORTABLE: f"[builtins]\n{common()}", MICRO: sections(RUNTIMES / "tflm.toml")}
        return max(settle(path, head_of(path) + text, check=a.check) for path, text in found.items())
    python = environment(a.tool, a.environments)
    if python is None:
        print(f"SKIPPED {a.tool}: {' '.join(TOOLS[a.tool]['packages'])} cannot be installed here", file=sys.stderr)
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


def environment(tool: str, folder: Path) -> Path | None:
    """The Python of a tool's environment, made if it is not there; None if its packages cannot be had."""
    place = folder / tool
    python = place / "bin" / "python"
    stamp, wanted = place / "packages.txt", "\n".join(TOOLS[tool]["packages"])
    if stamp.exists() and stamp.read_text() == wanted:
        return python
    venv.create(place, clear=True, with_pip=True)
    command = [str(python), "-m", "pip", "install", "-q", "--disable-pip-version-check", *TOOLS[tool]["packages"]]
    if subprocess.run(command, check=False, stdout=subprocess.DEVNULL).returncode:
        return None
    stamp.write_text(wanted)
    return python


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
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for number, trial in enumerate(every):
            (folder / f"{number}.tflite").write_bytes(trial.model)
            np.savez(folder / f"{number}.in.npz", *trial.inputs)
        want = outcomes(REFERENCE, Path(sys.executable), folder, len(every))
        got = outcomes(tool, python, folder, len(every))
    return ["" if isinstance(w, str) else judge(w, g) for w, g in zip(want, got, strict=True)]


def outcomes(tool: str, python: Path, folder: Path, count: int) -> list[list[np.ndarray] | str]:
    """What a tool makes of each model: outputs, or why there are none. A model that ends its process is the first that
    left nothing; those after it run in another one."""
    left = [str(number) for number in range(count)]
    while left:
        done = subprocess.run(
            [str(python), str(WORKER), tool, str(folder), *left], check=False, capture_output=True, text=True
        )
        rest = [n for n in left if not any((folder / f"{n}.{kind}").exists() for kind in ("out.npz", "txt"))]
        if rest and done.returncode == 0:
            raise RuntimeError(f"{tool} left models out")
        if rest == left and "import" in done.stderr:
            raise RuntimeError(f"{tool} does not run: {done.stderr.strip().splitlines()[-1]}")
        if rest:
            (folder / f"{rest[0]}.txt").write_text("the process ends")
        left = rest[1:]
    return [_outcome(folder, number) for number in range(count)]


def _outcome(folder: Path, number: int) -> list[np.ndarray] | str:
    reason, result = folder / f"{number}.txt", folder / f"{number}.out.npz"
    if reason.exists():
        text = reason.read_text().replace(str(folder), "")
        reason.unlink()
        return text
    with np.load(result) as file:
        found = [file[f"arr_{i}"] for i in range(len(file.files))]
    result.unlink()
    return found


def judge(want: list[np.ndarray] | str, got: list[np.ndarray] | str) -> str:
    """What the results of a tool are beside those of the reference kernels."""
    if isinstance(got, str):
        words = " ".join("".join(c if " " <= c <= "~" else " " for c in got).split())
        return f"refused: {words[:WORDS].rstrip()}"
    assert not isinstance(want, str)
    if [array.shape for array in got] != [array.shape for array in want][: len(got)]:
        return f"other shapes: {', '.join(str(array.shape) for array in got)}"
    pairs = list(zip(want, got, strict=False))
    wrong = sum(int((w != g).sum()) for w, g in pairs)
    with np.errstate(invalid="ignore"):
        apart = max(float(np.abs(w.astype(np.float64) - g.astype(np.float64)).max(initial=0)) for w, g in pairs)
    return f"{wrong} of {sum(w.size for w in want)} differ, by {apart:.3g} at most" if wrong else EXACT


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
