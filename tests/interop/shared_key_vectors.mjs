// Writes tests/vectors/waku/shared_key.json: payloads of 26/WAKU2-PAYLOAD, symmetric, as
// @waku/message-encryption makes them, padding, nonces and all.
//
// usage: node tests/interop/shared_key_vectors.mjs build/interop/node_modules
//        > tests/vectors/waku/shared_key.json
import { join, resolve } from "node:path";
import { pathToFileURL } from "node:url";

const [modules] = process.argv.slice(2);
const symmetric = await import(
  pathToFileURL(join(resolve(modules), "@waku/message-encryption", "dist/symmetric.js")).href
);

const hex = (bytes) => Buffer.from(bytes).toString("hex");
const key = Uint8Array.from({ length: 32 }, (_, i) => i);
const signer = Uint8Array.from({ length: 32 }, (_, i) => i + 1);
// Nothing, one byte, just one padding of 256 too many, two bytes of length, and a longer one.
const sizes = [0, 1, 189, 190, 253, 254, 255, 256, 700];
const made = [];
for (const size of sizes) {
  for (const isSigned of [false, true]) {
    const payload = Uint8Array.from({ length: size }, (_, i) => (i * 7) % 256);
    const plain = await symmetric.preCipher(payload, isSigned ? signer : undefined);
    const sealed = await symmetric.encryptSymmetric(plain, key);
    made.push({ payload: hex(payload), signed: isSigned, plain: hex(plain), sealed: hex(sealed) });
  }
}
console.log(JSON.stringify({ package: "@waku/message-encryption 0.0.38", key: hex(key), made }, null, 1));
