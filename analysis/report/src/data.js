// SPDX-License-Identifier: MIT
// The run's data in the page: a JSON object for small data, typed arrays for large data. analysis/report/report.cc
// writes both; docs/reference/report.md describes them. All arrays are in one little-endian buffer, aligned to their
// elements, so that a hundred thousand spans can be drawn without creating objects.

const types = {u8: Uint8Array, u16: Uint16Array, u32: Uint32Array, f32: Float32Array};
const FORMAT = 1;

function bytesOfBase64(text) {
  if (Uint8Array.fromBase64) return Uint8Array.fromBase64(text);
  const raw = atob(text);
  const bytes = new Uint8Array(raw.length);
  for (let i = 0; i < raw.length; i++) bytes[i] = raw.charCodeAt(i);
  return bytes;
}

// `arrays`: name -> [type, byte offset, element count] in the buffer. Throws an error with a sentence for the user.
export function decodeArrays(arrays, base64) {
  const {buffer} = bytesOfBase64(base64);
  const decoded = {};
  for (const [name, [type, offset, length]] of Object.entries(arrays)) {
    const Type = types[type];
    if (!Type) throw new Error(`array ${name} is of unknown type ${type}`);
    if (offset + length * Type.BYTES_PER_ELEMENT > buffer.byteLength)
      throw new Error(`array ${name} ends beyond the page's data: the file was cut`);
    decoded[name] = new Type(buffer, offset, length);
  }
  return decoded;
}

// The run's object with decoded `arrays`. Times in arrays are ticks after `begin_s`; `seconds(tick)` converts them to
// seconds from the run's zero, which all charts use.
export function decodeRun(json, base64) {
  const run = JSON.parse(json);
  if (run.format !== FORMAT) throw new Error(`the page's data has format ${run.format}, its script reads ${FORMAT}`);
  run.arrays = decodeArrays(run.arrays, base64);
  const tickS = run.tick_ns / 1e9;
  run.tick_s = tickS;
  run.seconds = (tick) => run.begin_s + tick * tickS;
  run.ticks = (s) => (s - run.begin_s) / tickS;
  // Episodes have the numbers of the text report, largest total time first; `ranking` lists them in that order.
  run.ranking = [...run.episodes.keys()].sort((a, b) => run.episodes[b].time_ns - run.episodes[a].time_ns || a - b);
  run.ranking.forEach((i, rank) => { run.episodes[i].number = rank + 1; });
  return run;
}

// The first index in [first, end) whose value is not below `value`; values ascend.
export function lowerBound(values, value, first = 0, end = values.length) {
  while (first < end) {
    const middle = (first + end) >>> 1;
    if (values[middle] < value) first = middle + 1;
    else end = middle;
  }
  return first;
}
