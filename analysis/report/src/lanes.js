// SPDX-License-Identifier: MIT
// The lanes under the latency chart, on the same time axis: each thread of the server, each child, each CPU's soft
// interrupts, and each disk. A lane has spans (one cause, exact times) and cells (equal intervals of time with the
// shares of short times of a cause). lod.js decides which become rectangles and which become bars.

import {addToColumns, clearColumns, createColumns, splitSpans, stackColumns} from './lod.js';
import {clipped, gutterWidth} from './charts.js';
import {createActivities} from './activity.js';
import {count, duration, instant, percent, quantity} from './format.js';
import {element} from './dom.js';
import {isQuiet} from './causes.js';
import {lowerBound} from './data.js';
import {parseQuery} from './search.js';

const heights = {serving: 44, activity: 30, thread: 18, child: 22, softirq: 18, disk: 26};
const LANE_GROUP = 20, LANE_GAP = 3, LANES_BOTTOM = 4;

// The positions of lanes and group names, in CSS pixels from the plot's top.
export function layOutLanes(lanes) {
  const rows = [], headings = [];
  let y = 0, group = '';
  for (const lane of lanes) {
    if (lane.group !== group) {
      group = lane.group;
      headings.push({y, name: group});
      y += LANE_GROUP;
    }
    const height = heights[lane.kind] ?? heights.thread;
    rows.push({lane, y, height});
    y += height + LANE_GAP;
  }
  return {rows, headings, height: y + LANES_BOTTOM};
}

export function addLanes(charts, context, run, host) {
  const {view, theme, looks, filter} = context;
  const {span_start, span_length, span_cause, span_detail, cell_index, cell_cause, cell_share, rate} = run.arrays;
  const spans = {start: span_start, length: span_length, cause: span_cause};
  const layout = layOutLanes(run.lanes);
  const quiet = run.cause_names.map(isQuiet);
  const idle = run.cause_names.map((name) => name === 'idle');
  const own = run.cause_names.indexOf('server-busy');
  const columns = createColumns(run.cause_names.length);
  const end = run.ticks(run.end_s);
  const activities = createActivities(context, run);

  // The names are text next to the canvas: screen readers can read them, and the gutter's width cuts them.
  const names = element('div', {class: 'lane-names'});
  for (const {y, name} of layout.headings) {
    const made = element('div', {class: 'lane-group'}, name);
    made.style.top = `${y}px`;
    names.append(made);
  }
  for (const {lane, y, height} of layout.rows) {
    const made = element('div', {class: 'lane-name', title: `${lane.name} ${lane.note}`}, element('span', {}, lane.name),
      element('span', {class: 'muted'}, ` ${lane.note}`));
    made.style.top = `${y}px`;
    made.style.height = `${height}px`;
    made.style.lineHeight = `${height}px`;
    names.append(made);
  }

  const dimmed = (cause) => !filter.shows(cause);

  function drawRate(ctx, bbox, lane, top, height, ratio) {
    const {first, count: values, step_s: step, max} = lane.rate;
    if (!max) return;
    const scale = bbox.width / (view.max - view.min);
    const from = Math.max(0, Math.floor((view.min - run.begin_s) / step));
    const to = Math.min(values, Math.ceil((view.max - run.begin_s) / step) + 1);
    ctx.fillStyle = theme().grid;
    // The maximum of each pixel, so that no peak is lost.
    let column = -1, peak = 0;
    const flush = () => {
      if (column < 0 || !peak) return;
      const bar = Math.max(ratio, height * peak / max);
      ctx.fillRect(bbox.left + column, top + height - bar, Math.max(1, Math.ceil(scale * step)), bar);
    };
    for (let i = from; i < to; i++) {
      const x = Math.floor((run.begin_s + i * step - view.min) * scale);
      if (x !== column) {
        flush();
        column = x;
        peak = 0;
      }
      peak = Math.max(peak, rate[first + i]);
    }
    flush();
  }

  function drawLane(ctx, bbox, lane, top, height, ratio) {
    const width = Math.round(bbox.width);
    const scale = bbox.width / (view.max - view.min) * run.tick_s; // pixels per tick
    const origin = run.ticks(view.min);
    const x = (tick) => Math.min(Math.max((tick - origin) * scale, 0), width);
    // A lane has a background while its thread lived; empty background is idle time.
    ctx.fillStyle = theme().lane;
    for (const [from, to] of lane.life) {
      const left = x(run.ticks(from));
      ctx.fillRect(bbox.left + left, top, Math.max(ratio, x(run.ticks(to)) - left), height);
    }
    if (lane.rate) drawRate(ctx, bbox, lane, top, height, ratio);
    if (lane.samples) {
      activities.draw(ctx, bbox, lane, top, height, dimmed(own));
      return;
    }

    clearColumns(columns, width);
    const cells = run.cell_ticks * scale;
    const lastCell = lane.cells[0] + lane.cells[1];
    for (let i = lowerBound(cell_index, Math.floor(origin / run.cell_ticks), lane.cells[0], lastCell);
         i < lastCell; i++) {
      const at = (cell_index[i] * run.cell_ticks - origin) * scale;
      if (at > width) break;
      if (!idle[cell_cause[i]]) addToColumns(columns, cell_cause[i], at, at + cells, cell_share[i] / 65535);
    }
    const wide = [];
    splitSpans(columns, spans, lane.spans[0], lane.spans[0] + lane.spans[1], origin, scale, ratio,
      (i, left, right) => wide.push(i, left, right));
    // On threads that serve no requests, quiet waiting is a thin line instead of a bar.
    const flat = (cause) => lane.kind !== 'serving' && quiet[cause];
    const paint = (cause) => {
      ctx.globalAlpha = dimmed(cause) ? 0.08 : flat(cause) ? 0.35 : cause === own ? 0.45 : 1;
      ctx.fillStyle = looks()[cause].colour;
    };
    const levels = Math.round(height);
    stackColumns(columns, levels, (cause, first, last, bottom, high) => {
      paint(cause);
      if (flat(cause)) {
        ctx.fillRect(bbox.left + first, top + height - 2 * ratio, last - first, 2 * ratio);
        return;
      }
      const low = Math.round(top + height * (1 - bottom));
      const up = Math.round(top + height * (1 - high));
      ctx.fillRect(bbox.left + first, up, last - first, low - up);
    });
    for (let k = 0; k < wide.length; k += 3) {
      const cause = span_cause[wide[k]];
      if (idle[cause]) continue;
      paint(cause);
      const left = Math.max(wide[k + 1], 0), right = Math.min(wide[k + 2], width);
      if (flat(cause)) ctx.fillRect(bbox.left + left, top + height - 2 * ratio, right - left, 2 * ratio);
      else ctx.fillRect(bbox.left + left, top, right - left, height);
      // The cause's name, if it fits.
      if (right - left > 60 * ratio && height >= 14 * ratio && !flat(cause) && cause !== own && !dimmed(cause)) {
        const text = run.cause_names[cause] + ' ' + duration(span_length[wide[k]] * run.tick_ns);
        if (ctx.measureText(text).width < right - left - 8 * ratio) {
          ctx.globalAlpha = 1;
          ctx.fillStyle = looks()[cause].ink;
          ctx.fillText(text, bbox.left + left + 4 * ratio, top + height / 2);
        }
      }
    }
    ctx.globalAlpha = 1;
  }

  function draw(u) {
    clipped(u, (ctx, bbox) => {
      const ratio = uPlot.pxRatio;
      ctx.font = `${11 * ratio}px ${theme().font.replace(/^\S+ /, '')}`;
      ctx.textBaseline = 'middle';
      ctx.textAlign = 'left';
      for (const {lane, y, height} of layout.rows)
        drawLane(ctx, bbox, lane, bbox.top + y * ratio, height * ratio, ratio);
    });
  }

  // A lane's time by cause between two ticks, largest first, and the longest span in it.
  function contents(lane, from, to) {
    const times = new Map(), counts = new Map();
    let longest = -1;
    const last = lane.spans[0] + lane.spans[1];
    for (let i = Math.max(lane.spans[0], lowerBound(span_start, from, lane.spans[0], last) - 1);
         i < last && span_start[i] < to; i++) {
      const overlap = Math.min(to, span_start[i] + span_length[i]) - Math.max(from, span_start[i]);
      if (overlap <= 0) continue;
      const cause = span_cause[i];
      times.set(cause, (times.get(cause) ?? 0) + overlap);
      counts.set(cause, (counts.get(cause) ?? 0) + 1);
      if (idle[cause]) continue;
      if (longest < 0 || span_length[i] > span_length[longest]) longest = i;
    }
    const lastCell = lane.cells[0] + lane.cells[1];
    for (let i = lowerBound(cell_index, Math.floor(from / run.cell_ticks), lane.cells[0], lastCell);
         i < lastCell && cell_index[i] * run.cell_ticks < to; i++) {
      const begin = cell_index[i] * run.cell_ticks;
      const overlap = Math.min(to, begin + run.cell_ticks) - Math.max(from, begin);
      times.set(cell_cause[i], (times.get(cell_cause[i]) ?? 0) + overlap * cell_share[i] / 65535);
    }
    const rows = [...times].sort((a, b) => b[1] - a[1])
      .map(([cause, ticks]) => ({cause, ns: ticks * run.tick_ns, spans: counts.get(cause) ?? 0}));
    return {rows, longest};
  }

  const label = (lane, cause) => cause === own && lane.kind !== 'disk' ? 'own code' : run.cause_names[cause];

  function swatch(cause) {
    const made = element('i', {class: 'swatch'});
    made.style.background = looks()[cause].colour;
    return made;
  }

  function describe(lane, from, to) {
    if (lane.samples) {
      charts.highlight();
      return activities.describe(lane, from, to);
    }
    const {rows, longest} = contents(lane, from, to);
    const nodes = [];
    if (longest >= 0) {
      const cause = span_cause[longest];
      const at = run.seconds(span_start[longest]);
      charts.highlight(at, at + span_length[longest] * run.tick_s);
      nodes.push(element('b', {}, swatch(cause), `${label(lane, cause)} ${duration(span_length[longest] * run.tick_ns)}`));
      nodes.push(element('div', {class: 'muted'}, `${lane.name}, at ${instant(at, 1e-6)}`));
      for (const line of (run.details[span_detail[longest]] ?? '').split('\n').filter(Boolean))
        nodes.push(element('div', {class: 'detail'}, line));
    } else {
      charts.highlight();
      if (!rows.length && !lane.rate) return null;
      nodes.push(element('b', {}, lane.name));
      nodes.push(element('div', {class: 'muted'}, `at ${instant(run.seconds(from), (to - from) * run.tick_s)}`));
    }
    const several = rows.length > 1 || (rows.length === 1 && rows[0].spans !== 1);
    if (several) {
      nodes.push(element('div', {class: 'muted'}, `within ${duration((to - from) * run.tick_ns)}:`));
      for (const {cause, ns, spans: n} of rows.slice(0, 6))
        nodes.push(element('div', {}, swatch(cause), `${label(lane, cause)} ${duration(ns)}`,
          element('span', {class: 'muted'}, ` ${percent(ns / ((to - from) * run.tick_ns))}${n > 1 ? `, ${count(n)} spans` : ''}`)));
    }
    if (lane.rate) {
      const value = rate[lane.rate.first + Math.floor((run.seconds((from + to) / 2) - run.begin_s) / lane.rate.step_s)];
      if (value !== undefined) nodes.push(element('div', {}, `${lane.rate.name} ${quantity(value, lane.rate.unit)}`));
    }
    return nodes;
  }

  function hover(u, x, y) {
    const row = layout.rows.find((r) => y >= r.y && y < r.y + r.height + LANE_GAP);
    if (!row) {
      charts.highlight();
      return null;
    }
    const perPixel = (view.max - view.min) / u.over.clientWidth / run.tick_s;
    const at = run.ticks(u.posToVal(x, 'x'));
    // Samples are about a millisecond apart.
    const near = Math.max(1.5 * perPixel, row.lane.samples ? 2e-3 / run.tick_s : 0);
    const exact = contents(row.lane, at, at + 1e-6);
    // Exactly under the pointer if there is a span wide enough to aim at, else the pixels around it.
    if (exact.longest >= 0 && span_length[exact.longest] > 4 * perPixel) return describe(row.lane, at, at + 1e-6);
    return describe(row.lane, Math.max(0, at - near), Math.min(end, at + near));
  }

  // Marks the lanes whose names match a search.
  const find = (query) => {
    const words = parseQuery(query).filter(({kind}) => kind === 'any' || kind === 'thread').map(({value}) => value);
    [...names.querySelectorAll('.lane-name')].forEach((made, i) => {
      const {lane} = layout.rows[i];
      const text = `${lane.group} ${lane.name} ${lane.note}`.toLowerCase();
      made.classList.toggle('lane-found', words.length > 0 && words.every((word) => text.includes(word)));
    });
  };

  host.append(names);
  charts.add({
    host,
    height: layout.height,
    timeAxis: true,
    scales: {y: {range: [0, 1]}},
    axes: [{scale: 'y', size: () => gutterWidth(), splits: () => [], grid: {show: false}, ticks: {show: false}}],
    draw,
    hover,
  });
  return {find};
}
