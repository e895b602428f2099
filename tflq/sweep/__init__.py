"""Sweeps: many models under many targets, each converted and verified in a process of its own, and what changed.

sources → jobs → executor (a warm server forks a process for each) → results.jsonl → summary, page, comparison
"""

from tflq.sweep.call import run_sweep
from tflq.sweep.changes import Change
from tflq.sweep.driver import Observer, StoppedError
from tflq.sweep.fetching import Fetcher, UnavailableError
from tflq.sweep.models import Expectation, Model
from tflq.sweep.selection import Selection
from tflq.sweep.sources import find_models
from tflq.sweep.status import STATUSES, Status
from tflq.sweep.store import read_results
from tflq.sweep.summary import Summary, summarize
from tflq.sweep.sweeping import Outcome, Plan, cache_folder, sweep
from tflq.sweep.task import Limits, Settings

__all__ = [
    "STATUSES",
    "Change",
    "Expectation",
    "Fetcher",
    "Limits",
    "Model",
    "Observer",
    "Outcome",
    "Plan",
    "Selection",
    "Settings",
    "Status",
    "StoppedError",
    "Summary",
    "UnavailableError",
    "cache_folder",
    "find_models",
    "read_results",
    "run_sweep",
    "summarize",
    "sweep",
]
