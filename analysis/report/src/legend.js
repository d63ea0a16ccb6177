// SPDX-License-Identifier: MIT
// The causes: as a legend above the charts, and as the table of percentiles without each cause. Both set the same
// filter.

import {count, duration, percent} from './format.js';
import {element} from './dom.js';

// The filter of causes: all, or some.
export function createFilter(changed) {
  const chosen = new Set();
  return {
    shows(cause) { return chosen.size === 0 || chosen.has(cause); },
    has(cause) { return chosen.has(cause); },
    empty() { return chosen.size === 0; },
    // Shows only this one; with `add`, adds or removes it. On the only one: shows all again.
    toggle(cause, add) {
      const only = chosen.size === 1 && chosen.has(cause);
      if (!add) chosen.clear();
      if (chosen.has(cause)) chosen.delete(cause);
      else if (!only || add) chosen.add(cause);
      changed();
    },
    clear() {
      chosen.clear();
      changed();
    },
    set(causes) {
      chosen.clear();
      for (const cause of causes) chosen.add(cause);
      changed();
    },
    list() { return [...chosen].sort((a, b) => a - b); },
  };
}

// A cause's mark in its colour, as on the latency chart.
export function markOf(look) {
  const made = element('i', {class: `mark mark-${look.mark}`, 'aria-hidden': 'true'});
  made.style.background = look.colour;
  return made;
}

// A cause's name with its meaning.
function meaningOf(look) {
  return look.meaning ? `${look.name}: ${look.meaning}` : look.name;
}

// The legend first lists causes with a relevant share, or with a mark in their colour.
function isWorthNaming(run) {
  const marked = new Set(run.arrays.slow_cause);
  return ({cause, share}) => share >= 0.005 || marked.has(cause);
}

export function createLegend(context, run, host) {
  const {looks, filter} = context;
  const worth = isWorthNaming(run);
  const hidden = run.causes.filter((row) => !worth(row)).length;
  let folded = hidden > 1;
  const update = () => {
    const shown = run.causes.filter((row) => !folded || worth(row) || filter.has(row.cause));
    const entries = shown.map(({cause, requests, direct_ns, queued_ns}) => {
      const look = looks()[cause];
      return element('button', {
        class: 'legend-entry',
        type: 'button',
        title: `${meaningOf(look)}\nClick: show only this cause. Ctrl+click: show this cause too.`,
        'aria-pressed': String(filter.has(cause)),
        'data-cause': look.name,
        onclick: (event) => filter.toggle(cause, event.ctrlKey || event.metaKey),
      }, markOf(look), element('span', {}, look.name),
      element('span', {class: 'muted'}, `${count(requests)} · ${duration(direct_ns + queued_ns)}`));
    });
    const all = element('button', {class: 'legend-entry', type: 'button', onclick: () => filter.clear()}, 'show all');
    all.hidden = filter.empty();
    const more = element('button', {class: 'legend-entry', type: 'button', onclick: () => {
      folded = !folded;
      update();
    }}, folded ? `${hidden} smaller causes` : 'fewer causes');
    more.hidden = hidden < 2;
    host.classList.toggle('filtered', !filter.empty());
    const focused = host.contains(document.activeElement) && document.activeElement.dataset.cause;
    host.replaceChildren(...entries, more, all);
    if (focused) host.querySelector(`[data-cause="${CSS.escape(focused)}"]`)?.focus();
  };
  update();
  return update;
}

const columns = [['p99', 'p99'], ['p99.9', 'p99.9'], ['p99.99', 'p99.99'], ['max', 'max']];

export function createCauseTable(context, run, host) {
  const {looks, filter} = context;
  const unit = run.from_iterations ? 'iterations' : 'requests';
  const update = () => {
    const head = element('tr', {}, element('th', {scope: 'col'}, 'Cause'), element('th', {scope: 'col'}, `Slow ${unit}`),
      element('th', {scope: 'col'}, 'Time'), element('th', {scope: 'col'}, 'Queued'), element('th', {scope: 'col'}, 'Share'),
      ...columns.map(([, name]) => element('th', {scope: 'col'}, `${name} without`)));
    const measured = element('tr', {class: 'measured'}, element('th', {scope: 'row'}, 'measured'),
      element('td', {}, count(run.slow_count)), element('td', {}, duration(run.slow_ns)), element('td'), element('td'),
      ...columns.map(([key]) => element('td', {}, duration(run.latency_ns[key]))));
    const rows = run.causes.map((row) => {
      const look = looks()[row.cause];
      const time = row.direct_ns + row.queued_ns;
      const bar = element('span', {class: 'bar'}, element('i'));
      bar.firstChild.style.width = `${100 * row.share}%`;
      bar.firstChild.style.background = look.colour;
      const name = element('button', {
        type: 'button',
        class: 'cause-name',
        'aria-pressed': String(filter.has(row.cause)),
        onclick: (event) => filter.toggle(row.cause, event.ctrlKey || event.metaKey),
      }, markOf(look), look.name);
      return element('tr', {class: filter.shows(row.cause) ? '' : 'off'},
        element('th', {scope: 'row'}, name, element('div', {class: 'muted meaning'}, look.meaning)),
        element('td', {}, count(row.requests)), element('td', {}, duration(time)),
        element('td', {}, time ? percent(row.queued_ns / time) : '–'),
        element('td', {class: 'share'}, bar, percent(row.share)),
        ...columns.map(([key]) => whatIf(row.without[key], run.latency_ns[key])));
    });
    host.replaceChildren(element('thead', {}, head), element('tbody', {}, measured, ...rows));
  };
  update();
  return update;
}

// Time by process or thread on the path of requests; removed if there is only one.
export function createHopTable(context, run, host) {
  const {looks} = context;
  if (run.hops.length === 0) {
    host.remove();
    return () => {};
  }
  const table = host.querySelector('table');
  const heads = ['Process, thread', 'Role', `Slow ${run.from_iterations ? 'iterations' : 'requests'}`, 'Time', 'Share', 'Causes'];
  const update = () => {
    const rows = run.hops.map((hop) => {
      const causes = hop.causes.slice(0, 3).map(({cause, time_ns: time}) =>
        element('span', {class: 'hop-cause'}, markOf(looks()[cause]), `${looks()[cause].name} ${percent(time / hop.time_ns)}`));
      return element('tr', {}, element('th', {scope: 'row'}, hop.name), element('td', {}, hop.role),
        element('td', {}, count(hop.requests)), element('td', {}, duration(hop.time_ns)), element('td', {}, percent(hop.share)),
        element('td', {class: 'hop-causes'}, ...causes));
    });
    table.replaceChildren(element('thead', {}, element('tr', {}, ...heads.map((text) => element('th', {scope: 'col'}, text)))),
      element('tbody', {}, ...rows));
  };
  update();
  return update;
}

function whatIf(without, measured) {
  const gain = measured ? 1 - without / measured : 0;
  const cell = element('td', {}, duration(without));
  if (gain >= 0.01) cell.append(element('div', {class: 'gain'}, `−${percent(gain)}`));
  else cell.classList.add('muted');
  return cell;
}
