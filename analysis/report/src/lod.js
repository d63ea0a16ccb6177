// SPDX-License-Identifier: MIT
// Level of detail: a hundred thousand spans on a thousand pixels. A span wider than a pixel is drawn as it is. Narrower
// ones are summed by pixel column and cause, and drawn as bars as high as their share of the column's time. So a lane
// seen from afar shows time by cause, a lane zoomed in shows each span, and nothing is lost in between.

import {lowerBound} from './data.js';

// Time by cause in each of `width` columns, reused between frames so that drawing allocates nothing.
export function createColumns(causes) {
  return {causes, width: 0, share: new Float32Array(0), used: new Uint8Array(causes), below: new Float32Array(0),
    most: new Float32Array(0), largest: new Uint8Array(0)};
}

export function clearColumns(columns, width) {
  if (columns.width !== width) {
    columns.width = width;
    columns.share = new Float32Array(width * columns.causes);
    columns.below = new Float32Array(width);
    columns.most = new Float32Array(width);
    columns.largest = new Uint8Array(width);
  } else {
    for (let cause = 0; cause < columns.causes; cause++)
      if (columns.used[cause]) columns.share.fill(0, cause * width, (cause + 1) * width);
  }
  columns.used.fill(0);
}

// Adds `weight` times the interval [from, to) of columns (fractions allowed) to a cause: each column gets the share
// that the interval covers.
export function addToColumns(columns, cause, from, to, weight) {
  const {share, width} = columns;
  if (from < 0) from = 0;
  if (to > width) to = width;
  if (!(to > from)) return;
  columns.used[cause] = 1;
  const base = cause * width;
  const first = Math.floor(from);
  const last = Math.min(Math.ceil(to), width) - 1;
  if (first === last) {
    share[base + first] += (to - from) * weight;
    return;
  }
  share[base + first] += (first + 1 - from) * weight;
  for (let i = first + 1; i < last; i++) share[base + i] += weight;
  share[base + last] += (to - last) * weight;
}

// Divides the spans [first, end) of one lane, which ascend and do not overlap. Of those in view, spans at least
// `widest` columns wide go to `large(index, from, to)`, the others to the columns. `scale` is columns per tick;
// `origin` is the view's first tick.
export function splitSpans(columns, spans, first, end, origin, scale, widest, large) {
  const {start, length, cause} = spans;
  const limit = origin + columns.width / scale;
  // The span before the first that starts in view may overlap it.
  let i = Math.max(first, lowerBound(start, origin, first, end) - 1);
  for (; i < end && start[i] < limit; i++) {
    const from = (start[i] - origin) * scale;
    const to = from + length[i] * scale;
    if (to <= 0) continue;
    if (to - from >= widest) large(i, from, to);
    else addToColumns(columns, cause[i], from, to, 1);
  }
}

// Stacks the causes of every column in the order of their numbers, and calls bar(cause, firstColumn, endColumn, bottom,
// top) for runs of equal height. Heights are 0..1 in steps of 1 / `levels`, so that neighbours join. The largest cause
// of a column gets at least one step, so that short events stay visible.
export function stackColumns(columns, levels, bar) {
  const {share, used, width, causes, below, most, largest} = columns;
  below.fill(0);
  most.fill(0);
  for (let cause = 0; cause < causes; cause++) {
    if (!used[cause]) continue;
    for (let i = 0; i < width; i++) {
      const value = share[cause * width + i];
      if (value > most[i]) {
        most[i] = value;
        largest[i] = cause;
      }
    }
  }
  for (let cause = 0; cause < causes; cause++) {
    if (!used[cause]) continue;
    let runStart = 0, runBottom = 0, runTop = 0;
    for (let i = 0; i <= width; i++) {
      let bottom = 0, top = 0;
      if (i < width) {
        const value = share[cause * width + i];
        if (value > 0) {
          bottom = below[i];
          const floor = largest[i] === cause ? 1 : 0;
          top = Math.min(1, bottom + Math.max(floor, Math.round(value * levels)) / levels);
          below[i] = top;
        }
      }
      if (bottom === runBottom && top === runTop) continue;
      if (runTop > runBottom) bar(cause, runStart, i, runBottom, runTop);
      runStart = i;
      runBottom = bottom;
      runTop = top;
    }
  }
}
