// SPDX-License-Identifier: MIT
// What each cause looks like and means. A cause has the same colour in every report, so that eyes learn them; a
// family (memory, files, CPU ...) shares a hue and a mark, because thirty hues can't be told apart and some
// readers tell few. Names are analysis/causes.h's; one that is not known here (a newer analysis) still draws.

const families = {
  memory: 'circle',
  files: 'square',
  cpu: 'triangle',
  interrupts: 'diamond',
  outside: 'cross',
};

// name: [family, colour on light, colour on dark, what it is in a few words]
const looks = {
  'fork': ['memory', '#d4252a', '#f25c54', 'fork() copying page tables for a snapshot or rewrite child'],
  'cow-copy': ['memory', '#e8700c', '#ff9440', 'a write to a page shared with a child: the kernel copied it first'],
  'cow-reuse': ['memory', '#f0a35e', '#f7bd88', 'a write to a formerly shared page, made writable in place'],
  'page-zero': ['memory', '#b98d00', '#e0b325', 'first touch of new memory'],
  'page-file': ['memory', '#8f7a35', '#c2ad68', 'first touch of a mapped file page'],
  'page-in': ['memory', '#8c4a12', '#c98146', 'a page read back from swap or from a file'],
  'page-fault': ['memory', '#a8876b', '#cfb196', 'a page fault of an untold kind'],
  'reclaim': ['memory', '#b81f86', '#ea62bb', 'the thread itself had to free memory'],
  'compaction': ['memory', '#d977b5', '#f0a5d4', 'the thread itself had to compact memory'],
  'fsync': ['files', '#1a4fc4', '#6b95ff', 'fsync or fdatasync: waiting for the disk'],
  'file-write': ['files', '#2f86eb', '#5cacff', 'a write to a file that blocked'],
  'file-read': ['files', '#6ea8e8', '#9ac8fa', 'a read of a file that blocked'],
  'file-meta': ['files', '#93a9d6', '#b9caef', 'open, close, rename, unlink: a file operation that blocked'],
  'syscall': ['cpu', '#74709c', '#aaa6cf', 'blocked in another system call'],
  'lock-wait': ['cpu', '#a17be0', '#bfa0f5', 'waiting for another thread (futex)'],
  'run-queue': ['cpu', '#6f3fc4', '#a27bf0', 'ready to run, but the CPU was given to another'],
  'no-server': ['outside', '#b3261e', '#f2837c', 'nobody served the key: a failover, or a server that was gone'],
  'cpu-quota': ['cpu', '#b0369c', '#df7fd0', 'ready to run, but its cgroup had used up its CPU quota'],
  'sleep': ['cpu', '#9b93b5', '#b5aecb', 'asleep by its own wish'],
  'stopped': ['cpu', '#5d5670', '#8f88a3', 'stopped by a signal or a debugger'],
  'hardirq': ['interrupts', '#4d7c0f', '#8fbf3f', 'hardware interrupts on its CPU'],
  'softirq/hi': ['interrupts', '#5f8f4e', '#92c481', 'soft interrupt: high-priority tasklets'],
  'softirq/timer': ['interrupts', '#6aa84f', '#98d17e', 'soft interrupt: timers'],
  'softirq/net_tx': ['interrupts', '#0f766e', '#33b8ac', 'soft interrupt: sending packets'],
  'softirq/net_rx': ['interrupts', '#0a9367', '#3bd19f', 'soft interrupt: receiving packets'],
  'softirq/block': ['interrupts', '#2c8a57', '#63c58f', 'soft interrupt: finished disk requests'],
  'softirq/irq_poll': ['interrupts', '#3f9e8c', '#71cdbc', 'soft interrupt: polled disk requests'],
  'softirq/tasklet': ['interrupts', '#7fae5b', '#abd78a', 'soft interrupt: tasklets'],
  'softirq/sched': ['interrupts', '#58a573', '#8ad1a3', 'soft interrupt: balancing of run queues'],
  'softirq/hrtimer': ['interrupts', '#86b87a', '#b0dba6', 'soft interrupt: high-resolution timers'],
  'softirq/rcu': ['interrupts', '#4f9a3d', '#82c972', 'soft interrupt: freeing of kernel objects'],
  'softirq/deferred': ['interrupts', '#2f7f4f', '#6cc08d', 'ready to run, but soft interrupts had the CPU in their own thread'],
  'server-busy': ['outside', '#2b9fb3', '#4cc3d7', 'the server ran its own code: other commands, or this one'],
  'client-late': ['outside', '#7d8796', '#a5afbd', 'the load generator sent it late'],
  'network': ['outside', '#456c7d', '#86b0c2', 'the server was waiting for it: network, or the client'],
  'unknown': ['outside', '#8a8a8a', '#9c9c9c', 'nothing recorded says what happened'],
  'idle': ['outside', '#d8dce2', '#30363d', 'waiting for requests'],
  'disk-read': ['files', '#3aa0c9', '#64c4ea', 'the device was reading'],
  'disk-write': ['files', '#2f6fb5', '#5b9be0', 'the device was writing'],
  'disk-flush': ['files', '#6a4fb0', '#9a82de', 'the device was emptying its cache'],
  'disk-discard': ['files', '#8fa3b8', '#a9bbcd', 'the device was told of free blocks'],
};

// One entry per number used in the arrays: {name, mark, colour, ink (for text on the colour), meaning}. `dark`
// picks the colours.
export function lookOfCauses(names, dark) {
  return names.map((name) => {
    const [family, light, lit, meaning] = looks[name] ?? ['outside', '#777777', '#999999', ''];
    const colour = dark ? lit : light;
    return {name, mark: families[family], colour, ink: inkOn(colour), meaning};
  });
}

// Black or white, whichever contrasts more with a #rrggbb colour (WCAG 2 relative luminance).
export function inkOn(colour) {
  const [red, green, blue] = [1, 3, 5].map((i) => {
    const value = parseInt(colour.slice(i, i + 2), 16) / 255;
    return value <= 0.04045 ? value / 12.92 : ((value + 0.055) / 1.055) ** 2.4;
  });
  const luminance = 0.2126 * red + 0.7152 * green + 0.0722 * blue;
  return 1.05 / (luminance + 0.05) > (luminance + 0.05) / 0.05 ? '#ffffff' : '#000000';
}

// Waiting that is no trouble on threads that serve no one: a background thread that waits for work.
export function isQuiet(name) {
  return name === 'idle' || name === 'lock-wait' || name === 'sleep';
}
