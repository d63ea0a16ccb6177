// SPDX-License-Identifier: MIT
// Flame graphs of CPU samples: a frame's width is its samples' share, and callees are above callers. An episode has few
// samples, so frames are elements, which can be read, pointed at and clicked.

import {duration, percent} from './format.js';
import {element} from './dom.js';
import {lowerBound} from './data.js';

const THINNEST = 0.002; // share of the whole; narrower frames are not drawn

// The samples of a lane in a range of ticks: [first, end).
export function samplesIn(run, lane, fromTick, toTick) {
  const [first, count] = lane.samples;
  const ends = run.arrays.sample_end;
  return [lowerBound(ends, fromTick, first, first + count), lowerBound(ends, toTick, first, first + count)];
}

// A tree of frames: {name, kernel, weight, children: Map}; weights are the ticks that samples represent.
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
          child = {name: run.functions[frames[f]], kernel: f >= kernel, weight: 0, samples: 0, children: new Map()};
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

// The graph as an element. `tickNs`: the length of a tick.
export function drawFlame(whole, tickNs, tooltip) {
  const host = element('div', {class: 'flame', role: 'group', 'aria-label': 'Flame graph, callers below callees'});
  const draw = (root) => {
    const boxes = layOutFlame(root);
    const depth = boxes.reduce((most, box) => Math.max(most, box.depth), 0) + 1;
    host.style.height = `${depth * 17}px`;
    host.replaceChildren(...boxes.map(({node, depth: level, from, to}) => {
      const share = percent(node.weight / whole.weight);
      const text = node === whole ? `all ${node.samples} samples` : node.name;
      const box = element('button', {
        type: 'button',
        class: `frame${node.kernel ? ' frame-kernel' : ''}${node === whole ? ' frame-all' : ''}`,
        'aria-label': `${text}, ${share}${node.kernel ? ', kernel' : ''}`,
        onclick: () => draw(node === root ? whole : node),
        onpointermove: (event) => tooltip.show(event, [element('b', {}, text),
          element('div', {class: 'muted'}, `${node.samples} samples, ${share}, approximately ${duration(node.weight * tickNs)}` +
            `${node.kernel ? ', in the kernel' : ''}`)]),
        onpointerleave: () => tooltip.hide(),
      }, node.kernel ? `${text} [k]` : text);
      box.style.left = `${100 * from}%`;
      box.style.width = `${100 * (to - from)}%`;
      box.style.bottom = `${17 * level}px`;
      return box;
    }));
  };
  draw(whole);
  return host;
}
