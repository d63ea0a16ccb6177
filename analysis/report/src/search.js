// SPDX-License-Identifier: MIT
// Search for requests, such as "GET conn:12 >5ms fork". Matches stay on the charts, and the slowest are listed, so that
// they can be reached without a pointer.

import {count, duration, instant} from './format.js';
import {element, markOf} from './dom.js';

const LISTED = 50;
const scales = {ns: 1, us: 1e3, 'µs': 1e3, ms: 1e6, s: 1e9};

// "5ms" -> 5e6; null if it is not a duration.
export function parseDuration(text) {
  const found = /^(\d+(?:\.\d+)?)(ns|us|µs|ms|s)$/.exec(text);
  return found ? Number(found[1]) * scales[found[2]] : null;
}

const fields = {conn: 'connection', connection: 'connection', op: 'op', thread: 'thread', server: 'server', cause: 'cause',
  status: 'status'};

// A query as terms: {kind, value, text}. All must match. A word without a colon matches any name.
export function parseQuery(query) {
  return query.trim().toLowerCase().split(/\s+/).filter(Boolean).map((text) => {
    if (/^#\d+$/.test(text)) return {kind: 'number', value: Number(text.slice(1)), text};
    const bound = /^([<>])=?(.+)$/.exec(text);
    const ns = bound && parseDuration(bound[2]);
    if (ns !== null && ns !== undefined) return {kind: bound[1] === '>' ? 'longer' : 'shorter', value: ns, text};
    const colon = text.indexOf(':');
    const field = colon > 0 ? fields[text.slice(0, colon)] : undefined;
    const value = field ? text.slice(colon + 1) : text;
    return {kind: field ?? 'any', value, text};
  });
}

// The names that contain a value, computed once per query: name -> 1 if it matches.
function fitting(names, value) {
  return Uint8Array.from(names, (name) => (name ?? '').toLowerCase().includes(value) ? 1 : 0);
}

// Returns a test of mark i for a query.
export function matcher(run, marks, query) {
  const {slow_op: ops, slow_cause: causes, slow_hop: hops, slow_latency: latencies, slow_status: statuses,
    slow_number: numbers, slow_connection: connections, connection_number: connectionNumbers, connection_port: ports,
    connection_server: servers, slow_behind: behind, part_cause: partCauses} = run.arrays;
  const {hasLog, firstPart} = marks;
  const tests = {
    number: ({value}) => (i) => hasLog ? numbers[i] === value : i === value,
    longer: ({value}) => (i) => latencies[i] >= value,
    shorter: ({value}) => (i) => latencies[i] <= value,
    op({value}) {
      const fits = fitting(run.ops, value);
      return (i) => fits[ops[i]] === 1;
    },
    cause({value}) {
      const fits = fitting(run.cause_names, value);
      return (i) => {
        if (fits[causes[i]]) return true;
        for (let k = firstPart[i]; k < firstPart[i + 1]; k++) if (fits[partCauses[k]]) return true;
        return false;
      };
    },
    thread({value}) {
      const fits = fitting(run.hop_names.map(({name}) => name), value);
      return (i) => fits[hops[i]] === 1;
    },
    server({value}) {
      const fits = fitting(run.servers, value), fitsBehind = fitting(run.behind, value);
      return (i) => hasLog && (fits[servers[connections[i]]] === 1 || (behind[i] > 0 && fitsBehind[behind[i] - 1] === 1));
    },
    // Its number in the log, or its port at the client.
    connection({value}) {
      const wanted = Number(value.replace(/^#/, ''));
      return (i) => hasLog && (connectionNumbers[connections[i]] === wanted || (wanted > 0 && ports[connections[i]] === wanted));
    },
    status({value}) {
      const failed = value === 'error' || value === 'failed';
      return (i) => hasLog && (failed ? statuses[i] > 1 : String(statuses[i]) === value);
    },
    // By the main cause only, because any request has a little of many causes.
    any(term) {
      const some = ['op', 'thread', 'server'].map((kind) => tests[kind](term));
      const fits = fitting(run.cause_names, term.value);
      return (i) => fits[causes[i]] === 1 || some.some((test) => test(i));
    },
  };
  const all = parseQuery(query).map((term) => tests[term.kind](term));
  return (i) => all.every((test) => test(i));
}

export function createSearch(context, run, marks, host) {
  const {looks} = context;
  const latencies = run.arrays.slow_latency;
  const input = element('input', {type: 'search', id: 'search', placeholder: 'Search: GET fork conn:12 >5ms', autocomplete: 'off',
    spellcheck: 'false', 'aria-label': `Search slow ${run.from_iterations ? 'iterations' : 'requests'}`,
    'aria-describedby': 'search-said'});
  const status = element('span', {id: 'search-said', class: 'muted', role: 'status'});
  const list = element('ol', {class: 'found', 'aria-label': 'Matches, slowest first'});
  list.hidden = true;
  let timer = 0;

  function row(i) {
    const m = marks.mark(i);
    return element('li', {}, element('button', {type: 'button', onclick: () => context.open(i)},
      markOf(looks()[m.cause]), `${m.op ? m.op + ' ' : ''}${duration(m.latency)} `,
      element('span', {class: 'muted'}, `${instant(m.start, 1e-6)}, ${run.cause_names[m.cause]}` +
        `${m.connection ? `, connection ${m.connection.number}` : ''}`)));
  }

  function find(query) {
    context.query = query.trim();
    context.lanes?.find(context.query);
    if (!context.query) {
      context.found = null;
      status.textContent = '';
      list.replaceChildren();
      list.hidden = true;
      context.changed();
      return;
    }
    const fits = matcher(run, marks, context.query);
    const found = new Uint8Array(marks.count);
    const hits = [];
    for (let i = 0; i < marks.count; i++) {
      if (!fits(i)) continue;
      found[i] = 1;
      hits.push(i);
    }
    hits.sort((a, b) => latencies[b] - latencies[a] || a - b);
    context.found = found;
    const shown = Math.min(hits.length, LISTED);
    status.textContent = hits.length === 0 ? 'no match' : `${count(hits.length)} of ${count(marks.count)} match` +
      (shown < hits.length ? `, the slowest ${shown}:` : ':');
    list.replaceChildren(...hits.slice(0, LISTED).map(row));
    list.hidden = hits.length === 0;
    context.changed();
  }

  input.addEventListener('input', () => {
    clearTimeout(timer);
    timer = setTimeout(() => find(input.value), 120);
  });
  input.addEventListener('keydown', (event) => {
    if (event.key === 'Enter') {
      clearTimeout(timer);
      find(input.value);
      list.querySelector('button')?.focus();
    } else if (event.key === 'Escape') {
      input.value = '';
      find('');
      input.blur();
    } else return;
    event.preventDefault();
    event.stopPropagation();
  });
  host.append(input, status, list);
  return {
    focus() {
      input.focus();
      input.select();
    },
    set(query) {
      if (input.value.trim() === query && context.query === query) return;
      input.value = query;
      find(query);
    },
    clear() { this.set(''); },
  };
}
