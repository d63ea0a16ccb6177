// SPDX-License-Identifier: MIT
// The one range of time that every chart shows, and the ways to change it. Charts subscribe; whoever zooms
// (a drag, the wheel, a key, an episode) sets it here and knows no chart.

// The range nearest to [min, max] that lies in [begin, end] and is at least `shortest` long.
export function clampRange(min, max, begin, end, shortest) {
  if (!(max - min < end - begin)) return {min: begin, max: end};
  const length = Math.min(Math.max(max - min, shortest), end - begin);
  const from = Math.min(Math.max((min + max - length) / 2, begin), end - length);
  return {min: from, max: from + length};
}

// [min, max] made `factor` times as long, the instant `at` staying where it is on the screen.
export function zoomRange(range, at, factor) {
  return {min: at - (at - range.min) * factor, max: at + (range.max - at) * factor};
}

// Seconds from the run's zero. `shortest` is what one can still tell apart: a closer look would show no more.
export function createView(begin, end, shortest) {
  const listeners = [];
  const past = [];
  const view = {
    begin,
    end,
    min: begin,
    max: end,
    subscribe(listener) { listeners.push(listener); },
    set(min, max) {
      const next = clampRange(min, max, begin, end, shortest);
      if (next.min === view.min && next.max === view.max) return;
      view.min = next.min;
      view.max = next.max;
      for (const listener of listeners) listener(view);
    },
    // Like set, for a jump that one may want to come back from.
    jump(min, max) {
      past.push({min: view.min, max: view.max});
      if (past.length > 100) past.shift();
      view.set(min, max);
    },
    back() {
      const last = past.pop();
      if (last) view.set(last.min, last.max);
      else view.reset();
    },
    zoom(factor, at = (view.min + view.max) / 2) {
      const next = zoomRange(view, at, factor);
      view.set(next.min, next.max);
    },
    // By a share of what is seen; positive is later.
    pan(share) {
      const by = share * (view.max - view.min);
      const free = by > 0 ? Math.min(by, end - view.max) : Math.max(by, begin - view.min);
      view.set(view.min + free, view.max + free);
    },
    reset() { view.set(begin, end); },
    whole() { return view.min === begin && view.max === end; },
  };
  return view;
}
