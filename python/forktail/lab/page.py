# SPDX-License-Identifier: MIT
"""The outputs of a scenario's run: a page with tables, charts and worst moments, the same as text and as a Markdown
section, and an index page of several scenarios.

Pages are self-contained and have no scripts. Texts of scenarios and servers are escaped where they are inserted.
"""

import contextlib
import re
import time
from dataclasses import dataclass, field, replace
from pathlib import Path
from urllib.parse import quote

from forktail.failure import Failure
from forktail.files import replace_file
from forktail.lab.output import Output, short_output, write_charts, write_tables
from forktail.lab.results import Point, Results, packed_results, versions_text
from forktail.lab.scenario import Scenario, matches
from forktail.lab.tables import chance_note, escape_html, escape_markdown, table_html, table_markdown, table_text
from forktail.text import visible_lines

_FEW_MOMENTS = 8  # are open on the page


# Content shared by the page and the Markdown section


@dataclass
class Fact:
    """One fact about a run."""

    name: str
    text: str
    code: bool = False


@dataclass
class Episode:
    """One delay, with a sentence for each piece of evidence."""

    what: str
    evidence: list[str] = field(default_factory=list)


@dataclass
class Moment:
    """The explanation of one recorded step of a point."""

    title: str  # "connections: 20; listen: unix"
    causes: str
    worst: list[Episode]
    run: str = ""  # its run directory, relative; may be empty


def time_taken(seconds: float) -> str:
    """ "12.5 s", "3 min 20 s"."""
    whole = int(seconds + 0.5)
    if seconds < 99.95:
        return f"{seconds:.1f} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60} s"
    return f"{whole // 3600} h {whole % 3600 // 60} min"


def facts_of(results: Results) -> list[Fact]:
    """Machine, time, versions and scale; unknown facts are left out."""
    began = time.gmtime(results.started_unix)
    facts = [
        Fact("host", results.host),
        Fact("CPU", results.cpu),
        Fact("kernel", results.kernel),
        Fact("versions", versions_text(results)),
        Fact("scale", results.scale),
        Fact("load average", f"{results.load_average:.2f}"),
        Fact("began", time.strftime("%Y-%m-%d %H:%M UTC", began) if results.started_unix else ""),
        Fact("took", time_taken(results.seconds) if results.seconds > 0 else ""),
        Fact("command", results.command, code=True),
    ]
    return [fact for fact in facts if fact.text]


def _notes_of(results: Results, output: Output) -> list[str]:
    return results.notes + ([output.note] if output.note else [])


def _published_by(scenario: Scenario, output: Output) -> str:
    """The source of the published figures; empty without any."""
    in_tables = any(head.published for table in output.tables for head in table.heads)
    if not in_tables and not any(series.published for chart in scenario.charts for series in chart.series):
        return ""
    return ", ".join(filter(None, (scenario.report and f"report {scenario.report}", scenario.source)))


def _trimmed(text: str) -> str:
    return text.strip(" \n\t")


def _paragraphs(text: str) -> list[str]:
    return [paragraph for part in text.split("\n\n") if (paragraph := _trimmed(part))]


def _episodes_of(text: str) -> list[Episode]:
    """Explain's text has one line per episode, followed by indented lines of evidence."""
    episodes: list[Episode] = []
    for line in text.split("\n"):
        words = _trimmed(line)
        if words and (not episodes or not line.startswith(" ")):
            episodes.append(Episode(words))
        elif words:
            episodes[-1].evidence.append(words)
    return episodes


def _point_title(scenario: Scenario, results: Results, point: Point) -> str:
    """ "connections: 20; listen: unix": the variables with more than one value."""
    parts = []
    for sweep in scenario.sweeps:
        values = {other.values[sweep.name] for other in results.points if sweep.name in other.values}
        if sweep.name in point.values and len(values) > 1:
            parts.append(f"{sweep.title or sweep.name}: {point.values[sweep.name]}")
    return "; ".join(parts)


def moments_of(scenario: Scenario, results: Results) -> list[Moment]:
    """The explanations of all recorded steps."""
    recorded = [step for step in scenario.steps if step.record]
    moments = []
    for point in results.points:
        title = _point_title(scenario, results, point)
        runs = iter(point.recorded)
        for step in recorded:
            if not matches(step.only, point.values):
                continue
            named = [step.name] if len(recorded) > 1 or not title else []
            causes, worst = (_trimmed(point.texts.get(f"{step.name}.{text}", "")) for text in ("causes", "worst"))
            moment = Moment("; ".join(filter(None, [title, *named])), causes, _episodes_of(worst), next(runs, ""))
            if moment.causes or moment.worst or moment.run:
                moments.append(moment)
    return moments


def _link(path: str) -> str:
    """Relative, percent-encoded."""
    return quote(path.encode(errors="surrogateescape"), safe="/-_.~")


# The page


def _style() -> str:
    """The style of all of forktail's pages, and the lab's."""
    here = Path(__file__).parent
    return (here.parent / "base.css").read_text() + (here / "style.css").read_text()


def _page(title: str, heading: str, header: str, main: str) -> str:
    # No scripts: a name from a server cannot become one.
    return f"""<!doctype html>
<!-- SPDX-License-Identifier: MIT -->
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; \
style-src 'unsafe-inline'; img-src data:; base-uri 'none'; form-action 'none'">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>{escape_html(title)}</title>
<link rel="icon" href="data:,">
<style>
{_style()}</style>
</head>
<body>
<header>
<div class="brand muted">forktail lab</div>
<h1>{escape_html(heading)}</h1>
{header}</header>
<main>
{main}</main>
</body>
</html>
"""


def _paragraphs_html(text: str, classes: str) -> str:
    """Scenarios' texts have `code` as the only markup; empty lines separate paragraphs."""
    html = ""
    for paragraph in _paragraphs(text):
        escaped = escape_html(paragraph)
        if escaped.count("`") % 2 == 0:
            escaped = re.sub("`([^`]*)`", r"<code>\1</code>", escaped)
        html += f'<p class="{classes}">{escaped}</p>\n'
    return html


def _facts_html(facts: list[Fact]) -> str:
    html = ""
    for fact in facts:
        text = escape_html(fact.text)
        text = f"<code>{text}</code>" if fact.code else text
        html += f"<div><dt>{escape_html(fact.name)}</dt><dd>{text}</dd></div>\n"
    return f'<dl class="facts">\n{html}</dl>\n'


def _list_html(items: list[str]) -> str:
    return "".join(f"<li>{escape_html(item)}</li>\n" for item in items)


def _moment_html(moment: Moment, open_: bool, directory: Path | str) -> str:
    html = ""
    for episode in moment.worst:
        html += f"<p>{escape_html(episode.what)}</p>\n"
        if episode.evidence:
            html += f'<ul class="evidence">\n{_list_html(episode.evidence)}</ul>\n'
    link = f"{moment.run}/report.html"
    if moment.run and (Path(directory) / link).exists():
        what = "The recording: timeline, causes and percentiles"
        html += f'<p><a href="{escape_html(_link(link))}">{what}</a></p>\n'
    summary = f"<b>{escape_html(moment.title)}</b>{escape_html(moment.causes)}"
    return f"<details{' open' if open_ else ''}><summary>{summary}</summary>\n{html}</details>\n"


def page_of(scenario: Scenario, results: Results, output: Output, directory: Path | str) -> str:
    """`directory` is the directory of report.html, with the run directories of recorded steps below it; existing pages
    are linked."""
    header = _paragraphs_html(scenario.about, "prose")
    if scenario.question:
        question = _paragraphs_html(scenario.question, "prose")
        header += f'<div class="question prose"><b>Open question:</b>\n{question}</div>\n'
    header += _facts_html(facts_of(results))
    notes = _notes_of(results, output)
    if notes:
        header += f'<div class="notes"><ul>\n{_list_html(notes)}</ul></div>\n'
    main = "<h2>Figures</h2>\n" if output.tables else ""
    published = _published_by(scenario, output)
    if published:
        main += f'<p class="muted small"><i>published</i>: {escape_html(published)}</p>\n'
    for table in output.tables:
        main += f'<h3>{escape_html(table.title)}</h3>\n<div class="table">{table_html(table)}</div>\n'
        main += _paragraphs_html(table.note, "muted small prose")
    if output.conclusions:
        main += f'<h2>Conclusions</h2>\n<ul class="prose">\n{_list_html(output.conclusions)}</ul>\n'
        main += _paragraphs_html(chance_note(output.conclusions), "muted small prose")
    if output.charts:
        figures = [f"<figure>{''.join(chart.svg.partition('<svg')[1:])}</figure>\n" for chart in output.charts]
        main += f'<h2>Charts</h2>\n<div class="charts">\n{"".join(figures)}</div>\n'
    moments = moments_of(scenario, results)
    if moments:
        what = "What delayed the slow requests of each recorded load, and the longest of these delays."
        main += f'<h2>The worst moments</h2>\n<p class="muted small">{what}</p>\n'
    for moment in moments:
        main += _moment_html(moment, len(moments) <= _FEW_MOMENTS, directory)
    return _page(scenario.title, scenario.title, header, main)


@dataclass
class IndexEntry:
    """One scenario of a run of several."""

    name: str
    title: str
    state: str = ""  # "done", "failed: ..."
    seconds: float = 0
    link: str = ""  # relative; empty: no page


def index_of(entries: list[IndexEntry], where: Results) -> str:
    """`where` is one of the runs: host, versions and command are the same for all."""
    rows = ""
    for entry in entries:
        name = escape_html(entry.name)
        if entry.link:
            name = f'<a href="{escape_html(_link(entry.link))}">{name}</a>'
        taken = time_taken(entry.seconds) if entry.seconds > 0 else ""
        rows += (
            f'<tr><th scope="row">{name}</th><td>{escape_html(entry.title)}</td><td>{escape_html(entry.state)}</td>'
            f'<td class="number">{taken}</td></tr>\n'
        )
    main = (
        '<div class="table"><table>\n<thead><tr><th>scenario</th><th>what it is</th><th>state</th>'
        f'<th class="number">took</th></tr></thead>\n<tbody>\n{rows}</tbody>\n</table></div>\n'
    )
    # Each scenario's page has its own time and notes.
    facts = _facts_html(facts_of(replace(where, seconds=0, started_unix=0)))
    return _page("forktail lab: experiments", "Experiments", facts, main)


# Text and Markdown


def text_of(results: Results, output: Output, width: int) -> str:
    """Tables for a terminal of `width` columns, followed by the notes of the run."""
    parts = []
    for table in output.tables:
        note = "".join(f"{paragraph}\n" for paragraph in _paragraphs(table.note))
        parts.append(f"{table.title}\n\n{table_text(table, width)}{note}")
    if output.conclusions:
        chance = chance_note(output.conclusions)
        parts.append("".join(f"{sentence}\n" for sentence in [*output.conclusions, *filter(None, [chance])]))
    text = "\n".join(parts)
    notes = _notes_of(results, output)
    if notes:
        text += "\n" + "".join(f"note: {note}\n" for note in notes)
    return visible_lines(text)


def _charts_markdown(scenario: Scenario, output: Output, charts: str) -> str:
    return "".join(
        f"\n![{escape_markdown(chart.title)}]({_link(charts)}/{_link(scenario.name)}-{i}.svg)\n"
        for i, chart in enumerate(output.charts, 1)
    )


def _conclusions_markdown(output: Output) -> str:
    sentences = "".join(f"- {escape_markdown(sentence)}\n" for sentence in output.conclusions)
    return f"\n{sentences}" if sentences else ""


def markdown_of(scenario: Scenario, results: Results, output: Output, charts: str) -> str:
    """A section with a second-level title. Its charts are files in `charts`, a path relative to the document:
    "experiments" -> experiments/NAME-1.svg."""
    text = f"## {escape_markdown(scenario.title)}\n"
    text += "".join(f"\n{paragraph}\n" for paragraph in _paragraphs(scenario.about))
    for i, paragraph in enumerate(_paragraphs(scenario.question)):
        text += f"\n{'' if i else '**Open question:** '}{paragraph}\n"
    facts = [
        f"{fact.name} {f'`{fact.text}`' if fact.code else escape_markdown(fact.text)}" for fact in facts_of(results)
    ]
    text += f"\n{'; '.join(facts)}.\n" if facts else ""
    published = _published_by(scenario, output)
    text += f"\n*published*: {published}\n" if published else ""
    for table in output.tables:
        text += f"\n### {escape_markdown(table.title)}\n\n{table_markdown(table)}"
        text += "".join(f"\n{paragraph}\n" for paragraph in _paragraphs(table.note))
    text += f"\n### Conclusions\n{_conclusions_markdown(output)}" if output.conclusions else ""
    chance = chance_note(output.conclusions)
    text += f"\n{chance}\n" if chance else ""
    text += _charts_markdown(scenario, output, charts)
    moments = ""
    for moment in moments_of(scenario, results):
        if not moment.causes and not moment.worst:
            continue
        causes = f": {escape_markdown(moment.causes)}" if moment.causes else ""
        moments += f"- **{escape_markdown(moment.title)}**{causes}\n"
        for episode in moment.worst[:1]:  # the others are on the page
            moments += f"  - worst: {escape_markdown(episode.what)}\n"
            moments += "".join(f"  - {escape_markdown(sentence)}\n" for sentence in episode.evidence)
    text += f"\n### The worst moments\n\n{moments}" if moments else ""
    notes = "".join(f"- {escape_markdown(note)}\n" for note in _notes_of(results, output))
    return text + (f"\nNotes:\n\n{notes}" if notes else "")


def short_markdown_of(scenario: Scenario, results: Results, output: Output, charts: str, above: str = "") -> str:
    """The same without title, text and worst moments, for a document that has its own text: `output` (of short_output)
    below two lines with the source of the published figures and the machine of ours. What a line "*here*:" of the
    document's own text `above` says of the machine is not repeated."""
    published = _published_by(scenario, output)
    own = re.search(r"^\*here\*: (.*)\.$", above.partition("<!-- lab:")[0], re.M)
    stated = own[1].split("; ") if own else []
    stated += [version for fact in stated for version in fact.split(", ")]
    facts = []
    for fact in facts_of(results):
        named = f"{fact.name} " if fact.name in ("kernel", "scale", "load average") else ""
        if named or fact.name in ("CPU", "began"):
            facts.append(named + escape_markdown(fact.text))
        elif fact.name == "versions":
            facts.append(", ".join(one for one in escape_markdown(fact.text).split(", ") if one not in stated))
    facts = [fact for fact in facts if fact and fact not in stated]
    text = f"*published*: {published}.\n" if published else ""
    text += f"*here*: {'; '.join(facts)}.\n"
    text += "".join(f"\n{table_markdown(table)}" for table in output.tables)
    return text + _conclusions_markdown(output) + _charts_markdown(scenario, output, charts)


def find_section(document: Path | str, name: str) -> tuple[str, re.Match[str]]:
    """The text of a document, and the place of a scenario's section in it. Raises Failure."""
    try:
        text = Path(document).read_bytes().decode(errors="surrogateescape")
    except OSError as error:
        raise Failure(f"cannot read {document}: {error.strerror}") from None
    end = f"<!-- /lab:{name} -->"
    section = re.compile(rf"(<!-- lab:{re.escape(name)}( short(?: chart| table)?)? -->\n).*?({re.escape(end)})", re.S)
    place = section.search(text)
    if not place:
        lines = f"<!-- lab:{name} --> and {end}"
        raise Failure(f"{document} has no section for {name}: add the lines {lines}")
    return text, place


def write_section(document: Path | str, scenario: Scenario, results: Results, output: Output) -> None:
    """Puts the tables and charts into a Markdown document, between the lines "<!-- lab:NAME -->" and
    "<!-- /lab:NAME -->", which remain. All figures of all repeats are beside the charts, compressed
    (NAME.json.xz). Raises Failure, and the document is unchanged.

    With "<!-- lab:NAME short -->" the section has only the main table and the conclusions, with "short table" no
    conclusions, with "short chart" also the first chart (short_output); all tables in full are beside the charts
    (NAME-1.csv ...). Charts are written to the directory with the document's name without ".md".
    """
    text, place = find_section(document, scenario.name)
    charts = Path(document).with_suffix("")
    part = short_output(output, place[2]) if place[2] else output
    if place[2]:
        markdown = short_markdown_of(scenario, results, part, charts.name, text[: place.start()])
    else:
        markdown = markdown_of(scenario, results, part, charts.name)
    with contextlib.suppress(OSError):  # the writing of the charts says why
        charts.mkdir(parents=True, exist_ok=True)
    write_charts(charts, scenario.name, part)
    if place[2]:
        write_tables(charts, scenario.name, output)
    replace_file(charts / f"{scenario.name}.json.xz", packed_results(results))
    replace_file(document, text[: place.end(1)] + markdown + text[place.start(3) :])
