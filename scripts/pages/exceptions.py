"""docs/exceptions.md: where a result is not what the parameters say, or not what the interpreter gives.

Each line is a model of tests/exception_cases, converted and run, in a child process that the interpreter may take down.
"""

from __future__ import annotations

from collections.abc import Iterator
from importlib.metadata import version

from exception_cases import CASES
from exception_cases.misread import models as misread_models

from scripts.exception_trials import Trial, measure, misread_types
from tflq.legalize.caveats import EXCEPTIONS

HEAD = """# Exceptions

A converted model gives what the interpreter's reference kernels give, bit for bit, and that is what the quantization
parameters say, but for rounding. This page lists the cases in which one of the two does not hold. In each of them the
conversion warns: the field `exception` of the report's row has the name of a section below, `warning` the words in its
table, to which it can add how far off results are, and `remedy` what to do. Search the page for them.

You can ask for one of two things, with `--semantics`:

- `interpreter` (the default): what the interpreter gives, if that is one result that says something of the model
- `real`: what the parameters say. There are no warnings then; what has no integer form is computed in float

`tflq inspect --why MODEL` shows the cases of a model before it is converted.

Made by `scripts/make_docs.py`: each line is a small model that was converted and run, measured with
{interpreter}, the reference kernels, on x86-64; a test holds the page against the script. ai-edge-litert 2.1.6
gives the same results wherever numbers are stated; tensorflow-cpu 2.20 and 2.21 do for the elementwise operators under
"undefined". On other processors, or compiled otherwise, kernels may give something else there.

- **operator and types**: `qi8 0.5:3 [1,4]` is int8 of scale 0.5 and zero point 3, of shape 1 by 4; `qi8/axis0` has
  several scales, `qi8/blocks` one per block
- **warning**: the report's words
- **interpreter from real**: how far its results are from the real ones at most: the same operator on floats, quantized
- **converted from interpreter**: how far the converted model is from the interpreter
- **semantics `real` from real**: how far the model converted so is from the real results, and how it computes

The page is of the kernel set `reference-2.3`, the default. Under another name ([kernel-sets.md](kernel-sets.md)) the
same warnings are given for the same operators, and numbers can differ by a count. Operators whose arithmetic is not
known under a name are warned of there ("inexact").

One count is one step of the result's type. "Does not run": the interpreter refuses the model, or dies. "Left to
chance": the kernel reads memory that is not the model's, and each run gives something else.
"""
WORDS = {
    "disregarded": """\
The kernel computes with stored integers, or with some of the parameters, where the model states others: for example, it
copies integers between tensors of different scales. The result is the interpreter's. Where the parameters are the
same, as in nearly all models that a converter made, there is no warning.

What to do: if the model was evaluated in the interpreter, nothing; that is what it does. If it was trained or exported
to do what its parameters say, convert with `--semantics real`.""",
    "undefined": """\
The kernel comes to an operation that C++ leaves undefined, mostly a shift by too many bits, at scales that are far
apart. The result is what kernels compiled for x86-64 give, which the interpreters named above agree on. There is no
warning where no value that the tensors can have shows it.

What to do: such scales are mostly a fault of quantization: a constant or dead tensor was given a tiny scale.
`--semantics real` saturates, which is what is meant.""",
    "range": """\
The kernel's arithmetic is defined, but leaves the range of its types: a scaled sum wraps, or ends at the wrong end of
the range. The result is the interpreter's.

What to do: as above. Where a channel is dead (all its sums are zero) nothing of it shows.""",
    "unsettled": """\
The kernel's result is undefined in C++, and differs from one interpreter to the next, from one size of batch to
another, or from run to run. There is nothing to be equal to: the result is what the parameters say.

What to do: nothing in the conversion. Do not compare with the interpreter there.""",
    "inexact": """\
The interpreter has a result, and no integer form here gives it. The converted model's is what the parameters say, in
integers or in float.

What to do: state sizes that are open (`--batch`, `--shape`), which settles those lines below that have "?" or "open";
else use the result as it is.""",
    "broken": """\
The kernel runs, but not on what the model states. The converted model's result is what the parameters say.

What to do: nothing in the conversion. Do not compare with the reference kernels there: others may do better (SUM's
optimized kernels are right).""",
    "state": """\
State that is lowered into resource variables (`--state variables`) is not reset by `reset_all_variables()`, which
resets variable tensors alone. Measured: three runs, with a reset before the third.

What to do: create the interpreter anew for a new sequence, or convert with `--reset-signature` and call the signature
`tflq_reset`; or keep the state as it is, which is the default.""",
}
MISREAD = """\
Some kernels do not look at all types of their tensors, and run where others refuse: they take a tensor for one of
another type, or find no scale where there are several. Some of what they give is left over in memory; all of it,
measured, is more than a count off the real value, or of another type than stated. Warnings name the tensor. What
kernels read in a way that can be reproduced is under "disregarded".

| operator | types | warning |
|---|---|---|"""
COLUMNS = (
    "operator and types",
    "warning",
    "interpreter from real",
    "converted from interpreter",
    "semantics `real` from real",
)
TITLE = f"| {' | '.join(COLUMNS)} |\n"


def page() -> str:
    """The page's text."""
    lines = [HEAD.format(interpreter=f"ai-edge-litert {version('ai-edge-litert')}")]
    trials = [measure(case) for make in CASES for case in make()]
    for name, caveat in EXCEPTIONS.items():
        rows = sorted(set(map(_line, (trial for trial in trials if trial.exception == name))))
        about = f"*{caveat.text[0].upper()}{caveat.text[1:]}.* Its remedy: {caveat.remedy}."
        lines += [f"## {name}", "", about, "", WORDS[name], ""]
        lines += [f"{TITLE}{'|---' * 5}|", *rows, ""]
        if name == "broken":
            lines += [MISREAD, *_misread(), ""]
    if stray := [f"{t.operator} ({t.types})" for t in trials if t.exception not in EXCEPTIONS]:
        raise ValueError(f"no exceptions: {', '.join(stray)}")
    return "\n".join(lines).rstrip() + "\n"


def _line(trial: Trial) -> str:
    first = f"{trial.operator} {trial.types}"
    return f"| {' | '.join((first, trial.warning, trial.kernel, trial.converted, trial.real))} |"


def _misread() -> Iterator[str]:
    found: dict[tuple[str, str], list[str]] = {}
    for name, model in misread_models():
        if misread := misread_types(name, model):
            types, warning = misread
            found.setdefault((name.upper(), warning), []).append(types)
    for (operator, words), listed in found.items():
        yield f"| {operator} | {'; '.join(dict.fromkeys(listed))} | {words} |"
