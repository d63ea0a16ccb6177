// SPDX-License-Identifier: MIT
// A page's address holds its view, and every address is safe to open.
import assert from 'node:assert/strict';
import {test} from 'node:test';
import {readState, writeState} from '../../../../analysis/report/src/link.js';

test('a written address is read back', () => {
  const state = {from: 12.3, to: 12.9, causes: ['fork', 'softirq/net_rx'], episode: 3, request: 91053, find: 'GET conn:12 >5ms', theme: 'dark'};
  assert.deepEqual(readState('#' + writeState(state)), state);
  assert.equal(writeState({}), '');
  assert.equal(writeState({causes: [], find: ''}), '');
  assert.equal(writeState({from: -0.5, to: 1}), 't=-0.5000..1.0000');
});

test('a closer view has more digits', () => {
  const {from, to} = readState(writeState({from: 12.000001, to: 12.000003}));
  assert.ok(Math.abs(from - 12.000001) < 1e-9 && Math.abs(to - 12.000003) < 1e-9);
});

test('invalid values are ignored', () => {
  for (const fragment of ['#', '#t=5..4', '#t=a..b', '#episode=-1', '#request=1e99', '#theme=<b>', '#%', '#find=%E0%A4%A', '#=x', '#a'])
    assert.deepEqual(readState(fragment), {}, fragment);
  assert.deepEqual(readState('#find=<script>'), {find: '<script>'});
});
