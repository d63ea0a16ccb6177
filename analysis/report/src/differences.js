// SPDX-License-Identifier: MIT
// Tables of both sides' figures: values, change, interval and verdict.

import {count, duration, percent, quantity} from './format.js';
import {element, markOf, svg} from './dom.js';

export const verdicts = {
  same: ['same', '='], better: ['better', '▲'], worse: ['worse', '▼'], inconclusive: ['inconclusive', '?'], advisory: ['one pair, no verdict', '–'],
};

// A figure with its unit.
export function figure(value, unit) {
  if (value === null || value === undefined) return '–';
  if (unit === 'ns') return duration(value);
  if (unit === 's') return duration(value * 1e9);
  if (unit === '') return Number.isInteger(value) ? count(value) : value.toFixed(2);
  return quantity(value, unit);
}

export function signed(value, unit) {
  if (value === null || value === undefined) return '–';
  if (value === 0) return figure(0, unit);
  return `${value > 0 ? '+' : '−'}${figure(Math.abs(value), unit)}`;
}

// "[+9.8 ms, +15.1 ms]"; an unknown bound is open.
export function bounds(interval, unit) {
  if (!interval) return '';
  const [low, high] = interval;
  return `[${low === null ? '−∞' : signed(low, unit)}, ${high === null ? '∞' : signed(high, unit)}]`;
}

function changeShare({ratio}) {
  return ratio === null ? '' : `${ratio >= 1 ? '+' : '−'}${percent(Math.abs(ratio - 1))}`;
}

// Figures that are not judged have no verdict.
function verdictOf({verdict, judged}) {
  if (!judged) return '';
  const [text, sign] = verdicts[verdict] ?? [verdict, ''];
  return element('span', {class: `verdict verdict-${verdict}`}, element('span', {'aria-hidden': 'true'}, `${sign} `), text);
}

// The position of a ratio on a logarithmic axis from 1/2 to 2, with "no change" in the middle.
export function place(ratio) {
  return Math.min(1, Math.max(0, (Math.log2(ratio) + 1) / 2));
}

function whisker({ratio, ratio_interval: interval}, allowed) {
  const width = 150, at = (value) => 4 + (width - 8) * place(value);
  const drawn = [svg('line', {class: 'grid', x1: at(1), x2: at(1), y1: 0, y2: 16}),
    svg('line', {class: 'slow-line', x1: at(1 + allowed), x2: at(1 + allowed), y1: 0, y2: 16})];
  if (interval) {
    const low = interval[0] === null ? 0 : interval[0], high = interval[1] === null ? 1e9 : interval[1];
    drawn.push(svg('line', {class: 'whisker', x1: at(Math.max(low, 1e-9)), x2: at(high), y1: 8, y2: 8}));
  }
  if (ratio !== null && ratio > 0) drawn.push(svg('circle', {class: 'dot', cx: at(ratio), cy: 8, r: 3.5}));
  return svg('svg', {class: 'whiskers', viewBox: `0 0 ${width} 16`, width, height: 16, 'aria-hidden': 'true'}, ...drawn);
}

// A table of differences. `looks`: by cause name, for marks.
export function differenceTable(differences, allowed, title, looks) {
  const heads = [title, 'A', 'B', 'Change', 'Change (%)', '95 % interval', 'B / A, from 1/2 to 2', 'Verdict'];
  const rows = differences.filter(({a, b}) => a || b).map((d) => element('tr', {},
    element('th', {scope: 'row'}, looks?.[d.name] ? element('span', {class: 'wf-cause'}, markOf(looks[d.name]), d.name) : d.name,
      d.sentence && d.causes.length ? element('div', {class: 'muted meaning'}, d.sentence) : ''),
    element('td', {}, figure(d.a, d.unit)), element('td', {}, figure(d.b, d.unit)), element('td', {}, signed(d.change, d.unit)),
    element('td', {}, changeShare(d)), element('td', {}, bounds(d.change_interval, d.unit)), element('td', {}, whisker(d, allowed)),
    element('td', {}, verdictOf(d))));
  return element('div', {class: 'table', tabindex: '0', role: 'region', 'aria-label': title},
    element('table', {}, element('thead', {}, element('tr', {}, ...heads.map((text) => element('th', {scope: 'col'}, text)))),
      element('tbody', {}, ...rows)));
}

// Causes as pairs of bars on one scale: A hatched, B solid.
export function pairedBars(differences, looks) {
  const shown = differences.filter(({a, b}) => a || b);
  const most = shown.reduce((sum, {a, b}) => Math.max(sum, a ?? 0, b ?? 0), 0);
  const bar = (side, value, look, d) => {
    const made = element('i', {class: `pair-bar pair-${side}`});
    made.style.width = `${most ? 100 * (value ?? 0) / most : 0}%`;
    made.style.backgroundColor = look.colour;
    return element('div', {class: 'pair-row'}, element('span', {class: 'pair-side'}, side.toUpperCase()),
      element('span', {class: 'pair-track', 'aria-hidden': 'true'}, made), element('span', {class: 'pair-figure'}, figure(value, d.unit)));
  };
  return element('div', {class: 'pairs'}, ...shown.map((d) => {
    const look = looks[d.name] ?? {name: d.name, family: 'unknown', colour: '#777777', meaning: ''};
    return element('div', {class: 'pair', 'data-cause': d.name},
      element('div', {class: 'pair-name'}, element('span', {class: 'wf-cause', title: look.meaning}, markOf(look), d.name),
        element('span', {class: 'muted'}, `${signed(d.change, d.unit)} ${bounds(d.change_interval, d.unit)}`), verdictOf(d)),
      element('div', {}, bar('a', d.a, look, d), bar('b', d.b, look, d)));
  }));
}
