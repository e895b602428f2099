"""All claims in one table against their aims: python benchmarks/bench.py [--write] [--quick]

`--write` puts the table into README.md, with date and machine. `--quick` leaves out networks of more than 5,000
operators and the file of 10 GB.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import claim_conversion
import claim_large
import claim_running
import claim_sizes
import claim_verification
import instructions
import scaling
from claims import Claim, machine, table

PAGE: Final = Path(__file__).resolve().parent / "README.md"
PLOT: Final = PAGE.parent / "scaling.svg"
BEGIN, END = "<!-- bench: begin -->\n", "<!-- bench: end -->\n"


def measured(*, quick: bool) -> Iterator[Claim]:
    """All claims, each printed as soon as it is known."""
    parts = [instructions.claims(), claim_conversion.claims(), claim_sizes.claims(), claim_running.claims()]
    parts.append(claim_verification.claims())
    parts.append(scaling.claims([100, 1000, 5000] if quick else list(scaling.COUNTS), PLOT))
    parts += [] if quick else [claim_large.claims()]
    for part in parts:
        for claim in part:
            print(*table([claim]).splitlines()[2:], flush=True)
            yield claim


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--write", action="store_true")
    parser.add_argument("--quick", action="store_true")
    arguments = parser.parse_args()
    where = machine()
    found = list(measured(quick=arguments.quick))
    aims = [claim for claim in found if claim.aim is not None]
    met = sum(claim.verdict == "met" for claim in aims)
    text = f"{where}. {met} of {len(aims)} aims met.\n\n{table(found)}"
    print("\n" + text)
    if arguments.write:
        before, _, rest = PAGE.read_text(encoding="utf-8").partition(BEGIN)
        _, _, after = rest.partition(END)
        PAGE.write_text(f"{before}{BEGIN}{text}{END}{after}", encoding="utf-8")


if __name__ == "__main__":
    main()
