// SPDX-License-Identifier: MIT
// Figures of two sides: signs, open bounds, and places on shared scales.
import assert from 'node:assert/strict';
import {test} from 'node:test';
import {bounds, figure, place, signed} from '../../../../analysis/report/src/differences.js';
import {curveAt, curveRange, mapRange} from '../../../../analysis/report/src/compare_charts.js';

test('changes have signs and units', () => {
  assert.equal(signed(12.4e6, 'ns'), '+12.4 ms');
  assert.equal(signed(-0.5, 's'), '−500 ms');
  assert.equal(signed(0, 's'), '0 ms');
  assert.equal(signed(null, 'ns'), '–');
  assert.equal(figure(1.1e9, 'bytes'), '1.10 GB');
  assert.equal(figure(3, ''), '3');
});

test('an interval may be open or unknown', () => {
  assert.equal(bounds([9.8e6, 15.1e6], 'ns'), '[+9.80 ms, +15.1 ms]');
  assert.equal(bounds([null, 1e6], 'ns'), '[−∞, +1.00 ms]');
  assert.equal(bounds([1e6, null], 'ns'), '[+1.00 ms, ∞]');
  assert.equal(bounds(null, 'ns'), '');
});

test('no change is in the middle, and a large change at the end', () => {
  assert.equal(place(1), 0.5);
  assert.equal(place(2), 1);
  assert.equal(place(0.5), 0);
  assert.equal(place(1e9), 1);
});

test('a curve is interpolated at a value', () => {
  const curve = [[1, 100], [0.5, 200], [0.01, 900]];
  assert.equal(curveAt(curve, 1), 100);
  assert.equal(curveAt(curve, 0.2), 200);
  assert.equal(curveAt(curve, 0.01), 900);
  assert.ok(Number.isNaN(curveAt(curve, 0.001)));
  assert.ok(Number.isNaN(curveAt([], 1)));
});

test('scales include both sides', () => {
  const {low, high, rarest} = curveRange([[1, 100], [0.1, 1000]], [[1, 50], [0.001, 1e6]]);
  assert.ok(low <= 50 && high >= 1e6);
  assert.equal(rarest, 0.001);
  assert.deepEqual(mapRange([[0, 90, 3]], [[5, 120, 7]]), {first: 90, last: 120, most: 7});
  assert.deepEqual(mapRange([], []), {first: 100, last: 140, most: 1});
});
