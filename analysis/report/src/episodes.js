// SPDX-License-Identifier: MIT
// The list of episodes next to the charts, where a reader starts. Each entry has its time, severity, causes and
// evidence. Selecting one moves all charts to it.

import {count, duration, instant, percent} from './format.js';
import {buildFlame, drawFlame, samplesIn} from './flame.js';
import {element} from './dom.js';
import {markOf} from './legend.js';

const FIRST = 100; // entries created at once; more on demand

const orders = {
  cost: ['largest total time first', (a, b) => a.number - b.number],
  time: ['in order of time', (a, b) => a.start_s - b.start_s],
  worst: ['slowest request first', (a, b) => b.worst_ns - a.worst_ns],
};

export function createEpisodes(context, run, host) {
  const {looks, filter} = context;
  const unit = run.from_iterations ? ['iteration', 'iterations'] : ['request', 'requests'];
  const list = element('ol', {class: 'episode-list'});
  const more = element('button', {type: 'button', class: 'more'});
  const order = element('select', {'aria-label': 'Order of episodes', onchange: () => update()},
    ...Object.entries(orders).map(([value, [name]]) => element('option', {value}, name)));
  let limit = FIRST;
  more.addEventListener('click', () => {
    limit *= 4;
    update();
  });

  function entry(i) {
    const episode = run.episodes[i];
    const bar = element('div', {class: 'stack', 'aria-hidden': 'true'});
    for (const {cause, share} of episode.causes) {
      const piece = element('i', {title: `${run.cause_names[cause]} ${percent(share)}`});
      piece.style.width = `${100 * share}%`;
      piece.style.background = looks()[cause].colour;
      bar.append(piece);
    }
    const causes = episode.causes.slice(0, 4).map(({cause, time_ns: ns, share}) => element('span', {class: 'episode-cause'},
      markOf(looks()[cause]), `${run.cause_names[cause]} `,
      element('span', {class: 'muted'}, `${percent(share)} · ${duration(ns)}`)));
    const n = episode.requests;
    const button = element('button', {type: 'button', class: 'episode', 'aria-pressed': String(context.selected === i),
      onclick: () => context.choose(i)},
    element('span', {class: 'episode-head'}, element('span', {class: 'badge'}, String(episode.number)),
      element('b', {}, instant(episode.start_s)), element('span', {}, duration((episode.end_s - episode.start_s) * 1e9))),
    element('span', {class: 'episode-counts'}, `${count(n)} ${unit[n === 1 ? 0 : 1]}, slowest ${duration(episode.worst_ns)}`));
    const hops = episode.hops.slice(0, 4).map(({name, share, time_ns: ns}) => element('div', {}, `${name} `,
      element('span', {class: 'muted'}, `${percent(share)} · ${duration(ns)}`)));
    return element('li', {'data-episode': String(i), class: context.selected === i ? 'selected' : ''}, button, bar,
      element('div', {class: 'episode-causes'}, ...causes),
      element('ul', {class: 'evidence'}, ...episode.evidence.map((sentence) => element('li', {}, sentence))),
      hops.length ? element('div', {class: 'episode-hops'}, element('b', {}, 'Processes and threads: '), ...hops) : '',
      onCpuTime(episode), worst(episode));
  }

  // The largest activities of own code, and a flame graph that is created when opened.
  function onCpuTime(episode) {
    const ranges = run.lanes.filter(({samples}) => samples)
      .map((lane) => samplesIn(run, lane, run.ticks(episode.since_s), run.ticks(episode.end_s)));
    const samples = ranges.reduce((sum, [first, end]) => sum + end - first, 0);
    if (!samples) return '';
    const first = episode.activities.slice(0, 3).map(({name, share}) => `${name} ${percent(share)}`).join(', ');
    const graph = element('div', {class: 'flame-host'});
    const details = element('details', {class: 'did', ontoggle: () => {
      if (details.open && !graph.firstChild) graph.append(drawFlame(buildFlame(run, ranges), run.tick_ns, context.tooltip));
    }}, element('summary', {}, first ? `On-CPU time: ${first}` : 'On-CPU time',
      element('span', {class: 'muted'}, ` · flame graph of ${count(samples)} ${samples === 1 ? 'sample' : 'samples'}`)),
    graph,
    element('ul', {class: 'activities'}, ...episode.activities.slice(0, 8).map(({name, share, time_ns: ns, samples: n}) =>
      element('li', {}, `${name} ${percent(share)}`, element('span', {class: 'muted'}, ` ${duration(ns)}, ${count(n)} ${n === 1 ? 'sample' : 'samples'}`)))));
    return details;
  }

  function worst(episode) {
    const i = context.marks.worst(episode.start_s, episode.end_s);
    if (i < 0) return '';
    return element('button', {type: 'button', class: 'link', onclick: () => context.open(i)}, `Details of its slowest ${unit[0]}`);
  }

  function update() {
    const compare = orders[order.value][1];
    const wanted = [...run.episodes.keys()]
      .filter((i) => filter.empty() || run.episodes[i].causes.some(({cause, share}) => filter.has(cause) && share >= 0.005))
      .sort((a, b) => compare(run.episodes[a], run.episodes[b]));
    list.replaceChildren(...wanted.slice(0, limit).map(entry));
    more.hidden = wanted.length <= limit;
    more.textContent = `${count(wanted.length - limit)} more`;
  }

  host.append(element('div', {class: 'episodes-head'}, element('h2', {}, `Episodes (${count(run.episodes.length)})`), order));
  if (run.episodes.length === 0)
    host.append(element('p', {class: 'muted'}, run.slow_count ? 'No episode was found.' : `No ${unit[0]} was slow.`));
  host.append(list, more);
  update();
  return {
    update,
    // Marks the selected one and scrolls to it.
    select(i) {
      for (const item of list.children) {
        const chosen = Number(item.dataset.episode) === i;
        item.classList.toggle('selected', chosen);
        item.firstChild.setAttribute('aria-pressed', String(chosen));
        if (chosen) item.scrollIntoView({block: 'nearest'});
      }
    },
  };
}
