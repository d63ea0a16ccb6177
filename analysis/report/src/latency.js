// SPDX-License-Identifier: MIT
// Latency over time. Requests that were not slow are a grey area: the analysis counts them by time and latency, and a
// small image of the counts is stretched over the plot. Slow requests are marks in the colour of their main cause, at
// their due time. Rare causes are drawn last, over frequent ones, so that they stay visible.

import {clipped, gutterWidth} from './charts.js';
import {count, duration, instant, percent} from './format.js';
import {durationLabels, logRange, logTicks} from './scales.js';
import {element} from './dom.js';
import {lowerBound} from './data.js';
import {shapes} from './shapes.js';

const LATENCY_HEIGHT = 300;
const FLAGS = 16; // CSS pixels above the plot's data for the episodes' numbers

// The y range of everything drawn, in ns.
export function latencyRange(run) {
  const {slow_latency: latencies, heat_bin: bins} = run.arrays;
  let low = Infinity, high = 0;
  for (const value of latencies) {
    if (value < low) low = value;
    if (value > high) high = value;
  }
  for (const bin of bins) {
    const from = 10 ** ((run.heat.first_bin + bin) / run.heat.bins_per_decade);
    if (from < low) low = from;
    if (from > high) high = from;
  }
  if (high === 0) return [1e5, 1e7];
  // Space above for the episode numbers.
  const [from, to] = logRange(low, high);
  return [from, to * (to / from) ** (FLAGS / (LATENCY_HEIGHT - FLAGS))];
}

// Slow requests by cause, as lists of indices in the order of time; the longest list first.
function groupByCause(causes, names) {
  const sizes = new Uint32Array(names);
  for (const cause of causes) sizes[cause]++;
  const groups = Array.from(sizes, (size) => new Uint32Array(size));
  const filled = new Uint32Array(names);
  causes.forEach((cause, i) => { groups[cause][filled[cause]++] = i; });
  return groups.map((indices, cause) => ({cause, indices})).filter(({indices}) => indices.length)
    .sort((a, b) => b.indices.length - a.indices.length);
}

function trace(ctx, shape, x, y, scale) {
  for (const points of shape) {
    ctx.moveTo(x + points[0] * scale, y + points[1] * scale);
    for (let i = 2; i < points.length; i += 2) ctx.lineTo(x + points[i] * scale, y + points[i + 1] * scale);
    ctx.closePath();
  }
}

export function addLatency(charts, context, run, host) {
  const {view, theme, looks, filter} = context;
  const {slow_start: starts, slow_since: since, slow_latency: latencies, slow_cause: causes, heat_column: columns, heat_bin: bins, heat_count: counts, near_start: nearStarts,
    near_latency: nearLatencies} = run.arrays;
  const groups = groupByCause(causes, run.cause_names.length);
  const [low, high] = latencyRange(run);
  const image = document.createElement('canvas');
  const columnsPerTick = run.heat.columns / run.ticks(run.end_s);
  const rows = bins.reduce((most, bin) => Math.max(most, bin + 1), 0);
  // Logarithms for the y axis, computed once.
  const slowLogs = Float32Array.from(latencies, Math.log), nearLogs = Float32Array.from(nearLatencies, Math.log);
  let density = new Float32Array(0);
  let taken = new Uint8Array(0); // pixels that a mark of the current cause already covers

  function drawMass(u, ctx, bbox) {
    const width = Math.round(bbox.width);
    if (!rows || !width) return;
    if (density.length !== width * rows) density = new Float32Array(width * rows);
    else density.fill(0);
    const scale = (bbox.width / (view.max - view.min)) * run.tick_s / columnsPerTick; // pixels per column
    const origin = run.ticks(view.min) * columnsPerTick;
    const end = run.ticks(view.max) * columnsPerTick;
    let most = 0;
    for (let i = lowerBound(columns, Math.floor(origin)); i < columns.length && columns[i] < end; i++) {
      // Per pixel of width, so that the shade does not depend on how columns align with pixels.
      const from = (columns[i] - origin) * scale;
      const first = Math.max(0, Math.floor(from));
      const last = Math.min(width, Math.max(first + 1, Math.round(from + scale)));
      const share = counts[i] / Math.max(1, scale);
      const base = (rows - 1 - bins[i]) * width;
      for (let x = first; x < last; x++) {
        const value = density[base + x] += share;
        if (value > most) most = value;
      }
    }
    image.width = width;
    image.height = rows;
    const pen = image.getContext('2d');
    const pixels = pen.createImageData(width, rows);
    const [red, green, blue] = theme().mass;
    const norm = 1 / Math.log1p(most * 8);
    for (let i = 0; i < density.length; i++) {
      if (!density[i]) continue;
      pixels.data[4 * i] = red;
      pixels.data[4 * i + 1] = green;
      pixels.data[4 * i + 2] = blue;
      pixels.data[4 * i + 3] = 25 + 205 * Math.log1p(density[i] * 8) * norm;
    }
    pen.putImageData(pixels, 0, 0);
    // Where single requests are drawn, the coarse blocks behind them are fainter.
    ctx.globalAlpha = showsNear(u) ? 0.4 : 1;
    const at = (bin) => u.valToPos(10 ** ((run.heat.first_bin + bin) / run.heat.bins_per_decade), 'y', true);
    const top = at(rows);
    ctx.imageSmoothingEnabled = false;
    ctx.drawImage(image, bbox.left, top, width, at(0) - top);
    ctx.globalAlpha = 1;
  }

  // Zoomed in so far that the grid shows blocks: then requests around episodes are drawn individually.
  function showsNear(u) {
    return u.bbox.width / uPlot.pxRatio / (view.max - view.min) * run.tick_s / columnsPerTick > 6;
  }

  function drawNear(u, ctx, bbox) {
    if (!showsNear(u)) return;
    const size = 2 * uPlot.pxRatio;
    const place = placing(u, 1, nearStarts, nearLogs);
    const [red, green, blue] = theme().mass;
    ctx.fillStyle = `rgba(${red}, ${green}, ${blue}, 0.8)`;
    const last = run.ticks(view.max);
    for (let i = lowerBound(nearStarts, run.ticks(view.min)); i < nearStarts.length && nearStarts[i] <= last; i++)
      ctx.fillRect(bbox.left + place.x(i) - size / 2, bbox.top + place.y(i) - size / 2, size, size);
  }

  function drawEpisodes(u, ctx, bbox) {
    const ratio = uPlot.pxRatio;
    ctx.font = `${10 * ratio}px ${theme().font.replace(/^\S+ /, '')}`;
    ctx.textBaseline = 'middle';
    ctx.textAlign = 'center';
    // Largest total time first: where numbers overlap, theirs is shown.
    const used = new Uint8Array(Math.ceil(bbox.width / ratio) + 2);
    for (const i of run.ranking) {
      const episode = run.episodes[i];
      if (episode.end_s < view.min || episode.start_s > view.max) continue;
      const from = u.valToPos(Math.max(episode.start_s, view.min), 'x', true);
      const to = Math.max(from + ratio, u.valToPos(Math.min(episode.end_s, view.max), 'x', true));
      ctx.fillStyle = theme().band;
      ctx.fillRect(from, bbox.top, to - from, bbox.height);
      const text = String(episode.number);
      const half = (text.length * 3.2 + 4) * ratio;
      const middle = Math.min(Math.max((from + to) / 2, bbox.left + half), bbox.left + bbox.width - half);
      const first = Math.floor((middle - half - bbox.left) / ratio), last = Math.ceil((middle + half - bbox.left) / ratio);
      if (used.subarray(first, last).includes(1)) continue;
      used.fill(1, first, last + 1);
      const selected = context.selected === i;
      ctx.fillStyle = selected ? theme().accent : theme().line;
      ctx.fillRect(middle - half, bbox.top + ratio, 2 * half, (FLAGS - 3) * ratio);
      ctx.fillStyle = selected ? theme().surface : theme().text;
      ctx.fillText(text, middle, bbox.top + (FLAGS / 2) * ratio);
    }
  }

  // A line at the end of each recorded process.
  function drawEnds(u, ctx, bbox) {
    const ratio = uPlot.pxRatio;
    ctx.font = `${10 * ratio}px ${theme().font.replace(/^\S+ /, '')}`;
    ctx.textBaseline = 'bottom';
    for (const {t_s: at, text} of run.ends ?? []) {
      if (at < view.min || at > view.max) continue;
      const x = Math.round(u.valToPos(at, 'x', true)) + 0.5;
      const right = x + ctx.measureText(text).width < bbox.left + bbox.width;
      ctx.strokeStyle = ctx.fillStyle = theme().accent;
      ctx.lineWidth = ratio;
      ctx.beginPath();
      ctx.moveTo(x, bbox.top);
      ctx.lineTo(x, bbox.top + bbox.height);
      ctx.stroke();
      ctx.textAlign = right ? 'left' : 'right';
      ctx.fillText(text, x + (right ? 4 : -4) * ratio, bbox.top + bbox.height - 4 * ratio);
    }
  }

  function drawThreshold(u, ctx, bbox) {
    if (!run.threshold_ns || run.threshold_ns < low || run.threshold_ns > high) return;
    const y = Math.round(u.valToPos(run.threshold_ns, 'y', true)) + 0.5;
    ctx.strokeStyle = theme().muted;
    ctx.lineWidth = 1;
    ctx.setLineDash([4, 4]);
    ctx.beginPath();
    ctx.moveTo(bbox.left, y);
    ctx.lineTo(bbox.left + bbox.width, y);
    ctx.stroke();
    ctx.setLineDash([]);
  }

  // Positions are computed here instead of by valToPos, because this runs a hundred thousand times per frame.
  function placing(u, unit, times = starts, logs = slowLogs) {
    const width = u.bbox.width / unit, height = u.bbox.height / unit;
    const perTick = width / (view.max - view.min) * run.tick_s;
    const origin = run.ticks(view.min);
    const perFold = height / Math.log(high / low);
    const logHigh = Math.log(high);
    return {x: (i) => (times[i] - origin) * perTick, y: (i) => (logHigh - logs[i]) * perFold};
  }

  // The part of a cause's list that is in view, plus a mark's width on both sides.
  function inView(indices, margin) {
    const from = run.ticks(view.min - margin), to = run.ticks(view.max + margin);
    let first = 0, end = indices.length;
    while (first < end) {
      const middle = (first + end) >>> 1;
      if (starts[indices[middle]] < from) first = middle + 1;
      else end = middle;
    }
    end = indices.length;
    let last = first;
    while (last < end) {
      const middle = (last + end) >>> 1;
      if (starts[indices[middle]] <= to) last = middle + 1;
      else end = middle;
    }
    return [first, last];
  }

  function drawSlow(u, ctx, bbox) {
    const ratio = uPlot.pxRatio;
    const margin = 6 * (view.max - view.min) / (bbox.width / ratio);
    const place = placing(u, 1);
    const ranges = groups.map(({indices}) => inView(indices, margin));
    const seen = ranges.reduce((sum, [first, last]) => sum + last - first, 0);
    const radius = ratio * (seen > 5000 ? 1.75 : seen > 500 ? 2.5 : 3.2);
    // Overlapping marks are drawn once per cell of half a mark's size.
    const cell = Math.max(1, radius * 0.5);
    const across = Math.ceil(bbox.width / cell) + 2;
    const size = across * (Math.ceil(bbox.height / cell) + 2);
    if (taken.length < size) taken = new Uint8Array(size);
    for (const [g, {cause, indices}] of groups.entries()) {
      if (!filter.shows(cause)) continue;
      taken.fill(0);
      ctx.fillStyle = looks()[cause].colour;
      ctx.strokeStyle = theme().surface;
      ctx.lineWidth = 0.5 * ratio;
      // Marks too small to show their shapes are squares, which draw fastest.
      const tiny = radius < 2.5 * ratio;
      const shape = shapes[looks()[cause].family];
      ctx.beginPath();
      for (let k = ranges[g][0]; k < ranges[g][1]; k++) {
        if (context.found && !context.found[indices[k]]) continue;
        const x = place.x(indices[k]), y = place.y(indices[k]);
        const at = Math.floor(y / cell) * across + Math.floor(x / cell) + 1;
        if (taken[at]) continue;
        taken[at] = 1;
        if (tiny) ctx.fillRect(bbox.left + x - radius, bbox.top + y - radius, 2 * radius, 2 * radius);
        else trace(ctx, shape, bbox.left + x, bbox.top + y, radius / 8);
      }
      if (!tiny) ctx.fill();
      if (seen <= 300) ctx.stroke();
    }
  }

  function nearest(u, x, y) {
    const place = placing(u, uPlot.pxRatio);
    const reach = 10;
    const margin = reach * (view.max - view.min) / u.over.clientWidth;
    const at = u.posToVal(x, 'x');
    const first = lowerBound(starts, run.ticks(at - margin));
    const end = run.ticks(at + margin);
    let best = -1, least = reach * reach;
    for (let i = first; i < starts.length && starts[i] <= end; i++) {
      if (!filter.shows(causes[i]) || (context.found && !context.found[i])) continue;
      const distance = (place.x(i) - x) ** 2 + (place.y(i) - y) ** 2;
      if (distance < least) {
        least = distance;
        best = i;
      }
    }
    return best;
  }

  function swatch(cause) {
    const made = element('i', {class: 'swatch'});
    made.style.background = looks()[cause].colour;
    return made;
  }

  // The open request: a ring around its mark, and a line from its due time to its end.
  function drawOpen(u, ctx, bbox) {
    const i = context.request?.shown() ?? -1;
    if (i < 0) return;
    const ratio = uPlot.pxRatio, place = placing(u, 1);
    const x = bbox.left + place.x(i), y = bbox.top + place.y(i);
    ctx.strokeStyle = theme().text;
    ctx.lineWidth = 1.5 * ratio;
    ctx.beginPath();
    ctx.arc(x, y, 7 * ratio, 0, 2 * Math.PI);
    ctx.moveTo(x + 7 * ratio, y);
    ctx.lineTo(x + Math.max(7 * ratio, latencies[i] / run.tick_ns * bbox.width / (view.max - view.min) * run.tick_s), y);
    ctx.stroke();
  }

  function describe(i) {
    const mark = context.marks.mark(i);
    return [
      element('b', {}, `${mark.op ? mark.op + ' ' : ''}${duration(mark.latency)}`),
      ...mark.parts.slice(0, 2).filter(({ns}) => ns > 0).map(({cause, ns}) => element('div', {}, swatch(cause),
        `${run.cause_names[cause]} ${percent(ns / mark.latency)}`)),
      element('div', {class: 'muted'}, `${run.from_iterations ? 'started' : 'due'} at ${instant(mark.start, 1e-6)}` +
        `${mark.connection ? `, connection ${mark.connection.number}` : ''}; click for details`),
    ];
  }

  function describeMass(u, x, y) {
    const column = Math.floor(run.ticks(u.posToVal(x, 'x')) * columnsPerTick);
    const bin = Math.floor(Math.log10(u.posToVal(y, 'y')) * run.heat.bins_per_decade) - run.heat.first_bin;
    for (let i = lowerBound(columns, column); i < columns.length && columns[i] === column; i++) {
      if (bins[i] !== bin) continue;
      const from = 10 ** ((run.heat.first_bin + bin) / run.heat.bins_per_decade);
      const to = 10 ** ((run.heat.first_bin + bin + 1) / run.heat.bins_per_decade);
      const lengthS = run.tick_s / columnsPerTick;
      return [
        element('b', {}, `${count(counts[i])} ${run.from_iterations ? 'iterations' : 'requests'}, ${duration(from)} to ${duration(to)}`),
        element('div', {class: 'muted'},
          `in ${duration(lengthS * 1e9)} from ${instant(run.begin_s + column * lengthS, lengthS / 10)}`),
      ];
    }
    return null;
  }

  function hover(u, x, y) {
    const i = nearest(u, x, y);
    if (i < 0) {
      charts.highlight();
      return describeMass(u, x, y);
    }
    const at = run.seconds(starts[i]);
    charts.highlight(Math.min(at, run.seconds(since[i])), at + latencies[i] / 1e9);
    return describe(i);
  }

  host.append(element('div', {class: 'chart-name'},
    element('b', {}, run.from_iterations ? 'Event-loop iterations' : 'Latency'), element('span', {class: 'muted'}, 'log scale')));
  return charts.add({
    host,
    height: LATENCY_HEIGHT,
    timeAxis: true,
    scales: {y: {distr: 3, range: [low, high]}},
    axes: [{
      scale: 'y',
      stroke: () => theme().muted,
      font: theme().font,
      grid: {stroke: () => theme().grid, width: 1},
      ticks: {stroke: () => theme().line, size: 5},
      size: () => gutterWidth(),
      gap: 4,
      splits: (u, axis, min, max) => logTicks(min, max),
      filter: (u, ticks) => ticks,
      values: (u, ticks) => durationLabels(ticks),
    }],
    draw: (u) => clipped(u, (ctx, bbox) => {
      drawMass(u, ctx, bbox);
      drawNear(u, ctx, bbox);
      drawThreshold(u, ctx, bbox);
      drawEpisodes(u, ctx, bbox);
      drawSlow(u, ctx, bbox);
      drawEnds(u, ctx, bbox);
      drawOpen(u, ctx, bbox);
    }),
    hover,
    click(u, x, y) {
      if (y > FLAGS) {
        const i = nearest(u, x, y);
        if (i >= 0) context.open(i, false);
        return;
      }
      const at = u.posToVal(x, 'x');
      const slack = 8 * (view.max - view.min) / u.over.clientWidth;
      const hit = run.ranking.find((i) => at >= run.episodes[i].start_s - slack && at <= run.episodes[i].end_s + slack);
      if (hit !== undefined) context.choose(hit);
    },
  });
}
