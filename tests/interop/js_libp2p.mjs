// A js-libp2p node behind JSON lines: one command per line in, one answer (with the same id) per
// line out, in any order.  The node is the library's own; only the test protocols are ours:
//
//   /test/echo/1    everything back as it comes, then close
//   /test/answer/1  read to the end, then say how many bytes that were
//   /test/first/1   read 4 bytes, answer with them, and close both halves at once
//   /test/abort/1   read 4 bytes, then abort
//   /test/never/1   never read
//
// usage: node js_libp2p.mjs NODE_MODULES MUXER[,MUXER]
import { createInterface } from "node:readline";
import { createRequire } from "node:module";
import { join, resolve } from "node:path";
import { pathToFileURL } from "node:url";

const [modules, muxers] = process.argv.slice(2);
const root = resolve(modules);
const load = (path) => import(pathToFileURL(join(root, path)).href);
const { createLibp2p } = await load("libp2p/dist/src/index.js");
const { tcp } = await load("@libp2p/tcp/dist/src/index.js");
const { webSockets } = await load("@libp2p/websockets/dist/src/index.js");
const { all } = await load("@libp2p/websockets/dist/src/filters.js");
const { noise } = await load("@chainsafe/libp2p-noise/dist/src/index.js");
const { yamux } = await load("@chainsafe/libp2p-yamux/dist/src/index.js");
const { mplex } = await load("@libp2p/mplex/dist/src/index.js");
const { identify, identifyPush } = await load("@libp2p/identify/dist/src/index.js");
const { ping } = await load("@libp2p/ping/dist/src/index.js");
const { multiaddr } = await load("@multiformats/multiaddr/dist/src/index.js");
const version = createRequire(join(root, "libp2p/package.json"))("./package.json").version;

const MUXERS = { yamux, mplex };
const MANY = { maxInboundStreams: 5_000, maxOutboundStreams: 5_000 };

const node = await createLibp2p({
  addresses: { listen: ["/ip4/127.0.0.1/tcp/0", "/ip4/127.0.0.1/tcp/0/ws"] },
  transports: [tcp(), webSockets({ filter: all })],
  connectionEncrypters: [noise()],
  streamMuxers: muxers.split(",").map((name) => MUXERS[name]()),
  services: { identify: identify(), push: identifyPush(), ping: ping() },
});

async function* taken(stream, count) {
  let left = count;
  for await (const chunk of stream.source) {
    const bytes = chunk.subarray().subarray(0, left);
    left -= bytes.length;
    yield bytes;
    if (left === 0) return;
  }
}

const total = async (source) => {
  let length = 0;
  for await (const chunk of source) length += chunk.byteLength;
  return length;
};

// Reading without ending the source, as a `for await` with a break would.
const read = async (stream, count) => {
  const source = stream.source[Symbol.asyncIterator]();
  let got = Buffer.alloc(0);
  while (got.length < count) {
    const { value, done } = await source.next();
    if (done) break;
    got = Buffer.concat([got, value.subarray()]);
  }
  return got;
};

let failures = [];
const told = (promise) => promise.catch((error) => failures.push(`${error.name}: ${error.message}`));

const protocols = {
  "/test/echo/1": (stream) => stream.sink(stream.source),
  "/test/answer/1": async (stream) => {
    const length = await total(stream.source);
    await stream.sink([Buffer.from(String(length))]);
  },
  "/test/first/1": async (stream) => {
    const bytes = await read(stream, 4);
    await stream.sink([bytes]);
    await stream.close();
  },
  "/test/abort/1": async (stream) => {
    await read(stream, 4);
    stream.abort(new Error("as asked"));
  },
  "/test/never/1": async () => {},
};
for (const [name, handler] of Object.entries(protocols)) {
  await node.handle(name, ({ stream }) => void told(handler(stream)), MANY);
}

const peerOf = (id) => node.getConnections().find((each) => each.remotePeer.toString() === id);
const open = (id, protocol) => peerOf(id).newStream(protocol, MANY);
const bytes = (size) => Buffer.alloc(size, 7);
function* pieces(size) {
  for (let left = size; left > 0; left -= 65_536) yield bytes(Math.min(left, 65_536));
}
const each = (count, action) => Promise.all(Array.from({ length: count }, (_, i) => action(i)));

const commands = {
  async dial({ address }) {
    const connection = await node.dial(multiaddr(address));
    return { peer: connection.remotePeer.toString(), muxer: connection.multiplexer };
  },
  async look() {
    const connections = node.getConnections();
    return {
      failures,
      connections: connections.map((one) => ({
        peer: one.remotePeer.toString(),
        muxer: one.multiplexer,
        direction: one.direction,
        address: one.remoteAddr.toString(),
        streams: one.streams.map((stream) => [stream.protocol ?? "", stream.direction]),
      })),
    };
  },
  async known({ peer }) {
    const connection = peerOf(peer);
    const { protocols, metadata, addresses } = await node.peerStore.get(connection.remotePeer);
    const agent = metadata.get("AgentVersion");
    return {
      protocols,
      agent: agent ? Buffer.from(agent).toString() : "",
      addresses: addresses.map(({ multiaddr }) => multiaddr.toString()),
    };
  },
  async ping({ peer, count }) {
    const times = [];
    for (let i = 0; i < count; i++) times.push(await node.services.ping.ping(peerOf(peer).remotePeer));
    return { times };
  },
  // `count` streams at once; each sends `size` bytes to an echo and reads them back to the end
  async echo({ peer, count, size, protocol }) {
    const lengths = await each(count, async () => {
      const stream = await open(peer, protocol);
      const [length] = await Promise.all([total(stream.source), stream.sink(pieces(size))]);
      return length;
    });
    return { lengths };
  },
  // one after another: half-close, then read the answer to its end
  async ask({ peer, count, size, protocol }) {
    const answers = [];
    for (let i = 0; i < count; i++) {
      const stream = await open(peer, protocol);
      await stream.sink(pieces(size));
      let answer = "";
      for await (const chunk of stream.source) answer += Buffer.from(chunk.subarray());
      answers.push(answer);
    }
    return { answers };
  },
  // one after another: write 4 bytes, read 4 back, close both halves without waiting for the end
  async leave({ peer, count, protocol }) {
    for (let i = 0; i < count; i++) {
      const stream = await open(peer, protocol);
      let done;
      const finished = new Promise((resolve) => (done = resolve));
      const sinking = stream.sink(
        (async function* () {
          yield bytes(4);
          await finished;
        })(),
      );
      const got = await read(stream, 4);
      if (got.length !== 4) throw new Error(`${got.length} bytes came back`);
      done();
      await sinking;
      await stream.close();
    }
    return {};
  },
  // write 4 bytes, then abort
  async abort({ peer, count, protocol }) {
    await each(count, async () => {
      const stream = await open(peer, protocol);
      const sinking = stream.sink(
        (async function* () {
          yield bytes(4);
          await new Promise(() => {});
        })(),
      );
      sinking.catch(() => {});
      await read(stream, 4);
      stream.abort(new Error("as asked"));
    });
    return {};
  },
  // write and never read what comes back
  async flood({ peer, size, protocol }) {
    const stream = await open(peer, protocol);
    await stream.sink(pieces(size));
    return {};
  },
  async hang_up({ peer }) {
    await peerOf(peer).close();
    return {};
  },
  async stop() {
    await node.stop();
    return {};
  },
};

const say = (line) => process.stdout.write(`${JSON.stringify(line)}\n`);
say({
  id: 0,
  version,
  peer: node.peerId.toString(),
  addresses: node.getMultiaddrs().map(String),
});
for await (const line of createInterface({ input: process.stdin })) {
  const { id, command, ...rest } = JSON.parse(line);
  void commands[command](rest).then(
    (answer) => say({ id, ...answer }),
    (error) => say({ id, failed: `${error.name}: ${error.message}` }),
  );
}
process.exit(0);
