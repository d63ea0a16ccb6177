# SPDX-License-Identifier: MIT
"""The page of a job: one self-contained HTML file without scripts."""

import base64
import hashlib
from html import escape
from pathlib import Path
from typing import Any
from urllib.parse import quote

from .sheet import Causes, Sheet, cell, heading
from .svg import cause_class

Shown = tuple[Sheet, list[str], list[tuple[Any, ...]], int]  # a sheet, its columns, its first rows, the number of rows
HERE = Path(__file__).resolve().parent


def colours(causes: Causes) -> str:
    def rules(shade: str) -> str:
        return "\n".join(
            f"svg .{name} {{ fill: {colour}; }} i.{name} {{ background: {colour}; }}"
            for name, colour in ((cause_class(cause), look[shade]) for cause, look in sorted(causes.items()))
        )

    return f"{rules('light')}\n@media (prefers-color-scheme: dark) {{\n{rules('dark')}\n}}\n"


def table(sheet: Sheet, names: list[str], rows: list[tuple[Any, ...]]) -> str:
    def data(name: str, row: tuple[Any, ...]) -> str:
        value = row[names.index(name)]
        text = escape(cell(name, value))
        if name in sheet.links and value:
            text = f'<a href="{escape(link(row[names.index(sheet.links[name])]))}">{text}</a>'
        number = isinstance(value, (int, float)) and not isinstance(value, bool)
        return f"<td{' class=number' if number else ''}>{text}</td>"

    head = "".join(f"<th>{escape(heading(n))}</th>" for n in names)
    body = "".join("<tr>" + "".join(data(n, row) for n in names) + "</tr>\n" for row in rows)
    return f'<div class="table"><table><thead><tr>{head}</tr></thead><tbody>\n{body}</tbody></table></div>'


def link(path: str) -> str:
    return "file://" + quote(path) if path.startswith("/") else quote(path, safe="/:")


def page(title: str, facts: dict[str, str], sheets: list[Shown], causes: Causes) -> str:
    """The HTML. `causes`: those of the data set, with their colours."""
    style = (
        "\n" + "".join(file.read_text() for file in (HERE.parent / "base.css", HERE / "fleet.css")) + colours(causes)
    )
    digest = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
    parts = []
    for sheet, names, rows, count in sheets:
        more = (
            f'<p class="muted">The first {len(rows):,} of {count:,} rows; '
            f"all are in {escape(sheet.name)}.parquet and .csv.</p>"
            if count > len(rows)
            else ""
        )
        parts.append(
            f"<h2>{escape(sheet.title)}</h2>\n"
            + (f'<p class="muted">{escape(sheet.note)}</p>' if sheet.note else "")
            + "\n".join(draw(causes) for draw in sheet.charts)
            + table(sheet, names, rows)
            + more
        )
    facts_html = "".join(f"<div><dt>{escape(k)}</dt><dd>{escape(v)}</dd></div>" for k, v in facts.items())
    return (
        f'<!doctype html>\n<html lang="en"><head><meta charset="utf-8"><title>{escape(title)}</title>\n'
        f"<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'sha256-{digest}'; "
        "base-uri 'none'; form-action 'none'\">\n"
        f'<meta name="viewport" content="width=device-width"><style>{style}</style></head>\n'
        f'<body><header><div class="brand">forktail</div><h1>{escape(title)}</h1>'
        f'<dl class="facts">{facts_html}</dl></header>\n'
        f"<main>{''.join(parts)}</main></body></html>\n"
    )
