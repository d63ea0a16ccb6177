// SPDX-License-Identifier: MIT
// Decoding a page's data: the values are those that C++ wrote, and damaged data is an error.
import assert from 'node:assert/strict';
import {test} from 'node:test';
import {decodeArrays, decodeRun, lowerBound} from '../../../../analysis/report/src/data.js';

function base64(...arrays) {
  const bytes = Buffer.concat(arrays.map((a) => {
    const raw = Buffer.from(a.buffer, a.byteOffset, a.byteLength);
    return Buffer.concat([raw, Buffer.alloc((4 - raw.length % 4) % 4)]);
  }));
  return bytes.toString('base64');
}

test('arrays of each type are decoded', () => {
  const text = base64(new Uint8Array([1, 2, 255]), new Uint16Array([65535, 7]), new Uint32Array([4294967295]),
    new Float32Array([1.5, -2]));
  const decoded = decodeArrays({a: ['u8', 0, 3], b: ['u16', 4, 2], c: ['u32', 8, 1], d: ['f32', 12, 2]}, text);
  assert.deepEqual([...decoded.a], [1, 2, 255]);
  assert.deepEqual([...decoded.b], [65535, 7]);
  assert.deepEqual([...decoded.c], [4294967295]);
  assert.deepEqual([...decoded.d], [1.5, -2]);
});

test('an old browser decodes the same', () => {
  const own = Uint8Array.fromBase64;
  Uint8Array.fromBase64 = undefined;
  try {
    assert.deepEqual([...decodeArrays({a: ['u8', 0, 4]}, base64(new Uint8Array([0, 128, 254, 3]))).a], [0, 128, 254, 3]);
  } finally {
    if (own) Uint8Array.fromBase64 = own;
    else delete Uint8Array.fromBase64;
  }
});

test('an array beyond the data is an error', () => {
  assert.throws(() => decodeArrays({a: ['u32', 0, 2]}, base64(new Uint32Array([1]))), /array a ends beyond/);
  assert.throws(() => decodeArrays({a: ['u64', 0, 1]}, base64(new Uint32Array([1]))), /unknown type u64/);
});

test('ticks and seconds are inverse', () => {
  const run = decodeRun(JSON.stringify({format: 1, begin_s: -1.5, tick_ns: 14, arrays: {}, episodes: []}), '');
  assert.equal(run.seconds(0), -1.5);
  assert.ok(Math.abs(run.ticks(run.seconds(123456789)) - 123456789) < 1e-3);
});

test('episodes are numbered by the time they cost', () => {
  const run = decodeRun(JSON.stringify({format: 1, begin_s: 0, tick_ns: 1, arrays: {},
    episodes: [{time_ns: 5}, {time_ns: 9}, {time_ns: 5}]}), '');
  assert.deepEqual(run.ranking, [1, 0, 2]);
  assert.deepEqual(run.episodes.map((e) => e.number), [2, 1, 3]);
});

test('another format is refused', () => {
  assert.throws(() => decodeRun('{"format": 2, "arrays": {}}', ''), /format 2/);
});

test('lowerBound finds the first value not below', () => {
  const values = new Uint32Array([1, 3, 3, 8]);
  assert.equal(lowerBound(values, 0), 0);
  assert.equal(lowerBound(values, 3), 1);
  assert.equal(lowerBound(values, 4), 3);
  assert.equal(lowerBound(values, 9), 4);
  assert.equal(lowerBound(values, 0, 2, 3), 2);
});
