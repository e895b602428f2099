"""What can be known to go wrong before a sweep starts: a package that is missing, a target or an option that no model
could be converted with. Said at once, not once for each model.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Final

from tflq.backends import Backend, backend, of_target
from tflq.errors import OptionError, Reason, to_install
from tflq.extensions import extension_of
from tflq.options import asked
from tflq.sweep.selection import Job
from tflq.sweep.task import Settings

__all__ = ["check"]

_Package = tuple[tuple[str, ...], str, str, str]
_PACKAGES: Final[Mapping[str, _Package]] = {
    "page": (("jinja2",), "jinja2", "to write its page", "verify"),
    "kaggle": (("kagglehub",), "kagglehub", "to fetch models from Kaggle", "kaggle"),
    "dask": (("distributed",), "dask", "to run on the workers of a scheduler", "dask"),
}
"""What sweeps need: modules of which one has to be there, the package that has it, what for, tflq's extra with it."""


def check(jobs: Sequence[Job], settings: Settings, scheduler: str = "", *, kaggle: bool = True) -> None:
    """Raises the error that every model, or every one under some target, would end with. Nothing is run or written.

    kaggle: whether models of Kaggle are fetched from there, not by a fetcher of the caller's.
    OptionError for a package that is not installed, for a target or an option that is not known, or does nothing
    for a target, for a file of rules that has none, or a scheduler that does not answer. FileError for a target's
    file that cannot be read.
    """
    targets = list(dict.fromkeys(target for _, target in jobs))
    chosen = dict.fromkeys(_for_target(target, settings) for target in targets)
    for path in settings.rules:
        extension_of(Path(path))
    _check_packages(_needed(jobs, chosen, scheduler, kaggle))
    if scheduler:
        from tflq.sweep.cluster import connected

        connected(scheduler).close()


def _for_target(target: str, settings: Settings) -> Backend:
    """The format of a target, if models can be converted to it with the sweep's options."""
    options = {name: value for name, value in settings.convert.items() if name != "rules"}
    chosen = of_target(target, static=True)
    try:
        asked(chosen.name, target, **options)
    except OptionError as error:
        if any(reason.value == target for reason in error.reasons):
            raise
        first = error.reasons[0]
        remedy = first.remedy or "leave it out, or sweep the targets that take it on their own"
        raise OptionError(Reason(f"target {target}: {first.what}", value=first.value, remedy=remedy)) from error
    return chosen


def _needed(jobs: Sequence[Job], chosen: Iterable[Backend], scheduler: str, kaggle: bool) -> Iterator[_Package]:
    """Packages. Models run on the workers of a scheduler, which have packages of their own."""
    if scheduler:
        yield _PACKAGES["dask"]
    else:
        yield from _runs(backend("tflite"), "to run models")
        for each in chosen:
            if not each.builtins:
                yield from _runs(each, f"to run {each.name.upper()} files")
    yield _PACKAGES["page"]
    if kaggle and any(model.kaggle for model, _ in jobs):
        yield _PACKAGES["kaggle"]


def _runs(chosen: Backend, purpose: str) -> Iterator[_Package]:
    if chosen.requires is not None:
        modules, package, extra = chosen.requires
        yield modules, package, purpose, extra


def _check_packages(needed: Iterator[_Package]) -> None:
    missing = [
        (package, purpose, extra)
        for modules, package, purpose, extra in needed
        if not any(find_spec(module) for module in modules)
    ]
    if missing:
        listed = " and ".join(f"{package} ({purpose})" for package, purpose, _ in missing)
        extras = ",".join(dict.fromkeys(extra for _, _, extra in missing))
        what = f"a sweep of these models needs {listed}, which {'is' if len(missing) == 1 else 'are'} not installed"
        raise OptionError(Reason(what, remedy=to_install(extras)))
