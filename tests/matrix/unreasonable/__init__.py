"""Models with unreasonable parameters, of every operator that has quantized signatures: drawn, converted and judged.

`sources` draws a model, `twist` makes it unreasonable, `judge` holds a conversion against the interpreter, `pool` does
that in processes that the interpreter may take down. `scripts/unreasonable.py` runs them.
"""

from matrix.unreasonable.judge import FAILURES, Verdict, judged
from matrix.unreasonable.pool import Job, run
from matrix.unreasonable.sources import OPERATORS, Subject, subject

__all__ = ["FAILURES", "OPERATORS", "Job", "Subject", "Verdict", "judged", "run", "subject"]
