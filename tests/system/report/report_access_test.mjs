// SPDX-License-Identifier: MIT
// The report page for readers who do not see it, or not its colours: axe-core finds nothing serious in either scheme,
// with everything opened that can be; no cause is identified by colour alone; nothing is missing on paper.
//
//   node report_access_test.mjs REPORT_SAMPLE PACKAGES_DIR

import assert from 'node:assert/strict';
import {checkSizes, findings, run, startBrowser} from '../../browser/harness.mjs';

const [sampleProgram, packages] = process.argv.slice(2);
const started = await startBrowser(packages);
const {open} = started;
const report = started.make(sampleProgram, 'access', 20, 5000, 3000, 1000);

const tests = {
  async 'axe-core finds nothing serious, light or dark, closed or opened'() {
    for (const colorScheme of ['light', 'dark']) {
      const {page, closed} = await open(report, {colorScheme});
      assert.deepEqual(await findings(page, started.axe), [], colorScheme);
      await page.locator('.did summary').first().click();
      await page.locator('.did .link').first().click();
      assert.deepEqual(await findings(page, started.axe), [], `${colorScheme}, flame graph`);
      await page.keyboard.press('Escape');
      await page.keyboard.press('w');
      await page.locator('#search').fill('get');
      await page.waitForFunction(() => forktail.current().find === 'get');
      await page.locator('.cause-name[data-name="fork"]').click();
      assert.deepEqual(await findings(page, started.axe), [], `${colorScheme}, opened`);
      await page.locator('#help').click();
      assert.deepEqual(await findings(page, started.axe), [], `${colorScheme}, help`);
      await closed();
    }
  },

  async 'every cause has a name next to its colour, and a mark'() {
    const {page, closed} = await open(report);
    for (const entry of await page.locator('.episode-cause, .cause-name').all()) {
      assert.match(await entry.textContent(), /[a-z]{3}/);
      const mark = await entry.locator('.mark use').getAttribute('href');
      assert.equal(await page.locator(`defs path${mark}`).count(), 1, mark);
    }
    await closed();
  },

  async 'fits phones and large screens, the causes first'() {
    const {page, closed} = await open(report);
    await checkSizes(started, page, 'report', async (width) => {
      const [heading, last] = await Promise.all(['#causes', '#causes tbody tr:nth-child(6)'].map((part) => page.locator(part).boundingBox()));
      assert.ok(last.y + last.height < 1280, `the fifth cause ends at ${last.y + last.height} in ${width} pixels`);
      for (const part of ['.episodes', '.timeline']) {
        const box = await page.locator(part).boundingBox();
        assert.ok(box.y > last.y && heading.y < box.y, `${part} comes before the causes in ${width} pixels`);
      }
      assert.match(await page.locator('.tiles').textContent(), /p99\.9 without fork/);
    });
    await closed();
  },

  async 'without a script the answer, the figures, the causes and the worst episodes are there'() {
    const {page, closed} = await open(report, {javaScriptEnabled: false, ready: null, viewport: {width: 390, height: 844}});
    const text = await page.locator('body').innerText();
    for (const wanted of [/fork\(\) .* of the slow requests' time \(fork\)\. Without forks p99\.9 would be/, /p99\.9 without fork\s+[\d.]+ ms −\d+ %/,
      /fork\s+\d[\d.]* %/, /The worst episodes/, /a sentence about what the kernel did/, /need JavaScript/])
      assert.match(text, wanted);
    for (const selector of ['#charts', '#finder', '#zoom-in', '.keys']) assert.equal(await page.locator(selector).isVisible(), false, selector);
    await closed();
  },

  async 'screen readers announce what is found and where'() {
    const {page, closed} = await open(report);
    for (const role of ['search', 'main', 'banner']) assert.equal(await page.getByRole(role).count(), 1, role);
    assert.equal(await page.getByRole('searchbox').getAttribute('aria-describedby'), 'search-said');
    assert.equal(await page.locator('#search-said').getAttribute('role'), 'status');
    await page.keyboard.press('w');
    const focused = await page.evaluate(() => document.activeElement.closest('section').getAttribute('aria-labelledby'));
    assert.equal(focused, 'request-title');
    await closed();
  },

  async 'paper has everything except the controls'() {
    const {page, closed} = await open(report);
    await page.keyboard.press('w');
    await page.emulateMedia({media: 'print'});
    for (const selector of ['#latency', '#lanes', '#causes', '.episode', '#request', '.waterfall'])
      assert.equal(await page.locator(selector).first().isVisible(), true, selector);
    for (const selector of ['#finder', '#theme', '#help', '#zoom-in', '.keys'])
      assert.equal(await page.locator(selector).first().isVisible(), false, selector);
    const pdf = await page.pdf({format: 'A4', printBackground: true});
    assert.ok(pdf.length > 20000);
    await closed();
  },
};

await run(started, tests);
