"""Time the page of a sweep of many results in headless Chromium: python benchmarks/sweep_page.py [ROWS]

The results are those of tests/support/made_results.py. Prints medians of 5.
Needs `pip install -e '.[verify,browser]'` and Chromium.
"""

from __future__ import annotations

import shutil
import statistics
import sys
import tempfile
import time
from pathlib import Path

from playwright.sync_api import sync_playwright

from tflq.tools.sweep import page

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))
from support.made_results import made

RUNS = 5
ARGUMENTS = "--no-sandbox --disable-gpu --disable-quic --no-first-run --disable-background-networking --disable-sync"

# Until the next frame is drawn: layout and paint are part of what one waits for.
TIMED = """async (code) => {
  const start = performance.now();
  eval(code);
  await new Promise((done) => requestAnimationFrame(() => setTimeout(done)));
  return performance.now() - start;
}"""
STEPS = {
    "load, ms": "",
    "sort by name, ms": "sortBy(0, true)",
    "sort by bytes, ms": "sortBy(9, true)",
    "filter, ms": "by('text').value = 'refused'; update()",
    "open a model, ms": "openRow(3)",
    "all rows, ms": "by('detail').close(); by('text').value = ''; update(); draw(shown.length)",
}


def main() -> None:
    rows = int(sys.argv[1]) if len(sys.argv) > 1 else 5000
    results = list(made(rows))
    times: dict[str, list[float]] = {name: [] for name in STEPS}
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        path = Path(folder) / "index.html"
        start = time.perf_counter()
        page.write(results, path)
        print(f"{rows} rows: written in {time.perf_counter() - start:.2f} s, {path.stat().st_size / 1e6:.1f} MB")
        browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=ARGUMENTS.split())
        for _ in range(RUNS):
            tab = browser.new_page(viewport={"width": 1300, "height": 900})
            tab.goto(path.as_uri())
            tab.wait_for_load_state("load")
            loaded = tab.evaluate("performance.getEntriesByType('navigation')[0].loadEventEnd")
            times["load, ms"].append(loaded)
            for name, code in STEPS.items():
                if code:
                    times[name].append(tab.evaluate(TIMED, code))
            tab.close()
        browser.close()
    for name, found in times.items():
        print(f"{name}: {statistics.median(found):.0f}")


if __name__ == "__main__":
    main()
