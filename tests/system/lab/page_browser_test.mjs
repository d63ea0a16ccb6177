// SPDX-License-Identifier: MIT
// A page of the lab in a headless Chromium: it loads nothing from outside, its charts are drawn, its tables have the
// measured figures, and axe-core finds nothing serious.
//
//   node page_browser_test.mjs LAB_PAGE_SAMPLE PACKAGES_DIR

import assert from 'node:assert/strict';
import {findings, run, shot, startBrowser} from '../../browser/harness.mjs';

const [sampleProgram, packages] = process.argv.slice(2);
const started = await startBrowser(packages);
const path = started.make(sampleProgram, 'lab');
const open = (options) => started.open(path, {...options, ready: ''});

const tests = {
  async 'a chart is drawn, and a table has its figures'() {
    const {page, closed} = await open();
    assert.equal(await page.locator('svg').count(), 1);
    const box = await page.locator('svg').boundingBox();
    assert.ok(box.width > 200 && box.height > 100, JSON.stringify(box));
    const curves = await page.locator('svg path').evaluateAll((paths) => paths.filter((p) => p.getTotalLength() > 100).length);
    assert.ok(curves >= 2, `${curves} lines in the chart`);
    assert.ok((await shot(page, 'svg')).size > 5, 'the chart is blank');
    for (const text of ['unix', 'tcp']) assert.ok((await page.locator('svg').textContent()).includes(text));
    const table = await page.locator('table').first().textContent();
    for (const wanted of ['20,000', '10,000', 'fork 61 %']) assert.ok(table.includes(wanted), `${wanted}: ${table}`);
    await closed();
  },

  async 'hostile names stay names'() {
    const {page, closed} = await open();
    assert.equal(await page.evaluate(() => document.querySelectorAll('script, img').length), 0);
    const text = await page.locator('body').textContent();
    for (const wanted of ['</script><script>alert(1)</script>', '<img src=x onerror=alert(2)>', '</style><script>alert(3)</script>'])
      assert.ok(text.includes(wanted), wanted);
    await closed();
  },

  async 'axe-core finds nothing serious, in light, dark and narrow pages'() {
    for (const options of [{}, {colorScheme: 'dark'}, {viewport: {width: 600, height: 900}}]) {
      const {page, closed} = await open(options);
      assert.deepEqual(await findings(page, started.axe), []);
      await closed();
    }
  },
};

await run(started, tests);
