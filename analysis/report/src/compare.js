// SPDX-License-Identifier: MIT
// The compare page: two sides of runs. The data has the verdicts; the page shows the percentiles first, as sentences and as a
// table, then latency on one scale, causes as pairs of bars, episodes, and what else differs.

import {count, duration, percent} from './format.js';
import {createMap, drawCurves} from './compare_charts.js';
import {createTheme, readTheme} from './theme.js';
import {createTooltip, element, markOf} from './dom.js';
import {bounds, differenceTable, figure, pairedBars, sentenceOf, tidy, verdicts} from './differences.js';
import {lookOfCauses} from './causes.js';

const COMPARE_FORMAT = 1;
const at = (id) => document.getElementById(id);

function sideName(side) {
  return side.runs.length === 1 ? side.given : `${side.given} (${count(side.runs.length)} runs)`;
}

function sideFacts(letter, side) {
  const sum = (name) => side.runs.reduce((all, run) => all + run[name], 0);
  return element('div', {}, element('dt', {}, letter), element('dd', {}, element('b', {}, sideName(side)),
    ` ${count(sum('requests'))} requests in ${duration(sum('seconds') * 1e9)}` +
    `${sum('errors') ? `, ${count(sum('errors'))} errors` : ''}${sum('drops') ? `, ${count(sum('drops'))} events dropped` : ''}`));
}

function fillCompareHeader(data) {
  document.title = `${data.a.given} and ${data.b.given} · forktail`;
  const [text] = verdicts[data.verdict] ?? [data.verdict];
  at('header').append(
    element('div', {class: 'brand'}, 'forktail', element('span', {class: 'muted'}, ` ${data.version}`)),
    element('h1', {}, 'Comparison of two sides'),
    element('dl', {class: 'facts'}, sideFacts('A', data.a), sideFacts('B', data.b)),
    element('p', {class: `judged verdict-${data.verdict}`}, element('b', {}, `B against A: ${text}. `), `${tidy(data.reason)}.`));
  // The percentiles that matter most first; other changes as the analysis words them.
  const told = data.percentiles.filter(({a, b}) => a || b).reverse();
  const others = data.changes.filter((sentence) => !told.some((d) => d.sentence === sentence));
  at('header').append(element('ul', {class: 'changes'}, ...[...told.map(sentenceOf), ...others.map(tidy)].map((sentence) => element('li', {}, sentence))));
  if (data.notes.length)
    at('header').append(element('section', {class: 'warnings', 'aria-label': 'Warnings'},
      element('ul', {}, ...data.notes.map((note) => element('li', {}, tidy(note))))));
}

function table(label, heads, rows, look = '') {
  return element('div', {class: `table ${look}`, tabindex: '0', role: 'region', 'aria-label': label}, element('table', {},
    element('thead', {}, element('tr', {}, ...heads.map((text) => element('th', {scope: 'col'}, text)))), element('tbody', {}, ...rows)));
}

function factTable(facts) {
  if (!facts.length) return element('p', {class: 'muted'}, 'The recordings show no difference in host, server, configuration or load.');
  const rows = (wanted) => table('Other differences', ['Group', 'Name', 'A', 'B'], wanted.map(({group, name, a, b, matters}) =>
    element('tr', {class: matters ? 'matters' : ''}, element('th', {scope: 'row'}, group, matters ? element('b', {}, ' (matters)') : ''),
      element('td', {}, name), element('td', {class: 'fact'}, a || 'unknown'), element('td', {class: 'fact'}, b || 'unknown'))), 'words');
  const matter = facts.filter(({matters}) => matters), rest = facts.filter(({matters}) => !matters);
  return element('div', {}, matter.length ? rows(matter) : '',
    rest.length ? element('details', {class: 'did', open: !matter.length && rest.length <= 5}, element('summary', {}, `${count(rest.length)} ` +
      `${rest.length === 1 ? 'difference' : 'differences'} that should not change latencies, or are unknown on one side`), rows(rest)) : '');
}

function episodeTable(data, looks) {
  if (!data.episodes.length) return element('p', {class: 'muted'}, 'No episodes on either side.');
  const pair = (a, b) => [element('td', {}, a), element('td', {}, b)];
  const heads = ['Main cause', 'A per run', 'B per run', '95 % interval', 'A slowest request', 'B slowest request', 'A longest', 'B longest', 'A requests’ time', 'B requests’ time'];
  return table('Episodes by cause', heads, data.episodes.map(({cause, a, b, per_run: change}) => element('tr', {},
    element('th', {scope: 'row'}, element('span', {class: 'wf-cause'}, markOf(looks[cause]), looks[cause].name)),
    ...pair(figure(a.per_run, ''), figure(b.per_run, '')), element('td', {}, bounds(change.change_interval, '')), ...pair(duration(a.worst_ns), duration(b.worst_ns)),
    ...pair(duration(a.longest_ns), duration(b.longest_ns)), ...pair(duration(a.request_s * 1e9), duration(b.request_s * 1e9)))));
}

function runTable(data) {
  const names = ['p50', 'p99', 'p99.9', 'max'];
  const row = (letter) => (run) => element('tr', {}, element('th', {scope: 'row'}, `${letter}: ${run.name}`),
    element('td', {}, count(run.requests)), element('td', {}, `${count(run.rate)}/s`), ...names.map((name) => element('td', {}, duration(run.latency_ns[name]))));
  return table('Runs', ['Run', 'Requests', 'Throughput', ...names], [...data.a.runs.map(row('A')), ...data.b.runs.map(row('B'))]);
}

// The causes of the requests near a percentile, as text.
function percentileCauses(data) {
  const lines = data.percentiles.filter(({causes}) => causes.length).map(({name, causes}) => element('li', {}, `${name}: `,
    causes.slice(0, 3).map(({cause, a_ns: a, b_ns: b}) => `${data.cause_names[cause]} ${duration(a)} → ${duration(b)}`).join(', ')));
  return lines.length ? element('div', {}, element('p', {class: 'muted'}, 'Time by cause in the requests near a percentile, A → B:'),
    element('ul', {class: 'evidence'}, ...lines)) : '';
}

function startCompare() {
  const data = JSON.parse(at('run').textContent);
  if (data.format !== COMPARE_FORMAT) throw new Error(`the page's data has format ${data.format}, its script reads ${COMPARE_FORMAT}`);
  const tooltip = createTooltip();
  let theme = readTheme();
  let maps = [], width = 0;
  fillCompareHeader(data);

  function fill() {
    const looks = lookOfCauses(data.cause_names, data.cause_looks, theme.dark);
    const byName = Object.fromEntries(looks.map((look) => [look.name, look]));
    width = at('sections').clientWidth;
    // A map of a few seconds would be a few blocks.
    maps = data.seconds / data.column_s < 10 ? [] : ['a', 'b'].map((side) => createMap(data, side, width, () => theme, tooltip));
    const key = element('p', {class: 'curve-key'}, element('span', {class: 'key key-a'}, `A: ${sideName(data.a)}`), element('span', {class: 'key key-b'}, `B: ${sideName(data.b)}`));
    at('sections').replaceChildren(
      element('h2', {}, 'Percentiles'), differenceTable(data.percentiles, data.allowed, 'Percentile'),
      element('p', {class: 'muted'}, `B counts as worse if a percentile is more than ${percent(data.allowed)} higher (--allow).`), percentileCauses(data),
      element('h2', {}, 'Latency on one scale'), key, drawCurves(data, width, tooltip),
      ...maps.flatMap(({canvas}, i) => [element('h3', {}, `${'AB'[i]} over time`), canvas]),
      maps.length ? element('p', {class: 'muted'}, 'Darker: more requests per run.') : '',
      element('h2', {}, 'Throughput, forks, memory'), differenceTable(data.others, data.allowed, 'Figure'),
      element('h2', {}, 'Slow requests’ time by cause'), element('p', {class: 'muted'}, 'Per run. A is hatched, B is solid.'), pairedBars(data.causes, byName),
      element('h2', {}, 'Serving threads’ time by cause'), pairedBars(data.stalled, byName),
      element('h2', {}, 'Episodes by cause'), episodeTable(data, looks),
      element('h2', {}, 'Other differences'), factTable(data.facts),
      element('h2', {}, 'Runs'), runTable(data));
  }

  const colours = createTheme(at('theme'), () => {
    theme = readTheme();
    fill();
  });
  addEventListener('keydown', (event) => {
    if (event.key === 'd' && !event.ctrlKey && !event.metaKey && !event.altKey) colours.toggle();
  });
  fill();
  new ResizeObserver(() => {
    if (at('sections').clientWidth !== width) fill();
  }).observe(at('sections'));
  document.body.dataset.ready = '1';
}

try {
  startCompare();
} catch (error) {
  document.body.prepend(element('p', {class: 'failed', role: 'alert'}, `This comparison cannot be shown: ${error.message}`));
  document.body.dataset.failed = '1';
  throw error;
}
