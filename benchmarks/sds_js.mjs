// The SDS workloads of sds_work.py on @waku/sds, one per process; prints one JSON object.
//
// usage: node --expose-gc sds_js.mjs NODE_MODULES pair N | receive LOG K | memory N | micro
import { createHash } from "node:crypto";
import { join, resolve } from "node:path";
import { pathToFileURL } from "node:url";

const [modules, workload, ...numbers] = process.argv.slice(2);
const dist = join(resolve(modules), "@waku/sds/dist");
const load = (path) => import(pathToFileURL(join(dist, path)).href);
const { ContentMessage, Message, MessageChannel } = await load("index.js");
const { DefaultBloomFilter } = await load("bloom_filter/bloom.js");

const CONTENT_BYTES = 100;
const HINT = new Uint8Array(32).fill(7);
const sha256hex = (text) => createHash("sha256").update(text).digest("hex");

function text(number) {
  return new TextEncoder().encode(`message ${number} `.padEnd(CONTENT_BYTES, "."));
}

async function send(channel, content) {
  let raw;
  channel.pushOutgoingMessage(content, async (message) => {
    raw = message.encode();
    return { success: true, retrievalHint: HINT };
  });
  await channel.processTasks();
  return raw;
}

async function receive(channel, raw) {
  channel.pushIncomingMessage(Message.decode(raw), HINT);
  await channel.processTasks();
}

// The library has no way to load a history: its list is filled from outside, sorted as it keeps it.
function filled(name, size) {
  const channel = new MessageChannel("general", name);
  const base = BigInt(Date.now()) - BigInt(size) - 1000n;
  const items = Array.from({ length: size }, (_, number) => {
    const id = sha256hex(`old ${number}`);
    channel.timeReceived.set(id, 1);
    const lamport = base + BigInt(number);
    return new ContentMessage(id, "general", "old", [], lamport, undefined, text(number), [], HINT);
  });
  channel.localHistory.items = items;
  return channel;
}

function cpuSeconds(since) {
  const { user, system } = process.cpuUsage(since);
  return (user + system) / 1e6;
}

async function pair(count) {
  const two = ["alice", "bob"].map((name) => new MessageChannel("general", name));
  const contents = Array.from({ length: count }, (_, number) => text(number));
  const since = process.cpuUsage();
  let bytes = 0;
  for (let number = 0; number < count; number++) {
    const raw = await send(two[number % 2], contents[number]);
    bytes += raw.length;
    await receive(two[(number + 1) % 2], raw);
  }
  if (two.some((channel) => channel.localHistory.length !== count)) throw new Error("not in step");
  return { per_cpu_second: count / cpuSeconds(since), bytes_per_message: bytes / count };
}

async function receiving(size, count) {
  const [sender, receiver] = [filled("alice", size), filled("bob", size)];
  const raws = [];
  for (let number = 0; number < count + 2; number++) raws.push(await send(sender, text(number)));
  for (const raw of raws.splice(0, 2)) await receive(receiver, raw);
  const since = process.cpuUsage();
  for (const raw of raws) await receive(receiver, raw);
  const seconds = cpuSeconds(since);
  if (receiver.localHistory.length !== size + count + 2) throw new Error("not delivered");
  return { cpu_ms: (seconds / count) * 1e3, message_bytes: raws[0].length };
}

// Decoded messages are views of the received bytes: nothing but the receiver may be left at the end.
async function memory(count) {
  const used = () => {
    for (let round = 0; round < 3; round++) global.gc();
    const { heapUsed, external } = process.memoryUsage();
    return heapUsed + external;
  };
  const before = used();
  const receiver = new MessageChannel("general", "bob");
  await (async () => {
    const sender = new MessageChannel("general", "alice");
    for (let number = 0; number < count; number++) {
      await receive(receiver, await send(sender, text(number)));
    }
  })();
  const grown = used() - before;
  if (receiver.localHistory.length !== count) throw new Error("not delivered");
  return { bytes_per_message: grown / count };
}

function micro() {
  const ids = Array.from({ length: 5000 }, (_, number) => sha256hex(`id ${number}`));
  const filter = new DefaultBloomFilter({ capacity: 10000, errorRate: 0.001 });
  const microseconds = (count, run) => {
    run();
    const since = process.cpuUsage();
    run();
    return (cpuSeconds(since) / count) * 1e6;
  };
  const times = (count, run) => () => {
    for (let round = 0; round < count; round++) run();
  };
  const insert_us = microseconds(5000, () => ids.forEach((id) => filter.insert(id)));
  const lookup_us = microseconds(5000, () => ids.forEach((id) => filter.lookup(id)));
  const bytes = filter.toBytes();
  const history = ids.slice(0, 200).map((messageId) => ({ messageId, retrievalHint: HINT, senderId: "alice" }));
  const message = new ContentMessage(ids[300], "general", "bob", history, 1n, bytes, text(1));
  const raw = message.encode();
  return {
    insert_us,
    lookup_us,
    to_bytes_us: microseconds(200, times(200, () => filter.toBytes())),
    from_bytes_us: microseconds(
      200,
      times(200, () => DefaultBloomFilter.fromBytes(bytes, filter.options)),
    ),
    encode_us: microseconds(500, times(500, () => message.encode())),
    decode_us: microseconds(500, times(500, () => Message.decode(raw))),
  };
}

const workloads = { pair, receive: receiving, memory, micro };
console.log(JSON.stringify(await workloads[workload](...numbers.map(Number))));
