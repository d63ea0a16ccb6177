// SPDX-License-Identifier: MIT
// The report page in a headless Chromium, as users open it: from a file, without network.
//
//   node report_browser_test.mjs REPORT_SAMPLE PACKAGES_DIR
//
// Checks that the page loads nothing from outside, prints nothing on the console, draws its data, zooms, filters, and
// that a hostile name stays a name. Times are printed but not checked. Exit status 77: Chromium is not installed.

import assert from 'node:assert/strict';
import {readFileSync, statSync, writeFileSync} from 'node:fs';
import {join} from 'node:path';
import {hex, run, settled, shot, startBrowser} from '../../browser/harness.mjs';

const [sampleProgram, packages] = process.argv.slice(2);
const started = await startBrowser(packages);
const {directory, open} = started;
const makeReport = (name, ...size) => started.make(sampleProgram, name, ...size);

const tests = {
  async 'draws points, lanes and episodes, and loads nothing'() {
    const {page, data, closed} = await open(makeReport('plain'));
    const counts = await data();
    assert.equal(counts.failed, undefined);
    assert.ok(Number(counts.points) > 1000, `points ${counts.points}`);
    assert.ok(Number(counts.spans) > 5000, `spans ${counts.spans}`);
    assert.ok(Number(counts.lanes) >= 6, `lanes ${counts.lanes}`);
    assert.equal(await page.locator('.episode-list > li').count(), Number(counts.episodes));
    assert.equal(await page.locator('.episodes .more').isVisible(), false);
    const fork = hex(await page.evaluate(() => forktail.looks()[forktail.run.cause_names.indexOf('fork')].colour));
    const latency = await shot(page, '#latency'), lanes = await shot(page, '#lanes');
    assert.ok(latency.size > 20, 'the latency chart is blank');
    assert.ok(latency.get(fork) > 50, 'no slow request is drawn in its cause\'s colour');
    assert.ok(lanes.size > 10, 'the lanes are blank');
    await closed();
  },

  async 'shows five of many episodes until asked for all'() {
    const {page, closed} = await open(makeReport('many', 10, 5000, 1000, 1000, 'many'));
    const shown = page.locator('.episode-list > li'), more = page.locator('.episodes .more');
    assert.equal(await shown.count(), 5);
    assert.equal(await more.textContent(), 'show all 15');
    await more.click();
    assert.equal(await shown.count(), 15);
    await more.click();
    assert.equal(await shown.count(), 5);
    for (let i = 0; i < 6; i++) await page.keyboard.press('n'); // the sixth one is not among them
    assert.equal(await page.locator('.episode-list > li.selected .badge').textContent(), '6');
    await closed();
  },

  async 'zooms by drag, wheel, keys and episode, all charts together'() {
    const {page, view, closed} = await open(makeReport('zoom'));
    const whole = await view();
    const over = page.locator('#latency .u-over');
    const box = await over.boundingBox();
    const drag = async (from, to) => {
      await page.mouse.move(box.x + from * box.width, box.y + 150);
      await page.mouse.down();
      await page.mouse.move(box.x + (from + to) / 2 * box.width, box.y + 150);
      await page.mouse.move(box.x + to * box.width, box.y + 150);
      await page.mouse.up();
    };
    await settled(page, () => drag(0.25, 0.5));
    const dragged = await view();
    assert.ok(Math.abs(dragged.min - 15) < 0.2 && Math.abs(dragged.max - 30) < 0.2, JSON.stringify(dragged));

    await page.keyboard.down('Shift');
    await settled(page, () => drag(0.5, 0.25));
    await page.keyboard.up('Shift');
    const moved = await view();
    assert.ok(Math.abs(moved.min - dragged.min - 3.75) < 0.2, JSON.stringify(moved));
    assert.ok(Math.abs(moved.max - moved.min - (dragged.max - dragged.min)) < 1e-6);

    // The wheel scrolls the page. With ctrl, or after a click, it zooms.
    await page.mouse.wheel(0, 120);
    await page.waitForFunction(() => scrollY > 0);
    assert.deepEqual(await view(), moved);
    await page.mouse.wheel(0, -120);
    await page.waitForFunction(() => scrollY === 0);
    await page.mouse.click(box.x + 20, box.y + 200);
    await settled(page, () => page.mouse.wheel(0, 200));
    assert.ok((await view()).max - (await view()).min > 1.2 * (moved.max - moved.min));
    await page.mouse.move(box.x + 20, box.y - 40);
    await page.mouse.move(box.x + 0.3 * box.width, box.y + 150);
    await settled(page, () => page.evaluate(({min, max}) => forktail.view.set(min, max), moved));
    await page.keyboard.down('Control');
    await settled(page, () => page.mouse.wheel(0, -200));
    await page.keyboard.up('Control');
    const wheeled = await view();
    assert.ok(wheeled.max - wheeled.min < 0.8 * (moved.max - moved.min), JSON.stringify(wheeled));

    await settled(page, () => page.keyboard.press('-'));
    await settled(page, () => page.keyboard.press('ArrowLeft'));
    const keyed = await view();
    assert.ok(keyed.min < wheeled.min);
    await settled(page, () => page.keyboard.press('0'));
    assert.deepEqual(await view(), whole);

    await settled(page, () => page.locator('.episode').first().click());
    const {first, axes} = await page.evaluate(() => ({first: forktail.run.episodes[0],
      axes: forktail.charts.ranges()}));
    const chosen = await view();
    assert.ok(chosen.min < first.start_s && chosen.max > first.end_s && chosen.max - chosen.min < 0.5);
    assert.ok(axes.length > 2);
    for (const axis of axes) assert.deepEqual(axis, chosen);
    const fork = hex(await page.evaluate(() => forktail.looks()[forktail.run.cause_names.indexOf('fork')].colour));
    const lanes = await shot(page, '#lanes');
    assert.ok(lanes.get(fork) > 2000, 'the fork is no block of its colour on the server\'s lane');

    await settled(page, () => over.dblclick({position: {x: 20, y: 200}}));
    assert.deepEqual(await view(), whole);
    await closed();
  },

  async 'shows one cause, and the values under the pointer'() {
    const {page, closed} = await open(makeReport('filter'));
    const colour = (name) => page.evaluate((n) => forktail.looks()[forktail.run.cause_names.indexOf(n)].colour, name);
    const fork = hex(await colour('fork')), write = hex(await colour('file-write'));
    assert.ok((await shot(page, '#latency')).get(write) > 20);
    await page.locator('.cause-name[data-name="fork"]').click();
    let latency = await shot(page, '#latency .u-wrap');
    assert.equal(latency.get(write), undefined);
    assert.ok(latency.get(fork) > 20);
    assert.equal(await page.locator('.cause-name[data-name="fork"]').getAttribute('aria-pressed'), 'true');
    assert.ok(await page.locator('.episode-list > li').count() < await page.evaluate(() => forktail.run.episodes.length));
    await page.keyboard.press('Escape');
    latency = await shot(page, '#latency .u-wrap');
    assert.ok(latency.get(write) > 20);

    await settled(page, () => page.locator('.episode').first().click());
    const lanes = await page.locator('#lanes .u-over').boundingBox();
    await page.mouse.move(lanes.x + lanes.width / 2, lanes.y + 40);
    const text = await page.locator('.tooltip').textContent();
    assert.match(text, /fork 58\.9 ms/);
    assert.match(text, /redis-server/);
    await closed();
  },

  async 'hostile names are harmless and legible'() {
    const {page, closed} = await open(makeReport('hostile'));
    assert.ok((await page.locator('.evidence').first().textContent()).includes('</script><script>alert(2)</script>'));
    assert.equal(await page.evaluate(() => document.querySelectorAll('script').length), 4);
    const details = await page.evaluate(() => forktail.run.details.join('\n'));
    assert.ok(details.includes('</script><script>alert(1)</script><!-- \ufffd &amp;'), details.slice(0, 200));
    await page.evaluate(() => {
      const script = document.createElement('script');
      script.textContent = 'document.body.dataset.injected = 1';
      globalThis.policy = 0;
      document.addEventListener('securitypolicyviolation', () => globalThis.policy++);
      document.body.append(script);
    });
    assert.equal(await page.evaluate(() => document.body.dataset.injected), undefined, 'the policy lets any script run');
    await assert.rejects(closed(), /Content Security Policy/);
  },

  async 'shows a run without requests, and one without a recorder'() {
    for (const mode of ['iterations', 'no-recorder']) {
      const {page, data, closed} = await open(makeReport(mode, 10, 5000, 1000, 1000, mode));
      const counts = await data();
      assert.equal(counts.failed, undefined);
      assert.equal(Number(counts.lanes) > 0, mode === 'iterations');
      assert.ok((await shot(page, '#latency')).size > 5);
      await closed();
    }
  },

  async 'is legible in the dark, narrow, and on paper'() {
    const path = makeReport('looks', 10, 5000, 1000, 1000);
    for (const options of [{colorScheme: 'dark'}, {viewport: {width: 600, height: 900}}]) {
      const {page, closed} = await open(path, options);
      assert.ok((await shot(page, '#latency')).size > 15);
      const wide = await page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
      assert.ok(wide <= 0, `the page is ${wide} pixels wider than its window`);
      await closed();
    }
    const {page, closed} = await open(path);
    const pdf = await page.pdf({format: 'A4', printBackground: true});
    assert.ok(pdf.length > 20000);
    await closed();
  },

  async 'a cut file is reported'() {
    const whole = readFileSync(makeReport('whole', 10, 5000, 1000, 1000), 'latin1');
    const cut = join(directory, 'cut.html');
    writeFileSync(cut, whole.replace(/(id="arrays">.{1000})[^<]*/, '$1'), 'latin1');
    const {page, data} = await open(cut);
    assert.equal((await data()).failed, '1');
    assert.match(await page.locator('.failed').textContent(), /cannot be shown: .*cut/);
  },

  async 'handles 100,000 spans and 50,000 points'() {
    const path = makeReport('large', 60, 20000, 66000, 23);
    const {page, data, closed} = await open(path);
    const counts = await data();
    assert.ok(Number(counts.spans) > 95000, `spans ${counts.spans}`);
    assert.ok(Number(counts.points) > 48000, `points ${counts.points}`);
    const times = [];
    for (const range of [[10, 40], [12, 14], [12.0, 12.1], [12.01, 12.011], [0, 60]]) {
      await settled(page, () => page.evaluate(([from, to]) => forktail.view.set(from, to), range));
      times.push((await data()).drawMs);
    }
    console.log(`  ${(statSync(path).size / 1e6).toFixed(1)} MB, ${counts.spans} spans, ${counts.points} points, ` +
      `ready in ${counts.readyMs} ms, zooms in ${times.join(', ')} ms`);
    await closed();
  },
};

await run(started, tests);
