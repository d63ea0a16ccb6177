// SPDX-License-Identifier: MIT
// Flame graphs of CPU samples: a frame's width is its samples' share, and callees are above callers. An episode has few
// samples, so frames are elements, which can be read, pointed at and clicked.

import {count, duration, percent} from './format.js';
import {createDialog, element} from './dom.js';
import {lowerBound} from './data.js';

const THINNEST = 0.002; // share of the whole; narrower frames are not drawn

// The samples of a lane in a range of ticks: [first, end).
export function samplesIn(run, lane, fromTick, toTick) {
  const [first, count] = lane.samples;
  const ends = run.arrays.sample_end;
  return [lowerBound(ends, fromTick, first, first + count), lowerBound(ends, toTick, first, first + count)];
}

// A tree of frames: {name, kernel, weight, samples, parent, children: Map}; weights are the ticks that samples represent.
export function buildFlame(run, ranges) {
  const {sample_length: lengths, sample_stack: stacks, stack_first: first, stack_kernel: kernels, stack_frame: frames} = run.arrays;
  const root = {name: 'all', kernel: false, weight: 0, samples: 0, children: new Map()};
  for (const [from, to] of ranges)
    for (let s = from; s < to; s++) {
      const stack = stacks[s], weight = Math.max(1, lengths[s]);
      const end = first[stack + 1], kernel = end - kernels[stack];
      root.weight += weight;
      root.samples++;
      let node = root;
      for (let f = first[stack]; f < end; f++) {
        const key = frames[f] * 2 + (f >= kernel ? 1 : 0);
        let child = node.children.get(key);
        if (!child) {
          child = {name: run.functions[frames[f]], kernel: f >= kernel, weight: 0, samples: 0, parent: node, children: new Map()};
          node.children.set(key, child);
        }
        child.weight += weight;
        child.samples++;
        node = child;
      }
    }
  return root;
}

// Frames as boxes {node, depth, from, to} in a width of 1, the widest first at each level.
export function layOutFlame(root, thinnest = THINNEST) {
  const boxes = [];
  const place = (node, depth, from) => {
    const width = node.weight / root.weight;
    if (width < thinnest) return;
    boxes.push({node, depth, from, to: from + width});
    let at = from;
    for (const child of [...node.children.values()].sort((a, b) => b.weight - a.weight)) {
      place(child, depth + 1, at);
      at += child.weight / root.weight;
    }
  };
  if (root.weight > 0) place(root, 0, 0);
  return boxes;
}

const LEVEL = 21;     // CSS pixels of a level
const LEGIBLE = 34;    // CSS pixels; narrower frames have no text

// Flame graphs in a dialog as wide as the window, because function names are long. A click on a frame makes it the whole
// width, with its callers below it.
export function createFlame(context, run) {
  const dialog = createDialog('flame-dialog');
  const host = element('div', {class: 'flame', role: 'group', 'aria-label': 'Flame graph, callers below callees'});
  const pointed = element('p', {class: 'flame-pointed', role: 'status'});
  const back = element('button', {type: 'button', class: 'more'}, 'Show all frames');
  let whole = null;

  function describe(node) {
    const name = node === whole ? 'all samples' : node.name;
    return [name, `${count(node.samples)} ${node.samples === 1 ? 'sample' : 'samples'}, ${percent(node.weight / whole.weight)}, ` +
      `approximately ${duration(node.weight * run.tick_ns)}${node.kernel ? ', in the kernel' : ''}`];
  }

  function frame({node, depth, from, to}, root) {
    const [name, figures] = describe(node);
    const legible = (to - from) * host.clientWidth >= LEGIBLE;
    const made = element('button', {
      type: 'button',
      class: `frame${legible ? '' : ' frame-narrow'}${node.kernel ? ' frame-kernel' : ''}${node === whole ? ' frame-all' : ''}`,
      'aria-label': `${name}, ${figures}`,
      onclick: () => draw(node === root ? node.parent ?? whole : node),
      onfocus: () => { pointed.textContent = `${name}: ${figures}`; },
      onpointermove: (event) => context.tooltip.show(event, [element('b', {}, name), element('div', {class: 'muted'}, figures)]),
      onpointerleave: () => context.tooltip.hide(),
    }, legible ? `${name}${node.kernel ? ' [k]' : ''}` : '');
    made.style.left = `${100 * from}%`;
    made.style.width = `${100 * (to - from)}%`;
    made.style.bottom = `${LEVEL * depth}px`;
    return made;
  }

  function draw(root) {
    const callers = [];
    for (let node = root.parent; node; node = node.parent) callers.unshift(node);
    const boxes = [...callers.map((node, depth) => ({node, depth, from: 0, to: 1})),
      ...layOutFlame(root).map((box) => ({...box, depth: box.depth + callers.length}))];
    const levels = boxes.reduce((most, {depth}) => Math.max(most, depth), 0) + 1;
    host.style.height = `${LEVEL * levels}px`;
    host.replaceChildren(...boxes.map((box) => frame(box, root)));
    context.tooltip.hide();
    back.disabled = root === whole;
    const [name, figures] = describe(root);
    pointed.textContent = root === whole ? `${figures}. Wider is more time. Callers are below. Click a frame to enlarge it.` : `${name}: ${figures}`;
  }

  back.addEventListener('click', () => draw(whole));
  return {
    open(title, ranges) {
      whole = buildFlame(run, ranges);
      const scroll = element('div', {class: 'flame-scroll', tabindex: '0', role: 'region', 'aria-label': 'Flame graph'}, host);
      dialog.fill(title, pointed, back, scroll);
      dialog.show();
      draw(whole);
      scroll.scrollTop = scroll.scrollHeight; // the callers first
    },
  };
}
