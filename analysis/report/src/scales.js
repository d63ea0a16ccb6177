// SPDX-License-Identifier: MIT
// Positions and labels of ticks. uPlot's defaults suit dates and plain numbers; here one axis is seconds of the run
// down to microseconds, and the other is latency over six decades.

import {decimals, tickDuration} from './format.js';

// A step of 1, 2 or 5 times a power of ten that gives about `wanted` ticks on `length`.
export function roundStep(length, wanted) {
  const rough = length / Math.max(1, wanted);
  const power = 10 ** Math.floor(Math.log10(rough));
  const digit = rough / power;
  return power * (digit < 1.5 ? 1 : digit < 3.5 ? 2 : digit < 7.5 ? 5 : 10);
}

// Ticks of a linear axis: multiples of a round step.
export function linearTicks(min, max, wanted) {
  const step = roundStep(max - min, wanted);
  const ticks = [];
  // + 0 makes a zero of a negative zero.
  for (let i = Math.ceil(min / step - 1e-6) + 0; i * step <= max + step * 1e-6; i++) ticks.push(i * step);
  return ticks;
}

// Labels of linear ticks in seconds, with just enough digits to distinguish neighbours.
export function secondLabels(ticks) {
  const step = ticks.length > 1 ? ticks[1] - ticks[0] : 1;
  const digits = decimals(step);
  return ticks.map((t) => `${t.toFixed(digits)} s`);
}

// Ticks of a logarithmic axis of ns: the decades, with 2 and 5 between them if few decades are visible.
export function logTicks(min, max) {
  const few = Math.log10(max / min) < 2.5;
  const ticks = [];
  for (let power = Math.floor(Math.log10(min)); power <= Math.log10(max); power++)
    for (const digit of few ? [1, 2, 5] : [1]) {
      const tick = digit * 10 ** power;
      if (tick >= min * 0.9999 && tick <= max * 1.0001) ticks.push(tick);
    }
  return ticks;
}

export function durationLabels(ticks) {
  return ticks.map(tickDuration);
}

// The range of a logarithmic axis for [min, max] with some margin, at least one decade.
export function logRange(min, max) {
  let low = Math.max(1, min) * 0.8;
  let high = max * 1.6;
  if (!(high > low * 10)) {
    const middle = Math.sqrt(low * Math.max(high, low));
    low = middle / Math.sqrt(10);
    high = middle * Math.sqrt(10);
  }
  return [low, high];
}
