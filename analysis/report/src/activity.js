// SPDX-License-Identifier: MIT
// On-CPU time of a server's own code by activity, from CPU samples. A lane draws a sample like a span: the time that it
// represents, in its activity's colour. There are more activities than colours: those with the most time have their
// own, the rest share a grey. The tooltip, the episodes and the table name all of them.

import {addToColumns, clearColumns, createColumns, stackColumns} from './lod.js';
import {count, duration, percent} from './format.js';
import {element} from './dom.js';
import {samplesIn} from './flame.js';

// For light and dark pages. They must differ from each other, not from causes, which are on other lanes.
const light = ['#1d6fb8', '#c2540a', '#2b8a3e', '#8c3bb5', '#b8860b', '#0f8a8a', '#c2255c', '#5f6b1c', '#6b4a2b', '#3f51b5'];
const darkColours = ['#6bb3f2', '#f59550', '#6fce83', '#cf8df0', '#e3bd4a', '#4fd0d0', '#f47ba6', '#bccb5a', '#c9a27c', '#98a6f5'];
const grey = {light: '#8a94a3', dark: '#76818f'};

// The rank of each activity by its share of the run's sampled own code.
export function rankActivities(run) {
  const {sample_activity: activities, sample_length: lengths, sample_own: own} = run.arrays;
  const weights = new Float64Array(run.activities.length);
  for (let i = 0; i < activities.length; i++) if (own[i]) weights[activities[i]] += lengths[i];
  const order = [...weights.keys()].filter((i) => i > 0).sort((a, b) => weights[b] - weights[a] || a - b);
  const rank = new Uint16Array(weights.length).fill(light.length);
  order.forEach((activity, place) => { rank[activity] = place; });
  return rank;
}

export function createActivities(context, run) {
  const {view, theme} = context;
  const {sample_end: ends, sample_length: lengths, sample_activity: activities, sample_own: own} = run.arrays;
  const rank = rankActivities(run);
  const kinds = light.length + 1; // the last one: all others
  const kindOf = (i) => Math.min(light.length, rank[activities[i]]);
  const columns = createColumns(kinds);
  const colour = (kind) => kind === light.length ? grey[theme().dark ? 'dark' : 'light'] : (theme().dark ? darkColours : light)[kind];
  let longest = 0;
  for (const length of lengths) if (length > longest) longest = length;

  function swatch(activity) {
    const made = element('i', {class: 'swatch', 'aria-hidden': 'true'});
    made.style.background = colour(Math.min(light.length, rank[activity]));
    return made;
  }

  // Time by activity, own code only, largest first.
  function contents(lane, from, to) {
    const times = new Map();
    let samples = 0;
    const [first, end] = samplesIn(run, lane, from, to + longest);
    for (let i = first; i < end; i++) {
      const overlap = Math.min(to, ends[i]) - Math.max(from, ends[i] - lengths[i]);
      if (overlap <= 0 || !own[i]) continue;
      samples++;
      times.set(activities[i], (times.get(activities[i]) ?? 0) + overlap);
    }
    return {samples, rows: [...times].sort((a, b) => b[1] - a[1]).map(([activity, ticks]) => ({activity, ticks}))};
  }

  return {
    swatch,
    draw(ctx, bbox, lane, top, height, dim) {
      const width = Math.round(bbox.width);
      const scale = bbox.width / (view.max - view.min) * run.tick_s;
      const origin = run.ticks(view.min);
      clearColumns(columns, width);
      const [first, end] = samplesIn(run, lane, origin, origin + width / scale + longest);
      for (let i = first; i < end; i++) {
        if (!own[i]) continue;
        const to = (ends[i] - origin) * scale;
        addToColumns(columns, kindOf(i), to - lengths[i] * scale, to, 1);
      }
      ctx.globalAlpha = dim ? 0.08 : 0.9;
      stackColumns(columns, Math.round(height), (kind, from, to, bottom, high) => {
        ctx.fillStyle = colour(kind);
        const low = Math.round(top + height * (1 - bottom)), up = Math.round(top + height * (1 - high));
        ctx.fillRect(bbox.left + from, up, to - from, low - up);
      });
      ctx.globalAlpha = 1;
    },
    describe(lane, from, to) {
      const {rows, samples} = contents(lane, from, to);
      if (!rows.length) return null;
      const all = rows.reduce((sum, {ticks}) => sum + ticks, 0);
      return [
        element('b', {}, `on-CPU time of ${lane.note}`),
        element('div', {class: 'muted'}, `${count(samples)} ${samples === 1 ? 'sample' : 'samples'} in ${duration((to - from) * run.tick_ns)}`),
        ...rows.slice(0, 8).map(({activity, ticks}) => element('div', {}, swatch(activity),
          `${run.activities[activity]} ${percent(ticks / all)}`)),
      ];
    },
  };
}

// On-CPU time of the run by activity, as a table; removed without samples.
export function fillActivityTable(context, run, host) {
  if (!run.own_code.length) {
    host.remove();
    return;
  }
  const ranges = run.lanes.filter(({samples}) => samples).map(({samples: [first, n]}) => [first, first + n]);
  if (ranges.length)
    host.querySelector('h2').after(element('button', {type: 'button', class: 'link', onclick: () => context.flame.open('On-CPU time of the whole run', ranges)},
      'Flame graph of the whole run'));
  const heads = ['Activity', 'Share', 'Time', 'Samples', 'Most frequent stack, innermost function first'];
  host.querySelector('table').replaceChildren(
    element('thead', {}, element('tr', {}, ...heads.map((text) => element('th', {scope: 'col'}, text)))),
    element('tbody', {}, ...run.own_code.map(({name, share, time_ns: ns, error, samples, stack}) => element('tr', {},
      element('th', {scope: 'row'}, name), element('td', {}, percent(share)),
      element('td', {}, duration(ns), samples > 1 ? element('span', {class: 'muted'}, ` ± ${duration(ns * error)}`) : ''),
      element('td', {}, count(samples)), element('td', {class: 'where'}, stack)))));
}
