// SPDX-License-Identifier: MIT
// The view: it stays in the run, keeps the instant under the pointer, and can go back.
import assert from 'node:assert/strict';
import {test} from 'node:test';
import {clampRange, createView, zoomRange} from '../../../../analysis/report/src/view.js';
import {linearTicks, logRange, logTicks, secondLabels} from '../../../../analysis/report/src/scales.js';

test('a range is moved into the run rather than shortened', () => {
  assert.deepEqual(clampRange(-5, 5, 0, 60, 1), {min: 0, max: 10});
  assert.deepEqual(clampRange(55, 65, 0, 60, 1), {min: 50, max: 60});
  assert.deepEqual(clampRange(-100, 500, -2, 60, 1), {min: -2, max: 60});
  assert.deepEqual(clampRange(10, 10, 0, 60, 2), {min: 9, max: 11});
  assert.deepEqual(clampRange(NaN, 10, 0, 60, 2), {min: 0, max: 60});
});

test('zooming keeps the instant under the pointer', () => {
  const {min, max} = zoomRange({min: 10, max: 20}, 12, 0.5);
  assert.equal(min, 11);
  assert.equal(max, 16);
});

test('a view notifies its listeners only of changes', () => {
  const view = createView(0, 60, 1e-3);
  let told = 0;
  view.subscribe(() => told++);
  view.reset();
  assert.equal(told, 0);
  view.set(10, 20);
  view.set(10, 20);
  assert.equal(told, 1);
});

test('panning stops at the ends and keeps the length', () => {
  const view = createView(-1, 60, 1e-3);
  view.set(50, 60);
  view.pan(0.5);
  assert.deepEqual([view.min, view.max], [50, 60]);
  view.pan(-0.5);
  assert.deepEqual([view.min, view.max], [45, 55]);
  view.set(0, 10);
  view.pan(-5);
  assert.deepEqual([view.min, view.max], [-1, 9]);
});

test('back undoes jumps, then shows all', () => {
  const view = createView(0, 60, 1e-3);
  view.jump(10, 20);
  view.jump(12, 13);
  view.back();
  assert.deepEqual([view.min, view.max], [10, 20]);
  view.back();
  assert.ok(view.whole());
  view.set(1, 2);
  view.back();
  assert.ok(view.whole());
});

test('ticks are round, inside, and distinguishable', () => {
  const ticks = linearTicks(11.988, 12.072, 8);
  assert.ok(ticks.length >= 5 && ticks.length <= 12);
  assert.ok(ticks[0] >= 11.988 - 1e-9 && ticks.at(-1) <= 12.072 + 1e-9);
  assert.equal(new Set(secondLabels(ticks)).size, ticks.length);
  assert.deepEqual(linearTicks(0, 60, 6), [0, 10, 20, 30, 40, 50, 60]);
});

test('a latency axis has its decades, and more ticks when it has few', () => {
  assert.deepEqual(logTicks(5e3, 9e8), [1e4, 1e5, 1e6, 1e7, 1e8]);
  assert.deepEqual(logTicks(9e5, 1.1e7), [1e6, 2e6, 5e6, 1e7]);
  const [low, high] = logRange(1e6, 1e6);
  assert.ok(low < 1e6 && high > 1e6 && high / low >= 9.9);
});
