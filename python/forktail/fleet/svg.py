# SPDX-License-Identifier: MIT
"""Charts as SVG in the style of forktail's pages: colours are CSS variables, and causes are CSS classes.

Each function returns a function from the causes of the data set to the SVG text, because only the page knows the
causes.
"""

import math
from collections.abc import Callable, Iterable
from html import escape

from .sheet import Causes, Chart

WIDTH, HEIGHT, LEFT, RIGHT, TOP, BOTTOM = 900, 260, 62, 12, 24, 40
MARKS = 4000  # maximum in a scatter chart; with more, outliers and every n-th other


def cause_class(cause: str) -> str:
    return "c-" + "".join(c if c.isalnum() else "-" for c in cause)


def ticks(top: float, count: int = 4) -> list[float]:
    """Round values from 0 to about `top`."""
    if top <= 0:
        return [0]
    raw = top / count
    size = 10 ** math.floor(math.log10(raw))
    step = next(m * size for m in (1, 2, 5, 10) if m * size >= raw)
    return [i * step for i in range(int(top / step + 1e-9) + 1)]


def frame(title: str, body: str, names: Iterable[str] = ()) -> str:
    return (
        f'<figure class="chart"><figcaption>{escape(title)}</figcaption>'
        f'<svg viewBox="0 0 {WIDTH} {HEIGHT}" role="img" aria-label="{escape(title)}">{body}</svg>'
        f"{legend(names)}</figure>"
    )


def legend(causes: Iterable[str]) -> str:
    return "".join(f'<span class="key"><i class="{cause_class(c)}"></i>{escape(c)}</span>' for c in causes)


def axis(values: list[float], y: Callable[[float], float]) -> str:
    return "".join(
        f'<line class="grid" x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{y(v):.1f}" y2="{y(v):.1f}"/>'
        f'<text class="end" x="{LEFT - 6}" y="{y(v) + 4:.1f}">{v:g}</text>'
        for v in values
    )


def below(labels: list[str], x: Callable[[int], float]) -> str:
    """Labels below the axis, as many as fit."""
    every = max(1, math.ceil(len(labels) / 9))
    return "".join(
        f'<text class="mid" x="{x(i):.1f}" y="{HEIGHT - BOTTOM + 16}">{escape(str(label)[-16:])}</text>'
        for i, label in enumerate(labels)
        if i % every == 0
    )


def stacked(title: str, labels: list[str], points: list[tuple[str, str, float]]) -> Chart:
    """Bars of (label, cause, value) points, the largest cause at the bottom."""

    def draw(_causes: Causes) -> str:
        totals: dict[str, float] = {}
        by_label: dict[str, dict[str, float]] = {}
        for label, cause, value in points:
            totals[cause] = totals.get(cause, 0) + value
            by_label.setdefault(label, {})[cause] = by_label.get(label, {}).get(cause, 0) + value
        order = sorted(totals, key=lambda c: (-totals[c], c))
        top = max((sum(v.values()) for v in by_label.values()), default=0) or 1
        room, step = HEIGHT - TOP - BOTTOM, (WIDTH - LEFT - RIGHT) / max(len(labels), 1)

        def y(value: float) -> float:
            return TOP + room * (1 - value / top)

        body = axis(ticks(top), y)
        for i, label in enumerate(labels):
            upto = 0.0
            for cause in order:
                value = by_label.get(label, {}).get(cause, 0)
                if value <= 0:
                    continue
                body += (
                    f'<rect class="{cause_class(cause)}" x="{LEFT + i * step + step * 0.1:.1f}" '
                    f'y="{y(upto + value):.1f}" width="{step * 0.8:.1f}" height="{room * value / top:.2f}">'
                    f"<title>{escape(str(label))}: {escape(cause)} {value:.3f} s</title></rect>"
                )
                upto += value
        return frame(title, body + below(labels, lambda i: LEFT + (i + 0.5) * step), order)

    return draw


def scatter(title: str, points: list[tuple[float, float, bool, str]], line: Callable[[float], float] | None) -> Chart:
    """(x, y, outlier, name) points on logarithmic axes, and the fitted line."""

    def draw(_causes: Causes) -> str:
        shown = points
        if len(points) > MARKS:
            every = math.ceil(len(points) / MARKS)
            shown = [p for i, p in enumerate(points) if p[2] or i % every == 0]
        if not shown:
            return frame(title, f'<text x="{LEFT}" y="{TOP + 20}">no forks</text>')
        low_x, high_x = min(p[0] for p in shown) / 1.2, max(p[0] for p in shown) * 1.2
        low_y, high_y = min(p[1] for p in shown) / 1.2, max(p[1] for p in shown) * 1.2

        def x(value: float) -> float:
            return LEFT + (WIDTH - LEFT - RIGHT) * math.log(value / low_x) / math.log(high_x / low_x)

        def y(value: float) -> float:
            return TOP + (HEIGHT - TOP - BOTTOM) * (1 - math.log(value / low_y) / math.log(high_y / low_y))

        body = axis(decades(low_y, high_y), y)
        body += "".join(
            f'<text class="mid" x="{x(v):.1f}" y="{HEIGHT - BOTTOM + 16}">{v:g}</text>' for v in decades(low_x, high_x)
        )
        if line:
            at = [low_x * (high_x / low_x) ** (i / 40) for i in range(41)]
            inside = [(x(v), y(line(v))) for v in at if low_y <= line(v) <= high_y]
            body += '<polyline class="line" points="' + " ".join(f"{a:.1f},{b:.1f}" for a, b in inside) + '"/>'
        for px, py, outlier, name in shown:
            body += (
                f'<circle class="{"far" if outlier else "dot"}" cx="{x(px):.1f}" cy="{y(py):.1f}" '
                f'r="{4 if outlier else 2.5}">'
                f"<title>{escape(name)}: {py:.3f} at {px:.3f}</title></circle>"
            )
        return frame(title, body)

    return draw


def decades(low: float, high: float) -> list[float]:
    marks = [
        m * 10.0**e for e in range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1) for m in (1, 2, 5)
    ]
    return [m for m in marks if low <= m <= high]


def steps(title: str, points: list[tuple[str, float]], cause: str, changes: list[str]) -> Chart:
    """(day, value) points, and the days of changes."""

    def draw(_causes: Causes) -> str:
        top = max((v for _, v in points), default=0) or 1
        step = (WIDTH - LEFT - RIGHT) / max(len(points), 1)

        def y(value: float) -> float:
            return TOP + (HEIGHT - TOP - BOTTOM) * (1 - value / top)

        body = axis(ticks(top), y)
        for i, (day, value) in enumerate(points):
            body += (
                f'<rect class="{cause_class(cause)}" x="{LEFT + i * step + step * 0.1:.1f}" y="{y(value):.1f}" '
                f'width="{step * 0.8:.1f}" '
                f'height="{HEIGHT - BOTTOM - y(value):.2f}"><title>{escape(day)}: {value:.3f} s</title></rect>'
            )
            if day in changes:
                x = f"{LEFT + i * step:.1f}"
                body += f'<line class="change" x1="{x}" x2="{x}" y1="{TOP}" y2="{HEIGHT - BOTTOM}"/>'
        return frame(title, body + below([d for d, _ in points], lambda i: LEFT + (i + 0.5) * step), [cause])

    return draw
