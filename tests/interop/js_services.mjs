// Lightpush 3.0.0 and store 3.0.0 as another implementation reads and writes them, for our clients:
// js-libp2p's host, @waku/proto's codecs, @waku/core's message hash.  No js-waku release serves
// these, so what a server does with a request is ours here, and as little as the specification
// asks: what is pushed is kept, and what is kept is found.
//
// usage: node js_services.mjs NODE_MODULES
import { createInterface } from "node:readline";
import { createRequire } from "node:module";
import { join, resolve } from "node:path";
import { pathToFileURL } from "node:url";

const root = resolve(process.argv[2]);
const load = (path) => import(pathToFileURL(join(root, path)).href);
const { createLibp2p } = await load("libp2p/dist/src/index.js");
const { tcp } = await load("@libp2p/tcp/dist/src/index.js");
const { noise } = await load("@chainsafe/libp2p-noise/dist/src/index.js");
const { yamux } = await load("@chainsafe/libp2p-yamux/dist/src/index.js");
const { identify } = await load("@libp2p/identify/dist/src/index.js");
const { ping } = await load("@libp2p/ping/dist/src/index.js");
const lp = await load("it-length-prefixed/dist/src/index.js");
const { messageHash } = await load("@waku/core/dist/lib/message_hash/index.js");
const { proto_lightpush: push, proto_store: store } = await load("@waku/proto/dist/index.js");
const version = createRequire(join(root, "@waku/proto/package.json"))("./package.json").version;

const node = await createLibp2p({
  addresses: { listen: ["/ip4/127.0.0.1/tcp/0"] },
  transports: [tcp()],
  connectionEncrypters: [noise()],
  streamMuxers: [yamux()],
  services: { identify: identify(), ping: ping() },
});

const kept = [];
const requests = [];
let refuseWith = null;

const hex = (bytes) => Buffer.from(bytes).toString("hex");
// Of `this`, as a Buffer has turned itself into something else by the time it is handed over.
const readable = (value) =>
  JSON.parse(
    JSON.stringify(value, function (key, given) {
      const raw = this[key];
      if (raw instanceof Uint8Array) return hex(raw);
      return typeof raw === "bigint" ? raw.toString() : given;
    }),
  );

function answerPush(request) {
  const { requestId, pubsubTopic, message } = request;
  if (refuseWith !== null) return { requestId, ...refuseWith };
  kept.push({ pubsubTopic, message, messageHash: messageHash(pubsubTopic, message) });
  return { requestId, statusCode: 200, relayPeerCount: 3 };
}

function answerQuery(request) {
  const { requestId, contentTopics, messageHashes, includeData, paginationCursor } = request;
  if (refuseWith !== null) return { requestId, messages: [], ...refuseWith };
  let found = kept.filter(
    (one) =>
      (!contentTopics.length || contentTopics.includes(one.message.contentTopic)) &&
      (!messageHashes.length || messageHashes.some((hash) => hex(hash) === hex(one.messageHash))) &&
      (request.timeStart === undefined || one.message.timestamp >= request.timeStart) &&
      (request.timeEnd === undefined || one.message.timestamp <= request.timeEnd),
  );
  const limit = Number(request.paginationLimit ?? 20n);
  const at = paginationCursor
    ? found.findIndex((one) => hex(one.messageHash) === hex(paginationCursor))
    : -1;
  if (paginationCursor && at < 0) return { requestId, statusCode: 300, messages: [] };
  let page;
  let more;
  if (request.paginationForward) {
    page = found.slice(at + 1, at + 1 + limit);
    more = at + 1 + limit < found.length;
  } else {
    const end = at < 0 ? found.length : at;
    page = found.slice(Math.max(0, end - limit), end);
    more = end - limit > 0;
  }
  const edge = request.paginationForward ? page.at(-1) : page[0];
  return {
    requestId,
    statusCode: 200,
    statusDesc: "OK",
    messages: page.map((one) => (includeData ? one : { messageHash: one.messageHash })),
    ...(more ? { paginationCursor: edge.messageHash } : {}),
  };
}

const serve = (Request, Response, answer) => async ({ stream }) => {
  try {
    for await (const bytes of lp.decode(stream.source)) {
      const request = Request.decode(bytes);
      requests.push(readable(request));
      await stream.sink(lp.encode([Response.encode(answer(request))]));
      await stream.close();
      return;
    }
  } catch (error) {
    requests.push({ failed: `${error.name}: ${error.message}` });
    stream.abort(error);
  }
};
await node.handle(
  "/vac/waku/lightpush/3.0.0",
  serve(push.LightPushRequestV3, push.LightPushResponseV3, answerPush),
);
await node.handle(
  "/vac/waku/store-query/3.0.0",
  serve(store.StoreQueryRequest, store.StoreQueryResponse, answerQuery),
);

const commands = {
  // what was asked for, as the codec read it: bytes as hex, bigints as decimal
  requests: () => ({ requests: requests.splice(0) }),
  refuse: ({ statusCode, statusDesc }) => ((refuseWith = { statusCode, statusDesc }), {}),
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
  say({ id, ...commands[command](rest) });
}
process.exit(0);
