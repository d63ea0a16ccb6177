// SPDX-License-Identifier: MIT
// The data of single slow requests. An object is created only for a request that is looked at.

import {lowerBound} from './data.js';

// The values of the recording's enum ft_status.
export const statusNames = ['answered', 'answered: no such key', 'answered with an error', 'timed out',
  'its connection was closed', 'refused', 'answered wrongly', 'never sent'];

// The index of each mark's first part in the arrays of parts.
export function firstParts(counts) {
  const first = new Uint32Array(counts.length + 1);
  for (let i = 0; i < counts.length; i++) first[i + 1] = first[i] + counts[i];
  return first;
}

export function createMarks(run) {
  const {slow_start: starts, slow_since: since, slow_latency: latencies, slow_cause: causes, slow_op: ops, slow_number: numbers,
    slow_sent: sent, slow_connection: connections, slow_hop: hops, slow_status: statuses, slow_behind: behind,
    slow_unread: unread, slow_way: way, slow_way_back: wayBack, slow_read: read, slow_written: written,
    slow_request_bytes: requestBytes, slow_answer_bytes: answerBytes, slow_parts: counts, part_cause: partCauses,
    part_hop: partHops, part_direct: directs, part_queued: queues, connection_number: connectionNumbers,
    connection_port: ports, connection_server: servers, connection_client: clients} = run.arrays;
  const first = firstParts(counts);
  const hasLog = numbers.length === starts.length;
  const inKernel = requestBytes.length > 0;
  const known = (value) => value === undefined || Number.isNaN(value) ? null : value;

  function connectionOf(i) {
    if (!hasLog) return null;
    const c = connections[i];
    return {index: c, number: connectionNumbers[c], port: ports[c], server: run.servers[servers[c]] ?? '',
      client: run.clients[clients[c]] ?? ''};
  }

  function partsOf(i) {
    const parts = [];
    for (let k = first[i]; k < first[i + 1]; k++)
      parts.push({cause: partCauses[k], hop: run.hop_names[partHops[k]]?.name ?? '', direct: directs[k], queued: queues[k],
        ns: directs[k] + queues[k]});
    return parts;
  }

  function mark(i) {
    const start = run.seconds(starts[i]);
    const hop = run.hop_names[hops[i]];
    return {
      i,
      number: hasLog ? numbers[i] : null,
      start,
      since: Math.min(start, run.seconds(since[i])),
      sent: hasLog ? Math.min(run.seconds(sent[i]), start + latencies[i] / 1e9) : start,
      end: start + latencies[i] / 1e9,
      latency: latencies[i],
      op: run.ops[ops[i]] ?? '',
      status: hasLog ? statusNames[statuses[i]] ?? `status ${statuses[i]}` : '',
      failed: hasLog && statuses[i] > 1,
      cause: causes[i],
      parts: partsOf(i),
      connection: connectionOf(i),
      behind: hasLog && behind[i] ? run.behind[behind[i] - 1] ?? '' : '',
      hop: hop?.name ?? '',
      lane: hop?.lane ?? null,
      unread: known(unread[i]),
      way: known(way[i]),
      wayBack: known(wayBack[i]),
      read: known(read[i]),
      written: known(written[i]),
      requestBytes: known(requestBytes[i]),
      answerBytes: known(answerBytes[i]),
    };
  }

  // Slow requests ahead of this one: sent before it and not yet answered when it was due, on its connection and on
  // others of the same thread. The nearest one first.
  function inFront(i, limit = 12) {
    const due = run.seconds(starts[i]), sentAt = hasLog ? sent[i] : starts[i];
    const same = [], others = [];
    if (!hasLog) return {same, others};
    // No request due earlier than this, by the longest request before it, can still be in progress.
    const from = lowerBound(starts, Math.max(0, run.ticks(due - run.latency_ns.max / 1e9)));
    for (let k = Math.min(starts.length, lowerBound(starts, starts[i] + 1)) - 1; k >= from; k--) {
      if (k === i || run.seconds(starts[k]) + latencies[k] / 1e9 <= due) continue;
      if (sent[k] > sentAt || (sent[k] === sentAt && numbers[k] >= numbers[i])) continue;
      if (connections[k] === connections[i]) same.push(k);
      else if (hops[k] === hops[i] && servers[connections[k]] === servers[connections[i]]) others.push(k);
    }
    return {same: same.slice(0, limit), others: others.slice(0, limit), sameCount: same.length, othersCount: others.length};
  }

  // The slowest mark due in a range of time, or -1.
  function worst(fromS, toS) {
    let best = -1;
    const end = run.ticks(toS);
    for (let i = lowerBound(starts, Math.max(0, run.ticks(fromS) - 1)); i < starts.length && starts[i] <= end; i++)
      if (best < 0 || latencies[i] > latencies[best]) best = i;
    return best;
  }

  // The mark with a number in the request log, or -1.
  function numbered(number) {
    return hasLog ? numbers.indexOf(number) : number < starts.length ? number : -1;
  }

  return {count: starts.length, hasLog, inKernel, mark, inFront, worst, numbered, connectionOf, firstPart: first};
}
