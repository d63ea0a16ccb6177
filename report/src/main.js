// SPDX-License-Identifier: MIT
// Puts the page together: decodes the run, makes the charts and lists, and joins them by what they share, the view
// (which time), the filter (which causes) and the chosen episode.

import {addLanes} from './lanes.js';
import {addLatency} from './latency.js';
import {addMetrics} from './metrics.js';
import {createCauseTable, createFilter, createHopTable, createLegend} from './legend.js';
import {createCharts, readTheme} from './charts.js';
import {count, decimals, duration} from './format.js';
import {createEpisodes} from './episodes.js';
import {createTooltip, element} from './dom.js';
import {createView} from './view.js';
import {decodeRun} from './data.js';
import {fillHeader} from './header.js';
import {lookOfCauses} from './causes.js';

const byId = (id) => document.getElementById(id);

// What the drawing leaves out, said under the charts.
function sayWhatIsLeftOut(run, host) {
  const said = [];
  if (run.slow_shown < run.slow_count)
    said.push(`${count(run.slow_shown)} of ${count(run.slow_count)} slow ones are drawn as marks, the rest as part of the grey mass.`);
  if (run.spans_shown < run.spans_total)
    said.push(`${count(run.spans_shown)} of ${count(run.spans_total)} spans are drawn one by one; those shorter than ` +
      `${duration(run.shortest_shown_ns)} are part of the shares of ${duration(run.cell_ticks * run.tick_ns)} slices.`);
  if (run.near_stride > 1)
    said.push(`Close by, one in ${count(run.near_stride)} that were not slow is drawn, and around episodes only.`);
  const [things, when] = run.from_iterations ? ['event-loop turns', 'began'] : ['requests', 'were due'];
  said.push(`Grey: how many ${things} lie there, darker for more. Marks: slow ones, when they ${when}.`);
  if (run.lanes.length)
    said.push('Lanes: what a thread’s time went to; narrow spans add up to bars as high as their share.');
  host.append(...said.map((text) => element('p', {class: 'muted'}, text)));
}

function bindKeys(view, charts, context) {
  document.addEventListener('keydown', (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || event.target.closest('select, input, textarea')) return;
    const keys = {
      '+': () => view.zoom(0.5),
      '=': () => view.zoom(0.5),
      '-': () => view.zoom(2),
      '_': () => view.zoom(2),
      'ArrowLeft': () => view.pan(event.shiftKey ? -0.9 : -0.2),
      'ArrowRight': () => view.pan(event.shiftKey ? 0.9 : 0.2),
      '0': () => view.reset(),
      'Home': () => view.reset(),
      'Backspace': () => view.back(),
      'n': () => context.step(1),
      'p': () => context.step(-1),
      'Escape': () => context.filter.clear(),
    };
    const act = keys[event.key];
    if (!act) return;
    event.preventDefault();
    context.tooltip.hide();
    charts.highlight();
    act();
  });
}

function start() {
  const run = decodeRun(byId('run').textContent, byId('arrays').textContent);
  const view = createView(run.begin_s, run.end_s, Math.max(20 * run.tick_s, 2e-6));
  const dark = matchMedia('(prefers-color-scheme: dark)');
  let theme = readTheme();
  let looks = lookOfCauses(run.cause_names, run.cause_looks, theme.dark);
  const context = {view, tooltip: createTooltip(), selected: -1, theme: () => theme, looks: () => looks};
  const charts = createCharts(context);
  const updates = [];
  const refresh = () => {
    for (const update of updates) update();
    charts.redraw();
  };
  context.filter = createFilter(refresh);

  fillHeader(run, byId('header'));
  updates.push(createLegend(context, run, byId('legend')));
  updates.push(createCauseTable(context, run, byId('causes')));
  updates.push(createHopTable(context, run, byId('hops')));
  const episodes = createEpisodes(context, run, byId('episodes'));
  updates.push(episodes.update);
  context.choose = (i) => {
    const {since_s: from, end_s: to} = run.episodes[i];
    context.selected = i;
    episodes.select(i);
    const margin = Math.max((to - from) * 0.2, 1e-4);
    view.jump(from - margin, to + margin);
    charts.redraw();
  };
  // The next or previous in order of time.
  context.step = (by) => {
    const last = run.episodes.length - 1;
    if (last < 0) return;
    const from = context.selected < 0 ? (by > 0 ? -1 : last + 1) : context.selected;
    context.choose(Math.min(last, Math.max(0, from + by)));
  };

  addLatency(charts, context, run, byId('latency'));
  if (run.lanes.length) addLanes(charts, context, run, byId('lanes'));
  else byId('lanes').remove();
  addMetrics(charts, context, run, byId('metrics'));
  sayWhatIsLeftOut(run, byId('notes'));
  bindKeys(view, charts, context);

  const range = byId('range');
  const showRange = () => {
    const length = view.max - view.min;
    const digits = Math.max(1, decimals(length / 1000));
    range.textContent = `${view.min.toFixed(digits)} s to ${view.max.toFixed(digits)} s (${duration(length * 1e9)})`;
    byId('reset').disabled = view.whole();
  };
  view.subscribe(showRange);
  showRange();
  byId('zoom-in').addEventListener('click', () => view.zoom(0.5));
  byId('zoom-out').addEventListener('click', () => view.zoom(2));
  byId('reset').addEventListener('click', () => view.reset());

  dark.addEventListener('change', () => {
    theme = readTheme();
    looks = lookOfCauses(run.cause_names, run.cause_looks, theme.dark);
    refresh();
  });
  new ResizeObserver(() => charts.resize()).observe(byId('charts'));
  // On paper the charts have the width that style.css scales the page for.
  addEventListener('beforeprint', () => charts.resize(1120));
  addEventListener('afterprint', () => charts.resize());

  // For tests, and for whoever opens the console: what is drawn, and a handle on it.
  Object.assign(document.body.dataset, {points: run.arrays.slow_start.length, spans: run.arrays.span_start.length,
    cells: run.arrays.cell_index.length, lanes: run.lanes.length, episodes: run.episodes.length});
  globalThis.forktail = {run, view, charts, looks: context.looks, choose: context.choose};
  requestAnimationFrame(() => setTimeout(() => {
    document.body.dataset.readyMs = performance.now().toFixed(0);
    document.body.dataset.ready = '1';
  }));
}

try {
  start();
} catch (error) {
  const said = element('p', {class: 'failed', role: 'alert'}, `This report can't be shown: ${error.message}`);
  document.body.prepend(said);
  document.body.dataset.failed = '1';
  throw error;
}
