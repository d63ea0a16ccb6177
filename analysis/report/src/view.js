// SPDX-License-Identifier: MIT
// The time range that all charts show. Charts subscribe to it. Zooming (drag, wheel, key, episode) changes it here,
// without reference to any chart.

// The range nearest to [min, max] within [begin, end], at least `shortest` long.
export function clampRange(min, max, begin, end, shortest) {
  if (!(max - min < end - begin)) return {min: begin, max: end};
  const length = Math.min(Math.max(max - min, shortest), end - begin);
  const from = Math.min(Math.max((min + max - length) / 2, begin), end - length);
  return {min: from, max: from + length};
}

// [min, max] made `factor` times as long, with the instant `at` at the same place on the screen.
export function zoomRange(range, at, factor) {
  return {min: at - (at - range.min) * factor, max: at + (range.max - at) * factor};
}

// In seconds from the run's zero. `shortest` is the resolution: zooming in further would show no more.
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
    // Like set, but back() returns to the former range.
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
    // Moves by a share of the visible range; positive is later.
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
