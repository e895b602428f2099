"""Curves as SVG, without a library: axes on a logarithmic scale, a line per series, its name at its end."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from html import escape
from itertools import pairwise

__all__ = ["curves"]

WIDTH, HEIGHT, LEFT, RIGHT, TOP, BOTTOM = 460, 340, 56, 130, 40, 44
COLOURS = ("#1f5fbf", "#b85c00", "#2a7d3f", "#8a3ab9", "#b3123d", "#5c6b73")
Points = Sequence[tuple[float, float]]


def curves(panels: Mapping[str, Mapping[str, Points]], across: str) -> str:
    """The text of an SVG: a panel per title side by side, with a line through the points of each series.

    Both axes are logarithmic; points must be positive. `across`: what the horizontal axis is.
    """
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH * len(panels)} {HEIGHT}" '
        f'width="{WIDTH * len(panels)}" height="{HEIGHT}" font-family="sans-serif" font-size="12">'
    )
    parts = [head, f'<rect width="{WIDTH * len(panels)}" height="{HEIGHT}" fill="#fff"/>']
    for number, (title, series) in enumerate(panels.items()):
        parts += [f'<g transform="translate({WIDTH * number} 0)">', *_panel(title, series, across), "</g>"]
    return "\n".join([*parts, "</svg>\n"])


def _panel(title: str, series: Mapping[str, Points], across: str) -> Iterator[str]:
    points = [point for each in series.values() for point in each]
    low, high = (_bounds([p[i] for p in points]) for i in range(2))

    def place(point: tuple[float, float]) -> tuple[float, float]:
        x = _share(point[0], low) * (WIDTH - LEFT - RIGHT) + LEFT
        return x, HEIGHT - BOTTOM - _share(point[1], high) * (HEIGHT - TOP - BOTTOM)

    yield _text((LEFT + WIDTH - RIGHT) / 2, 22, title)
    yield _text((LEFT + WIDTH - RIGHT) / 2, HEIGHT - 8, across)
    for value in _ticks(low):
        x, _ = place((value, high[0]))
        yield f'<line x1="{x:.1f}" x2="{x:.1f}" y1="{TOP}" y2="{HEIGHT - BOTTOM}" stroke="#e4e4e4"/>'
        yield _text(x, HEIGHT - BOTTOM + 16, f"{value:,.6g}")
    for value in _ticks(high):
        _, y = place((low[0], value))
        yield f'<line x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{y:.1f}" y2="{y:.1f}" stroke="#e4e4e4"/>'
        yield _text(LEFT - 6, y + 4, f"{value:,.6g}", "end")
    labels = _apart([place(each[-1])[1] for each in series.values()])
    for (name, each), colour, at in zip(series.items(), COLOURS * len(series), labels, strict=False):
        path = " ".join(f"{x:.1f},{y:.1f}" for x, y in map(place, each))
        yield f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="2"/>'
        yield from (f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3" fill="{colour}"/>' for x, y in map(place, each))
        yield _text(place(each[-1])[0] + 8, at + 4, name, "start", colour)


def _apart(heights: Sequence[float], least: float = 14) -> list[float]:
    """Heights of labels moved so that none is over another."""
    order, moved = sorted(range(len(heights)), key=heights.__getitem__), list(heights)
    for above, below in pairwise(order):
        moved[below] = max(moved[below], moved[above] + least)
    return moved


def _bounds(values: Sequence[float]) -> tuple[float, float]:
    low, high = min(values), max(values)
    return low / 1.15, high * 1.15


def _share(value: float, bounds: tuple[float, float]) -> float:
    return math.log(value / bounds[0]) / math.log(bounds[1] / bounds[0])


def _ticks(bounds: tuple[float, float]) -> list[float]:
    """1, 2 and 5 of each power of ten within the bounds; 1 alone where these are many."""
    powers = range(math.floor(math.log10(bounds[0])), math.ceil(math.log10(bounds[1])) + 1)
    steps = (1, 2, 5) if len(powers) < 4 else (1,)
    return [step * 10.0**power for power in powers for step in steps if bounds[0] <= step * 10.0**power <= bounds[1]]


def _text(x: float, y: float, text: str, anchor: str = "middle", colour: str = "#333") -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" fill="{colour}">{escape(text)}</text>'
