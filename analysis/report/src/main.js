// SPDX-License-Identifier: MIT
// Assembles the page: decodes the run, creates the charts and lists, and connects them by the view (time range), the
// filter (causes) and the selected episode.

import {addLanes} from './lanes.js';
import {addLatency} from './latency.js';
import {addMetrics} from './metrics.js';
import {createCauseTable, createFilter, createHopTable} from './legend.js';
import {createCharts} from './charts.js';
import {createHelp} from './help.js';
import {createLink, readState} from './link.js';
import {createMarks} from './marks.js';
import {createRequest} from './request.js';
import {createSearch} from './search.js';
import {createTheme, readTheme} from './theme.js';
import {fillActivityTable} from './activity.js';
import {count, decimals, duration} from './format.js';
import {createEpisodes} from './episodes.js';
import {createFlame} from './flame.js';
import {createTooltip, element} from './dom.js';
import {createView} from './view.js';
import {decodeRun} from './data.js';
import {lookOfCauses} from './causes.js';

const byId = (id) => document.getElementById(id);

// Notes under the charts about what is not drawn individually.
function addNotes(run, host) {
  const notes = [];
  const [things, when] = run.from_iterations ? ['iterations', 'start'] : ['requests', 'due'];
  if (run.slow_shown < run.slow_count)
    notes.push(`${count(run.slow_shown)} of ${count(run.slow_count)} slow ${things} are drawn as marks. The others are part of the grey area.`);
  if (run.spans_shown < run.spans_total)
    notes.push(`${count(run.spans_shown)} of ${count(run.spans_total)} spans are drawn individually. Spans shorter than ` +
      `${duration(run.shortest_shown_ns)} are summed in intervals of ${duration(run.cell_ticks * run.tick_ns)}.`);
  if (run.near_stride > 1)
    notes.push(`Zoomed in, one in ${count(run.near_stride)} ${things} that were not slow is drawn, around episodes only.`);
  notes.push(`Grey: number of ${things}, darker for more. Marks: slow ${things}, at their ${when} time.`);
  if (run.lanes.length)
    notes.push('Lanes: a thread’s time by cause. Spans narrower than a pixel are drawn as bars; the height is their share of the time.');
  host.append(...notes.map((text) => element('p', {class: 'muted'}, text)));
}

const help = [
  [['drag'], 'zoom in on the dragged range'],
  [['ctrl+wheel', '+', '−'], 'zoom; after a click in a chart, the wheel alone zooms'],
  [['shift+drag', 'shift+wheel', '←', '→'], 'move'],
  [['double click', '0', 'Home'], 'show the whole run'],
  [['Backspace'], 'go back to the range before the last jump'],
  [['n', 'p'], 'go to the next or previous episode of the list: the worst one first'],
  [['click'], 'a mark: show the request’s details; a cause: show only this cause (ctrl+click: this one too)'],
  [['w'], 'show the details of the slowest request in view'],
  [['/'], 'search: an operation, conn:12, thread:io, cause:fork, >5ms, #1234'],
  [['d'], 'switch between light and dark'],
  [['Escape'], 'close the open panel, then clear search and filter'],
  [['?'], 'show or close this help'],
];

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
      'w': () => context.openWorst(),
      '/': () => context.search.focus(),
      'd': () => context.colours.toggle(),
      '?': () => context.help.toggle(),
      'Escape': () => context.escape(),
    };
    if (document.querySelector('dialog[open]') && !(context.help.isOpen() && event.key === '?')) return;
    const act = keys[event.key];
    if (!act) return;
    event.preventDefault();
    context.tooltip.hide();
    charts.highlight();
    act();
  });
}

function start() {
  document.documentElement.classList.add('js'); // shows what is useless without a script
  const run = decodeRun(byId('run').textContent, byId('arrays').textContent);
  const view = createView(run.begin_s, run.end_s, Math.max(20 * run.tick_s, 2e-6));
  let theme = readTheme();
  let looks = lookOfCauses(run.cause_names, run.cause_looks, theme.dark);
  const marks = createMarks(run);
  const context = {view, marks, tooltip: createTooltip(), selected: -1, found: null, query: '', theme: () => theme, looks: () => looks};
  const charts = createCharts(context);
  const updates = [];
  const refresh = () => {
    for (const update of updates) update();
    charts.redraw();
  };
  let link = {changed() {}};
  // Called when the search, the open request or the selection has changed.
  context.changed = () => {
    charts.redraw();
    link.changed();
  };
  context.filter = createFilter(() => {
    refresh();
    link.changed();
  });
  context.help = createHelp('Keys and pointer actions', help);
  context.colours = createTheme(byId('theme'), () => {
    theme = readTheme();
    looks = lookOfCauses(run.cause_names, run.cause_looks, theme.dark);
    refresh();
    link.changed();
  });

  updates.push(createCauseTable(context, run, byId('causes')));
  updates.push(createHopTable(context, run, byId('hops')));
  context.flame = createFlame(context, run);
  fillActivityTable(context, run, byId('activities'));
  context.request = createRequest(context, run, marks, byId('request'));
  context.open = (i, focus) => context.request.open(i, focus);
  updates.push(context.request.update);
  context.openWorst = () => {
    const i = marks.worst(view.min, view.max);
    if (i >= 0) context.open(i);
  };
  context.lookAt = (from, to) => {
    const margin = Math.max((to - from) * 0.2, 1e-4);
    view.jump(from - margin, to + margin);
  };
  // Closes one thing per key press.
  context.escape = () => {
    if (context.request.shown() >= 0) context.request.close();
    else if (context.query) context.search.clear();
    else context.filter.clear();
  };
  const episodes = createEpisodes(context, run, byId('episodes'));
  updates.push(episodes.update);
  context.choose = (i) => {
    const {since_s: from, end_s: to} = run.episodes[i];
    context.selected = i;
    episodes.select(i);
    context.lookAt(from, to);
    context.changed();
  };
  // Selects the next or previous episode of the list.
  context.step = (by) => {
    const i = episodes.next(by);
    if (i >= 0) context.choose(i);
  };

  addLatency(charts, context, run, byId('latency'));
  if (run.lanes.length) context.lanes = addLanes(charts, context, run, byId('lanes'));
  else byId('lanes').remove();
  addMetrics(charts, context, run, byId('metrics'));
  addNotes(run, byId('notes'));
  context.search = createSearch(context, run, marks, byId('finder'));
  bindKeys(view, charts, context);
  byId('help').addEventListener('click', () => context.help.toggle());

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

  const apply = (state) => {
    if (state.theme || context.colours.chosen()) context.colours.choose(state.theme ?? '');
    context.filter.set((state.causes ?? []).map((name) => run.cause_names.indexOf(name)).filter((cause) => cause >= 0));
    const episode = run.ranking[(state.episode ?? 0) - 1];
    if (episode !== undefined) {
      context.selected = episode;
      episodes.select(episode);
    }
    if (state.from !== undefined) view.set(state.from, state.to);
    else if (episode !== undefined) context.choose(episode);
    else view.reset();
    context.search.set(state.find ?? '');
    const i = state.request === undefined ? -1 : marks.numbered(state.request);
    if (i >= 0) context.open(i, false);
    else context.request.close();
  };
  const current = () => ({
    ...(view.whole() ? {} : {from: view.min, to: view.max}),
    causes: context.filter.list().map((cause) => run.cause_names[cause]),
    episode: context.selected < 0 ? undefined : run.episodes[context.selected].number,
    request: context.request.shown() < 0 ? undefined : marks.mark(context.request.shown()).number ?? context.request.shown(),
    find: context.query,
    theme: context.colours.chosen(),
  });
  if (location.hash.length > 1) apply(readState(location.hash));
  link = createLink(current, apply);
  view.subscribe(() => link.changed());

  new ResizeObserver(() => charts.resize()).observe(byId('charts'));
  // On paper the charts have the width for which style.css scales the page.
  addEventListener('beforeprint', () => charts.resize(1120));
  addEventListener('afterprint', () => charts.resize());

  // For tests and the console: counts of what is drawn, and access to it.
  Object.assign(document.body.dataset, {points: run.arrays.slow_start.length, spans: run.arrays.span_start.length,
    cells: run.arrays.cell_index.length, lanes: run.lanes.length, episodes: run.episodes.length});
  globalThis.forktail = {run, view, charts, marks, looks: context.looks, choose: context.choose, open: context.open, current};
  requestAnimationFrame(() => setTimeout(() => {
    document.body.dataset.readyMs = performance.now().toFixed(0);
    document.body.dataset.ready = '1';
  }));
}

try {
  start();
} catch (error) {
  const message = element('p', {class: 'failed', role: 'alert'}, `This report cannot be shown: ${error.message}`);
  document.documentElement.classList.remove('js');
  document.body.prepend(message);
  document.body.dataset.failed = '1';
  throw error;
}
