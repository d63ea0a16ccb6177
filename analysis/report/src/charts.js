// SPDX-License-Identifier: MIT
// What all charts of the page share: the uPlot set-up, the gutter that aligns their time axes, the view, and its
// control by pointer and wheel. uPlot provides each chart's canvas, scales, axes and cross-hair. The content is painted
// in its draw hook, from typed arrays.

/* global uPlot */
import {linearTicks, secondLabels} from './scales.js';
import {element} from './dom.js';

export const RIGHT = 22; // CSS pixels right of the plot
export const AXIS = 30;  // CSS pixels of a labelled time axis

export function gutterWidth() {
  return innerWidth < 720 ? 96 : 172;
}

// Runs `paint` with the plot area clipped.
export function clipped(u, paint) {
  const {ctx, bbox} = u;
  ctx.save();
  ctx.beginPath();
  ctx.rect(bbox.left, bbox.top, bbox.width, bbox.height);
  ctx.clip();
  paint(ctx, bbox);
  ctx.restore();
}

// The page's charts. `context`: {view, theme (a function), tooltip}.
export function createCharts(context) {
  const {view, theme} = context;
  const charts = [];
  let scheduled = false;
  // Elsewhere the wheel scrolls the page. A click into a chart lets it zoom until the pointer leaves the chart.
  let clicked = false;

  function follow() {
    scheduled = false;
    const before = performance.now();
    for (const {u} of charts) u.batch(() => u.setScale('x', {min: view.min, max: view.max}));
    document.body.dataset.drawMs = (performance.now() - before).toFixed(1);
    document.body.dataset.draws = Number(document.body.dataset.draws ?? 0) + 1;
  }
  view.subscribe(() => {
    if (scheduled) return;
    scheduled = true;
    requestAnimationFrame(follow);
  });

  // The same selection on all charts, in plot pixels.
  function select(left, width) {
    for (const {u} of charts) u.setSelect({left, width, top: 0, height: u.over.clientHeight}, false);
  }

  // Marks the time [min, max) on all charts, or clears the mark.
  function highlight(min, max) {
    for (const {u, band} of charts) {
      band.hidden = min === undefined;
      if (band.hidden) continue;
      const left = u.valToPos(min, 'x');
      band.style.left = `${left}px`;
      band.style.width = `${Math.max(1, u.valToPos(max, 'x') - left)}px`;
    }
  }

  // Adds a chart below the others. `spec`: {host, height, padding, timeAxis, scales, axes, draw(u), series, data,
  // hover(u, x, y, event), click(u, x, y)}; x and y are CSS pixels in the plot. hover returns the tooltip's nodes or
  // nothing.
  function add(spec) {
    const options = {
      width: Math.max(240, spec.host.clientWidth),
      height: spec.height + (spec.timeAxis ? AXIS : 0),
      padding: [spec.padding ?? 0, RIGHT, spec.padding ?? 0, 0],
      legend: {show: false},
      scales: {x: {time: false, min: view.min, max: view.max}, ...spec.scales},
      axes: [timeAxis(spec.timeAxis), ...spec.axes],
      series: [{}, ...(spec.series ?? [{paths: () => null, points: {show: false}}])],
      cursor: {
        y: false,
        points: {show: false},
        drag: {x: false, y: false, setScale: false},
        sync: {key: 'time', scales: ['x', null]},
        bind: {dblclick: () => () => view.reset()},
      },
      hooks: {draw: spec.draw ? [spec.draw] : []},
    };
    const data = spec.data ?? [[view.begin, view.end], [null, null]];
    const u = new uPlot(options, data, spec.host);
    const band = element('div', {class: 'highlight'});
    band.hidden = true;
    u.over.append(band);
    const chart = {u, spec, band};
    charts.push(chart);
    listen(chart);
    return chart;
  }

  function timeAxis(labelled) {
    return {
      stroke: () => theme().muted,
      font: theme().font,
      grid: {stroke: () => theme().grid, width: 1},
      ticks: {show: labelled, stroke: () => theme().line, size: 5},
      size: labelled ? AXIS : 0,
      gap: 4,
      splits: (u, axis, min, max) => linearTicks(min, max, u.bbox.width / uPlot.pxRatio / 90),
      values: (u, ticks) => labelled ? secondLabels(ticks) : ticks.map(() => ''),
    };
  }

  function listen({u, spec}) {
    const over = u.over;
    let drag = null; // {x, min, max, pan}
    const position = (event) => {
      const box = over.getBoundingClientRect();
      return {x: event.clientX - box.left, y: event.clientY - box.top, width: box.width};
    };
    over.addEventListener('pointerdown', (event) => {
      clicked = false;
      if (event.button !== 0 && event.button !== 1) return;
      const {x} = position(event);
      drag = {x, min: view.min, max: view.max, pan: event.shiftKey || event.button === 1, moved: false};
      over.setPointerCapture(event.pointerId);
      event.preventDefault();
      over.closest('.charts')?.focus({preventScroll: true});
    });
    over.addEventListener('pointermove', (event) => {
      const {x, y, width} = position(event);
      if (drag) {
        if (Math.abs(x - drag.x) > 3) drag.moved = true;
        if (!drag.moved) return;
        context.tooltip.hide();
        if (drag.pan) {
          const by = (drag.x - x) / width * (drag.max - drag.min);
          const free = Math.min(Math.max(by, view.begin - drag.min), view.end - drag.max);
          view.set(drag.min + free, drag.max + free);
        } else {
          const from = Math.max(0, Math.min(drag.x, x));
          select(from, Math.min(width, Math.max(drag.x, x)) - from);
        }
        return;
      }
      const shown = spec.hover?.(u, x, y);
      if (shown) context.tooltip.show(event, shown);
      else context.tooltip.hide();
    });
    const finish = (event) => {
      if (!drag) return;
      const {x, y, width} = position(event);
      const done = drag;
      drag = null;
      select(0, 0);
      if (event.type !== 'pointerup') return;
      clicked = !done.moved;
      if (clicked) spec.click?.(u, x, y);
      else if (!done.pan) {
        const at = (pixel) => u.posToVal(Math.min(width, Math.max(0, pixel)), 'x');
        view.jump(at(Math.min(done.x, x)), at(Math.max(done.x, x)));
      }
    };
    over.addEventListener('pointerup', finish);
    over.addEventListener('pointercancel', finish);
    over.addEventListener('pointerleave', () => {
      if (drag) return;
      clicked = false;
      context.tooltip.hide();
      highlight();
    });
    over.addEventListener('wheel', (event) => {
      const {x} = position(event);
      const sideways = Math.abs(event.deltaX) > Math.abs(event.deltaY);
      const moves = event.shiftKey || sideways;
      const asked = event.ctrlKey || event.metaKey;
      // At the whole run there is nothing to move to, and nothing to zoom out to.
      if (!asked && (moves ? view.whole() : !clicked || (view.whole() && event.deltaY > 0))) return;
      event.preventDefault();
      context.tooltip.hide();
      const lines = event.deltaMode === WheelEvent.DOM_DELTA_LINE ? 16 : 1;
      if (moves && !asked) view.pan((sideways ? event.deltaX : event.deltaY) * lines / 1000);
      else view.zoom(Math.exp(Math.max(-1, Math.min(1, event.deltaY * lines / 400))), u.posToVal(x, 'x'));
    }, {passive: false});
  }

  return {
    add,
    highlight,
    // The range of each chart's axis, for tests.
    ranges() { return charts.map(({u}) => ({min: u.scales.x.min, max: u.scales.x.max})); },
    redraw() {
      for (const {u} of charts) u.redraw(false, true);
    },
    // Resizes to the width of the page, or to `fixed` CSS pixels.
    resize(fixed) {
      for (const {u, spec} of charts) {
        const width = fixed ?? Math.max(240, spec.host.clientWidth);
        const height = spec.height + (spec.timeAxis ? AXIS : 0);
        if (u.width !== width || u.height !== height) u.setSize({width, height});
      }
    },
  };
}
