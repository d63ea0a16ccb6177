// SPDX-License-Identifier: MIT
// Formats numbers for readers: three significant digits, always with a unit. Separate from drawing, so that tests can
// check the text.

const units = [[1e9, 's'], [1e6, 'ms'], [1e3, 'µs'], [1, 'ns']];

// Three significant digits, never in scientific notation: 0.123, 1.23, 12.3, 123, 1,234.
function threeDigits(value) {
  const size = Math.abs(value);
  if (size >= 999.5) return Math.round(value).toLocaleString('en-US');
  if (size >= 99.95) return value.toFixed(0);
  if (size >= 9.995) return value.toFixed(1);
  return value.toFixed(2);
}

// A duration in ns: "812 ns", "12.3 µs", "61.2 ms", "38.1 s".
export function duration(ns) {
  if (!Number.isFinite(ns)) return '–';
  if (ns === 0) return '0 ms';
  for (const [size, name] of units)
    if (Math.abs(ns) >= 0.9995 * size) return `${size === 1 ? Math.round(ns) : threeDigits(ns / size)} ${name}`;
  return `${threeDigits(ns)} ns`;
}

// A round duration in ns for ticks, without trailing zeros: "10 µs", "2 ms".
export function tickDuration(ns) {
  const [size, name] = units.find(([s]) => ns >= 0.9999 * s) ?? units[3];
  return `${+(ns / size).toPrecision(3)} ${name}`;
}

// An instant of the run, in seconds from its start, precise to `stepS`: "+12.304 s".
export function instant(s, stepS = 1e-3) {
  return `${s < 0 ? '' : '+'}${s.toFixed(decimals(stepS))} s`;
}

// The number of decimals that distinguishes instants `stepS` seconds apart.
export function decimals(stepS) {
  return Math.max(0, Math.min(9, Math.ceil(-Math.log10(stepS) - 1e-9)));
}

export function count(n) {
  return Math.round(n).toLocaleString('en-US');
}

export function percent(share) {
  const value = 100 * share;
  if (value > 0 && value < 0.1) return '< 0.1 %';
  return `${value >= 99.95 || value < 0.05 ? value.toFixed(0) : value.toFixed(value >= 9.95 ? 0 : 1)} %`;
}

// A metric's value with its unit; bytes have decimal prefixes, as in the text report. `digits` rounds: threeDigits for
// text, plain for ticks, which are round already.
export function quantity(value, unit, digits = threeDigits) {
  if (!Number.isFinite(value)) return '–';
  if (value === 0) value = 0; // not -0
  if (unit === 'bytes') return scaled(value, ['B', 'kB', 'MB', 'GB', 'TB'], digits);
  if (unit === 'bytes/s') return scaled(value, ['B/s', 'kB/s', 'MB/s', 'GB/s', 'TB/s'], digits);
  if (unit === '1/s') return `${value >= 1e5 ? digits(value / 1e3) + 'k' : digits(value)}/s`;
  if (unit === 'percent') return `${digits(value)} %`;
  if (unit === 'ns') return duration(value);
  return `${digits(value)}${unit ? ' ' + unit : ''}`;
}

export function plain(value) {
  return (+value.toPrecision(6)).toLocaleString('en-US');
}

function scaled(value, names, digits) {
  let i = 0;
  while (Math.abs(value) >= 999.5 && i + 1 < names.length) {
    value /= 1000;
    i++;
  }
  return `${digits(value)} ${names[i]}`;
}
