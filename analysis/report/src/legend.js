// SPDX-License-Identifier: MIT
// The causes: the filter of all charts and lists, which the table of causes sets, and the table of processes and threads.

import {count, duration, percent} from './format.js';
import {element, markOf} from './dom.js';

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

const FIRST_CAUSES = 5; // causes shown before the others are asked for

// The table of causes is in the page without a script. Here it gets the colours of the theme, and becomes the filter and
// the legend of the charts.
export function createCauseTable(context, run, table) {
  const {looks, filter} = context;
  const more = document.getElementById('more-causes'), all = document.getElementById('all-causes');
  const rows = [...table?.querySelectorAll('.cause-name') ?? []].map((button) =>
    ({button, row: button.closest('tr'), cause: run.cause_names.indexOf(button.dataset.name)}));
  let folded = rows.length > FIRST_CAUSES + 1;
  more.hidden = !folded;
  const update = () => {
    for (const picture of document.querySelectorAll('svg[data-cause]')) picture.setAttribute('fill', looks()[picture.dataset.cause].colour);
    for (const [i, {button, row, cause}] of rows.entries()) {
      row.hidden = folded && i >= FIRST_CAUSES && !filter.has(cause);
      row.className = filter.shows(cause) ? '' : 'off';
      button.setAttribute('aria-pressed', String(filter.has(cause)));
    }
    more.textContent = folded ? `show all ${rows.length} causes` : `show the ${FIRST_CAUSES} largest causes`;
    all.hidden = filter.empty();
  };
  for (const {button, cause} of rows) {
    button.title += '\nClick: show only this cause. Ctrl+click: show this cause too.';
    button.addEventListener('click', (event) => filter.toggle(cause, event.ctrlKey || event.metaKey));
  }
  more.addEventListener('click', () => {
    folded = !folded;
    update();
  });
  all.addEventListener('click', () => filter.clear());
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
