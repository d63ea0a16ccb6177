// SPDX-License-Identifier: MIT
// Both sides' latency on one scale: the distribution as two curves, and latency over time as two maps of the same
// height and shades.

import {count, duration, percent} from './format.js';
import {durationLabels, linearTicks, logTicks, secondLabels} from './scales.js';
import {element, svg} from './dom.js';

const HEIGHT = 320, LEFT = 66, RIGHT = 16, TOP = 12, BOTTOM = 34; // CSS pixels, as all widths here
const MAP_HEIGHT = 200;

// The range of latencies, in ns, and the smallest share of requests of either curve.
export function curveRange(a, b) {
  let low = Infinity, high = 0, rarest = 1;
  for (const [share, ns] of [...a, ...b]) {
    low = Math.min(low, Math.max(1, ns));
    high = Math.max(high, ns);
    rarest = Math.min(rarest, share);
  }
  return high === 0 ? {low: 1e5, high: 1e7, rarest: 1e-3} : {low: low * 0.9, high: Math.max(high * 1.1, low * 10), rarest: Math.max(rarest, 1e-9)};
}

// The latency that a share of requests exceeds, or NaN beyond the curve's end.
export function curveAt(curve, share) {
  if (!curve.length || share < curve[curve.length - 1][0]) return NaN;
  let low = 0, high = curve.length - 1;
  while (low < high) {
    const middle = (low + high + 1) >>> 1;
    if (curve[middle][0] >= share) low = middle;
    else high = middle - 1;
  }
  return curve[low][1];
}

// Percentiles from left to right; each further nine has the same width.
export function drawCurves(data, full, tooltip) {
  const {low, high, rarest} = curveRange(data.a.curve, data.b.curve);
  const width = full - LEFT - RIGHT, height = HEIGHT - TOP - BOTTOM;
  const nines = Math.max(1, -Math.log10(rarest));
  const x = (share) => LEFT + width * -Math.log10(Math.max(share, rarest)) / nines;
  const y = (ns) => TOP + height * (1 - Math.log(Math.max(ns, low) / low) / Math.log(high / low));
  const path = (curve) => curve.map(([share, ns], i) => `${i ? 'L' : 'M'}${x(share).toFixed(1)} ${y(ns).toFixed(1)}`).join('');
  const marks = [1, 0.5, 0.1, 0.01, 0.001, 1e-4, 1e-5, 1e-6, 1e-7].filter((share) => share >= rarest);
  // Labels from left to right, without those that would touch the one before.
  let labelled = -Infinity;
  const label = (share) => {
    const last = x(share) > full - RIGHT - 20, middle = x(share) - (last ? 20 : 0);
    if (middle - labelled < 46) return '';
    labelled = middle;
    return svg('text', {x: x(share), y: HEIGHT - 14, 'text-anchor': last ? 'end' : 'middle'}, share === 1 ? 'min' : `p${+(100 * (1 - share)).toFixed(7)}`);
  };
  const ticks = logTicks(low, high);
  const labels = durationLabels(ticks);
  const cross = svg('line', {class: 'cross', y1: TOP, y2: TOP + height, x1: -9, x2: -9});
  const slow = data.slow_ns > low && data.slow_ns < high ? [svg('line', {class: 'slow-line', x1: LEFT, x2: full - RIGHT, y1: y(data.slow_ns), y2: y(data.slow_ns)}),
    svg('text', {x: LEFT + 6, y: y(data.slow_ns) - 5}, `slow: ${duration(data.slow_ns)} or more`)] : [];
  const chart = svg('svg', {class: 'curves', viewBox: `0 0 ${full} ${HEIGHT}`, height: HEIGHT, role: 'img',
    'aria-label': 'Latency by percentile: A dashed, B solid. The table of percentiles has the numbers'},
  ...ticks.flatMap((ns, i) => [svg('line', {class: 'grid', x1: LEFT, x2: full - RIGHT, y1: y(ns), y2: y(ns)}),
    svg('text', {x: LEFT - 8, y: y(ns) + 4, 'text-anchor': 'end'}, labels[i])]),
  ...marks.flatMap((share) => [svg('line', {class: 'grid', x1: x(share), x2: x(share), y1: TOP, y2: TOP + height}),
    label(share)]),
  ...slow,
  svg('path', {class: 'curve curve-a', d: path(data.a.curve)}), svg('path', {class: 'curve curve-b', d: path(data.b.curve)}), cross);
  chart.addEventListener('pointermove', (event) => {
    const box = chart.getBoundingClientRect();
    const at = (event.clientX - box.left) / box.width * full;
    if (at < LEFT || at > full - RIGHT) return tooltip.hide();
    const share = 10 ** (-(at - LEFT) / width * nines);
    cross.setAttribute('x1', at);
    cross.setAttribute('x2', at);
    tooltip.show(event, [element('b', {}, `${percent(share)} of requests took longer than`),
      element('div', {}, `A ${duration(curveAt(data.a.curve, share))}`), element('div', {}, `B ${duration(curveAt(data.b.curve, share))}`)]);
  });
  chart.addEventListener('pointerleave', () => {
    cross.setAttribute('x1', -9);
    cross.setAttribute('x2', -9);
    tooltip.hide();
  });
  return chart;
}

// The range of bins of both maps, and the most requests in a cell.
export function mapRange(a, b) {
  let first = Infinity, last = -Infinity, most = 0;
  for (const [, bin, n] of [...a, ...b]) {
    first = Math.min(first, bin);
    last = Math.max(last, bin);
    most = Math.max(most, n);
  }
  return most ? {first, last, most} : {first: 100, last: 140, most: 1};
}

// One side's requests over time. `theme` is read at each drawing.
export function createMap(data, side, full, theme, tooltip) {
  const {heat} = data[side];
  const {first, last, most} = mapRange(data.a.heat, data.b.heat);
  const rows = last - first + 1, columns = Math.ceil(data.seconds / data.column_s);
  const canvas = element('canvas', {class: 'map', role: 'img', 'aria-label': `Requests of ${side.toUpperCase()} by time and latency`});
  canvas.width = full * 2;
  canvas.height = MAP_HEIGHT * 2;
  const left = LEFT * 2, width = (full - LEFT - RIGHT) * 2, top = 12, height = (MAP_HEIGHT - 28) * 2 - 12;
  const cells = new Map(heat.map(([column, bin, n]) => [column * 1000 + bin, n]));
  const nsOf = (bin) => 10 ** (bin / data.bins_per_decade);
  const y = (bin) => top + height * (1 - (bin - first) / rows);

  function draw() {
    const ctx = canvas.getContext('2d');
    const {mass: [red, green, blue], muted, grid, font, lane} = theme();
    ctx.clearRect(0, 0, canvas.width, canvas.height);
    ctx.fillStyle = lane;
    ctx.fillRect(left, top, width, height);
    const norm = 1 / Math.log1p(most * 8);
    for (const [column, bin, n] of heat) {
      ctx.fillStyle = `rgba(${red}, ${green}, ${blue}, ${0.12 + 0.88 * Math.log1p(n * 8) * norm})`;
      const from = left + Math.floor(width * column / columns), to = left + Math.ceil(width * (column + 1) / columns);
      ctx.fillRect(from, Math.floor(y(bin + 1)), to - from, Math.ceil(height / rows));
    }
    ctx.font = font.replace(/^\d+px/, '22px');
    ctx.fillStyle = muted;
    ctx.strokeStyle = grid;
    ctx.textBaseline = 'middle';
    ctx.textAlign = 'right';
    const ticks = logTicks(nsOf(first), nsOf(last + 1));
    durationLabels(ticks).forEach((label, i) => ctx.fillText(label, left - 16, y(Math.log10(ticks[i]) * data.bins_per_decade)));
    ctx.textAlign = 'center';
    const times = linearTicks(0, data.seconds, 8);
    secondLabels(times).forEach((label, i) => ctx.fillText(label, left + width * times[i] / (columns * data.column_s), top + height + 24));
  }

  canvas.addEventListener('pointermove', (event) => {
    const box = canvas.getBoundingClientRect();
    const column = Math.floor(((event.clientX - box.left) / box.width * canvas.width - left) / width * columns);
    const bin = first + Math.floor((1 - ((event.clientY - box.top) / box.height * canvas.height - top) / height) * rows);
    const n = cells.get(column * 1000 + bin);
    if (n === undefined) return tooltip.hide();
    tooltip.show(event, [element('b', {}, `${n < 10 ? n.toFixed(1).replace(/\.0$/, '') : count(n)} requests per run, ${duration(nsOf(bin))} to ${duration(nsOf(bin + 1))}`),
      element('div', {class: 'muted'}, `${side.toUpperCase()}, at +${column * data.column_s} s`)]);
  });
  canvas.addEventListener('pointerleave', () => tooltip.hide());
  draw();
  return {canvas, draw};
}
