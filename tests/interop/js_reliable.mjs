// A js-waku light node with one ReliableChannel, as the package ships it, behind JSON lines: one
// command per line in, one answer per line out.
//
// usage: node js_reliable.mjs NODE_MODULES
// What the network loses is decided between the node and the channel: the channel gets the node's own
// functions, and one of them hears less, and one of them sends less without saying so.
import { createInterface } from "node:readline";
import { join, resolve } from "node:path";
import { pathToFileURL } from "node:url";

const [modules] = process.argv.slice(2);
const sdk = await import(
  pathToFileURL(join(resolve(modules), "@waku/sdk", "dist/index.js")).href
);

const symmetric = await import(
  pathToFileURL(join(resolve(modules), "@waku/message-encryption", "dist/symmetric.js")).href
);

const bytes = (string) => new TextEncoder().encode(string);

let node;
let channel;
let opener;
const delivered = [];
const counts = {};

// mulberry32: the same losses for the same seed.
function drawn(seed) {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4294967296;
  };
}

const count = (name) => (counts[name] = (counts[name] ?? 0) + 1);

let deaf = false;
let pushed;

function losing(loss, seed) {
  const [inward, outward] = [drawn(seed), drawn(seed + 1_000)];
  const subscribe = node.filter.subscribe.bind(node.filter);
  node.filter.subscribe = (decoders, hear) =>
    subscribe(decoders, (message) => {
      if (deaf || inward() < loss) return void count("lostInward");
      return hear(message);
    });
  const send = node.lightPush.send.bind(node.lightPush);
  node.lightPush.send = async (encoder, message, options) => {
    const lost = outward() < loss;
    if (lost) count("lostOutward");
    const result = lost ? { successes: [], failures: [] } : await send(encoder, message, options);
    pushed?.();
    return result;
  };
}

const commands = {
  async start({ address, cluster, shardCount }) {
    node = await sdk.createLightNode({
      networkConfig: { clusterId: cluster, numShardsInCluster: shardCount },
      libp2p: { filterMultiaddrs: false, hideWebSocketInfo: true },
      bootstrapPeers: [address],
      numPeersToUse: 1,
      discovery: { dns: false, peerExchange: false, peerCache: false },
    });
    await node.start();
    const { Filter, LightPush, Store } = sdk.Protocols;
    await node.waitForPeers([Filter, LightPush, Store], 10_000);
    return {};
  },
  // With a key, in hex, payloads are sealed by @waku/message-encryption.
  async join({ topic, channelId, senderId, key, loss, seed, options }) {
    let encoder = node.createEncoder({ contentTopic: topic });
    let decoder = node.createDecoder({ contentTopic: topic });
    if (key) {
      const { routingInfo } = encoder;
      const symKey = Buffer.from(key, "hex");
      encoder = symmetric.createEncoder({ contentTopic: topic, routingInfo, symKey });
      decoder = symmetric.createDecoder(topic, routingInfo, symKey);
    }
    opener = decoder;
    losing(loss, seed);
    channel = await sdk.ReliableChannel.create(node, channelId, senderId, encoder, decoder, {
      ...options,
      autoStart: false,
    });
    const sds = channel.messageChannel;
    sds.addEventListener("sds:in:message-delivered", ({ detail }) => delivered.push(detail));
    for (const name of ["sds:in:sync-received", "sds:out:sync-sent", "sds:error-task"]) {
      sds.addEventListener(name, () => count(name));
    }
    for (const name of ["message-acknowledged", "message-possibly-acknowledged"]) {
      channel.addEventListener(name, () => count(name));
    }
    return { started: await channel.start(), pubsubTopic: encoder.pubsubTopic };
  },
  // Answered once the node has it, or the network has lost it.
  async say({ payload }) {
    const gone = new Promise((resolve) => (pushed = resolve));
    const messageId = channel.send(bytes(payload));
    await gone;
    return { messageId };
  },
  // What the Store has of the topic, opened by the channel's own decoder.
  async stored() {
    const payloads = [];
    const hear = ({ payload }) => void payloads.push(Buffer.from(payload).toString("hex"));
    await node.store.queryWithOrderedCallback([opener], hear);
    return { payloads };
  },
  async look() {
    return { delivered, counts };
  },
};

for await (const line of createInterface({ input: process.stdin })) {
  const { do: name, ...fields } = JSON.parse(line);
  let answer;
  try {
    answer = await commands[name](fields);
  } catch (error) {
    answer = { failed: String(error?.stack ?? error) };
  }
  console.log(JSON.stringify(answer));
}
process.exit(0);
