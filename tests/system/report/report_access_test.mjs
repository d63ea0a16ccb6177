// SPDX-License-Identifier: MIT
// The report page for readers who do not see it, or not its colours: axe-core finds nothing serious in either scheme,
// with everything opened that can be; no cause is identified by colour alone; nothing is missing on paper.
//
//   node report_access_test.mjs REPORT_SAMPLE PACKAGES_DIR

import assert from 'node:assert/strict';
import {findings, run, startBrowser} from '../../browser/harness.mjs';

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
      await page.keyboard.press('w');
      await page.locator('#search').fill('get');
      await page.waitForFunction(() => forktail.current().find === 'get');
      await page.locator('.legend-entry[data-cause="fork"]').click();
      assert.deepEqual(await findings(page, started.axe), [], `${colorScheme}, opened`);
      await page.locator('#help').click();
      assert.deepEqual(await findings(page, started.axe), [], `${colorScheme}, help`);
      await closed();
    }
  },

  async 'every cause has a name next to its colour, and a mark'() {
    const {page, closed} = await open(report);
    for (const entry of await page.locator('.legend-entry[data-cause], .episode-cause, .cause-name').all()) {
      assert.match(await entry.textContent(), /[a-z]{3}/);
      assert.match(await entry.locator('.mark').getAttribute('class'), /mark-(circle|square|triangle|diamond|cross)/);
    }
    await closed();
  },

  async 'screen readers announce what is found and where'() {
    const {page, closed} = await open(report);
    for (const role of ['search', 'main', 'complementary', 'banner']) assert.equal(await page.getByRole(role).count(), 1, role);
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
