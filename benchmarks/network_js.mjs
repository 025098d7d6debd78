// js-libp2p's side of the network benchmark; see network_side.py for what each command means.
//
// usage: node network_js.mjs NODE_MODULES
import { createHash, randomBytes } from "node:crypto";
import { createInterface } from "node:readline";
import { join, resolve } from "node:path";
import { pathToFileURL } from "node:url";

const root = resolve(process.argv[2]);
const load = (path) => import(pathToFileURL(join(root, path)).href);
const { createLibp2p } = await load("libp2p/dist/src/index.js");
const { tcp } = await load("@libp2p/tcp/dist/src/index.js");
const { noise } = await load("@chainsafe/libp2p-noise/dist/src/index.js");
const { yamux } = await load("@chainsafe/libp2p-yamux/dist/src/index.js");
const { identify } = await load("@libp2p/identify/dist/src/index.js");
const { gossipsub } = await load("@chainsafe/libp2p-gossipsub/dist/src/index.js");
const { multiaddr } = await load("@multiformats/multiaddr/dist/src/index.js");

const [ECHO, ANSWER, COUNT] = ["echo", "answer", "count"].map((name) => `/bench/${name}/1`);
const TOPIC = "/waku/2/rs/42/4";
const [PING_BYTES, REQUEST_BYTES, MESSAGE_BYTES, PIECE] = [32, 100, 1_024, 65_536];
const MANY = { maxInboundStreams: 5_000, maxOutboundStreams: 5_000 };

const wakuGossip = () => (components) => {
  const made = gossipsub({
    msgIdFn: ({ data }) => createHash("sha256").update(data).digest(),
    globalSignaturePolicy: "StrictNoSign",
    fallbackToFloodsub: false,
    allowPublishToZeroTopicPeers: true,
    emitSelf: false,
    Dhi: 12,
  })(components);
  made.multicodecs = ["/vac/waku/relay/2.0.0"];
  return made;
};

const makeNode = (services) =>
  createLibp2p({
    addresses: { listen: ["/ip4/127.0.0.1/tcp/0"] },
    transports: [tcp()],
    connectionEncrypters: [noise()],
    streamMuxers: [yamux()],
    connectionManager: { inboundConnectionThreshold: 10_000 },
    services: { identify: identify(), ...services },
  });

class Reader {
  constructor(stream) {
    this.source = stream.source[Symbol.asyncIterator]();
    this.rest = Buffer.alloc(0);
  }
  // undefined at the end
  async some() {
    if (this.rest.length) {
      const taken = this.rest;
      this.rest = Buffer.alloc(0);
      return taken;
    }
    const { value, done } = await this.source.next();
    return done ? undefined : Buffer.from(value.subarray());
  }
  async exactly(count) {
    while (this.rest.length < count) {
      const { value, done } = await this.source.next();
      if (done) throw new Error("the stream ended");
      this.rest = this.rest.length
        ? Buffer.concat([this.rest, value.subarray()])
        : Buffer.from(value.subarray());
    }
    const taken = this.rest.subarray(0, count);
    this.rest = this.rest.subarray(count);
    return taken;
  }
  async toEnd() {
    const pieces = [];
    for (let piece; (piece = await this.some()); ) pieces.push(piece);
    return Buffer.concat(pieces);
  }
}

const node = await makeNode({});
await node.handle(ECHO, ({ stream }) => void stream.sink(stream.source).catch(() => {}), MANY);
await node.handle(
  ANSWER,
  async ({ stream }) => {
    await stream.sink([await new Reader(stream).toEnd()]);
  },
  MANY,
);
await node.handle(
  COUNT,
  async ({ stream }) => {
    const reader = new Reader(stream);
    const size = (await reader.exactly(4)).readUInt32BE();
    let messages = 0;
    while (messages < size) {
      await reader.exactly(MESSAGE_BYTES);
      messages++;
    }
    let rest = 0;
    for (let piece; (piece = await reader.some()); ) rest += piece.length;
    await stream.sink([Buffer.from(`${messages} ${rest}`)]);
  },
  MANY,
);

const median = (values) => {
  const sorted = [...values].sort((a, b) => a - b);
  const middle = sorted.length >> 1;
  return sorted.length % 2 ? sorted[middle] : (sorted[middle - 1] + sorted[middle]) / 2;
};
const sleep = (ms) => new Promise((done) => setTimeout(done, ms));
const nowNs = () => process.hrtime.bigint();

// A stream that is written to piece by piece.
async function conversation(address, protocol) {
  const connection = await node.dial(multiaddr(address));
  const stream = await connection.newStream(protocol, MANY);
  const queue = [];
  let wake = () => {};
  const sinking = stream.sink(
    (async function* () {
      for (;;) {
        while (queue.length) yield queue.shift();
        await new Promise((done) => (wake = done));
      }
    })(),
  );
  sinking.catch(() => {});
  const write = (bytes) => {
    queue.push(bytes);
    wake();
  };
  return { connection, stream, write, reader: new Reader(stream) };
}

async function sendAndCount(address, header, pieces, expected) {
  const connection = await node.dial(multiaddr(address));
  const stream = await connection.newStream(COUNT, MANY);
  const began = performance.now();
  const told = new Reader(stream).toEnd();
  await stream.sink(
    (function* () {
      yield header;
      yield* pieces;
    })(),
  );
  const said = (await told).toString();
  if (said !== expected) throw new Error(`${expected} were sent and ${said} came`);
  return (performance.now() - began) / 1e3;
}

function* repeated(size, times) {
  const piece = Buffer.alloc(size);
  for (let i = 0; i < times; i++) yield piece;
}

let hub;
let leaves = [];

const commands = {
  async connect({ address, times }) {
    const taken = [];
    for (let i = 0; i < times; i++) {
      const began = performance.now();
      const { connection, write, reader } = await conversation(address, ECHO);
      write(Buffer.alloc(PING_BYTES));
      await reader.exactly(PING_BYTES);
      taken.push(performance.now() - began);
      await connection.close().catch(() => connection.abort(new Error("done")));
    }
    return { ms: median(taken) };
  },
  async rtt({ address, times }) {
    const { stream, write, reader } = await conversation(address, ECHO);
    const taken = [];
    for (let i = 0; i < times; i++) {
      const began = performance.now();
      write(Buffer.alloc(PING_BYTES));
      await reader.exactly(PING_BYTES);
      taken.push(performance.now() - began);
    }
    stream.abort(new Error("done"));
    return { ms: median(taken) };
  },
  async requests({ address, times }) {
    const connection = await node.dial(multiaddr(address));
    const began = performance.now();
    for (let i = 0; i < times; i++) {
      const stream = await connection.newStream(ANSWER, MANY);
      await stream.sink([Buffer.alloc(REQUEST_BYTES)]);
      const back = await new Reader(stream).toEnd();
      if (back.length !== REQUEST_BYTES) throw new Error(`${back.length} bytes came back`);
    }
    return { per_second: (times / (performance.now() - began)) * 1e3 };
  },
  async messages({ address, times }) {
    const header = Buffer.alloc(4);
    header.writeUInt32BE(times);
    const pieces = repeated(MESSAGE_BYTES, times);
    return { per_second: times / (await sendAndCount(address, header, pieces, `${times} 0`)) };
  },
  async bulk({ address, mib }) {
    const size = mib * 2 ** 20;
    const pieces = repeated(PIECE, mib * 16);
    const seconds = await sendAndCount(address, Buffer.alloc(4), pieces, `0 ${size}`);
    return { mb_per_second: size / 1e6 / seconds };
  },

  async hub() {
    hub = await makeNode({ pubsub: wakuGossip() });
    hub.services.pubsub.subscribe(TOPIC);
    return { address: hub.getMultiaddrs()[0].toString() };
  },
  async leaves({ address, number }) {
    for (let i = 0; i < number; i++) {
      const leaf = { heard: 0, latencies: [], lastNs: 0n };
      leaf.node = await makeNode({ pubsub: wakuGossip() });
      leaf.node.services.pubsub.subscribe(TOPIC);
      leaf.node.services.pubsub.addEventListener("message", ({ detail }) => {
        leaf.lastNs = nowNs();
        leaf.heard++;
        const sent = Buffer.from(detail.data).readBigUInt64BE();
        leaf.latencies.push(Number(leaf.lastNs - sent) / 1e6);
      });
      await leaf.node.dial(multiaddr(address));
      leaves.push(leaf);
    }
    return {};
  },
  async meshed({ number }) {
    for (let i = 0; i < 600 && hub.services.pubsub.getSubscribers(TOPIC).length < number; i++) {
      await sleep(50);
    }
    await sleep(3_000); // until the heartbeat has filled the mesh
    return {};
  },
  async publish({ times, pace_ms }) {
    const began = nowNs();
    for (let i = 0; i < times; i++) {
      const payload = randomBytes(MESSAGE_BYTES);
      payload.writeBigUInt64BE(nowNs());
      await hub.services.pubsub.publish(TOPIC, payload);
      if (pace_ms) await sleep(pace_ms);
    }
    return { began_ns: Number(began) };
  },
  async heard({ expected, quiet_s }) {
    let quietSince = performance.now();
    let before = -1;
    while (performance.now() - quietSince < quiet_s * 1e3) {
      const now = leaves.reduce((sum, { heard }) => sum + heard, 0);
      if (now !== before) [quietSince, before] = [performance.now(), now];
      if (now >= expected * leaves.length) break;
      await sleep(20);
    }
    const told = {
      counts: leaves.map(({ heard }) => heard),
      last_ns: Math.max(...leaves.map(({ lastNs }) => Number(lastNs))),
      latency_ms: median(leaves.flatMap(({ latencies }) => latencies).concat([])) ?? 0,
    };
    for (const leaf of leaves) Object.assign(leaf, { heard: 0, latencies: [] });
    return told;
  },
};

const say = (line) => process.stdout.write(`${JSON.stringify(line)}\n`);
say({ address: node.getMultiaddrs()[0].toString() });
for await (const line of createInterface({ input: process.stdin })) {
  const { command, ...fields } = JSON.parse(line);
  say(await commands[command](fields).catch((error) => ({ failed: `${error.name}: ${error.message}` })));
}
process.exit(0);
