// SPDX-License-Identifier: MIT
// Level of detail: drawing spans as bars neither loses nor adds time.
import assert from 'node:assert/strict';
import {test} from 'node:test';
import {addToColumns, clearColumns, createColumns, splitSpans, stackColumns} from '../../../../analysis/report/src/lod.js';

function total(columns, cause) {
  return columns.share.slice(cause * columns.width, (cause + 1) * columns.width).reduce((sum, x) => sum + x, 0);
}

function near(actual, wanted, tolerance = 1e-4) {
  assert.ok(Math.abs(actual - wanted) < tolerance, `${actual} is not ${wanted}`);
}

test('an interval fills the columns it covers', () => {
  const columns = createColumns(2);
  clearColumns(columns, 10);
  addToColumns(columns, 1, 2.25, 5.5, 1);
  const share = [...columns.share.slice(10, 20)];
  [0, 0, 0.75, 1, 1, 0.5, 0, 0, 0, 0].forEach((wanted, i) => near(share[i], wanted));
  addToColumns(columns, 0, 3.2, 3.3, 0.5);
  near(columns.share[3], 0.05);
});

test('time outside is cut off', () => {
  const columns = createColumns(1);
  clearColumns(columns, 4);
  addToColumns(columns, 0, -5, 1, 1);
  addToColumns(columns, 0, 3.5, 99, 1);
  addToColumns(columns, 0, 7, 9, 1);
  addToColumns(columns, 0, 2, 2, 1);
  assert.deepEqual([...columns.share], [1, 0, 0, 0.5]);
});

test('columns are empty after clearing, also at another width', () => {
  const columns = createColumns(1);
  clearColumns(columns, 4);
  addToColumns(columns, 0, 0, 4, 1);
  clearColumns(columns, 4);
  assert.deepEqual([...columns.share], [0, 0, 0, 0]);
  addToColumns(columns, 0, 0, 4, 1);
  clearColumns(columns, 6);
  assert.deepEqual([...columns.share], [0, 0, 0, 0, 0, 0]);
});

const spans = {
  start: new Uint32Array([0, 100, 200, 210, 220, 400]),
  length: new Uint32Array([50, 60, 5, 5, 100, 1000]),
  cause: new Uint8Array([0, 1, 0, 1, 0, 1]),
};

test('wide spans are drawn, narrow ones summed, none lost', () => {
  const columns = createColumns(2);
  clearColumns(columns, 100);
  const large = [];
  splitSpans(columns, spans, 0, 6, 0, 0.1, 1, (i, from, to) => large.push([i, from, to]));
  assert.deepEqual(large.map(([i]) => i), [0, 1, 4, 5]);
  near(large[3][1], 40);
  near(large[3][2], 140);
  near(total(columns, 0), 0.5);
  near(total(columns, 1), 0.5);
});

test('a span that begins before the view is drawn in it', () => {
  const columns = createColumns(2);
  clearColumns(columns, 10);
  const large = [];
  splitSpans(columns, spans, 0, 6, 600, 0.1, 1, (i, from, to) => large.push([i, from, to]));
  assert.deepEqual(large.map(([i]) => i), [5]);
  near(large[0][1], -20);
});

test('a lane draws only its own spans', () => {
  const columns = createColumns(2);
  clearColumns(columns, 100);
  const seen = [];
  splitSpans(columns, spans, 2, 4, 0, 0.25, 1, (i) => seen.push(i));
  assert.deepEqual(seen, [2, 3]);
});

test('bars stack, join and stay inside', () => {
  const columns = createColumns(3);
  clearColumns(columns, 5);
  addToColumns(columns, 0, 0, 4, 0.5);
  addToColumns(columns, 2, 2, 5, 0.25);
  const bars = [];
  stackColumns(columns, 20, (...bar) => bars.push(bar));
  assert.deepEqual(bars, [[0, 0, 4, 0, 0.5], [2, 2, 4, 0.5, 0.75], [2, 4, 5, 0, 0.25]]);
});

test('a column\'s largest cause is visible however small it is, and sums above one are cut', () => {
  const columns = createColumns(2);
  clearColumns(columns, 2);
  addToColumns(columns, 0, 0, 1, 0.0001);
  addToColumns(columns, 1, 0, 1, 0.00005);
  addToColumns(columns, 0, 1, 2, 0.75);
  addToColumns(columns, 1, 1, 2, 0.75);
  const bars = [];
  stackColumns(columns, 8, (...bar) => bars.push(bar));
  assert.deepEqual(bars, [[0, 0, 1, 0, 0.125], [0, 1, 2, 0, 0.75], [1, 1, 2, 0.75, 1]]);
});
