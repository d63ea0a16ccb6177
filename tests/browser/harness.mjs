// SPDX-License-Identifier: MIT
// Shared by tests of forktail's pages in a headless Chromium: the browser, a page whose messages and requests are
// recorded, and colours of what it draws.

import assert from 'node:assert/strict';
import {spawnSync} from 'node:child_process';
import {existsSync, mkdtempSync, readFileSync, rmSync} from 'node:fs';
import {createRequire} from 'node:module';
import {tmpdir} from 'node:os';
import {join} from 'node:path';
import {pathToFileURL} from 'node:url';
import {inflateSync} from 'node:zlib';

// From the packages of tests/browser/package.json, installed in `packages`. Exits with 77 without packages or Chromium.
export async function startBrowser(packages) {
  const browserPath = process.env.CHROMIUM ?? ['/usr/bin/chromium', '/usr/bin/chromium-browser', '/usr/bin/google-chrome']
    .find(existsSync);
  if (!browserPath) {
    console.log('SKIPPED: Chromium is not installed (script/browser), and $CHROMIUM does not name one');
    process.exit(77);
  }
  if (!existsSync(join(packages, 'installed'))) {
    console.log('SKIPPED: npm could not install what tests/browser/package.json lists');
    process.exit(77);
  }
  const require = createRequire(join(packages, 'package.json'));
  const {chromium} = require('playwright-core');
  const browser = await chromium.launch({
    executablePath: browserPath,
    args: ['--no-sandbox', '--disable-gpu', '--disable-background-networking', '--no-first-run', '--disable-sync',
      '--disable-component-update'],
  });
  const directory = mkdtempSync(join(tmpdir(), 'forktail-report-'));
  return {
    browser,
    directory,
    axe: require.resolve('axe-core'),
    pictures: join(packages, 'pictures'),
    // A page made by a program, whose first argument is the output path.
    make(program, name, ...args) {
      const path = join(directory, `${name}.html`);
      const made = spawnSync(program, [path, ...args.map(String)], {encoding: 'utf8'});
      if (made.status === 77) {
        console.log(`SKIPPED: ${made.stderr}`);
        process.exit(77);
      }
      assert.equal(made.status, 0, made.stderr);
      return path;
    },
    open: (path, options) => open(browser, path, options),
    async stop() {
      await browser.close();
      rmSync(directory, {recursive: true});
    },
  };
}

// Opens a page. `closed()` fails if the page printed a message or requested anything outside itself.
async function open(browser, path, {fragment = '', ready = 'body[data-ready], body[data-failed]', ...options} = {}) {
  const context = await browser.newContext({viewport: {width: 1400, height: 1000}, ...options});
  const page = await context.newPage();
  const heard = [];
  const url = pathToFileURL(path).href;
  page.on('console', (message) => heard.push(`console ${message.type()}: ${message.text()}`));
  page.on('pageerror', (error) => heard.push(`error: ${error.message}`));
  page.on('dialog', (dialog) => {
    heard.push(`dialog: ${dialog.message()}`);
    dialog.dismiss();
  });
  page.on('request', (request) => {
    if (request.url().replace(/#.*/, '') !== url) heard.push(`request: ${request.url()}`);
  });
  await page.goto(url + fragment);
  if (ready) await page.waitForSelector(ready, {state: 'attached', timeout: 60000});
  return {
    page,
    data: () => page.evaluate(() => ({...document.body.dataset})),
    view: () => page.evaluate(() => ({min: forktail.view.min, max: forktail.view.max})),
    async closed() {
      assert.deepEqual(heard, []);
      await context.close();
    },
  };
}

// Waits until the charts have followed a change of view.
export async function settled(page, act) {
  const before = await page.evaluate(() => Number(document.body.dataset.draws ?? 0));
  await act();
  await page.waitForFunction((n) => Number(document.body.dataset.draws ?? 0) > n, before, {timeout: 30000});
  await page.evaluate(() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done))));
}

// The colours of a PNG as playwright writes it: 8 bits per channel, not interlaced.
export function coloursOf(png) {
  const parts = [];
  let width = 0, channels = 0;
  for (let at = 8; at < png.length;) {
    const length = png.readUInt32BE(at), kind = png.toString('latin1', at + 4, at + 8), data = png.subarray(at + 8, at + 8 + length);
    if (kind === 'IHDR') {
      width = data.readUInt32BE(0);
      assert.deepEqual([data[8], data[12]], [8, 0]);
      channels = {2: 3, 6: 4}[data[9]];
    }
    if (kind === 'IDAT') parts.push(data);
    at += 12 + length;
  }
  const raw = inflateSync(Buffer.concat(parts));
  const stride = width * channels;
  const previous = Buffer.alloc(stride), line = Buffer.alloc(stride), colours = new Map();
  for (let at = 0; at < raw.length; at += stride + 1) {
    const filter = raw[at];
    for (let i = 0; i < stride; i++) {
      const a = i >= channels ? line[i - channels] : 0, b = previous[i], c = i >= channels ? previous[i - channels] : 0;
      const p = a + b - c, pa = Math.abs(p - a), pb = Math.abs(p - b), pc = Math.abs(p - c);
      const paeth = pa <= pb && pa <= pc ? a : pb <= pc ? b : c;
      line[i] = raw[at + 1 + i] + [0, a, b, (a + b) >> 1, paeth][filter];
    }
    for (let i = 0; i < stride; i += channels) {
      const colour = line[i] << 16 | line[i + 1] << 8 | line[i + 2];
      colours.set(colour, (colours.get(colour) ?? 0) + 1);
    }
    line.copy(previous);
  }
  return colours;
}

export const hex = (colour) => parseInt(colour.slice(1), 16);
export const shot = async (page, selector) => coloursOf(await page.locator(selector).screenshot());

// Problems of at least serious impact found by axe-core. It is injected through the debugger, to which the page's
// policy does not apply.
export async function findings(page, axe) {
  await page.evaluate(readFileSync(axe, 'utf8'));
  const {violations} = await page.evaluate(() => globalThis.axe.run(document, {resultTypes: ['violations']}));
  return violations.filter(({impact}) => impact === 'serious' || impact === 'critical')
    .map(({id, help, nodes}) => `${id}: ${help}: ${nodes.slice(0, 4).map(({html, failureSummary}) => `${html.slice(0, 160)} ${failureSummary}`).join(' | ')}`);
}

// Texts that are drawn over each other, as pairs. What a box cuts off is not drawn.
export const overlaps = (page) => page.evaluate(() => {
  const drawn = [];
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  for (let node = walker.nextNode(); node; node = walker.nextNode()) {
    const parent = node.parentElement;
    if (!node.data.trim() || !parent.checkVisibility() || parent.closest('dialog, select, script, style')) continue;
    const range = document.createRange();
    range.selectNodeContents(node);
    for (const {left, right, top, bottom} of range.getClientRects()) {
      const box = {left, right, top, bottom, node, text: node.data.trim()};
      for (let at = parent; at; at = at.parentElement) {
        if (getComputedStyle(at).overflow === 'visible') continue;
        const cut = at.getBoundingClientRect();
        box.left = Math.max(box.left, cut.left);
        box.right = Math.min(box.right, cut.right);
        box.top = Math.max(box.top, cut.top);
        box.bottom = Math.min(box.bottom, cut.bottom);
      }
      if (box.right > box.left && box.bottom > box.top) drawn.push(box);
    }
  }
  const found = [];
  for (const [i, a] of drawn.entries())
    for (const b of drawn.slice(i + 1))
      if (a.node !== b.node && Math.min(a.right, b.right) - Math.max(a.left, b.left) > 3 &&
          Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top) > 3)
        found.push(`"${a.text}" and "${b.text}"`);
  return found;
});

// One page at the sizes of phones, a tablet, a laptop and a large screen: no sideways scrolling, nothing overlapping, axe-core
// finds nothing serious, and what `check(width)` tests. Leaves a picture of each size beside the packages.
export async function checkSizes(started, page, name, check) {
  for (const [width, height] of [[320, 700], [390, 844], [768, 1024], [1280, 900], [1920, 1080]]) {
    await page.setViewportSize({width, height});
    await page.evaluate(() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done))));
    const wider = await page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
    assert.ok(wider <= 0, `the page is ${wider} pixels wider than its window of ${width}`);
    assert.deepEqual(await overlaps(page), [], `${width} pixels`);
    assert.deepEqual(await findings(page, started.axe), [], `${width} pixels`);
    await check(width);
    await page.screenshot({path: join(started.pictures, `${name}-${width}.png`)});
  }
}

// Runs tests by name, stops the browser, and exits.
export async function run(started, tests) {
  let failed = 0;
  for (const [name, test] of Object.entries(tests)) {
    try {
      await test();
      console.log(`ok ${name}`);
    } catch (error) {
      failed++;
      console.log(`FAILED ${name}\n${error.stack}`);
    }
  }
  await started.stop();
  process.exit(failed ? 1 : 0);
}
