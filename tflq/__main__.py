"""`python -m tflq`: the same as the command `tflq`."""

from __future__ import annotations

from tflq.cli.main import main

if __name__ == "__main__":
    main()
