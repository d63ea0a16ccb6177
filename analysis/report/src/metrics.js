// SPDX-License-Identifier: MIT
// Metrics of the host and the server as small charts on the same time axis: CPU, memory, faults, disk. They are sampled
// ten times a second, so they show the conditions around an episode, not its cause.

import {gutterWidth} from './charts.js';
import {element} from './dom.js';
import {instant, plain, quantity} from './format.js';
import {linearTicks} from './scales.js';

const METRIC_HEIGHT = 72; // CSS pixels, minimum; more lines need more room for their names

// Colours of a chart's lines, in order. Dashes distinguish them without colour too.
const strokes = [['accent', []], ['second', []], ['third', [5, 3]], ['fourth', [2, 2]], ['fifth', [1, 3]]];

export function addMetrics(charts, context, run, host) {
  const {theme} = context;
  for (const metric of run.metrics) {
    const times = Array.from(run.arrays.metric_time.subarray(metric.first, metric.first + metric.count), run.seconds);
    const values = metric.lines.map(({first}) => run.arrays.metric_value.subarray(first, first + metric.count));
    let most = 0;
    for (const line of values)
      for (const value of line) if (value > most) most = value;
    const row = element('div', {class: 'chart metric'});
    const legend = metric.lines.map(({name}, i) => element('span', {class: `line line-${strokes[i % strokes.length][0]}`}, name));
    row.append(element('div', {class: 'metric-name', title: metric.name}, element('b', {}, metric.name), ...legend));
    host.append(row);
    charts.add({
      host: row,
      height: Math.max(METRIC_HEIGHT, 26 + 16 * (metric.lines.length + Math.floor(metric.name.length / 15))),
      padding: 7,
      timeAxis: false,
      scales: {y: {range: [0, most > 0 ? most * 1.1 : 1]}},
      axes: [{
        scale: 'y',
        stroke: () => theme().muted,
        font: theme().font,
        grid: {stroke: () => theme().grid, width: 1},
        ticks: {stroke: () => theme().line, size: 5},
        size: () => gutterWidth(),
        gap: 4,
        splits: (u, axis, min, max) => linearTicks(min, max, 2),
        values: (u, ticks) => ticks.map((t) => quantity(t, metric.unit, plain)),
      }],
      series: metric.lines.map((_, i) => ({
        stroke: () => theme()[strokes[i % strokes.length][0]],
        dash: strokes[i % strokes.length][1],
        width: 1.25,
        points: {show: false},
        spanGaps: false,
      })),
      data: [times, ...values.map((line) => Array.from(line, (v) => Number.isNaN(v) ? null : v))],
      hover(u, x) {
        charts.highlight();
        const i = u.posToIdx(x);
        return [
          element('b', {}, metric.name),
          ...metric.lines.map(({name}, k) => element('div', {}, `${name} ${quantity(values[k][i], metric.unit)}`)),
          element('div', {class: 'muted'}, instant(times[i])),
        ];
      },
    });
  }
}
