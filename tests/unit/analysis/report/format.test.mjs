// SPDX-License-Identifier: MIT
// How numbers are displayed.
import assert from 'node:assert/strict';
import {test} from 'node:test';
import {count, decimals, duration, instant, percent, plain, quantity, tickDuration} from '../../../../analysis/report/src/format.js';

test('durations have three digits and a unit', () => {
  const cases = [[0, '0 ms'], [812, '812 ns'], [999.6, '1.00 µs'], [1234, '1.23 µs'], [61234567, '61.2 ms'], [999999999, '1.00 s'],
    [38.1e9, '38.1 s'], [312e9, '312 s'], [1234e9, '1,234 s'], [NaN, '–']];
  for (const [ns, text] of cases) assert.equal(duration(ns), text, String(ns));
});

test('ticks are short', () => {
  for (const [ns, text] of [[100, '100 ns'], [1e4, '10 µs'], [2e6, '2 ms'], [5e9, '5 s']]) assert.equal(tickDuration(ns), text);
});

test('instants have the digits that their step needs', () => {
  assert.equal(instant(12.30412), '+12.304 s');
  assert.equal(instant(12.3041234, 1e-6), '+12.304123 s');
  assert.equal(instant(-0.12), '-0.120 s');
  assert.equal(decimals(0.01), 2);
  assert.equal(decimals(0.02), 2);
  assert.equal(decimals(5), 0);
});

test('counts, shares and quantities', () => {
  assert.equal(count(1204311), '1,204,311');
  assert.equal(percent(0.614), '61 %');
  assert.equal(percent(0.0312), '3.1 %');
  assert.equal(percent(0.0004), '< 0.1 %');
  assert.equal(percent(1), '100 %');
  assert.equal(percent(0), '0 %');
  assert.equal(quantity(1.1e9, 'bytes'), '1.10 GB');
  assert.equal(quantity(84e6, 'bytes/s'), '84.0 MB/s');
  assert.equal(quantity(-0, 'bytes', plain), '0 B');
  assert.equal(quantity(5e8, 'bytes', plain), '500 MB');
  assert.equal(quantity(400, '1/s'), '400/s');
  assert.equal(quantity(NaN, 'bytes'), '–');
});
