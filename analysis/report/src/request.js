// SPDX-License-Identifier: MIT
// The panel of one request: its times, what its thread did, its time by cause, and the requests ahead of it. All rows
// share one time axis, which starts where its first cause does.

import {count, duration, instant, percent} from './format.js';
import {element, markOf} from './dom.js';
import {lowerBound} from './data.js';
import {samplesIn} from './flame.js';

const PIECES = 400; // maximum pieces of its thread that are drawn individually

// The lane of its serving thread: its own, else the only serving one.
export function laneOf(run, mark) {
  if (mark.lane !== null) return run.lanes[mark.lane];
  const serving = run.lanes.filter(({kind}) => kind === 'serving');
  return serving.length === 1 ? serving[0] : null;
}

// What a lane's thread did in a range of time, as {cause, from, to} in seconds, without pieces shorter than the page
// has. At most `limit`, the longest ones, by time.
export function piecesOf(run, lane, from, to, limit = PIECES) {
  const {span_start: starts, span_length: lengths, span_cause: causes} = run.arrays;
  const last = lane.spans[0] + lane.spans[1];
  const pieces = [];
  for (let i = Math.max(lane.spans[0], lowerBound(starts, run.ticks(from), lane.spans[0], last) - 1); i < last; i++) {
    const start = run.seconds(starts[i]), end = start + lengths[i] * run.tick_s;
    if (start >= to) break;
    if (end > from) pieces.push({cause: causes[i], from: Math.max(from, start), to: Math.min(to, end)});
  }
  if (pieces.length <= limit) return pieces;
  pieces.sort((a, b) => (b.to - b.from) - (a.to - a.from));
  return pieces.slice(0, limit).sort((a, b) => a.from - b.from);
}

export function createRequest(context, run, marks, host) {
  const {looks} = context;
  const what = run.from_iterations ? 'iteration' : 'request';
  let shown = -1, before = null;

  function bar(mark, from, to, {className = '', colour, text = '', title}) {
    const length = mark.end - mark.since;
    const made = element('span', {class: `wf-bar ${className}`, title}, text);
    made.style.left = `${100 * (from - mark.since) / length}%`;
    made.style.width = `${100 * Math.max(0, to - from) / length}%`;
    if (colour) made.style.background = colour;
    return made;
  }

  // A row of the waterfall: its name, its length, and bars.
  function row(name, ns, ...bars) {
    return element('tr', {}, element('th', {scope: 'row'}, ...[name].flat()), element('td', {class: 'wf-length'}, ns === null ? '' : duration(ns)),
      element('td', {class: 'wf-track', 'aria-hidden': 'true'}, ...bars));
  }

  // A kernel log: the request was due when it arrived at the server.
  function kernelRows(m) {
    const rows = [row('arrival to reply', m.latency, bar(m, m.start, m.end, {className: 'wf-open'}))];
    if (m.read === null) return rows;
    const read = m.start + m.read / 1e9;
    rows.push(row('arrival to read', m.read, bar(m, m.start, read, {className: 'wf-late'})));
    rows.push(row('read to reply', m.latency - m.read, bar(m, read, m.end, {className: 'wf-open'})));
    return rows;
  }

  function clientRows(m) {
    const rows = [];
    if (marks.inKernel) return kernelRows(m);
    if (!marks.hasLog) return [row('running', m.latency, bar(m, m.start, m.end, {className: 'wf-open'}))];
    if (m.sent > m.start) rows.push(row('due to sent', (m.sent - m.start) * 1e9, bar(m, m.start, m.sent, {className: 'wf-late'})));
    rows.push(row(m.failed ? 'sent to failed' : 'sent to answered', (m.end - m.sent) * 1e9, bar(m, m.sent, m.end, {className: 'wf-open'})));
    if (m.way !== null) rows.push(row('request on the network', m.way, bar(m, m.sent, m.sent + m.way / 1e9, {className: 'wf-way'})));
    if (m.wayBack !== null) {
      const arrived = m.end - (m.unread ?? 0) / 1e9;
      rows.push(row('reply on the network', m.wayBack, bar(m, arrived - m.wayBack / 1e9, arrived, {className: 'wf-way'})));
    }
    if (m.unread) rows.push(row('reply in the socket buffer', m.unread, bar(m, m.end - m.unread / 1e9, m.end, {className: 'wf-late'})));
    return rows;
  }

  function threadRow(m) {
    const lane = laneOf(run, m);
    if (!lane) return [];
    const pieces = piecesOf(run, lane, m.since, m.end);
    const bars = pieces.map(({cause, from, to}) => bar(m, from, to, {colour: looks()[cause].colour,
      title: `${run.cause_names[cause]} ${duration((to - from) * 1e9)} from ${instant(from, 1e-6)}`}));
    return [row([`${lane.name} during this time`, element('div', {class: 'muted'}, 'blank: own code or idle')], null, ...bars)];
  }

  // Parts are sums, not intervals: their bars start at the left, and their length is their time.
  function partRows(m) {
    const total = m.parts.reduce((sum, {ns}) => sum + ns, 0);
    const rows = m.parts.filter(({ns}) => ns > 0).map((part) => {
      const look = looks()[part.cause];
      const direct = bar(m, m.since, m.since + part.direct / 1e9, {colour: look.colour});
      const queued = bar(m, m.since + part.direct / 1e9, m.since + part.ns / 1e9, {className: 'wf-queued', colour: look.colour});
      const how = part.queued === 0 ? '' : part.direct === 0 ? 'queued' : `${duration(part.queued)} queued`;
      return row([element('span', {class: 'wf-cause'}, markOf(look), look.name),
        element('div', {class: 'muted'}, [percent(part.ns / m.latency), how, part.hop === m.hop ? '' : part.hop].filter(Boolean).join(', '))], part.ns, direct, queued);
    });
    const rest = m.latency - total;
    if (rest > m.latency * 1e-4)
      rows.push(row([element('span', {}, 'smaller parts'), element('div', {class: 'muted'}, percent(rest / m.latency))], rest));
    return rows;
  }

  function frontRows(m, front) {
    const one = (k) => {
      const other = marks.mark(k);
      const from = Math.max(other.sent, m.since), to = Math.min(other.end, m.end);
      return row(element('button', {type: 'button', class: 'link', onclick: () => context.open(k)},
        `${other.op || what} ${duration(other.latency)}${other.connection ? `, connection ${other.connection.number}` : ''}`),
      null, bar(m, from, to, {className: 'wf-front', title: `due ${instant(other.start, 1e-6)}`}));
    };
    return [...front.same.map(one), ...front.others.map(one)];
  }

  function frontText(front) {
    if (!marks.hasLog) return '';
    const {sameCount: same = 0, othersCount: others = 0} = front;
    if (same + others === 0) return 'No slow request was ahead of it. This page has only slow requests individually.';
    return `${count(same)} slow ${same === 1 ? 'request' : 'requests'} on its connection and ${count(others)} on others of the ` +
      'same thread had been sent before it and not been answered when it was due. This page has only slow requests ' +
      'individually.';
  }

  function section(title, rows) {
    return rows.length ? element('tbody', {}, element('tr', {class: 'wf-title'}, element('th', {scope: 'rowgroup', colspan: '3'}, title)), ...rows) : '';
  }

  function activityText(m) {
    const lane = run.lanes.find(({kind, note}) => kind === 'activity' && note === laneOf(run, m)?.note);
    if (!lane) return '';
    const {sample_activity: activities, sample_own: own} = run.arrays;
    const [first, end] = samplesIn(run, lane, run.ticks(m.since), run.ticks(m.end));
    const counts = new Map();
    for (let i = first; i < end; i++) if (own[i]) counts.set(activities[i], (counts.get(activities[i]) ?? 0) + 1);
    const rows = [...counts].sort((a, b) => b[1] - a[1]).slice(0, 5);
    return rows.length ? `On-CPU samples: ${rows.map(([a, n]) => `${run.activities[a]} (${n})`).join(', ')}.` : '';
  }

  function facts(m) {
    const pairs = [];
    const add = (name, value) => { if (value) pairs.push(element('div', {}, element('dt', {}, name), element('dd', {}, value))); };
    const after = (ns) => ns === null ? '' : instant(m.start + ns / 1e9, 1e-6);
    if (marks.inKernel) {
      add('Arrival', `${instant(m.start, 1e-6)}, ${count(m.requestBytes)} bytes`);
      add('Read', after(m.read));
      add('Reply', `${instant(m.end, 1e-6)}, ${count(m.answerBytes)} bytes`);
      add('Written', after(m.written));
      add('Client', m.connection.client);
      add('Command', m.op);
    } else {
      add(run.from_iterations ? 'Started' : 'Due', instant(m.start, 1e-6));
      if (marks.hasLog) add('Sent', instant(m.sent, 1e-6));
      add(marks.hasLog ? (m.failed ? 'Failed' : 'Answered') : 'Ended', `${instant(m.end, 1e-6)}${m.status ? `, ${m.status}` : ''}`);
    }
    if (m.connection) add('Connection', `${m.connection.number}${m.connection.port ? `, port ${m.connection.port}` : ''}, ${m.connection.server}`);
    add('Behind the proxy', m.behind);
    add('Served by', m.hop);
    if (m.number !== null) add('Number in the log', String(m.number));
    return element('dl', {class: 'facts'}, ...pairs);
  }

  function fill(i) {
    const m = marks.mark(i);
    const front = marks.inFront(i);
    const head = element('div', {class: 'panel-head'},
      element('h2', {id: 'request-title', tabindex: '-1'}, `${m.op ? m.op + ' ' : `One ${what}: `}${duration(m.latency)}`),
      element('button', {type: 'button', class: 'small', onclick: () => context.lookAt(m.since, m.end)}, 'Zoom in'),
      element('button', {type: 'button', class: 'close', 'aria-label': 'Close', onclick: () => close()}, '×'));
    const caption = `From ${instant(m.since, 1e-6)} (start of its first cause) to ${instant(m.end, 1e-6)} (its end)`;
    const table = element('table', {class: 'waterfall'}, element('caption', {class: 'muted'}, caption),
      section('Course of the request', [...clientRows(m), ...threadRow(m)]),
      section('Its time by cause (totals, not positions in time; hatched: queued behind requests that the cause delayed)', partRows(m)),
      section('Requests ahead of it', frontRows(m, front)));
    host.replaceChildren(head, facts(m), element('div', {class: 'wf-scroll'}, table),
      element('p', {class: 'muted'}, [frontText(front), activityText(m)].filter(Boolean).join(' ')));
  }

  function close() {
    if (shown < 0) return;
    shown = -1;
    host.hidden = true;
    host.replaceChildren();
    before?.focus?.({preventScroll: true});
    before = null;
    context.changed();
  }

  return {
    open(i, focus = true) {
      if (shown < 0) before = document.activeElement;
      shown = i;
      host.hidden = false;
      fill(i);
      if (focus) host.querySelector('#request-title').focus({preventScroll: true});
      context.changed();
    },
    close,
    shown: () => shown,
    update() {
      if (shown >= 0) fill(shown);
    },
  };
}
