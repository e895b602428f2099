"""`tflq.convert`: reads a source, runs the passes, and writes the result; and `Conversion`, what it returns."""

from __future__ import annotations

import os
import re
from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from itertools import chain
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

from tflq.base.arguments import check_flags, check_path
from tflq.base.collector import collected_rarely, expect
from tflq.base.errors import FileError, OptionError, Reason, TflqError
from tflq.base.files import FilePath, Pieces, check_outputs, replace_files, tidy
from tflq.base.logs import WARNING, log, stage
from tflq.conversion.remarks import of_model, of_rules, of_target
from tflq.conversion.report import Report
from tflq.dialects.tfl.state import Custom
from tflq.formats.backend import DEFAULT, Writing, backend, named_by, suffixes
from tflq.formats.options import (
    Fallback,
    Mac,
    Options,
    Prefer,
    Semantics,
    State,
    check_for_source_of_tosa,
    options_from_arguments,
)
from tflq.formats.pipeline import form_of, narrowing, passes_of, to_integer_form
from tflq.formats.sources import Source, digest_of, read, reusable_source, size_of
from tflq.ir.module import Module
from tflq.numerics.kernel_sets import DEFAULT as DEFAULT_SET
from tflq.transforms.pass_manager import Decisions, Dump, Pipeline, Step, check_folder, forget

if TYPE_CHECKING:
    from tflq.analysis.arena import Arena
    from tflq.conversion.cost import Cost
    from tflq.conversion.extensions import Extension
    from tflq.dialects.forms import ModuleForm

    _OfSource = tuple[int, Arena | None, str, str]
    """`bytes_in`, `arena_in`, `slower` and `instead` of the cost."""

SMALL, MOST_GROWTH = 100_000, 20
"""The result of a source of fewer than `SMALL` bytes is at most `MOST_GROWTH` times as large, if tables decide it."""


class Timing(NamedTuple):
    """Cost of a pass: milliseconds of the pass, and of the verifier if it ran after it; the number of ops before and
    after."""

    name: str
    modified: bool
    ms: float
    verifier_ms: float
    ops_before: int
    ops_after: int

    @classmethod
    def of(cls, step: Step) -> Timing:
        return cls(step.item.name, step.modified, step.seconds * 1e3, step.verifying * 1e3, step.before, step.after)


class Conversion:
    """The result of `tflq.convert`.

    TOSA has no signatures: each becomes a file of its own, in `files`. A pickle or a copy holds the files, the report
    and the cost, and reads its module from the files.

    Attributes:
        report: What happened to each operator.
        format: "tflite", "tosa", "mlir", "onnx", or that of a backend of your own.
        target: The target of a TOSA conversion, else None.
        timings: One row for each pass.
        paths: The files that `convert` wrote. Empty without a destination.

    Example:
        ```python
        conversion = tflq.convert("in.tflite")
        print(conversion, conversion.cost.file_ratio)
        ```
    """

    def __init__(
        self,
        module: Module | None,
        report: Report,
        format: str = DEFAULT,
        target: Any = None,
        timings: Sequence[Timing] = (),
        options: Options | None = None,
    ) -> None:
        self._module = module
        self.report = report
        self.format = format
        self.target = target
        self.timings = tuple(timings)
        self.paths: tuple[str, ...] = ()
        self._options = options
        self._bytes_in = 0
        self._digest = ""
        self._sizes: dict[int, int] = {}

    @property
    def module(self) -> Module:
        """The converted module, on the target's operators.

        Raises:
            TflqError: This is a pickle or a copy that has several files.
        """
        if self._module is None:
            self._module = read(self.data)
        return self._module

    def __reduce__(self) -> tuple[Any, ...]:
        return _restored, (self.files, self.report, self.format, self.target, self.timings, self._of_source)

    def __repr__(self) -> str:
        counts = ", ".join(f"{count} {path}" for path, count in self.report.counts.items() if count)
        return f"<Conversion of {self.report.source or 'a model'} to {self.format}: {counts or 'no operators'}>"

    @cached_property
    def files(self) -> dict[str, bytes]:
        """The bytes of each file by signature key, written when first asked for. A model with a single entry has the
        key "". Where an entry has several files, what their names end with follows: ".c", ".h".
        """
        return {
            key + ending: b"".join(pieces)
            for key, at in entries_of(self.module, self.format)
            for ending, pieces in self.files_of(at)
        }

    def files_of(self, function: int, stem: str = "") -> list[tuple[str, Pieces]]:
        """Serialize the files of one entry piece by piece, without copying constants.

        Args:
            function: The index of the entry's function in the module.
            stem: The name of the first file without its suffix, where files name each other.

        Returns:
            For each file what its name ends with, "" for a single one, and its pieces in order.
        """
        options = self._options or Options()
        writing = Writing(stem, self._digest, options.choices, options.kernel_set)
        files = backend(self.format).files(self.module, function, self.target, writing)
        self._sizes[function] = 0
        return [(ending, self._counted(function, pieces)) for ending, pieces in files]

    def _counted(self, function: int, pieces: Pieces) -> Pieces:
        for piece in pieces:
            self._sizes[function] += memoryview(piece).nbytes
            yield piece

    def pieces(self, function: int) -> Pieces:
        """Serialize one entry piece by piece, without copying constants.

        Args:
            function: The index of the entry's function in the module.

        Returns:
            The pieces of the file, in order; of several, those of the first.
        """
        yield from self.files_of(function)[0][1]

    @cached_property
    def arena(self) -> Arena | None:
        """Memory that the activations of a TFLite file need while it runs, as the interpreter's optimized kernels plan
        it with one thread. None for TOSA.
        """
        if not backend(self.format).interpreted:
            return None
        from tflq.analysis.arena import arena_of

        return arena_of(self.module)

    @cached_property
    def cost(self) -> Cost:
        """Size of the files and of the arena before and after, and whether an interpreter runs the result more slowly.
        Computed when first asked for.
        """
        from tflq.conversion.cost import Cost

        bytes_in, arena_in, slower, instead = self._of_source
        entries = () if self._module is None else (at for _, at in entries_of(self.module, self.format))
        bytes_out = sum(map(self._size, entries)) or sum(map(len, self.files.values()))
        return Cost(bytes_in, bytes_out, arena_in, self.arena, slower, instead)

    def _size(self, function: int) -> int:
        """Bytes of the file of one entry, which is made if it was not made before."""
        if function not in self._sizes:
            for _, pieces in self.files_of(function):
                deque(pieces, maxlen=0)
        return self._sizes[function]

    @cached_property
    def _of_source(self) -> _OfSource:
        """The part of the cost that the files do not say."""
        if not backend(self.format).interpreted or self._options is None:
            return self._bytes_in, None, "", ""
        from tflq.conversion.cost import slower_than_source, source_arena

        slower = slower_than_source(self.module, self.report.rows, self._options)
        return self._bytes_in, source_arena(self.module), *slower

    @property
    def data(self) -> bytes:
        """The bytes of the only file.

        Raises:
            TflqError: Each of several signatures has a file of its own: see `files`.
        """
        if len(self.files) > 1:
            raise TflqError(f"the conversion gave a file for each of {', '.join(self.files)}: see Conversion.files")
        return next(iter(self.files.values()))


def _restored(
    files: dict[str, bytes],
    report: Report,
    format: str,
    target: Any,
    timings: Sequence[Timing],
    of_source: _OfSource,
) -> Conversion:
    """A conversion of what a pickle or a copy holds."""
    conversion = Conversion(None, report, format, target, timings)
    conversion.files = files
    conversion._of_source = of_source
    return conversion


def convert(
    source: Source,
    destination: FilePath | None = None,
    *,
    format: str | None = None,
    target: FilePath | None = None,
    mac: Mac = "integer",
    prefer: Prefer = "speed",
    fallback: Fallback = "float",
    semantics: Semantics = "interpreter",
    kernel_set: str = DEFAULT_SET,
    state: State | None = None,
    reset_signature: bool = False,
    batch: int | None = None,
    shapes: Mapping[str, Sequence[int]] | None = None,
    signature: str | None = None,
    cut: Sequence[str] = (),
    cut_before_custom: bool = False,
    rules: Sequence[Extension | FilePath] = (),
    cache: FilePath | None = None,
    choices: Mapping[str, Any] | None = None,
    force: bool = False,
) -> Conversion:
    """Convert a TFLite or TOSA model, and write the result to `destination` if there is one.

    On an error, nothing is written.

    Args:
        source: The model: a path, bytes or a binary file object.
        destination: Where to write the result. Without it, the result is only returned.
        format: "tflite", "tosa" (flatbuffer), "mlir" (text of the tosa dialect), "onnx", "qdq" (ONNX with each
            quantized operator between DequantizeLinear and QuantizeLinear, which is not exact), or "c" (C99: a source
            and a header beside it). By default the suffix
            of the destination decides, or "tflite" without one. A suffix that says otherwise is an error.
        target: What the result may contain. For TFLite: "integer" (builtins on plain integer tensors), "kernels" (also
            the quantized kernels that the interpreter computes correctly: rules/kernels.toml), "int8", "int16x8" or
            "uint8" (those kernels on one storage), "portable" or "tflm" (what other runtimes compute), or the path of a
            file of kernels like rules/npu_example.toml. For TOSA: "tosa" (1.0 with both profiles: rules/tosa.toml),
            "ethos-u55", "ethos-u65" or "ethos-u85", or the path of a file like rules/tosa.toml with other profiles,
            extensions or another level. For "qdq": "qdq" (the operators
            that rules/qdq.toml lists stand between casts), or the path of a file of kernels that lists others.
        mac: How to multiply and accumulate: as int8 BATCH_MATMUL ("integer"), or as float convolutions on integer
            values, proven exact ("float32"). For TFLite.
        prefer: Which of several exact forms to take: the fastest ("speed"), the one with the smallest file ("size":
            arithmetic instead of tables of two operands, 64 KiB each), or the one that needs the least memory while it
            runs ("memory": weights of float kernels stay float32 in the file). For TFLite. With "speed", the result of
            a source below 100 KB is at most 20 times as large, as far as leaving out tables achieves that.
        fallback: What to do with an operator that has no integer rule: compute it in "float", or raise an "error".
        semantics: "interpreter" reproduces the reference kernels to the last bit; "real" follows the quantization
            parameters and drops requantizations between float operators.
        kernel_set: Whose kernels the result reproduces: "reference-2.3", the reference kernels of ai-edge-litert 2.0 to
            2.3 on x86-64; "xnnpack-2.3", its default kernels; or another name of docs/kernel-sets.md. "reference" and
            "xnnpack" are the newest released sets of their kind.
        state: What to do with operators that hold state (SVDF, LSTM, ...) in a TFLite file: "kept" leaves them as they
            are, with their variable tensors; "variables" lowers them and holds their state in resource variables, which
            `reset_all_variables()` does not reset. By default they are kept, unless the target is a file that does not
            list them. In an ONNX file a state is an input and an output, and the input may be left out in the first
            run; with "inputs" it is given in every run, as OpenVINO needs it, and the metadata has what it starts as.
        reset_signature: Add a signature `tflq_reset`, without inputs or outputs, that resets lowered state to its start
            values: `interpreter.get_signature_runner("tflq_reset")()`. The model's own variables stay untouched.
            `get_signature_runner()` without a key works only if there is one signature, so a model that has one needs
            its key from then on. For TFLite; if there is no lowered state, nothing is added and the report warns.
        batch: Size of the inputs' first dimension where the model leaves it open. A TOSA flatbuffer has no open
            dimensions.
        shapes: Whole shapes of inputs, by name.
        signature: Convert only this signature. Otherwise each signature becomes a TOSA or ONNX file of its own:
            `out.tosa` becomes `out.KEY.tosa`.
        cut: Names of tensors at which the model ends: they become outputs and keep their quantization. Outputs that do
            not depend on them stay. A signature that loses an output is dropped, with a warning.
        cut_before_custom: End the model at the tensors that custom operators read.
        rules: Extensions, or Python files with an `EXTENSION`, whose rules for operators are tried first. Installed
            packages are asked about custom operators that these do not know. See `tflq.Extension`.
        cache: Folder for proofs, created if missing: what was proven once is read from there. It holds at most 256 MiB,
            processes may share it, and you may delete it at any time. Entries are checked for damage, not for who
            wrote them: a folder that others can write to is refused. For TFLite.
        choices: Options of the format's own, by name. For "c": "name", what C's names begin with, by default the name
            of the file; "data", where constants are: "inline", "separate" (a file OUT_data.c) or "blob" (a file OUT.bin
            that the program is given a pointer to; by default above 1 MB).
        force: Replace existing files, but never the source, the target's file or a file of rules.

    Returns:
        The converted module, its files, a report on each operator, and the cost.

    Raises:
        InvalidModelError: The source is not a valid model.
        UnsupportedError: The model cannot be converted as asked. The error lists every operator in the way.
        OptionError: An option, or the suffix of the destination, makes no sense.
        FileError: A file cannot be read or written, or the destination exists.

    Example:
        ```python
        conversion = tflq.convert("in.tflite", "out.tflite", target="kernels")
        print(conversion.report.counts)
        ```
    """
    return convert_with_dump(
        source,
        destination,
        format=format,
        target=target,
        force=force,
        mac=mac,
        prefer=prefer,
        fallback=fallback,
        semantics=semantics,
        kernel_set=kernel_set,
        state=state,
        reset_signature=reset_signature,
        batch=batch,
        shapes=shapes,
        signature=signature,
        cut=cut,
        cut_before_custom=cut_before_custom,
        rules=rules,
        cache=cache,
        choices=choices,
    )


@collected_rarely()
def convert_with_dump(
    source: Source,
    destination: FilePath | None = None,
    *,
    format: str | None = None,
    target: FilePath | None = None,
    force: bool = False,
    dump_ir: FilePath | None = None,
    report: FilePath | None = None,
    rules: Sequence[Extension | FilePath] = (),
    **keywords: Any,
) -> Conversion:
    """Converts a model as `convert` does, with two more outputs. dump_ir: a folder for the text of the model as it was
    read and after each pass that changed something (`00-read.mlir`, `03-legalize.mlir`, ...). report: a file for the
    report as JSON, written with those of the destination, all or none."""
    check_path("destination", destination)
    check_flags(force=force)
    format = _format(format, destination)
    options = options_from_arguments(format, target, **keywords)
    path = None if destination is None else tidy(destination)
    if rules != ():
        from tflq.conversion.extensions import checked

        rules = checked(rules)
    inputs = source, target, *rules
    check_outputs([("the destination", path)], inputs=inputs, force=force)
    if dump_ir is not None:
        check_folder(dump_ir, beside=[path], inputs=inputs, force=force)
    source = reusable_source(source)
    with stage(f"reading {source}" if isinstance(source, (str, os.PathLike)) else "reading"):
        module = read(source)
    expect(sum(len(function.ops) for function in module.functions))
    form = form_of(module)
    if form == "tosa":
        check_for_source_of_tosa(options, target)
    if rules or any(op.name == Custom.op_name for op in module.ops()):
        from tflq.conversion.extensions import rules_for

        options = options.replace(rules=rules_for(module, rules))
    bytes_in = size_of(source)
    if options.size_limit is None and bytes_in < SMALL:
        options = options.replace(size_limit=MOST_GROWTH * bytes_in)
    conversion = _lowered(module, options, form, format, dump_ir)
    conversion._bytes_in = bytes_in
    if options.backend.names_source:
        conversion._digest = digest_of(source)
    for text in dict.fromkeys(conversion.report.warnings):
        log(WARNING, "%s: %s", module.source or "a model", text)
    try:
        if path is not None:
            places = destinations(conversion.module, format, path)
            written = write(conversion, places, inputs=inputs, force=force, report=report)
            conversion.paths = tuple(chain.from_iterable(written.values()))
    finally:
        forget(conversion.module)
    return conversion


def _lowered(module: Module, options: Options, form: ModuleForm, format: str, dump_ir: FilePath | None) -> Conversion:
    """The conversion of a module that was just read; what is known of its functions is kept (`forget`)."""
    dump = None if dump_ir is None else Dump(dump_ir, module)
    timings = []
    passes = [*narrowing(options, form), *passes_of(options, form)]
    for step in Pipeline(passes, form, each=dump is not None, keep=True).steps(module):
        module = step.module
        timings.append(Timing.of(step))
        if dump is not None:
            dump.after(step)
    return Conversion(module, report_of(module, options), format, options.target, timings, options)


def entries_of(module: Module, format: str) -> list[tuple[str, int]]:
    """Key and function of each file: one for each function that a signature names, or one in all."""
    if not backend(format).one_entry:
        return [("", 0)]
    from tflq.formats.lowering import keyed_entries

    return keyed_entries(module)


Destinations: TypeAlias = Sequence[tuple[str, int]]
"""Where each file of a conversion goes, and the function that is its entry."""


def destinations(module: Module, format: str, path: FilePath) -> Destinations:
    """Where the file of each entry of a converted module goes. FileError if two would have the same place."""
    entries = entries_of(module, format)
    stem, suffix = os.path.splitext(path := tidy(path))
    if len(entries) == 1:
        return [(path, entries[0][1])]
    words = [re.sub(r"[^\w-]+", "_", key) for key, _ in entries]
    places = [f"{stem}.{word}{suffix}" for word in words]
    if len(set(places)) < len(places):
        what = f"signatures {', '.join(key for key, _ in entries)} would share a file"
        raise FileError(path, what, remedy="convert one at a time")
    return [(place, function) for place, (_, function) in zip(places, entries, strict=True)]


def expected_places(
    source: Source, path: FilePath, *, format: str, target: str | None, **keywords: Any
) -> Destinations:
    """Where the files of a conversion would go: narrowing alone decides which entries it has."""
    options = options_from_arguments(format, target, **keywords)
    module = read(source)
    form = form_of(module)
    return destinations(Pipeline(narrowing(options, form), form).run(module).module, format, path)


def write(
    conversion: Conversion,
    places: Destinations,
    *,
    inputs: Iterable[object],
    force: bool,
    report: FilePath | None = None,
) -> dict[str, list[str]]:
    """Writes the files of a conversion, and its report if there is a place for it: all or none. Returns the paths of
    the files at and beside each place."""
    placed = {place: _placed(conversion, place, function) for place, function in places}
    files = [*chain.from_iterable(placed.values())]
    outputs = [*(("a signature's file", path) for path, _ in files), ("--report", report)]
    check_outputs(outputs, inputs=inputs, force=force)
    with stage(f"writing {', '.join(place for place, _ in places)}"):
        replace_files([*files, *report_file(conversion, report)], force=force)
    return {place: [path for path, _ in files] for place, files in placed.items()}


def _placed(conversion: Conversion, place: str, function: int) -> list[tuple[str, Pieces]]:
    """The files of an entry, the first in its place and others beside it."""
    stem = os.path.splitext(place)[0]
    files = conversion.files_of(function, os.path.basename(stem))
    return [(place if at == 0 else stem + ending, pieces) for at, (ending, pieces) in enumerate(files)]


def report_file(conversion: Conversion, place: FilePath | None) -> Sequence[tuple[FilePath, Pieces]]:
    """The file of a report and its pieces, as `replace_files` takes it; none without a place."""
    if place is None:
        return ()
    import json

    return [(place, [json.dumps(conversion.report.to_json(), indent=1).encode(), b"\n"])]


def _format(format: str | None, destination: FilePath | None) -> str:
    if format is not None:
        backend(format)
    if destination is None:
        return format or DEFAULT
    suffix = os.path.splitext(destination)[1][1:]
    if format is not None and (suffix in backend(format).suffixes or suffix not in suffixes()):
        return format
    named = named_by(destination)
    if format not in (None, named):
        what = f"the suffix says another format than {format}"
        raise OptionError(Reason(what, os.fspath(destination), value=format))
    return named


# Parts of a conversion.


def lower(module: Module, options: Options) -> tuple[Module, Report]:
    """A module in the tfl or the tosa form → one on the operators of the target, with the report. UnsupportedError
    lists every refused operator, InvalidModelError names one that breaks a law of TOSA."""
    form = form_of(module)
    module = Pipeline(passes_of(options, form), form).run(module).module
    return module, report_of(module, options)


def integer_form(module: Module, options: Options | None = None) -> Module:
    """A module in the tfl or the tosa form → the integer form that selection and TOSA's lowerings read.
    UnsupportedError lists every refused operator."""
    form = form_of(module)
    return Pipeline(to_integer_form(options or Options(), form), form).run(module).module


def report_of(module: Module, options: Options) -> Report:
    """The report of a converted module, from what the passes noted on it."""
    notes, requirements = options.backend.notes(module, options)
    decisions = Decisions.of(module)
    remarks = [*of_model(decisions), *of_rules(decisions, options.rules)]
    if options.kernels.of_user:
        remarks += of_target(decisions, options.kernels)
    report = Report.of(module, decisions, notes, remarks)
    report.requirements = requirements
    return report
