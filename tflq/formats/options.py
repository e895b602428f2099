"""The options of a conversion: the arguments of `tflq.convert`, checked."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from types import NoneType
from typing import TYPE_CHECKING, Any, Final, Literal, get_args

from tflq.base.arguments import (
    check_choice,
    check_flags,
    check_number,
    check_path,
    check_shapes,
    check_text,
    items,
    not_expected,
)
from tflq.base.errors import OptionError, Reason
from tflq.base.files import FilePath
from tflq.formats.backend import DEFAULT, Backend
from tflq.formats.backend import backend as backend_named
from tflq.numerics.kernel_sets import DEFAULT as DEFAULT_SET
from tflq.numerics.kernel_sets import NAMES, NEWEST
from tflq.targets.target import INTEGER, Target

if TYPE_CHECKING:
    from tflq.ir.ops import Op
    from tflq.legalize.rule import Rule

Mac = Literal["integer", "float32"]
Fallback = Literal["float", "error"]
Semantics = Literal["interpreter", "real"]
State = Literal["kept", "variables", "inputs"]
Prefer = Literal["speed", "size", "memory"]


class Options:
    """The options of a conversion: see `tflq.convert`.

    backend: the format of the result. kernels: the target of a TFLite file. target: the target of another format.
    size_limit: bytes of the result up to which tables of two operands are used; None for no limit. fallback: an
    operator without an integer rule is computed in float. kernel_set: the full name of the kernels that the result is
    exact for. cache: a folder of proofs, "" for none. choices: options of the format's own, by name. rules: those of
    a user (`tflq.Extension`).
    """

    def __init__(
        self,
        backend: Backend | None = None,
        kernels: Target = INTEGER,
        target: Any = None,
        mac: Mac = "integer",
        prefer: Prefer = "speed",
        size_limit: int | None = None,
        fallback: bool = True,
        semantics: Semantics = "interpreter",
        kernel_set: str = DEFAULT_SET,
        state: State | None = None,
        reset_signature: bool = False,
        batch: int | None = None,
        shapes: Mapping[str, Sequence[int]] | None = None,
        signature: str | None = None,
        cut: Sequence[str] = (),
        cut_before_custom: bool = False,
        cache: str = "",
        choices: Mapping[str, Any] | None = None,
        rules: Mapping[str | type[Op], Sequence[Rule]] | None = None,
    ) -> None:
        self.backend: Final = backend_named(DEFAULT) if backend is None else backend
        self.kernels: Final = kernels
        self.target: Final = target
        self.mac: Final = mac
        self.prefer: Final = prefer
        self.size_limit: Final = size_limit
        self.fallback: Final = fallback
        self.semantics: Final = semantics
        self.kernel_set: Final = kernel_set
        self.state: Final = state
        self.reset_signature: Final = reset_signature
        self.batch: Final = batch
        self.shapes: Final = shapes or {}
        self.signature: Final = signature
        self.cut: Final = cut
        self.cut_before_custom: Final = cut_before_custom
        self.cache: Final = cache
        self.choices: Final = choices or {}
        self.rules: Final = rules or {}

    def replace(self, **changes: Any) -> Options:
        """A copy with other values of some fields."""
        return Options(**vars(self) | changes)


def options_from_arguments(
    format: str,
    target: FilePath | None,
    *,
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
    cache: FilePath | None = None,
    choices: Mapping[str, Any] | None = None,
) -> Options:
    """The options of a conversion, as `tflq.convert` takes them. OptionError for values that are not known, and for
    options that do nothing in this format."""
    check_choice("mac", mac, get_args(Mac))
    check_choice("prefer", prefer, get_args(Prefer))
    check_choice("fallback", fallback, get_args(Fallback))
    check_choice("semantics", semantics, get_args(Semantics))
    check_choice("kernel_set", kernel_set, (*NAMES, *NEWEST))
    check_choice("state", state, get_args(State), optional=True)
    check_flags(reset_signature=reset_signature, cut_before_custom=cut_before_custom)
    check_number("batch", batch, 1, whole=True, optional=True)
    check_shapes(shapes)
    check_text("signature", signature, "a signature's key")
    check_path("cache", cache)
    if not (target is None or isinstance(target, (str, os.PathLike))):
        raise not_expected("target", target, "the name of a target, or the path of a target's file")
    chosen = backend_named(format)
    allowed = chosen.target(target)
    chosen.check_options(mac=mac, prefer=prefer, state=state, reset_signature=reset_signature, cache=cache)
    if not isinstance(choices, (Mapping, NoneType)):
        raise not_expected("choices", choices, "a mapping of options of the format")
    chosen.check_choices(choices or {})
    if chosen.builtins:
        _check_mac(mac, allowed)
    return Options(
        backend=chosen,
        kernels=allowed if isinstance(allowed, Target) else INTEGER,
        target=None if isinstance(allowed, Target) else allowed,
        mac=mac,
        prefer=prefer,
        size_limit=0 if prefer == "size" else None,
        fallback=fallback == "float",
        semantics=semantics,
        kernel_set=NEWEST.get(kernel_set, kernel_set),
        state=state,
        reset_signature=reset_signature,
        batch=batch,
        shapes=dict(shapes or {}),
        signature=signature,
        cut=items("cut", cut, (str,), "tensor names"),
        cut_before_custom=cut_before_custom,
        cache="" if cache is None else os.fspath(cache),
        choices=dict(choices or {}),
    )


def _check_mac(mac: Mac, target: Target) -> None:
    """OptionError if the target leaves no choice."""
    if target.builtins is not None and mac != "integer":
        what = f"mac '{mac}': the target '{target.name}' restricts plain builtins, so its results are in float32 anyway"
        raise OptionError(Reason(what, value=mac, remedy="leave it out"))


def changed(**arguments: Any) -> dict[str, Any]:
    """The keywords of `tflq.convert` that differ from their defaults. `format` and `target` must not be among them."""
    usual = {**(options_from_arguments.__kwdefaults__ or {}), "rules": ()}
    return {name: value for name, value in arguments.items() if value not in (usual[name], None, (), [], {})}


def check_for_source_of_tosa(options: Options, target: FilePath | None) -> None:
    """OptionError for options that do nothing for a model that is TOSA already. `target`: as the caller gave it."""
    for name, value, usual in (
        ("target", target if options.backend.builtins else None, "integer"),
        ("fallback", "float" if options.fallback else "error", "float"),
        ("semantics", options.semantics, "interpreter"),
        ("kernel_set", options.kernel_set, DEFAULT_SET),
        ("state", options.state, None),
    ):
        if value not in (None, usual):
            what = f"{name} '{value}' is for models with quantized operators; a TOSA file has none"
            raise OptionError(Reason(what, value=value, remedy="leave it out"))
    if options.batch is not None or options.shapes:
        raise OptionError("a TOSA file has no open dims to bind: its shapes are those it was written with")
