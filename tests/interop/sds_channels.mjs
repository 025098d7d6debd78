// Channels of @waku/sds behind JSON lines: one command per line in, one answer per line out.
//
// Time and chance are the caller's: every command says what time it is, and Math.random is seeded,
// so that a run repeats.  The channels are the library's own and unchanged.
//
// usage: node sds_channels.mjs NODE_MODULES SEED
import { createHash } from "node:crypto";
import { createInterface } from "node:readline";
import { join, resolve } from "node:path";
import { pathToFileURL } from "node:url";

const [modules, seed] = process.argv.slice(2);

let now = 0;
Date.now = () => now;

let state = Number(seed) >>> 0;
Math.random = () => {
  state = (state + 0x6d2b79f5) >>> 0;
  let mixed = Math.imul(state ^ (state >>> 15), state | 1);
  mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
  return ((mixed ^ (mixed >>> 14)) >>> 0) / 4294967296;
};

const library = pathToFileURL(join(resolve(modules), "@waku/sds/dist/index.js")).href;
const { Message, MessageChannel, MessageChannelEvent } = await import(library);

const base64 = (bytes) => Buffer.from(bytes).toString("base64");
const bytes = (text) => new Uint8Array(Buffer.from(text, "base64"));
const hintOf = (raw) => new Uint8Array(createHash("sha256").update(raw).digest());

const channels = new Map();
let events = [];

const told = {
  [MessageChannelEvent.InMessageReceived]: (message) => message.messageId,
  [MessageChannelEvent.InMessageDelivered]: (id) => id,
  [MessageChannelEvent.InSyncReceived]: (message) => message.messageId,
  [MessageChannelEvent.OutMessageAcknowledged]: (id) => id,
  [MessageChannelEvent.OutMessagePossiblyAcknowledged]: ({ messageId }) => messageId,
  [MessageChannelEvent.ErrorTask]: ({ error }) => String(error),
  [MessageChannelEvent.RepairRequestSent]: ({ messageIds }) => messageIds.join(),
  [MessageChannelEvent.RepairRequestReceived]: ({ messageIds }) => messageIds.join(),
};

const commands = {
  open({ name, channel, options }) {
    const made = new MessageChannel(channel, name, options);
    for (const [event, detail] of Object.entries(told)) {
      made.addEventListener(event, (fired) => events.push([event, detail(fired.detail)]));
    }
    channels.set(name, made);
    return {};
  },
  async send({ name, content, falseHint }) {
    const channel = channels.get(name);
    let raw;
    channel.pushOutgoingMessage(bytes(content), async (message) => {
      raw = message.encode();
      return { success: true, retrievalHint: hintOf(falseHint ? hintOf(raw) : raw) };
    });
    await channel.processTasks();
    return { raw: base64(raw) };
  },
  async ephemeral({ name, content }) {
    const channel = channels.get(name);
    let raw;
    await channel.pushOutgoingEphemeralMessage(bytes(content), async (message) => {
      raw = message.encode();
      return { success: true };
    });
    await channel.processTasks();
    return { raw: base64(raw) };
  },
  async receive({ name, raw }) {
    const encoded = bytes(raw);
    const message = Message.decode(encoded);
    if (message === undefined) return { decoded: false };
    const channel = channels.get(name);
    channel.pushIncomingMessage(message, hintOf(encoded));
    await channel.processTasks();
    return { decoded: true, kind: message.constructor.name };
  },
  async sync({ name }) {
    let raw = null;
    await channels.get(name).pushOutgoingSyncMessage(async (message) => {
      raw = base64(message.encode());
      return true;
    });
    return { raw };
  },
  async sweep({ name, answers = true }) {
    const channel = channels.get(name);
    const missing = channel.sweepIncomingBuffer();
    const repairs = answers ? await channel.sweepRepairIncomingBuffer() : [];
    return {
      missing: missing.map(({ messageId, retrievalHint }) => [
        messageId,
        retrievalHint ? base64(retrievalHint) : null,
      ]),
      repairs: repairs.map((message) => base64(message.encode())),
    };
  },
  look({ name }) {
    const channel = channels.get(name);
    return {
      log: channel.localHistory.slice(0).map(({ messageId }) => messageId),
      outgoing: channel.outgoingBuffer.map(({ messageId }) => messageId),
      waiting: channel.incomingBuffer.filter(({ content }) => content?.length).length,
      lamport: Number(channel.lamportTimestamp),
    };
  },
};

for await (const line of createInterface({ input: process.stdin })) {
  const command = JSON.parse(line);
  now = command.now;
  events = [];
  let answer;
  try {
    answer = await commands[command.do](command);
  } catch (error) {
    answer = { failed: String(error.stack ?? error) };
  }
  process.stdout.write(JSON.stringify({ ...answer, events }) + "\n");
}
