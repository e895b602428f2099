"""The page of a sweep in a browser: headless Chromium, driven by Playwright."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from support.made_results import differing, made, passing, refused

from tflq.tools.sweep import page
from tflq.tools.sweep.baseline import write_baseline

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page
else:
    pytest.importorskip("playwright", reason="needs Playwright: pip install '.[browser]'")

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
if CHROMIUM is None:
    pytest.skip("needs Chromium: apt install chromium", allow_module_level=True)

OFFLINE = "disable-background-networking disable-component-update disable-sync disable-quic no-first-run".split()
ARGUMENTS = [f"--{name}" for name in ("no-sandbox", "disable-gpu", *OFFLINE)]
ROWS = 600
OPEN = "dialog[open]"
MODELS = "#table tbody button[data-row]"

Opened = Callable[..., "Page"]


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=ARGUMENTS)
        yield browser
        browser.close()


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("page")
    write_baseline(
        [passing(0), passing(50), {**passing(51), "status": "timeout", "expected": False}], folder / "b.json"
    )
    page.write(made(ROWS), folder / "index.html", [folder / "b.json"])
    few = [*map(passing, range(8)), differing("nets/off"), refused("nets/refused", "CUSTOM: nobody knows it")]
    page.write(few, folder / "few.html", [folder / "b.json"])
    return folder


@pytest.fixture
def opened(browser: Browser, place: Path) -> Iterator[Opened]:
    """Opens the page; errors of its script, and any request but for the file, fail the test."""
    wrong: list[str] = []
    contexts = []

    def open_it(width: int = 1300, height: int = 900, fragment: str = "", name: str = "index", **options: Any) -> Page:
        context = browser.new_context(viewport={"width": width, "height": height}, **options)
        contexts.append(context)
        tab = context.new_page()
        tab.on("pageerror", lambda error: wrong.append(str(error)))
        tab.on("console", lambda message: wrong.append(message.text) if message.type == "error" else None)
        tab.on(
            "request", lambda request: None if request.url.startswith(("file:", "data:")) else wrong.append(request.url)
        )
        tab.goto((place / f"{name}.html").as_uri() + fragment)
        return tab

    yield open_it
    for context in contexts:
        context.close()
    assert not wrong


def names(tab: Page, count: int = 3) -> list[str]:
    return tab.locator(MODELS).all_inner_texts()[:count]


def sort(tab: Page, column: str) -> str:
    head = tab.locator("#table th", has=tab.get_by_role("button", name=column, exact=True))
    head.get_by_role("button").click()
    return head.get_attribute("aria-sort") or ""


def test_sorting(opened: Opened) -> None:
    tab = opened()
    assert sort(tab, "file") == "descending"
    assert names(tab, 2) == ["net_0598", "net_0597"]
    assert sort(tab, "file") == "ascending"
    assert names(tab, 2) == ["net_0000", "net_0001"]
    assert sort(tab, "file") == ""
    assert sort(tab, "status") == "ascending"
    assert names(tab, 1) == ["off"]


def test_filtering(opened: Opened) -> None:
    tab = opened()
    count = tab.locator("#count")
    assert count.inner_text() == "600 results"
    tab.fill("#text", "CUSTOM operator -0199")
    tab.wait_for_function("document.getElementById('count').textContent.startsWith('5 of')")
    assert names(tab, 2) == ["refused_0099", "refused_0299"]
    tab.get_by_role("button", name="Clear").click()
    tab.wait_for_function("document.getElementById('count').textContent === '600 results'")
    tab.select_option("#status", "differs")
    assert names(tab) == ["off"]
    tab.select_option("#status", "")
    tab.select_option("#which", "unexpected")
    assert count.inner_text() == "7 of 600 results"
    tab.get_by_role("button", name="show 6 refused of integer").click()
    assert count.inner_text() == "6 of 600 results"


def test_all_rows_are_to_be_had(opened: Opened) -> None:
    tab = opened()
    assert tab.locator(MODELS).count() == 200  # many rows are no burden
    tab.get_by_role("button", name="Show 200 more").click()
    assert tab.locator(MODELS).count() == 400
    tab.get_by_role("button", name="Show all 600").click()
    assert tab.locator(MODELS).count() == ROWS
    assert tab.locator("#next").is_hidden()


def test_a_model_that_differs_has_its_plots(opened: Opened) -> None:
    tab = opened(fragment="#nets%2Foff integer")
    detail = tab.locator(OPEN)
    assert detail.get_by_role("heading", level=2).inner_text() == "off [integer]"
    layers, histogram = detail.locator("figure svg").all()
    assert layers.get_attribute("aria-label") == "Largest difference by operator: 1 of 4 results differ"
    assert layers.locator(".mark rect").count() == 1
    assert layers.locator("rect title").text_content() == "operator 2 CONV_2D, conv/out: 7 of 64, up to 5 LSB"
    assert (histogram.get_attribute("aria-label") or "").endswith("1: 4, 2–3: 0, 4–7: 3")
    assert histogram.locator(".mark rect").count() == 3
    text = detail.inner_text()
    for part in ("Operators by path", "TANH: no table is that large", "before: 4", "after: 15", "0.300 s", "not there"):
        assert part in text
    assert "[object" not in text


def test_what_models_cost_is_plotted(opened: Opened) -> None:
    tab = opened()
    figures = tab.locator("#costs figure")
    assert figures.locator("figcaption").all_inner_texts() == [
        "File: ×2.2 in the median, ×2 to ×2.4.",
        "Arena: ×2.6 in the median, ×2 to ×3.2.",
        "Run time: ×5 in the median, ×2 to ×8.",
    ]
    assert 20 < figures.nth(1).locator(".dots circle").count() < 200
    tab.fill("#text", "net_0042")
    tab.wait_for_function("document.querySelectorAll('#costs .dots circle').length === 3")
    figures.nth(2).locator(".dots circle").click()
    detail = tab.locator(OPEN)
    assert detail.get_by_role("heading", level=2).inner_text() == "net_0042 [integer]"
    cost = detail.get_by_role("region", name="Cost").locator("tbody tr").all_inner_texts()
    assert [line.replace("\n", "").split("\t") for line in cost] == [
        ["File", "1 KiB", "2.1 KiB", "×2"],
        ["Arena", "512 B", "1 KiB", "×2.1"],
        ["Run time", "100 µs", "242 µs", "×2.4"],
    ]
    assert "It is slower." in detail.inner_text()


def test_an_earlier_sweep_is_beside_it(opened: Opened) -> None:
    tab = opened()
    tab.select_option("#which", "changed")
    tab.fill("#text", "net_0051")
    tab.wait_for_function("document.getElementById('count').textContent.startsWith('1 of')")
    assert "was timeout" in tab.locator("#table tbody").inner_text()
    tab.locator(MODELS).click()
    lines = tab.get_by_role("region", name="Earlier sweeps").locator("tbody tr").all_inner_texts()
    assert [line.split("\t")[1] for line in lines] == ["ok", "timeout"]


def test_the_keyboard_is_enough(opened: Opened) -> None:
    tab = opened()
    press = tab.keyboard.press
    press("/")
    assert tab.evaluate("document.activeElement.id") == "text"
    tab.keyboard.type("net_00")
    tab.wait_for_function("document.getElementById('count').textContent.startsWith('98 of')")
    tab.locator(MODELS).first.focus()
    press("ArrowDown")
    press("Enter")
    name = tab.locator(f"{OPEN} h2")
    assert name.inner_text() == "net_0001 [integer]"
    press("ArrowRight")
    press("ArrowRight")
    press("ArrowLeft")
    assert name.inner_text() == "net_0002 [integer]"
    for _ in range(30):
        press("Tab")
        assert tab.evaluate("document.activeElement === document.body || !!document.activeElement.closest('dialog')")
    press("Escape")
    assert tab.locator(OPEN).count() == 0
    tab.wait_for_function("document.activeElement.textContent === 'net_0002'")  # the event of closing comes later
    tab.get_by_role("button", name="file", exact=True).focus()
    press("Enter")
    assert names(tab, 1) == ["net_0098"]


def test_a_narrow_screen_has_all_of_it(opened: Opened) -> None:
    tab = opened(360, 740)
    wide = "() => document.documentElement.scrollWidth > innerWidth"
    assert not tab.evaluate(wide)
    tab.select_option("#sort", label="file after ↓")
    assert names(tab, 1) == ["net_0598"]
    label = tab.evaluate("getComputedStyle(document.querySelector('td[data-name=file]'), '::before').content")
    assert "file" in label
    tab.locator(MODELS).first.click()
    assert not tab.evaluate(wide)
    assert not tab.evaluate(
        "document.getElementById('detail').scrollWidth > document.getElementById('detail').clientWidth"
    )


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_it_follows_the_color_scheme(opened: Opened, scheme: str) -> None:
    tab = opened(color_scheme=scheme)
    color = "element => getComputedStyle(element)[%r].match(/[0-9]+/g).slice(0, 3).reduce((a, b) => a + Number(b), 0)"
    tab.locator(MODELS).first.click()
    for selector in ("body", "dialog"):
        back = tab.eval_on_selector(selector, color % "backgroundColor")
        front = tab.eval_on_selector(selector, color % "color")
        assert (front > back + 300) if scheme == "dark" else (back > front + 300)


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [360, 1300])
def test_axe_finds_nothing_serious(opened: Opened, scheme: str, width: int) -> None:
    axe = pytest.importorskip(
        "axe_playwright_python.sync_playwright", reason="needs axe-core: pip install '.[browser]'"
    )
    tab = opened(width, name="few", color_scheme=scheme)
    for fragment in ("", "#nets%2Foff integer"):
        tab.evaluate("place => { location.hash = place }", fragment)
        tab.wait_for_function("open => !!document.querySelector('dialog[open]') === open", arg=bool(fragment))
        found = axe.Axe().run(tab).response["violations"]
        grave = [
            (rule["id"], node["html"])
            for rule in found
            for node in rule["nodes"]
            if rule["impact"] in ("serious", "critical")
        ]
        assert not grave
