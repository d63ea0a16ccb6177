// SPDX-License-Identifier: MIT
// Every cause of the analysis has its own colour and mark, legible in both colour schemes.
import assert from 'node:assert/strict';
import {readFileSync} from 'node:fs';
import {test} from 'node:test';
import {inkOn, lookOfCauses} from '../../../../analysis/report/src/causes.js';
import {pathOf, shapes} from '../../../../analysis/report/src/shapes.js';

// The rows of the analysis' table, as in the page's data.
const source = readFileSync(new URL('../../../../analysis/timeline/include/analysis/causes.def', import.meta.url), 'utf8');
const text = '"((?:[^"\\\\]|\\\\.)*)"';
const row = new RegExp(`^CAUSE\\(\\w+, ${text}, [^,]+, (\\w+), \\w+,\\s+\\w+, ${text},\\s+${text}, ${text}, ${text}`, 'gm');
const table = new Map([...source.matchAll(row)].map(([, name, family, , light, dark, meaning]) =>
  [name, [family.toLowerCase(), light, dark, meaning]]));
const names = [...table.keys()];
const looksOf = (wanted, dark) => lookOfCauses(wanted, wanted.map((name) => table.get(name)), dark);

function luminance(colour) {
  const [r, g, b] = [1, 3, 5].map((i) => {
    const v = parseInt(colour.slice(i, i + 2), 16) / 255;
    return v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4;
  });
  return 0.2126 * r + 0.7152 * g + 0.0722 * b;
}

function contrast(a, b) {
  const [low, high] = [luminance(a), luminance(b)].sort((x, y) => x - y);
  return (high + 0.05) / (low + 0.05);
}

test('the analysis defines its causes where this test reads them', () => {
  assert.ok(names.includes('fork') && names.includes('idle') && names.length > 30);
  assert.equal(names.length, source.match(/^CAUSE\(/gm).length);
});

test('each cause has a meaning, a mark and a unique colour', () => {
  for (const dark of [false, true]) {
    const looks = looksOf(names, dark);
    for (const look of looks) assert.notEqual(look.meaning, '', `${look.name} has no meaning`);
    for (const look of looks) assert.ok(shapes[look.family], `${look.name} has no mark`);
    assert.equal(new Set(looks.map((look) => look.colour)).size, looks.length);
  }
});

test('families have different marks, and causes that a reader must not mix up are of different families', () => {
  assert.equal(new Set(Object.values(shapes).map(pathOf)).size, Object.keys(shapes).length);
  const look = (name) => looksOf([name], false)[0].family;
  assert.equal(new Set(['unknown', 'client-late', 'network', 'server-busy', 'run-queue'].map(look)).size, 5);
  assert.equal(pathOf([[0, -1, 2.5, 3]]), 'M0 -1L2.5 3Z');
});

test('the causes that matter most stand out from the page', () => {
  const main = ['fork', 'cow-copy', 'fsync', 'file-write', 'run-queue', 'softirq/net_rx', 'reclaim', 'page-in', 'server-busy', 'network'];
  for (const [dark, page] of [[false, '#ffffff'], [true, '#171c23']])
    for (const look of looksOf(main, dark))
      assert.ok(contrast(look.colour, page) >= 2.9, `${look.name}: ${contrast(look.colour, page).toFixed(2)}`);
});

test('text on a cause is legible', () => {
  for (const dark of [false, true])
    for (const look of looksOf(names, dark)) assert.ok(contrast(look.colour, look.ink) >= 4.5, look.name);
  assert.equal(inkOn('#ffffff'), '#000000');
});

test('an unknown name from a newer analysis has a colour and mark too', () => {
  assert.match(lookOfCauses(['made-up'], [], false)[0].colour, /^#/);
});
