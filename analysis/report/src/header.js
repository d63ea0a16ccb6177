// SPDX-License-Identifier: MIT
// The top of the page: what was measured, the result, and its limits. Warnings come before any chart, because dropped
// events make charts misleading.

import {count, duration, percent} from './format.js';
import {element} from './dom.js';

export function fillHeader(run, host) {
  document.title = `${run.title} · forktail`;
  const tiles = [[run.from_iterations ? 'iterations' : 'requests', count(run.count)]];
  if (!run.from_iterations) tiles.push(['errors', count(run.errors)]);
  for (const name of ['p50', 'p90', 'p99', 'p99.9', 'p99.99', 'max']) tiles.push([name, duration(run.latency_ns[name])]);
  const slow = run.slow_count
    ? `${count(run.slow_count)} ${run.from_iterations ? 'event-loop iterations' : 'requests'} took ` +
      `${duration(run.threshold_ns)} or more, in ${count(run.episodes.length)} ${run.episodes.length === 1 ? 'episode' : 'episodes'}; ` +
      `${percent(run.explained)} of their time has a known cause.`
    : `No ${run.from_iterations ? 'event-loop iteration' : 'request'} was slow.`;
  host.append(
    element('div', {class: 'brand'}, 'forktail', element('span', {class: 'muted'}, ` ${run.version}`)),
    element('h1', {}, run.title),
    element('p', {class: 'answer'}, run.answer),
    element('dl', {class: 'facts'}, ...run.facts.map(([name, value]) =>
      element('div', {}, element('dt', {}, name), element('dd', {}, value)))),
    element('div', {class: 'tiles'}, ...tiles.map(([name, value]) =>
      element('div', {class: 'tile'}, element('span', {class: 'muted'}, name), element('b', {}, value)))),
    element('p', {class: 'slow'}, slow));
  if (run.warnings.length)
    host.append(element('section', {class: 'warnings', 'aria-label': 'Warnings'},
      element('ul', {}, ...run.warnings.map((text) => element('li', {}, text)))));
}
