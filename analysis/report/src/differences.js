// SPDX-License-Identifier: MIT
// Both sides' figures as sentences and tables: values, change, interval and verdict.

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
  if (ratio !== null && Math.abs(ratio - 1) < 5e-4) return '0 %';
  return ratio === null ? '' : `${ratio >= 1 ? '+' : '−'}${percent(Math.abs(ratio - 1))}`;
}

// A sentence of the analysis, with the signs and units of this page.
export function tidy(text) {
  return text.replace(/ -> /g, ' → ').replace(/(\d) us\b/g, '$1 µs').replace(/(^|[\s[])-(?=\d)/g, '$1−');
}

const judgements = {worse: 'That is worse.', better: 'That is better.', same: 'No change beyond the allowed one is shown.',
  inconclusive: 'These runs cannot decide whether that is a change.'};

// "p99.9 rose from 20.0 ms to 30.0 ms (+50 %). That is worse." and, if known, the causes with most of it.
export function sentenceOf(d) {
  const [a, b] = [figure(d.a, d.unit), figure(d.b, d.unit)];
  const moved = a === b ? `${d.name} is ${a} on both sides.`
    : `${d.name} ${d.b > d.a ? 'rose' : 'fell'} from ${a} to ${b}${d.ratio === null ? '' : ` (${changeShare(d)})`}.`;
  const causes = d.causes.length ? d.sentence.split(': ').slice(1).join(': ') : '';
  return [moved, d.judged && a !== b ? judgements[d.verdict] ?? '' : '', causes && `By cause: ${tidy(causes)}.`].filter(Boolean).join(' ');
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

// A table of differences.
export function differenceTable(differences, allowed, title) {
  const wanted = differences.filter(({a, b}) => a || b);
  const intervals = wanted.some((d) => d.change_interval), judged = wanted.some((d) => d.judged && d.verdict !== 'advisory');
  const columns = [[title], ['A', (d) => figure(d.a, d.unit)], ['B', (d) => figure(d.b, d.unit)], ['Change', (d) => signed(d.change, d.unit), 'room'],
    ['Change (%)', changeShare],
    ...intervals ? [['95 % interval', (d) => bounds(d.change_interval, d.unit), 'wide']] : [],
    ['B / A, from 1/2 to 2', (d) => whisker(d, allowed), 'wide'],
    ...judged ? [['Verdict', verdictOf]] : []];
  const heads = columns.map(([name, , look]) => element('th', {scope: 'col', class: look}, name));
  const rows = wanted.map((d) => element('tr', {}, element('th', {scope: 'row'}, d.name),
    ...columns.slice(1).map(([, cell, look]) => element('td', {class: look}, cell(d)))));
  return element('div', {class: 'table', tabindex: '0', role: 'region', 'aria-label': title},
    element('table', {}, element('thead', {}, element('tr', {}, ...heads)), element('tbody', {}, ...rows)));
}

const FIRST_PAIRS = 5; // shown before the others are asked for

// Causes as pairs of bars on one scale: A hatched, B solid.
export function pairedBars(differences, looks) {
  const shown = differences.filter(({a, b}) => a || b).sort((one, other) => Math.max(other.a ?? 0, other.b ?? 0) - Math.max(one.a ?? 0, one.b ?? 0));
  const most = shown.reduce((sum, {a, b}) => Math.max(sum, a ?? 0, b ?? 0), 0);
  const bar = (side, value, look, d) => {
    const made = element('i', {class: `pair-bar pair-${side}`});
    made.style.width = `${most ? 100 * (value ?? 0) / most : 0}%`;
    made.style.backgroundColor = look.colour;
    return element('div', {class: 'pair-row'}, element('span', {class: 'pair-side'}, side.toUpperCase()),
      element('span', {class: 'pair-track', 'aria-hidden': 'true'}, made), element('span', {class: 'pair-figure'}, figure(value, d.unit)));
  };
  const pairs = shown.map((d) => {
    const look = looks[d.name] ?? {name: d.name, family: 'unknown', colour: '#777777', meaning: ''};
    return element('div', {class: 'pair', 'data-cause': d.name},
      element('div', {class: 'pair-name'}, element('span', {class: 'wf-cause', title: look.meaning}, markOf(look), d.name),
        element('span', {class: 'muted'}, `${signed(d.change, d.unit)} ${bounds(d.change_interval, d.unit)}`), verdictOf(d)),
      element('div', {}, bar('a', d.a, look, d), bar('b', d.b, look, d)));
  });
  const rest = pairs.slice(FIRST_PAIRS);
  for (const pair of rest) pair.hidden = true;
  const more = element('button', {type: 'button', class: 'more', onclick: () => {
    for (const pair of rest) pair.hidden = false;
    more.hidden = true;
  }}, `show all ${count(pairs.length)} causes`);
  more.hidden = !rest.length;
  return element('div', {class: 'pairs'}, ...pairs, more);
}
