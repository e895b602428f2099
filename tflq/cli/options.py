"""The options that several commands have, each declared once.

Those that change the result of a conversion are named as the keywords of `tflq.convert`. The values of a choice, and
what is taken where nothing is said, are those of `tflq.formats.pipeline`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, TypeVar

import click

from tflq.cli import output

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

_F = TypeVar("_F", bound=Callable[..., Any])
_Option = Callable[[Any], Any]

TARGETS: Final = (
    "integer (the default), kernels, portable, tflm, int8, int16x8, uint8 (.tflite); tosa, ethos-u55, ethos-u65, "
    "ethos-u85 (.tosa, .mlir); or a target file."
)


class _Format(click.Choice[str]):
    """The formats that there are, looked up when one is given or listed: that searches the installed packages."""

    def __init__(self) -> None:
        super().__init__(())

    @property
    def choices(self) -> tuple[str, ...]:
        from tflq.formats.backend import names

        return names()

    @choices.setter
    def choices(self, _: tuple[str, ...]) -> None:
        pass


FORMAT: Final = _Format()


class _KernelSet(click.Choice[str]):
    """The names of kernel sets, looked up when one is given or listed: that imports numpy."""

    def __init__(self) -> None:
        super().__init__(())

    @property
    def choices(self) -> tuple[str, ...]:
        from tflq.numerics.kernel_sets import NAMES, NEWEST

        return (*NAMES, *NEWEST)

    @choices.setter
    def choices(self, _: tuple[str, ...]) -> None:
        pass


KERNEL_SET: Final = _KernelSet()
_DEFAULT_SET: Final = "reference-2.3"


def _targets() -> Iterable[str]:
    from tflq.formats.backend import backend, names

    return dict.fromkeys(target for name in names() for target in backend(name).targets)


def complete_target(_: click.Context, __: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Completes names of targets, and files."""
    from click.shell_completion import CompletionItem

    names = [CompletionItem(name) for name in _targets() if name.startswith(incomplete)]
    return names or [CompletionItem(incomplete, type="file")]


def target_option(help: str, name: str = "target", **more: Any) -> _Option:
    return click.option("--target", name, shell_complete=complete_target, help=help, **more)


def json_option(help: str = "Print the outcome as JSON.") -> _Option:
    return click.option("--json", "as_json", is_flag=True, help=help)


DATA: Final = output.PathPlace(exists=True)
"""Samples: an .npz or .npy file, or a folder (docs/data.md)."""


def image_options(function: _F) -> _F:
    """--mean and --scale."""
    scale = "For images: what the difference is multiplied by."
    function = click.option("--scale", metavar="N[,N,N]", callback=_levels, help=scale)(function)
    mean = "For images: subtracted from each pixel (0 to 255), or each channel."
    return click.option("--mean", metavar="N[,N,N]", callback=_levels, help=mean)(function)


def metric_options(function: _F) -> _F:
    """--labels and --metric."""
    metric = "A metric of the outputs, which may be repeated: top-1, top-5, agreement, cosine, kl, mae."
    function = click.option("--metric", metavar="NAME", multiple=True, help=metric)(function)
    return labels_option()(function)


def labels_option() -> _Option:
    help = "Where the labels are: the key of an array in DATA, or a .npy, .npz or .csv file (docs/data.md)."
    return click.option("--labels", metavar="KEY|FILE", help=help)


def _levels(_: click.Context, parameter: click.Parameter, text: str | None) -> tuple[float, ...] | None:
    if text is None:
        return None
    try:
        return tuple(float(part) for part in text.split(","))
    except ValueError:
        raise click.BadParameter(f"'{text}' is not a number, or one for each channel", param=parameter) from None


def seeds_option(default: int) -> _Option:
    help = "How many sets of random inputs."
    return click.option("--seeds", type=click.IntRange(0), default=default, show_default=True, help=help)


def seed_option() -> _Option:
    help = "The seed of the random inputs."
    return click.option("--seed", type=click.IntRange(0), default=0, show_default=True, help=help)


def timeout_option(default: float, help: str = "Seconds that one run may take.", least: float = 0) -> _Option:
    return click.option("--timeout", type=click.FloatRange(least), default=default, show_default=True, help=help)


def tolerance_options(atol: float | None, rtol: float | None, more: str = "") -> Callable[[_F], _F]:
    """--max-lsb, --atol and --rtol, with the defaults of the latter two; `more` is added to the help of --atol."""

    def declared(function: _F) -> _F:
        share = "... plus this share of the original's value."
        function = click.option("--rtol", type=click.FloatRange(0), default=rtol, help=share)(function)
        floats = f"Accept floats that differ by at most this ...{more}"
        function = click.option("--atol", type=click.FloatRange(0), default=atol, help=floats)(function)
        counts = "Accept integers that differ by at most this many counts."
        return click.option("--max-lsb", type=click.FloatRange(0), default=0, help=counts)(function)

    return declared


def shape_option(more: str = "") -> _Option:
    """The option --shape; `more` is added to its help."""
    return click.option(
        "--shape",
        "shapes",
        metavar="INPUT=1,224,224,3",
        multiple=True,
        callback=lambda _, __, texts: _input_shapes(texts),
        help=f"The whole shape of an input; may be repeated.{more}",
    )


def _input_shapes(texts: Sequence[str]) -> dict[str, tuple[int, ...]]:
    """The shapes of inputs by name."""
    shapes = {}
    for text in texts:
        name, _, dims = text.rpartition("=")
        try:
            shapes[name] = tuple(int(d) for d in dims.split(",") if d)
        except ValueError:
            name = ""
        if not name:
            raise click.BadParameter(f"'{text}' is not a shape: write INPUT=1,224,224,3")
    return shapes


def _choice(name: str, known: Sequence[str], help: str) -> _Option:
    """An option that is one of some words, by default the first."""
    return click.option(f"--{name}", type=click.Choice(known), default=known[0], show_default=True, help=help)


_OPTIONS: Final[Mapping[str, _Option]] = {
    "mac": _choice(
        "mac",
        ["integer", "float32"],
        "How convolutions are computed: int8 matrix products, or float32 convolutions proven exact (faster).",
    ),
    "prefer": _choice(
        "prefer",
        ["speed", "size", "memory"],
        "Which of several exact forms a .tflite file gets: the fastest, the smallest file, or the least memory.",
    ),
    "fallback": _choice(
        "fallback",
        ["float", "error"],
        "For an operator without an integer form: compute it in float32, or stop with an error.",
    ),
    "semantics": _choice(
        "semantics",
        ["interpreter", "real"],
        "Where a kernel ignores quantization parameters: do as the kernel does, or as the parameters say.",
    ),
    "kernel_set": click.option(
        "--kernel-set",
        "kernel_set",
        type=KERNEL_SET,
        metavar="NAME",
        default=_DEFAULT_SET,
        show_default=True,
        help="The interpreter's kernels that the result reproduces bit for bit (docs/kernel-sets.md); 'reference' and "
        "'xnnpack' mean the newest release of theirs.",
    ),
    "state": click.option(
        "--state",
        type=click.Choice(["kept", "variables", "inputs"]),
        help="Operators that hold state. In a .tflite file: kept, which is the default unless a target's file does not "
        "list them, or lowered into variables. 'inputs': in an .onnx file, inputs that are given in every run, which "
        "OpenVINO needs; by default their first values are initializers.",
    ),
    "reset_signature": click.option(
        "--reset-signature",
        is_flag=True,
        help="Add a signature 'tflq_reset' that resets state lowered into variables; the model's own need their keys "
        "then.",
    ),
    "rules": click.option(
        "--rules",
        metavar="FILE.py",
        multiple=True,
        type=output.Place(exists=True, dir_okay=False),
        help="A Python file with rules of your own for operators (its EXTENSION); they are tried before those of tflq.",
    ),
    "data": click.option(
        "--data",
        type=click.Choice(["inline", "separate", "blob"]),
        help="Where constants of a .c file are: in it, in a second source, or in a file of bytes to which the program "
        "takes a pointer, as by default above 1 MB.",
    ),
    "name": click.option(
        "--name", metavar="NAME", help="What the names of a .c file begin with; by default the name of the file."
    ),
    "batch": click.option(
        "--batch",
        type=click.IntRange(1),
        help="The batch size (first dim of the inputs) where the model leaves it open.",
    ),
    "shapes": shape_option(),
    "signature": click.option(
        "--signature", metavar="KEY", help="Convert only this signature. (TOSA files hold one each.)"
    ),
    "cut": click.option(
        "--cut",
        metavar="TENSOR[,TENSOR]",
        multiple=True,
        callback=lambda _, __, texts: tuple(name for text in texts for name in text.split(",") if name),
        help="Convert only the part before these tensors, which become the outputs.",
    ),
    "cut_before_custom": click.option(
        "--cut-before-custom",
        is_flag=True,
        help="Convert the part before the first custom operators; what they read becomes outputs.",
    ),
}

FORMS: Final = ("mac", "prefer", "fallback", "semantics", "kernel_set", "state", "reset_signature", "rules")
"""Options that change the result, apart from the target."""
CHOICES: Final = ("data", "name")
"""Options of a format's own."""
PARTS: Final = ("signature", "cut", "cut_before_custom", "batch", "shapes")
"""Options for the part of a model that is converted, and its shapes."""
OF_ONE_MODEL: Final = ("signature", "cut", "shapes")
"""Options that name signatures, tensors or inputs, which other models do not have."""


def conversion_options(*names: str) -> Callable[[_F], _F]:
    """The options of these names; without any, all of them."""

    def declared(function: _F) -> _F:
        for name in reversed(names or tuple(_OPTIONS)):
            function = _OPTIONS[name](function)
        return function

    return declared
