// SPDX-License-Identifier: MIT
// A flame graph is as wide as its samples: only a frame's own time is missing above it.
import assert from 'node:assert/strict';
import {test} from 'node:test';
import {buildFlame, layOutFlame, samplesIn} from '../../../../analysis/report/src/flame.js';

const run = {
  functions: ['other', 'main', 'get', 'set', 'copy'],
  arrays: {
    sample_end: new Uint32Array([10, 20, 30, 40, 50]), sample_length: new Uint32Array([10, 10, 10, 10, 10]),
    sample_stack: new Uint16Array([1, 1, 2, 3, 2]), stack_first: new Uint32Array([0, 1, 3, 6, 8]),
    stack_kernel: new Uint8Array([0, 0, 1, 0]), stack_frame: new Uint16Array([0, 1, 2, 1, 2, 4, 1, 3]),
  },
};

test('frames add up', () => {
  const root = buildFlame(run, [[0, 5]]);
  assert.equal(root.samples, 5);
  assert.equal(root.weight, 50);
  const [main] = root.children.values();
  assert.deepEqual([main.name, main.weight], ['main', 50]);
  const [get, set] = main.children.values();
  assert.deepEqual([get.name, get.weight, set.name, set.weight], ['get', 40, 'set', 10]);
  const [copy] = get.children.values();
  assert.deepEqual([copy.name, copy.weight, copy.kernel], ['copy', 20, true]);
});

test('a frame is above its caller', () => {
  const boxes = layOutFlame(buildFlame(run, [[0, 5]]));
  assert.deepEqual(boxes.map(({node, depth, from, to}) => [node.name, depth, +from.toFixed(3), +to.toFixed(3)]),
    [['all', 0, 0, 1], ['main', 1, 0, 1], ['get', 2, 0, 0.8], ['copy', 3, 0, 0.4], ['set', 2, 0.8, 1]]);
  assert.deepEqual(layOutFlame(buildFlame(run, [[2, 2]])), []);
});

test('samples of a range', () => {
  assert.deepEqual(samplesIn(run, {samples: [0, 5]}, 20, 41), [1, 4]);
  assert.deepEqual(samplesIn(run, {samples: [2, 2]}, 0, 100), [2, 4]);
});
