// SPDX-License-Identifier: MIT
// Measures how long report pages take to open and to zoom in a headless Chromium, by the size of the run:
//
//   bench/report [--write] [--force] [--opens N] BUILD_DIR
//
// It needs BUILD_DIR/tests/report_sample (the target of that name), Chromium, and the packages of
// tests/browser/package.json in BUILD_DIR/tests/browser-packages (`ctest -R browser_packages`). It opens a page N times
// (5), each time in a new window, and zooms through the same ranges. The opening time is from the start of navigation
// until charts are drawn. The zoom time is from the change of the view until its drawing can be visible, at the second
// frame after it.
//
// --write puts the table between the markers of docs/reference/report.md. Figures for the page need an idle machine: a
// load average of 0.5 or more is refused. --force writes anyway and notes it in the page.

import {execFileSync} from 'node:child_process';
import {readFileSync, statSync, writeFileSync} from 'node:fs';
import {cpus, loadavg, release} from 'node:os';
import {dirname, join, resolve} from 'node:path';
import {fileURLToPath} from 'node:url';
import {parseArgs} from 'node:util';
import {startBrowser} from '../tests/browser/harness.mjs';

const LOAD_LIMIT = 0.5, BUSY = 75;
const BEGIN = '<!-- bench/report begin -->', END = '<!-- bench/report end -->';
const here = dirname(fileURLToPath(import.meta.url));
const document = join(here, '..', 'docs', 'reference', 'report.md');

// The arguments of report_sample: seconds, requests per second, spans of the serving thread, one of how many requests
// is slow.
const sizes = [
  ['1,000,000 requests, 100,000 spans', 60, 16667, 100000, 100],
  ['10,000,000 requests, 1,000,000 spans', 600, 16667, 1000000, 100],
];

const {values: options, positionals} = parseArgs({allowPositionals: true, options: {
  write: {type: 'boolean'}, force: {type: 'boolean'}, opens: {type: 'string', default: '5'},
}});
const opens = Number(options.opens);
if (positionals.length !== 1 || !(opens >= 1)) {
  console.error('usage: bench/report [--write] [--force] [--opens N] BUILD_DIR');
  process.exit(2);
}
const load = loadavg()[0];
if (options.write && !options.force && load >= LOAD_LIMIT) {
  console.error(`the machine is busy: its load average is ${load.toFixed(2)} and must be below ${LOAD_LIMIT}. ` +
    'Wait, or write the figures anyway with --force');
  process.exit(BUSY);
}

const build = resolve(positionals[0]);
const started = await startBrowser(join(build, 'tests', 'browser-packages'));

// From the whole run to the range of an episode, and back.
function zoomRanges(begin, end) {
  const middle = begin + (end - begin) * 0.2, length = end - begin;
  return [0.5, 0.1, 0.01, 1e-3, 1e-4, 1e-5, 1e-3, 0.1, 1].map((share) =>
    share === 1 ? [begin, end] : [Math.max(begin, middle - share * length / 2), middle + share * length / 2]);
}

async function zoom(page, range) {
  return page.evaluate(([from, to]) => new Promise((done) => {
    const before = performance.now();
    forktail.view.set(from, to);
    requestAnimationFrame(() => requestAnimationFrame(() => done(performance.now() - before)));
  }), range);
}

async function measure([name, ...size]) {
  const path = started.make(join(build, 'tests', 'report_sample'), 'bench', ...size);
  const ready = [], zooms = [];
  let drawn;
  for (let n = 0; n < opens; n++) {
    const {page, data, closed} = await started.open(path);
    drawn = await data();
    ready.push(Number(drawn.readyMs));
    const {begin, end} = await page.evaluate(() => ({begin: forktail.view.begin, end: forktail.view.end}));
    for (const range of zoomRanges(begin, end)) zooms.push(await zoom(page, range));
    await closed();
  }
  return {name, bytes: statSync(path).size, drawn, ready, zooms};
}

const median = (numbers) => [...numbers].sort((a, b) => a - b)[Math.floor(numbers.length / 2)];
const most = (numbers) => Math.max(...numbers);
const whole = (number) => Math.round(Number(number)).toLocaleString('en-US');

const rows = [];
for (const size of sizes) {
  const {name, bytes, drawn, ready, zooms} = await measure(size);
  rows.push(`| ${name} | ${(bytes / 1e6).toFixed(1)} | ${whole(drawn.points)} | ${whole(drawn.spans)} | ${whole(median(ready))} (${whole(most(ready))}) | ` +
    `${whole(median(zooms))} (${whole(most(zooms))}) |`);
}
const version = started.browser.version();
await started.stop();

const commit = execFileSync('git', ['-C', here, 'rev-parse', '--short', 'HEAD'], {encoding: 'utf8'}).trim();
const text = [
  `${options.force && load >= LOAD_LIMIT ? '**Measured with `--force`, on a busy machine.** ' : ''}` +
  `\`bench/report\`, ${new Date().toISOString().slice(0, 10)}, commit ${commit}, Chromium ${version} without a GPU, Linux ${release()}, ` +
  `${cpus().length} x ${cpus()[0].model.trim()}, load ${load.toFixed(2)} at the start. Median (and most) of ${opens} openings and ` +
  `${opens * 9} zooms.`, '',
  '| run | page, MB | marks | spans drawn | opens, ms | zooms, ms |', '|---|---|---|---|---|---|', ...rows].join('\n');
console.log(text);
if (options.write) {
  const page = readFileSync(document, 'utf8');
  const from = page.indexOf(BEGIN), to = page.indexOf(END);
  if (from < 0 || to < from) throw new Error(`${document} has no markers for the table`);
  writeFileSync(document, `${page.slice(0, from + BEGIN.length)}\n${text}\n${page.slice(to)}`);
}
