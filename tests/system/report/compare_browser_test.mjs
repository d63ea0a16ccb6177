// SPDX-License-Identifier: MIT
// The compare page in a headless Chromium: it loads nothing from outside, shows both sides, has the right bounds,
// hostile names stay names, and axe-core finds nothing serious.
//
//   node compare_browser_test.mjs COMPARE_SAMPLE PACKAGES_DIR FORKTAIL BENCH_EXPLAIN_RUN
//
// The last two are for a page of two recordings, made by the command that users type.

import assert from 'node:assert/strict';
import {spawnSync} from 'node:child_process';
import {existsSync, mkdirSync} from 'node:fs';
import {join} from 'node:path';
import {checkSizes, findings, run, shot, startBrowser} from '../../browser/harness.mjs';

const [sampleProgram, packages, forktail, makeRun] = process.argv.slice(2);
const started = await startBrowser(packages);
const {open} = started;
const pairs = started.make(sampleProgram, 'pairs', 8);
const one = started.make(sampleProgram, 'one', 1);

const forktailSays = (...args) => spawnSync(forktail, ['report', ...args], {encoding: 'utf8'});

const tests = {
  async 'the command compares two runs'() {
    const runs = ['first', 'second'].map((name) => join(started.directory, name));
    for (const [i, run] of runs.entries()) {
      mkdirSync(run);
      assert.equal(spawnSync(makeRun, [run, '0.05', String(10000 * (i + 1))]).status, 0);
    }
    const path = join(started.directory, 'command.html');
    const made = forktailSays(...runs, '-o', path);
    assert.equal(made.status, 0, made.stderr);
    const {page, data, closed} = await open(path);
    assert.equal((await data()).failed, undefined);
    assert.match(await page.locator('#header').textContent(), /50,000 requests in 5\.\d+ s.*50,000 requests in 2\.\d+ s/);
    assert.equal(await page.locator('path.curve').count(), 2);
    await closed();
    for (const [status, said, ...args] of [
      [2, /compared as a whole/, ...runs, '--since', '1', '-o', path + '2'],
      [2, /--slow needs a duration/, ...runs, '--slow', 'p99', '-o', path + '2'],
      [3, /nowhere/, runs[0], join(started.directory, 'nowhere'), '-o', path + '2'],
      [3, /cannot write/, ...runs, '-o', join(started.directory, 'no', 'such', 'page.html')],
    ]) {
      const failed = forktailSays(...args);
      assert.equal(failed.status, status, failed.stderr);
      assert.match(failed.stderr, said);
      assert.equal(existsSync(path + '2'), false);
    }
  },

  async 'both sides on one scale, with bounds and verdicts'() {
    const {page, data, closed} = await open(pairs);
    assert.equal((await data()).failed, undefined);
    assert.match(await page.locator('#header').textContent(), /B against A: worse\. p99\.9 is 50 % more/);
    assert.match(await page.locator('#header').textContent(), /fork \+11\.0 ms, because RSS/);
    assert.match(await page.locator('.changes li').first().textContent(),
      /^p99\.9 rose from 20\.0 ms to 30\.0 ms \(\+50 %\)\. That is worse\. By cause: fork \+11\.0 ms, because RSS 1\.1 → 2\.3 GB\.$/);
    assert.equal(await page.locator('#sections h2').first().textContent(), 'Percentiles');
    assert.equal(await page.locator('.matters').count(), 1);
    const row = await page.locator('tr', {hasText: 'p99.9'}).first().textContent();
    for (const wanted of ['20.0 ms', '30.0 ms', '+10.0 ms', '[+6.00 ms, ∞]', 'worse']) assert.ok(row.includes(wanted), `${wanted}: ${row}`);
    assert.equal(await page.locator('path.curve').count(), 2);
    for (const side of [0, 1]) assert.ok((await shot(page, `canvas.map >> nth=${side}`)).size > 20, 'a map is blank');
    const fork = page.locator('.pair[data-cause="fork"]').first();
    const [a, b] = await Promise.all(['.pair-a', '.pair-b'].map(async (bar) => (await fork.locator(bar).boundingBox()).width));
    assert.ok(Math.abs(b / a - 1.8 / 0.8) < 0.05, `${a} and ${b} are not as 0.8 s to 1.8 s`);
    assert.match(await fork.textContent(), /\+1\.00 s.*worse/);
    assert.match(await page.locator('section, .table').filter({hasText: 'Main cause'}).textContent(), /40\.0 ms60\.0 ms/);
    await closed();
  },

  async 'pointing at a curve and a map shows its values'() {
    const {page, closed} = await open(pairs);
    const curves = await page.locator('svg.curves').boundingBox();
    await page.mouse.move(curves.x + curves.width * 0.98, curves.y + curves.height / 2);
    assert.match(await page.locator('.tooltip').textContent(), /longer thanA .*msB .*ms/);
    const map = page.locator('canvas.map').first();
    await map.scrollIntoViewIfNeeded();
    const box = await map.boundingBox();
    let text = '';
    for (let y = 6; y < box.height && !text; y += 3) {
      await page.mouse.move(box.x + box.width / 2, box.y + y);
      if (await page.locator('.tooltip').isVisible()) text = await page.locator('.tooltip').textContent();
    }
    assert.match(text, /requests per run.*A, at \+\d+ s/);
    await closed();
  },

  async 'one pair is shown without a verdict'() {
    const {page, closed} = await open(one);
    assert.match(await page.locator('#header').textContent(), /one pair, no verdict/);
    assert.match(await page.locator('#header').textContent(), /p99\.9 rose from 20\.0 ms to 30\.0 ms \(\+50 %\)\. By cause: fork \+11\.0 ms/);
    assert.equal(await page.locator('td .verdict-worse').count(), 0);
    await closed();
  },

  async 'hostile names are names'() {
    const {page, closed} = await open(pairs);
    assert.equal(await page.evaluate(() => document.querySelectorAll('img').length), 0);
    assert.equal(await page.evaluate(() => document.querySelectorAll('script').length), 3);
    assert.ok((await page.locator('#header').textContent()).includes('runs/</script><script>alert(1)</script>'));
    assert.ok((await page.locator('#sections').textContent()).includes('<img src=x onerror=alert(2)>'));
    await closed();
  },

  async 'legible in the dark, narrow, on paper, and for screen readers'() {
    const {page, closed} = await open(pairs);
    await checkSizes(started, page, 'compare', async (width) => {
      const {y, height} = await page.getByRole('region', {name: 'Percentile'}).boundingBox();
      assert.ok(y + height < 1280, `the percentiles end at ${y + height} in ${width} pixels`);
    });
    await page.emulateMedia({colorScheme: 'dark'});
    assert.deepEqual(await findings(page, started.axe), [], 'dark');
    await page.emulateMedia({colorScheme: 'light'});
    const before = await page.evaluate(() => getComputedStyle(document.body).backgroundColor);
    await page.keyboard.press('d');
    assert.notEqual(await page.evaluate(() => getComputedStyle(document.body).backgroundColor), before);
    assert.ok((await page.pdf({format: 'A4', printBackground: true})).length > 20000);
    await closed();
  },
};

await run(started, tests);
