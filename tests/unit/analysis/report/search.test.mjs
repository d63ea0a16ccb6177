// SPDX-License-Identifier: MIT
// What a search finds, and which requests were ahead of a request.
import assert from 'node:assert/strict';
import {test} from 'node:test';
import {createMarks} from '../../../../analysis/report/src/marks.js';
import {matcher, parseDuration, parseQuery} from '../../../../analysis/report/src/search.js';

// Four requests, 1 ms apart, delayed by a stall until 10 ms. A tick is 1 us.
function made() {
  const run = {
    ops: ['GET', 'SET'], servers: ['127.0.0.1:6379'], behind: [], clients: ['10.0.0.7', '10.0.0.8'], cause_names: ['fork', 'server-busy'], latency_ns: {max: 10e6},
    hop_names: [{name: 'redis-server, main thread', lane: 0}, {name: 'redis-server, io_thd_1', lane: null}],
    seconds: (tick) => tick / 1e6, ticks: (s) => s * 1e6,
    arrays: {
      slow_start: new Uint32Array([0, 1000, 2000, 3000]), slow_since: new Uint32Array([0, 0, 0, 0]),
      slow_latency: new Float32Array([10e6, 9e6, 8e6, 7e6]), slow_cause: new Uint8Array([0, 0, 0, 1]),
      slow_op: new Uint8Array([0, 1, 0, 1]), slow_number: new Uint32Array([10, 11, 12, 13]),
      slow_sent: new Uint32Array([0, 1000, 2500, 3000]), slow_connection: new Uint32Array([0, 1, 0, 0]),
      slow_hop: new Uint16Array([0, 0, 0, 1]), slow_status: new Uint8Array([0, 0, 3, 0]), slow_behind: new Uint8Array(4),
      slow_unread: new Float32Array(0), slow_way: new Float32Array(0), slow_way_back: new Float32Array(0),
      slow_read: new Float32Array([1e6, NaN, 2e6, 3e6]), slow_written: new Float32Array(4).fill(NaN),
      slow_request_bytes: new Uint32Array([30, 31, 32, 33]), slow_answer_bytes: new Uint32Array([5, 6, 7, 8]),
      slow_parts: new Uint8Array([2, 1, 1, 1]), part_cause: new Uint8Array([0, 1, 0, 0, 1]), part_hop: new Uint16Array(5),
      part_direct: new Float32Array([9e6, 1e6, 9e6, 8e6, 7e6]), part_queued: new Float32Array(5),
      connection_number: new Uint32Array([4, 9]), connection_port: new Uint32Array([40004, 40009]),
      connection_server: new Uint32Array([0, 0]), connection_client: new Uint32Array([1, 0]),
    },
  };
  const marks = createMarks(run);
  const found = (query) => [0, 1, 2, 3].filter(matcher(run, marks, query));
  return {run, marks, found};
}

test('durations and terms', () => {
  assert.equal(parseDuration('1.5ms'), 1.5e6);
  assert.equal(parseDuration('5'), null);
  assert.deepEqual(parseQuery(' >5ms conn:12  io ').map(({kind, value}) => [kind, value]),
    [['longer', 5e6], ['connection', '12'], ['any', 'io']]);
  assert.deepEqual(parseQuery('unix:/tmp').map(({kind}) => kind), ['any']);
});

test('all terms must match', () => {
  const {found} = made();
  assert.deepEqual(found('get'), [0, 2]);
  assert.deepEqual(found('GET conn:4 <9ms'), [2]);
  assert.deepEqual(found('conn:40009'), [1]);
  assert.deepEqual(found('thread:io_thd'), [3]);
  assert.deepEqual(found('io_thd'), [3]);
  assert.deepEqual(found('fork'), [0, 1, 2]);
  assert.deepEqual(found('cause:server-busy'), [0, 3]);
  assert.deepEqual(found('#12'), [2]);
  assert.deepEqual(found('status:error'), [2]);
  assert.deepEqual(found('>8ms'), [0, 1, 2]);
  assert.deepEqual(found('nothing'), []);
  assert.deepEqual(found('server:6379 set'), [1, 3]);
});

test('a mark has what the kernel saw of it', () => {
  const {marks} = made();
  const {read, written, requestBytes, answerBytes, connection} = marks.mark(2);
  assert.deepEqual([read, written, requestBytes, answerBytes, connection.client], [2e6, null, 32, 7, '10.0.0.8']);
  assert.equal(marks.mark(1).read, null);
  assert.ok(marks.inKernel);
});

test('a mark has its parts, and the requests ahead of it', () => {
  const {marks} = made();
  const mark = marks.mark(2);
  assert.equal(mark.connection.number, 4);
  assert.equal(mark.status, 'timed out');
  assert.deepEqual(mark.parts.map(({cause, ns}) => [cause, ns]), [[0, 8e6]]);
  assert.deepEqual(marks.mark(0).parts.map(({cause}) => cause), [0, 1]);
  assert.equal(mark.unread, null);
  const front = marks.inFront(2);
  assert.deepEqual([front.same, front.others], [[0], [1]]);
  assert.deepEqual(marks.inFront(3).same, [2, 0]);
  assert.deepEqual(marks.inFront(0).same, []);
  assert.equal(marks.worst(0.0005, 0.01), 1);
  assert.equal(marks.worst(1, 2), -1);
  assert.equal(marks.numbered(13), 3);
  assert.equal(marks.numbered(99), -1);
});
