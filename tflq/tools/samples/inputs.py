"""The inputs of a model's entry, and how arrays fit them.

An array fits an input whole, or it lacks the first dim, the batch: then it is a row. Rows fill a batch, as many as the
model states; an open batch, or one of 1, is filled by one row. The last batch is filled up with its last row.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from tflq.base.arguments import choices
from tflq.base.errors import OptionError, Reason

if TYPE_CHECKING:  # a process that runs a model needs none of it
    from tflq.ir.module import Module
    from tflq.ir.ops import Value

Sample = Mapping[str, np.ndarray]
"""An array for each input, by its name."""
Shape = tuple[int, ...]

_RESERVED: Final = str.maketrans(dict.fromkeys('/\\:*?"<>|', "_"))


def as_file_name(name: str) -> str:
    """A name as that of a file: characters that systems reserve are '_'."""
    return name.translate(_RESERVED)


def dims(shape: Sequence[int | None]) -> str:
    return f"({', '.join('?' if d is None else str(d) for d in shape)}{',' if len(shape) == 1 else ''})"


@dataclass(frozen=True)
class Input:
    """An input of an entry.

    Attributes:
        name: Its name in the entry.
        tensor: The name of its tensor.
        shape: Its shape; None for an open dim.
        dtype: That of its elements.
        scale: Of a quantized input the scale: floats become stored integers. 0: it is not quantized, or per axis.
        zero_point: Of a quantized input.
        alias: Another name that its array may have.
    """

    name: str
    tensor: str
    shape: tuple[int | None, ...]
    dtype: np.dtype
    scale: float = 0.0
    zero_point: int = 0
    alias: str = ""

    @property
    def batch(self) -> int:
        """Number of rows that fill it."""
        return (self.shape[0] if self.shape else None) or 1

    @property
    def is_open(self) -> bool:
        """Whether its first dim is open."""
        return self.shape[:1] == (None,)

    def takes(self, shape: Shape) -> bool:
        """Whether an array of this shape is a whole input."""
        return _fits(self.shape, shape)

    def takes_row(self, shape: Shape) -> bool:
        """Whether an array of this shape is a row: it lacks the batch, or has 1 there."""
        alone = len(shape) == len(self.shape) and shape[:1] == (1,)
        return bool(self.shape) and _fits(self.shape[1:], shape[1:] if alone else shape)

    def converted(self, array: Any, where: str) -> np.ndarray:
        """An array of the input's dtype. Floats for quantized integers are quantized, rounded half away from zero.
        OptionError for NaN among these, and for any other dtype."""
        array = np.asarray(array)
        if array.dtype == self.dtype or (self.dtype.kind in "SUO" and array.dtype.kind in "SUO"):
            return array
        if not (self.scale and array.dtype.kind == "f" and self.dtype.kind in "iu"):
            wanted = f"{self.dtype.name}, and the sample of {where} is {array.dtype.name}"
            remedy = f"convert it: array.astype('{self.dtype.name}')"
            raise OptionError(
                Reason(f"input '{self.name}' is {wanted}", tensor=self.tensor, value=array.dtype.name, remedy=remedy)
            )
        if np.isnan(array).any():
            what = f"input '{self.name}' is quantized, and the sample of {where} has NaN, which no integer stands for"
            raise OptionError(Reason(what, tensor=self.tensor, value="nan", remedy="mend or leave out that sample"))
        steps = array.astype(np.float64) / self.scale
        ends = np.iinfo(self.dtype)
        rounded = np.copysign(np.floor(np.abs(steps) + 0.5), steps) + self.zero_point
        return np.clip(rounded, ends.min, ends.max).astype(self.dtype)

    def misfit(self, shape: Shape, where: str) -> OptionError:
        """The error for an array that fits neither whole nor as a row."""
        what = f"input '{self.name}' has the shape {dims(self.shape)}, and the sample of {where} {dims(shape)}"
        remedy = f"give samples of {dims(self.shape)}, or of {dims(self.shape[1:])} without the batch"
        return OptionError(Reason(what, tensor=self.tensor, value=list(shape), remedy=remedy))


def _fits(declared_shape: Sequence[int | None], shape: Sequence[int]) -> bool:
    return len(declared_shape) == len(shape) and all(
        declared in (None, d) for declared, d in zip(declared_shape, shape, strict=True)
    )


@dataclass(frozen=True)
class Entry:
    """A signature or the first subgraph of a model, with its inputs.

    Attributes:
        key: The signature's key; empty: the first subgraph by position.
        function: The number of its function.
        inputs: Its inputs, in the order of the function.
        signatures: The keys of all signatures of the model.
        labels: The name of an array beside the inputs' that holds labels.
        outputs: The shapes of its outputs; empty if they are not known.
    """

    key: str
    function: int
    inputs: tuple[Input, ...]
    signatures: tuple[str, ...] = ()
    labels: str = "labels"
    outputs: tuple[tuple[int | None, ...], ...] = ()

    @classmethod
    def of(cls, module: Module, signature: str | None = None) -> Entry:
        """The entry of a key; by default that of the only signature, else the first subgraph. OptionError if no
        signature has the key."""
        signatures = [s for s in module.signatures or [] if s.key and s.inputs is not None]
        keys = signature_keys(module)
        if signature is not None:
            signatures = [s for s in signatures if s.key == signature]
            if not signatures:
                known = ", ".join(f"'{s.key}'" for s in module.signatures or []) or "none"
                remedy = f"signatures of the model: {known}"
                raise OptionError(Reason(f"there is no signature '{signature}'", value=signature, remedy=remedy))
        elif len(signatures) != 1:
            return cls.first(module)
        entry = signatures[0]
        inputs = _inputs(module, entry.function, entry.inputs or ())
        return cls(entry.key or "", entry.function, inputs, keys, outputs=_outputs(module, entry.function))

    @classmethod
    def first(cls, module: Module) -> Entry:
        """The first subgraph, whose inputs have the names of their tensors."""
        keys = tuple(s.key for s in module.signatures or [] if s.key)
        return cls("", 0, _inputs(module, 0, ()), keys, outputs=_outputs(module, 0))

    def places(self, module: Module) -> dict[Value, tuple[int, int]]:
        """Of each tensor of its function the number of the function, and the tensor's own."""
        return {value: (self.function, number) for number, value in enumerate(module.functions[self.function].tensors)}

    @property
    def in_run_order(self) -> list[Input]:
        """The inputs in the order in which the interpreter's runner takes them: a signature's by their names."""
        return sorted(self.inputs, key=lambda input_: input_.name) if self.key else list(self.inputs)

    def is_by_key(self, names: Sequence[str]) -> bool:
        """Whether samples with such names are by keys of signatures, {KEY: samples}, and not by inputs."""
        return not {*names}.isdisjoint(self.signatures) and {*names}.isdisjoint(input_.name for input_ in self.inputs)

    def is_for(self, key: str) -> bool:
        """Whether a sample for a signature is one for this entry."""
        return key == self.key or (not self.key and self.signatures in ((), (key,)))

    def check_not_of_signatures(self, names: Sequence[str], where: str) -> None:
        """OptionError if arrays are of signatures, KEY/NAME, where the first subgraph of a model with several runs."""
        several = self.signatures if not self.key and len(self.signatures) > 1 else ()
        if keys := [key for key in several if any(name == key or name.startswith(f"{key}/") for name in names)]:
            which = ", ".join(f"'{key}'" for key in keys)
            what = f"{where} has arrays of signature{'s' * (len(keys) > 1)} {which}, and the first subgraph runs"
            remedy = "run each by itself: tflq calibrate --signature KEY; tflq quantize takes all at once"
            raise OptionError(Reason(what, value=keys[0], remedy=remedy))

    def names(self, names: Sequence[str], where: str) -> dict[Input, str]:
        """The name of each input's array: SIGNATURE/NAME, the name of the input or of its tensor, or arr_0, arr_1 ...
        in the order of the inputs; one array for one input may have any name. OptionError for one that is missing,
        and for one too many, unless it is another signature's, or holds labels."""
        result: dict[Input, str] = {}
        if self.labels not in [name for input_ in self.inputs for name in (input_.name, input_.tensor, input_.alias)]:
            names = [name for name in names if name != self.labels]
        for place, input_ in enumerate(self.inputs):
            known = (
                f"{self.key}/{input_.name}",
                *filter(None, (input_.name, input_.tensor, input_.alias)),
                as_file_name(input_.name),
            )
            name = next((name for name in (*known, f"arr_{place}") if name in names), None)
            if name is None:
                self.check_not_of_signatures(names, where)
                if len(self.inputs) == len(names) == 1:
                    return {input_: names[0]}
                what = f"{where} has no array '{input_.name}', which is an input"
                remedy = choices(input_.name, names) or "save each input under its name: np.savez(path, name=array)"
                raise OptionError(Reason(what, tensor=input_.tensor, value=input_.name, remedy=remedy))
            result[input_] = name
        others = tuple(f"{key}/" for key in self.signatures if key != self.key)
        if extra := [n for n in names if n not in result.values() and not (others and n.startswith(others))]:
            what = f"{where} has '{extra[0]}', which is not an input"
            raise OptionError(Reason(what, value=extra[0], remedy=choices(extra[0], [*result.values()])))
        return result


def signature_keys(module: Module) -> tuple[str, ...]:
    """The keys of the signatures of a model."""
    return tuple(s.key for s in module.signatures or [] if s.key and s.inputs is not None)


def _inputs(module: Module, function: int, names: Iterable[tuple[str | None, Value]]) -> tuple[Input, ...]:
    """names: the signature's names for the inputs; empty: the tensors' own."""
    names_in_signature = {value: name for name, value in names}
    return tuple(_input(names_in_signature.get(v) or v.name, v) for v in module.functions[function].inputs)


def _outputs(module: Module, function: int) -> tuple[tuple[int | None, ...], ...]:
    return tuple(value.type.dims for value in module.functions[function].outputs)


def _input(name: str, value: Value) -> Input:
    scale, zero = getattr(value.type.element, "scale", 0.0), getattr(value.type.element, "zero_point", 0)
    return Input(name, value.name, value.type.dims, value.type.storage.dtype, scale, zero)


@dataclass(frozen=True)
class Arrangement:
    """Arrangement of samples in arrays: one, or one in each row of their first dims, or in each `group` of rows.

    Attributes:
        rows: The number of rows; None: the arrays are one sample.
        group: Rows of a sample.
    """

    rows: int | None
    group: int = 1

    @classmethod
    def of(cls, shapes: Mapping[Input, Shape], where: str) -> Arrangement:
        """The arrangement of arrays by their shapes. OptionError names the input that does not fit."""
        if all(input_.takes(shape) and not input_.is_open for input_, shape in shapes.items()):
            return cls(None)
        rows = {input_: shape[1:] for input_, shape in shapes.items() if shape}
        fit = len(rows) == len(shapes) and all(
            input_.takes(row) or input_.takes_row(row) for input_, row in rows.items()
        )
        if fit and len({shape[0] for shape in shapes.values()}) == 1:
            group = group_of([input_ for input_, row in rows.items() if not input_.takes(row)], len(shapes), where)
            return cls(next(iter(shapes.values()))[0], group)
        if all(
            input_.takes(shape) or (input_.batch == 1 and input_.takes_row(shape)) for input_, shape in shapes.items()
        ):
            return cls(None)
        if fit:
            shown = ", ".join(f"{shape[0]} of '{input_.name}'" for input_, shape in shapes.items())
            raise OptionError(Reason(f"not as many samples of each input: {shown}", where))
        for input_, shape in shapes.items():
            if not shape:
                what = f"'{input_.name}' has no first dim of samples"
                raise OptionError(
                    Reason(what, where, tensor=input_.tensor, remedy="stack the samples: np.stack(samples)")
                )
            if len(shape) < len(input_.shape):
                raise input_.misfit(shape, where)
            if not (input_.takes(shape[1:]) or input_.takes_row(shape[1:])):
                raise input_.misfit(shape[1:], f"row 0 of {where}")
        raise AssertionError("one of them does not fit")

    @property
    def count(self) -> int:
        """The number of samples."""
        return 1 if self.rows is None else -(-self.rows // self.group)

    def places(self, sample: int) -> list[int]:
        """The rows of a sample; the last one again where there are no more."""
        last = (self.rows or 1) - 1
        return [min(sample * self.group + i, last) for i in range(self.group)]


def group_of(rows: Sequence[Input], inputs: int, where: str) -> int:
    """The number of rows that fill the batches of those inputs whose arrays are rows. OptionError if it is not one
    number for all."""
    sizes = {input_.batch for input_ in rows}
    if not sizes or sizes == {1}:
        return 1
    if len(sizes) > 1 or len(rows) != inputs:
        batches = ", ".join(f"{input_.batch} of '{input_.name}'" for input_ in rows)
        what = f"rows do not fill the batches of the inputs alike: {batches}"
        raise OptionError(Reason(what, where, remedy="give arrays of the inputs' whole shapes"))
    (size,) = sizes
    return size


def fitted(arrays: Mapping[Input, Any], where: str) -> tuple[dict[str, np.ndarray], int]:
    """The arrays of one sample by input name, and how many such fill a batch; 1 if they are whole. OptionError for one
    that does not fit."""
    sample: dict[str, np.ndarray] = {}
    rows: list[Input] = []
    for input_, sample_array in arrays.items():
        array = input_.converted(sample_array, where)
        if not input_.takes(array.shape):
            if not input_.takes_row(array.shape):
                raise input_.misfit(array.shape, where)
            rows.append(input_)
            array = array.reshape(1, *array.shape[array.ndim + 1 - len(input_.shape) :])
        sample[input_.name] = array
    return sample, group_of(rows, len(arrays), where)


def stacked(rows: Sequence[Sample], group: int) -> Sample:
    """A sample of so many rows, each with a batch of 1; the last one again where there are too few."""
    rows = [*rows, *[rows[-1]] * (group - len(rows))]
    return {name: np.concatenate([row[name] for row in rows]) for name in rows[0]}
