// SPDX-License-Identifier: MIT
// Makes a page's template: its HTML with the style sheets, our modules, the marks and, if the page uses them, uPlot and its
// licence inlined. analysis/report/report.cc later inserts what depends on the run.
//
//   node build.mjs PAGE.html MAIN.js UPLOT_DIR OUT.html
//
// The modules are plain ES modules, so that node can test each of them. A page opened from file:// cannot import, so they
// are joined here in the order of their imports. The modules follow two rules that make this possible, and both are checked:
// imports are named, from the same directory and never renamed, and `export` precedes a declaration. The page's content
// policy lists the hashes of exactly these scripts and styles, so that a name from a recording can never become a script,
// even if escaping failed.

import {createHash} from 'node:crypto';
import {readFileSync, writeFileSync} from 'node:fs';
import {dirname, join} from 'node:path';
import {fileURLToPath} from 'node:url';
import {Script} from 'node:vm';
import {pathOf, shapes} from './src/shapes.js';

const here = dirname(fileURLToPath(import.meta.url));
const atRunTime = ['TITLE', 'HEADER', 'CAUSES', 'EPISODES', 'DATA'];
const importLine = /^import \{([^}]*)\} from '(\.\/[\w-]+\.js)';\n/gm;

// The text of `name` and of all its imports, imports first, each once.
function bundle(name, seen = new Set()) {
  if (seen.has(name)) return '';
  seen.add(name);
  const text = readFileSync(join(here, 'src', name), 'utf8');
  let before = '';
  for (const [line, names, from] of text.matchAll(importLine)) {
    if (/\bas\b/.test(names)) throw new Error(`${name}: a renamed import cannot be joined: ${line}`);
    before += bundle(from.slice(2), seen);
  }
  const body = text.replace(importLine, '').replace(/^export (?=(async )?function |const |let |class )/gm, '');
  const left = body.match(/^(import|export)\b.*/m);
  if (left) throw new Error(`${name}: cannot be joined: ${left[0]}`);
  return before + body;
}

function read(path) {
  return readFileSync(path, 'utf8').trim();
}

function hash(text) {
  return `'sha256-${createHash('sha256').update(text).digest('base64')}'`;
}

function escapeHtml(text) {
  return text.replace(/&/g, '&amp;').replace(/</g, '&lt;').replace(/>/g, '&gt;');
}

// The parts of a page that come from uPlot.
function libraryParts(uplotDir) {
  const uplotVersion = JSON.parse(read(join(uplotDir, 'package.json'))).version;
  return {
    LIBRARY: '\n' + read(join(uplotDir, 'dist', 'uPlot.iife.min.js')) + '\n',
    LICENCE: escapeHtml(`uPlot ${uplotVersion}\n\n` + read(join(uplotDir, 'LICENSE'))),
  };
}

// Each mark once, for <use>.
function marks() {
  return `<svg class="marks" aria-hidden="true"><defs>${Object.entries(shapes).map(([family, shape]) =>
    `<path id="mark-${family}" d="${pathOf(shape)}"/>`).join('')}</defs></svg>`;
}

function build(pageName, mainName, uplotDir, out) {
  const template = read(join(here, pageName));
  const charts = template.includes('@LIBRARY@');
  const library = charts ? libraryParts(uplotDir) : {};
  // Checked as a module: strict, with its own scope, in which duplicate declarations are an error.
  const script = '\n' + bundle(mainName) + '\n';
  new Script(`'use strict';{${script}}`, {filename: 'the joined modules'}); // finds syntax errors at build time
  const sheets = [join(here, 'base.css'), join(here, 'style.css')];
  if (charts) sheets.unshift(join(uplotDir, 'dist', 'uPlot.min.css'));
  const style = sheets.reduce((text, path) => text + read(path) + '\n', '\n');
  const scripts = charts ? [library.LIBRARY, script] : [script];
  for (const text of scripts)
    if (/<\/script|<!--/i.test(text)) throw new Error('a script would end its own element');
  const parts = {
    POLICY: `default-src 'none'; script-src ${scripts.map(hash).join(' ')}; style-src ${hash(style)}; ` +
        `img-src data:; base-uri 'none'; form-action 'none'`,
    MARKS: marks(),
    STYLE: style,
    SCRIPT: script,
    ...library,
  };
  const used = new Set();
  const page = template.replace(/@([A-Z]+)@/g, (whole, name) => {
    if (atRunTime.includes(name)) return whole;
    if (!(name in parts)) throw new Error(`${pageName}: nothing to put at ${whole}`);
    used.add(name);
    return parts[name];
  });
  for (const name in parts)
    if (!used.has(name)) throw new Error(`${pageName}: no place for ${name}`);
  if (page.split('@DATA@').length !== 2) throw new Error(`${pageName}: the data needs exactly one place`);
  writeFileSync(out, page + '\n');
}

if (process.argv.length !== 6) {
  console.error('usage: node build.mjs PAGE.html MAIN.js UPLOT_DIR OUT.html');
  process.exit(2);
}
build(...process.argv.slice(2));
