"""Draws recall and mean reciprocal rank against corpus size as one SVG, by hand.

Knows nothing of how the figures came about. Colours follow the reader's light or dark setting.
"""

from __future__ import annotations

import html
import math
from collections.abc import Sequence
from typing import NamedTuple

WIDTH, HEIGHT = 860, 446
TOP, BOTTOM, LEFT, GAP = 96, 74, 62, 76
PANEL = (WIDTH - LEFT - GAP - 24) // 2
STYLE = """
  .paper { fill: #ffffff } .ink { fill: #1f2328 } .soft { fill: #59636e }
  .grid { stroke: #d8dee4 } .axis { stroke: #59636e }
  .model { stroke: #1668c4; color: #1668c4 } .words { stroke: #c2510c; color: #c2510c }
  @media (prefers-color-scheme: dark) {
    .paper { fill: #0d1117 } .ink { fill: #e6edf3 } .soft { fill: #9ea7b3 }
    .grid { stroke: #2b323b } .axis { stroke: #9ea7b3 }
    .model { stroke: #6cb0ff; color: #6cb0ff } .words { stroke: #ff9a57; color: #ff9a57 }
  }
  text { font: 13px system-ui, sans-serif } .title { font-size: 15px; font-weight: 600 }
  .line { fill: none; stroke-width: 2.2 } .fold { stroke-dasharray: 3 5; stroke-width: 1.8 }
  .dot { fill: currentColor; stroke: none }
"""


class Series(NamedTuple):
    """One line: `css` is its classes, `points` are (corpus size, recall, mrr)."""

    label: str
    css: str
    points: Sequence[tuple[int, float, float]]


def drawing(series: Sequence[Series], note: str) -> str:
    """The whole picture; `note` is the line of small print below the titles."""
    sizes = sorted({size for each in series for size, _recall, _mrr in each.points})
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}"'
        f' width="{WIDTH}" height="{HEIGHT}" role="img" aria-labelledby="t d">',
        '<title id="t">Recall and mean reciprocal rank against corpus size</title>',
        f'<desc id="d">{html.escape(_spoken(series))}</desc>',
        f"<style>{STYLE}</style>",
        f'<rect class="paper" width="{WIDTH}" height="{HEIGHT}" rx="6"/>',
        *_legend(series),
        f'<text class="soft" x="{LEFT}" y="{HEIGHT - 12}">{html.escape(note)}</text>',
    ]
    for place, title in enumerate(("Recall@10", "MRR@10")):
        left = LEFT + place * (PANEL + GAP)
        parts += _frame(title, left, sizes)
        for each in series:
            parts += _line(each, left, sizes, place + 1)
    return "\n".join([*parts, "</svg>", ""])


def _spoken(series: Sequence[Series]) -> str:
    return "; ".join(
        f"{each.label}: "
        + ", ".join(
            f"{size} records {recall:.2f} and {mrr:.2f}" for size, recall, mrr in each.points
        )
        for each in series
    )


def _legend(series: Sequence[Series]) -> list[str]:
    parts = []
    for place, each in enumerate(series):
        x, y = LEFT + place % 2 * 400, 24 + place // 2 * 22
        parts.append(f'<path class="line {each.css}" d="M{x} {y}h34"/>')
        label = html.escape(each.label)
        parts.append(f'<text class="ink" x="{x + 42}" y="{y + 4}">{label}</text>')
    return parts


def _frame(title: str, left: int, sizes: Sequence[int]) -> list[str]:
    """Axes, their labels and the grid of one panel."""
    low = HEIGHT - BOTTOM
    parts = [f'<text class="ink title" x="{left}" y="{TOP - 14}">{title}</text>']
    for tenth in range(0, 11, 2):
        y = _y(tenth / 10)
        parts.append(f'<path class="grid" d="M{left} {y}h{PANEL}"/>')
        label = f'x="{left - 8}" y="{y + 4}" text-anchor="end">{tenth / 10:.1f}'
        parts.append(f'<text class="soft" {label}</text>')
    for size in sizes:
        x = _x(size, left, sizes)
        parts.append(f'<path class="axis" d="M{x} {low}v5"/>')
        label = f'x="{x}" y="{low + 19}" text-anchor="middle">{size // 1000}k'
        parts.append(f'<text class="soft" {label}</text>')
    parts.append(f'<path class="axis" fill="none" d="M{left} {TOP}V{low}H{left + PANEL}"/>')
    label = f'x="{left + PANEL // 2}" y="{low + 36}" text-anchor="middle">records in the store'
    parts.append(f'<text class="soft" {label}</text>')
    return parts


def _line(each: Series, left: int, sizes: Sequence[int], field: int) -> list[str]:
    """A line with a dot at each point and the figure at its end."""
    places = [(_x(point[0], left, sizes), _y(point[field])) for point in each.points]
    if not places:
        return []
    drawn = "L".join(f"{x} {y}" for x, y in places)
    parts = [f'<path class="line {each.css}" d="M{drawn}"/>']
    base = each.css.split()[0]
    parts += [f'<circle class="dot {base}" cx="{x}" cy="{y}" r="3.2"/>' for x, y in places]
    if "fold" not in each.css:
        x, y = places[-1]
        figure = f"{each.points[-1][field]:.2f}"
        parts.append(f'<text class="ink" x="{x}" y="{y - 9}" text-anchor="middle">{figure}</text>')
    return parts


def _x(size: int, left: int, sizes: Sequence[int]) -> float:
    low, high = math.log(sizes[0]), math.log(max(sizes[-1], sizes[0] + 1))
    return round(left + 14 + (PANEL - 28) * (math.log(size) - low) / (high - low), 1)


def _y(share: float) -> float:
    return round(HEIGHT - BOTTOM - (HEIGHT - BOTTOM - TOP) * share, 1)
