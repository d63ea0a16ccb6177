# SPDX-License-Identifier: MIT
"""Numbers as text and back, commands as a line, and untrusted text in printable form, as forktail's C++ programs do it
(common/format.cc, common/text/visible.c).

Rounding happens before the unit is chosen, so that 999,999 bytes read "1.00 MB" and never "1000 kB".
"""

import re
import shlex

_UNIT_NS = {"ns": 1, "us": 10**3, "ms": 10**6, "s": 10**9, "m": 60 * 10**9, "h": 3600 * 10**9}


def format_count(count: int) -> str:
    """1234567 -> "1,234,567"."""
    return f"{count:,}"


def format_bytes(size: int) -> str:
    """84000000 -> "84.0 MB": three significant digits, in powers of 1000."""
    return _scaled(size, ["B", "kB", "MB", "GB", "TB"])


def format_duration(ns: int) -> str:
    """58900000 -> "58.9 ms"; 1000 s and more have no decimals: "1,204 s"."""
    return f"{format_count(round(ns / 1e9))} s" if ns >= 999.5e9 else _scaled(ns, ["ns", "us", "ms", "s"])


def parse_duration(text: str) -> int | None:
    """A time with a unit in ns: "30s", "500ms". None: not such a time, or more than 30 years."""
    found = re.fullmatch(r"((?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?)(ns|us|ms|s|m|h)", text, re.ASCII)
    ns = float(found[1]) * _UNIT_NS[found[2]] if found else -1
    return int(ns + 0.5) if 0 <= ns <= 1e18 else None


def command_line(argv: list[str]) -> str:
    """One line, with quotes where a shell needs them."""
    return " ".join(word if re.fullmatch(r"""[^ '"\\$&;|<>*?()`\n]+""", word) else shlex.quote(word) for word in argv)


def _scaled(value: float, units: list[str]) -> str:
    unit = 0
    while unit + 1 < len(units) and value >= 999.5:
        value /= 1000
        unit += 1
    decimals = 0 if unit == 0 or value >= 99.95 else 1 if value >= 9.995 else 2
    return f"{value:.{decimals}f} {units[unit]}"


def format_percent(fraction: float) -> str:
    """0.614 -> "61.4 %"; only exactly 1 is "100 %", and only exactly 0 is "0 %"."""
    percent = fraction * 100
    if percent == 0:
        return "0 %"
    if percent < 0.005:
        return "< 0.01 %"
    decimals = 2 if percent < 0.995 else 1 if percent < 99.95 else 0
    if decimals == 0 and fraction < 1:
        return "> 99.9 %"
    return f"{percent:.{decimals}f} %"


def format_share(fraction: float) -> str:
    """The same in whole percent from 1 % on: 0.614 -> "61 %"."""
    if fraction < 0.01:
        return format_percent(fraction)
    return f"{min(fraction * 100, 99.4) if fraction < 1 else 100:.0f} %"


# Control characters, bytes that are not UTF-8 (surrogates, see bytes.decode's surrogateescape), and characters that are
# invisible and change how others look: joiners and direction marks, line separators, embeddings, overrides and
# isolates, the byte order mark, annotations, tags.
_UNPRINTABLE = re.compile(
    "[\x00-\x1f\x7f-\x9f\xad\u061c\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f"
    "\ud800-\udfff\ufeff\ufff9-\ufffb\U000e0000-\U000e007f]"
)


def _escape(match: re.Match[str]) -> str:
    code = ord(match[0])
    if 0xDC80 <= code <= 0xDCFF:
        return f"\\x{code - 0xDC00:02x}"
    if code < 0x20 or 0x7F <= code < 0xA0:
        return f"\\x{code:02x}"
    return f"\\U{code:08x}" if code > 0xFFFF else f"\\u{code:04x}"


def visible(text: str) -> str:
    """Text with escapes ("\\x1b") in place of everything that a terminal would not print as itself, of line feeds
    too."""
    return _UNPRINTABLE.sub(_escape, text)


def visible_lines(text: str) -> str:
    """The same, but line feeds stay."""
    return "\n".join(map(visible, text.split("\n")))
