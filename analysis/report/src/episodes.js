// SPDX-License-Identifier: MIT
// The list of episodes next to the charts, where a reader starts. Each entry has its time, severity, causes and
// evidence. Selecting one moves all charts to it.

import {count, duration, instant, percent} from './format.js';
import {element, markOf} from './dom.js';
import {samplesIn} from './flame.js';

const FIRST_EPISODES = 5; // entries shown before the others are asked for

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
  let limit = FIRST_EPISODES;
  let wanted = [];
  more.addEventListener('click', () => {
    limit = limit === FIRST_EPISODES ? Infinity : FIRST_EPISODES;
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

  // The largest activities of own code, and its flame graph.
  function onCpuTime(episode) {
    const ranges = run.lanes.filter(({samples}) => samples)
      .map((lane) => samplesIn(run, lane, run.ticks(episode.since_s), run.ticks(episode.end_s)));
    const samples = ranges.reduce((sum, [first, end]) => sum + end - first, 0);
    if (!samples) return '';
    const first = episode.activities.slice(0, 3).map(({name, share}) => `${name} ${percent(share)}`).join(', ');
    return element('details', {class: 'did'}, element('summary', {}, first ? `On-CPU time: ${first}` : 'On-CPU time'),
    element('button', {type: 'button', class: 'link', onclick: () => context.flame.open(`On-CPU time of episode ${episode.number}, at ${instant(episode.start_s)}`, ranges)},
      `Flame graph of ${count(samples)} ${samples === 1 ? 'sample' : 'samples'}`),
    element('ul', {class: 'activities'}, ...episode.activities.slice(0, 8).map(({name, share, time_ns: ns, samples: n}) =>
      element('li', {}, `${name} ${percent(share)}`, element('span', {class: 'muted'}, ` ${duration(ns)}, ${count(n)} ${n === 1 ? 'sample' : 'samples'}`)))));
  }

  function worst(episode) {
    const i = context.marks.worst(episode.start_s, episode.end_s);
    if (i < 0) return '';
    return element('button', {type: 'button', class: 'link', onclick: () => context.open(i)}, `Details of its slowest ${unit[0]}`);
  }

  function update() {
    const compare = orders[order.value][1];
    wanted = [...run.episodes.keys()]
      .filter((i) => filter.empty() || run.episodes[i].causes.some(({cause, share}) => filter.has(cause) && share >= 0.005))
      .sort((a, b) => compare(run.episodes[a], run.episodes[b]));
    list.replaceChildren(...wanted.slice(0, limit).map(entry));
    more.hidden = wanted.length <= FIRST_EPISODES;
    more.textContent = limit === FIRST_EPISODES ? `show all ${count(wanted.length)}` : `show the first ${FIRST_EPISODES}`;
  }

  host.append(element('div', {class: 'episodes-head'}, element('h2', {}, `Episodes (${count(run.episodes.length)})`), order));
  if (run.episodes.length === 0)
    host.append(element('p', {class: 'muted'}, run.slow_count ? 'No episode was found.' : `No ${unit[0]} was slow.`));
  host.append(list, more);
  update();
  return {
    update,
    // The one `by` places after the selected one in the list, or the selected one at its end. -1: the list is empty.
    next(by) {
      const at = wanted.indexOf(context.selected);
      return wanted[at < 0 ? (by > 0 ? 0 : wanted.length - 1) : Math.min(wanted.length - 1, Math.max(0, at + by))] ?? -1;
    },
    // Marks the selected one and scrolls to it.
    select(i) {
      if (wanted.indexOf(i) >= limit) {
        limit = Infinity;
        update();
      }
      for (const item of list.children) {
        const chosen = Number(item.dataset.episode) === i;
        item.classList.toggle('selected', chosen);
        item.firstChild.setAttribute('aria-pressed', String(chosen));
        if (chosen) item.scrollIntoView({block: 'nearest'});
      }
    },
  };
}
