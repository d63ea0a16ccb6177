// SPDX-License-Identifier: MIT
// Uses of the report page beyond its charts: search, one request step by step, the server's activities, a shared
// address, help, colours. Names from a recording are hostile here, too.
//
//   node report_reading_test.mjs REPORT_SAMPLE PACKAGES_DIR

import assert from 'node:assert/strict';
import {hex, run, settled, shot, startBrowser} from '../../browser/harness.mjs';

const [sampleProgram, packages] = process.argv.slice(2);
const started = await startBrowser(packages);
const {open} = started;
const report = started.make(sampleProgram, 'reading', 20, 5000, 3000, 1000);
const iterations = started.make(sampleProgram, 'iterations', 10, 5000, 1000, 1000, 'iterations');
const kernel = started.make(sampleProgram, 'kernel', 10, 5000, 1000, 1000, 'kernel');
const noRecorder = started.make(sampleProgram, 'no-recorder', 10, 5000, 1000, 1000, 'no-recorder');

const fragmentOf = (page) => page.evaluate(() => location.hash);
const panel = (page) => page.locator('#request');

const tests = {
  async 'a click on a request shows it step by step'() {
    const {page, closed} = await open(report);
    const worst = await page.evaluate(() => {
      const i = forktail.marks.worst(forktail.run.begin_s, forktail.run.end_s);
      return forktail.marks.mark(i);
    });
    // Zoomed in, so that the mark is alone under the pointer.
    await settled(page, () => page.evaluate(({start, end}) => forktail.view.set(start - 1e-4, end + 1e-4), worst));
    const over = await page.locator('#latency .u-over').boundingBox();
    const share = 1e-4 / (worst.end - worst.start + 2e-4);
    const range = await page.evaluate(() => {
      const canvas = document.querySelector('#latency .u-over').getBoundingClientRect();
      return {height: canvas.height};
    });
    let clicked = false;
    for (let y = 20; y < range.height && !clicked; y += 4) {
      await page.mouse.click(over.x + share * over.width, over.y + y);
      clicked = await panel(page).isVisible();
    }
    assert.ok(clicked, 'no click on the mark opened it');
    const text = await panel(page).textContent();
    for (const wanted of ['Due', 'Sent', 'Answered', 'Connection', 'Number in the log', 'sent to answered', 'fork', 'redis-server during this time'])
      assert.ok(text.includes(wanted), `${wanted} is missing: ${text}`);
    assert.ok(await panel(page).locator('.wf-bar').count() >= 4);
    await page.keyboard.press('Escape');
    assert.equal(await panel(page).isVisible(), false);
    await closed();
  },

  async 'a request that the kernel saw has its times, sizes and client'() {
    const {page, closed} = await open(kernel);
    await page.locator('#charts').focus();
    await page.keyboard.press('w');
    const facts = await panel(page).locator('dl.facts > div').evaluateAll((all) =>
      Object.fromEntries(all.map((one) => [one.querySelector('dt').textContent, one.querySelector('dd').textContent])));
    const {start, end, read, written, op} = await page.evaluate(() => forktail.marks.mark(forktail.marks.numbered(forktail.current().request)));
    const at = (s) => `+${s.toFixed(6)} s`;
    const {Arrival, Read, Reply, Written, Client, Command} = facts;
    assert.deepEqual({Arrival, Read, Reply, Written, Client, Command}, {
      Arrival: `${at(start)}, 1,031 bytes`, Read: at(start + read / 1e9), Reply: `${at(end)}, 5 bytes`,
      Written: at(start + written / 1e9), Client: '10.0.0.7', Command: op});
    assert.equal(facts.Due, undefined);
    const rows = await panel(page).locator('.waterfall th[scope=row]').allTextContents();
    assert.deepEqual(rows.slice(0, 3), ['arrival to reply', 'arrival to read', 'read to reply']);
    assert.equal(await panel(page).locator('.wf-late').count(), 1);
    await closed();
  },

  async 'requests ahead of it can be followed by keyboard alone'() {
    const {page, closed} = await open(report);
    await page.locator('#charts').focus();
    await page.keyboard.press('w');
    assert.equal(await page.evaluate(() => document.activeElement.id), 'request-title');
    const first = await page.locator('#request-title').textContent();
    // A later one of the same stall has others ahead of it.
    const later = await page.evaluate(() => {
      for (let i = 0; i < forktail.marks.count; i++) if (forktail.marks.inFront(i).same.length) return i;
      return -1;
    });
    assert.ok(later > 0);
    await page.evaluate((i) => forktail.open(i), later);
    const front = panel(page).locator('.link').first();
    await front.focus();
    await page.keyboard.press('Enter');
    assert.notEqual(await page.evaluate(() => forktail.current().request), later);
    await page.keyboard.press('Escape');
    assert.equal(await page.evaluate(() => forktail.current().request), undefined);
    assert.ok(first.length > 3);
    await closed();
  },

  async 'the waterfall adds up'() {
    const {page, closed} = await open(report);
    const wrong = await page.evaluate(() => {
      let bad = 0;
      for (let i = 0; i < forktail.marks.count; i++) {
        const {latency, parts, since, start, sent, end} = forktail.marks.mark(i);
        const told = parts.reduce((sum, {ns}) => sum + ns, 0);
        if (Math.abs(told - latency) > latency * 1e-5 || since > start || start > sent || sent > end) bad++;
      }
      return bad;
    });
    assert.equal(wrong, 0);
    await closed();
  },

  async 'search finds, fades the rest, lists, and can be cleared'() {
    const {page, data, closed} = await open(report);
    const write = hex(await page.evaluate(() => forktail.looks()[forktail.run.cause_names.indexOf('file-write')].colour));
    assert.ok((await shot(page, '#latency .u-wrap')).get(write) > 20);
    await page.keyboard.press('/');
    assert.equal(await page.evaluate(() => document.activeElement.id), 'search');
    await page.keyboard.type('get fork');
    await page.waitForFunction(() => /match/.test(document.getElementById('search-said').textContent));
    assert.match(await page.locator('#search-said').textContent(), /^\d[\d,]* of [\d,]+ match/);
    assert.equal((await shot(page, '#latency .u-wrap')).get(write), undefined);
    await page.keyboard.press('Enter');
    await page.keyboard.press('Enter'); // on the first one found
    assert.match(await page.locator('#request-title').textContent(), /^GET /);
    await page.keyboard.press('Escape');
    await page.keyboard.press('Escape');
    assert.equal(await page.locator('#search').inputValue(), '');
    assert.ok((await shot(page, '#latency .u-wrap')).get(write) > 20);
    for (const [query, fits] of [['conn:7', true], ['conn:40007', true], ['thread:redis', true], ['#1', false], ['>10s', false], ['</script><b>', false]]) {
      await page.locator('#search').fill(query);
      await page.waitForFunction((q) => forktail.current().find === q, query);
      assert.equal(/of .* match/.test(await page.locator('#search-said').textContent()), fits, query);
    }
    await page.locator('#search').fill('bio_aof');
    await page.waitForSelector('.lane-found');
    assert.equal(await page.locator('.lane-found').count(), 1);
    assert.equal((await data()).failed, undefined);
    await closed();
  },

  async 'a lane and every episode show what the server was doing'() {
    const {page, closed} = await open(report);
    assert.equal(await page.evaluate(() => forktail.run.lanes.filter(({kind}) => kind === 'activity').length), 1);
    await page.locator('.lane-name', {hasText: 'on-CPU time'}).scrollIntoViewIfNeeded();
    const lane = await page.locator('.lane-name', {hasText: 'on-CPU time'}).boundingBox();
    const over = await page.locator('#lanes .u-over').boundingBox();
    await page.mouse.move(over.x + over.width / 2, lane.y + lane.height / 2);
    assert.match(await page.locator('.tooltip').textContent(), /on-CPU time.*command\/GET/s);
    const details = page.locator('.episode-list > li').first().locator('.did');
    await details.locator('summary').click();
    await details.locator('.link').click();
    const graph = page.locator('.flame'), frames = graph.locator('.frame');
    await frames.first().waitFor();
    const names = await frames.allTextContents();
    for (const wanted of ['main', 'call', 'dictFind', 'clear_page_erms [k]'])
      assert.ok(names.includes(wanted), `${wanted} is no frame: ${names}`);
    // Wide enough to be read; a click makes a frame as wide as its callers, which stay below it.
    const width = async (name) => (await graph.locator('.frame', {hasText: name}).boundingBox()).width;
    const whole = await width('processCommand'), before = await width('getCommand');
    assert.ok(whole > 1200, `${whole} pixels`);
    await graph.locator('.frame', {hasText: 'getCommand'}).click();
    assert.ok(before < 0.9 * whole && Math.abs(await width('getCommand') - whole) < 1 && Math.abs(await width('processCommand') - whole) < 1);
    assert.equal(await graph.locator('.frame', {hasText: 'setCommand'}).count(), 0);
    assert.match(await page.locator('.flame-pointed').textContent(), /^getCommand: \d+ samples, \d+ %/);
    await page.getByRole('button', {name: 'Show all frames'}).click();
    assert.equal(await graph.locator('.frame', {hasText: 'setCommand'}).count(), 1);
    await graph.locator('.frame', {hasText: 'dictFind'}).hover();
    assert.match(await page.locator('.tooltip').textContent(), /dictFind\d+ samples, \d+ %, approximately/);
    await page.keyboard.press('Escape');
    assert.equal(await graph.isVisible(), false);
    assert.match(await details.locator('.activities').textContent(), /command\/GET 80 %/);
    assert.match(await page.locator('#activities').textContent(), /command\/KEYS/);
    await closed();
  },

  async 'n goes to the next worst episode, p back, in the order of the list'() {
    const {page, closed} = await open(report);
    const numbers = [];
    for (const key of ['n', 'n', 'n', 'p']) {
      await settled(page, () => page.keyboard.press(key));
      numbers.push(await page.evaluate(() => forktail.current().episode));
    }
    assert.deepEqual(numbers, [1, 2, 3, 2]);
    await page.locator('.episodes select').selectOption('time');
    await page.locator('#charts').focus();
    await settled(page, () => page.keyboard.press('p'));
    const {start, all} = await page.evaluate(() => ({start: forktail.run.episodes[forktail.run.ranking[forktail.current().episode - 1]].start_s,
      all: forktail.run.episodes.map((e) => e.start_s)}));
    assert.ok(start < all[3], 'the former episode by time');
    await closed();
  },

  async 'an address restores the view'() {
    const {page, view, closed} = await open(report);
    await settled(page, () => page.locator('.episode').first().click());
    await page.locator('.cause-name[data-name="fork"]').click();
    await page.locator('#search').fill('set');
    await page.waitForFunction(() => forktail.current().find === 'set');
    await page.evaluate(() => forktail.open(forktail.marks.worst(forktail.view.min, forktail.view.max)));
    await page.locator('#theme').click();
    await page.waitForFunction(() => ['t=', 'cause=fork', 'episode=1', 'request=', 'find=set', 'theme=dark'].every((part) => location.hash.includes(part)));
    const fragment = await fragmentOf(page), before = await view();
    const state = await page.evaluate(() => forktail.current());
    await closed();

    const again = await open(report, {fragment});
    const after = await again.view();
    assert.ok(Math.abs(after.min - before.min) < 1e-4 && Math.abs(after.max - before.max) < 1e-4, JSON.stringify([before, after]));
    const restored = await again.page.evaluate(() => forktail.current());
    for (const name of ['causes', 'episode', 'request', 'find', 'theme']) assert.deepEqual(restored[name], state[name], name);
    assert.equal(await panel(again.page).isVisible(), true);
    // A user edits the address by hand.
    await again.page.evaluate(() => { location.hash = '#episode=2'; });
    await again.page.waitForFunction(() => forktail.current().episode === 2 && forktail.current().find === '');
    assert.equal(await panel(again.page).isVisible(), false);
    await again.closed();
  },

  async 'an address with any content is harmless'() {
    for (const fragment of ['#t=1..0', '#t=-1e9..1e9', '#episode=99999', '#request=4294967295', '#cause=<script>,nothing', '#find=%3Cimg%20src=x%20onerror=alert(1)%3E', '#%%%']) {
      const {page, data, closed} = await open(report, {fragment});
      assert.equal((await data()).failed, undefined, fragment);
      assert.equal(await page.evaluate(() => document.querySelectorAll('img').length), 0);
      await closed();
    }
  },

  async 'help opens and closes by its key, and other keys stay'() {
    const {page, view, closed} = await open(report);
    const whole = await view();
    await page.keyboard.press('?');
    assert.equal(await page.locator('dialog.help').isVisible(), true);
    await page.keyboard.press('+');
    assert.deepEqual(await view(), whole);
    await page.keyboard.press('?');
    assert.equal(await page.locator('dialog.help').isVisible(), false);
    await page.locator('#help').click();
    await page.keyboard.press('Escape');
    assert.equal(await page.locator('dialog.help').isVisible(), false);
    await closed();
  },

  async 'dark and light by button, key and system'() {
    const ground = (page) => page.evaluate(() => getComputedStyle(document.body).backgroundColor);
    const {page, closed} = await open(report);
    const light = await ground(page);
    await page.keyboard.press('d');
    const dark = await ground(page);
    assert.notEqual(dark, light);
    const fork = hex(await page.evaluate(() => forktail.looks()[forktail.run.cause_names.indexOf('fork')].colour));
    assert.ok((await shot(page, '#latency')).get(fork) > 20, 'the charts did not follow');
    await page.locator('#theme').click();
    assert.equal(await ground(page), light);
    await page.emulateMedia({colorScheme: 'dark'});
    assert.equal(await ground(page), dark);
    await page.keyboard.press('d');
    assert.equal(await ground(page), light);
    await closed();
  },

  async 'a run without requests, and one without a recorder, are readable too'() {
    for (const path of [iterations, noRecorder]) {
      const {page, closed} = await open(path);
      await page.keyboard.press('w');
      assert.equal(await panel(page).isVisible(), true);
      assert.match(await panel(page).textContent(), path === iterations ? /Started/ : /Due/);
      await page.locator('#search').fill('server-busy');
      await page.waitForFunction(() => forktail.current().find === 'server-busy');
      assert.equal(await page.locator('#activities').count(), path === iterations ? 1 : 0);
      await closed();
    }
  },
};

await run(started, tests);
