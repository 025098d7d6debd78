// A js-waku light node behind JSON lines: one command per line in, one answer per line out.
//
// usage: node js_waku.mjs NODE_MODULES current|legacy
//   current: @waku/sdk 0.0.36, store-query 3.0.0; legacy: 0.0.24, the last with store 2.0.0-beta4
import { readFileSync } from "node:fs";
import { createInterface } from "node:readline";
import { join, resolve } from "node:path";
import { pathToFileURL } from "node:url";

const [modules, generation] = process.argv.slice(2);
const legacy = generation === "legacy";
const folder = (name) => join(resolve(modules), name);
const load = (path) => import(pathToFileURL(path).href);
const sdkFolder = folder(legacy ? "waku-sdk-legacy" : "@waku/sdk");
const sdk = await load(join(sdkFolder, "dist/index.js"));

const text = (bytes) => new TextDecoder().decode(bytes);
const bytes = (string) => new TextEncoder().encode(string);

let node;
let shardInfo;
let decoder;
let encoder;
const pushed = [];
let wakeUp = () => {};

function openStreams() {
  const counts = {};
  for (const connection of node.libp2p.getConnections()) {
    for (const stream of connection.streams) {
      counts[stream.protocol] = (counts[stream.protocol] ?? 0) + 1;
    }
  }
  return counts;
}

async function start({ address, cluster, shardCount, shard, topic }) {
  const libp2p = { filterMultiaddrs: false, hideWebSocketInfo: true };
  if (legacy) {
    shardInfo = { clusterId: cluster, shard };
    const shards = { clusterId: cluster, shards: [shard] };
    node = await sdk.createLightNode({ shardInfo: shards, libp2p, defaultBootstrap: false });
    await node.start();
    await node.dial(address);
    const { Filter, LightPush, Store } = sdk.Protocols;
    await sdk.waitForRemotePeer(node, [Filter, LightPush, Store], 10_000);
    decoder = sdk.createDecoder(topic, shardInfo);
    encoder = sdk.createEncoder({ contentTopic: topic, pubsubTopicShardInfo: shardInfo });
    return {};
  }
  const networkConfig = { clusterId: cluster, numShardsInCluster: shardCount };
  node = await sdk.createLightNode({
    networkConfig,
    libp2p,
    bootstrapPeers: [address],
    numPeersToUse: 1,
    discovery: { dns: false, peerExchange: false, peerCache: false },
  });
  await node.start();
  return {};
}

const commands = {
  start,
  async ready({ topic }) {
    const { Filter, LightPush, Store } = sdk.Protocols;
    await node.waitForPeers([Filter, LightPush, Store], 10_000);
    encoder = node.createEncoder({ contentTopic: topic });
    decoder = node.createDecoder({ contentTopic: topic });
    return { pubsubTopic: encoder.pubsubTopic };
  },
  async subscribe() {
    const hear = (message) => {
      pushed.push(text(message.payload));
      wakeUp();
    };
    if (!legacy) return { accepted: await node.filter.subscribe([decoder], hear) };
    const subscription = await node.filter.createSubscription(shardInfo);
    await subscription.subscribe([decoder], hear); // throws if it is refused
    await subscription.ping();
    return { accepted: true };
  },
  async unsubscribe() {
    return { accepted: await node.filter.unsubscribe([decoder]) };
  },
  async heard({ count }) {
    while (pushed.length < count) {
      await new Promise((resolve) => (wakeUp = resolve));
    }
    return { pushed };
  },
  async push({ payload, useLegacy, ephemeral }) {
    const how = ephemeral
      ? node.createEncoder({ contentTopic: encoder.contentTopic, ephemeral: true })
      : encoder;
    const message = { payload: bytes(payload) };
    const sent = await node.lightPush.send(how, message, { useLegacy, autoRetry: false });
    return { successes: sent.successes.length, failures: sent.failures.map((f) => f.error) };
  },
  async query({ forward, limit }) {
    const options = legacy
      ? { pageDirection: forward ? "forward" : "backward", pageSize: limit }
      : { paginationForward: forward, paginationLimit: limit };
    const pages = [];
    for await (const page of node.store.queryGenerator([decoder], options)) {
      const messages = await Promise.all(page);
      pages.push(messages.map((message) => text(message.payload).split(" ")[0]));
    }
    return { pages };
  },
  async payloads({ limit }) {
    const options = legacy ? { pageSize: limit } : { paginationForward: true, paginationLimit: limit };
    const found = [];
    for await (const page of node.store.queryGenerator([decoder], options)) {
      for (const message of await Promise.all(page)) {
        found.push(Buffer.from(message.payload).toString("hex"));
      }
    }
    return { found };
  },
  async lookUp({ hashes }) {
    const wanted = hashes.map((hash) => new Uint8Array(Buffer.from(hash, "hex")));
    const options = { messageHashes: wanted, includeData: true };
    const found = [];
    for await (const page of node.store.queryGenerator([decoder], options)) {
      for (const message of await Promise.all(page)) found.push(text(message.payload));
    }
    return { found };
  },
  async look() {
    return { connections: node.libp2p.getConnections().length, streams: openStreams() };
  },
  async version() {
    return JSON.parse(readFileSync(join(sdkFolder, "package.json"), "utf-8"));
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
