import assert from "node:assert/strict";
import { test } from "node:test";
import { findServingCa, handshake } from "../src/peer/channel.js";
import { Plane } from "../src/peer/plane.js";
import { inTemp } from "../src/peer/temp.js";
import { fetchPath, readWellKnown } from "../src/peer/wellknown.js";
import { Refused } from "../src/pki/refused.js";

test("the well-known document over the pinned connection says what node-config says; any other path is 404", async () => {
  await inTemp(async (folder) => {
    const plane = await Plane.start(folder, "py.example");
    try {
      const { values, servingCa } = await plane.nodeFiles(folder);
      const pin = (name: string): string[] => [values.get(name) ?? ""];
      const port = plane.port("http");
      const join = await handshake(plane.port("join"));
      const ca = findServingCa(join.chain, pin("serving_ca_spki_pin"));
      const { status, body, protocol } = await fetchPath(port, "/.well-known/bc-identity", ca);
      assert.deepEqual([status, protocol], [200, "TLSv1.3"]);
      const pins = { encryption: pin("join_encryption_key_pin"), signing: pin("join_signing_key_pin") };
      const read = readWellKnown(body, pins);
      assert.equal(read.trustDomain, "py.example");
      assert.deepEqual([read.join, read.gateway], [values.get("join"), values.get("gateway")]);
      assert.equal(read.servingCa.trim(), servingCa.trim());
      assert.deepEqual(Object.fromEntries(read.lifetimes), { node: 86400, site: 86400, ramdisk: 7200 });
      assert.throws(() => readWellKnown(body, { ...pins, signing: pins.encryption }), Refused);
      assert.throws(() => readWellKnown(body, { ...pins, encryption: pins.signing }), Refused);
      for (const path of ["/", "/.well-known/bc-identity/", "/.well-known/", "/.well-known/../.well-known/bc-identity"]) {
        assert.equal((await fetchPath(port, path, ca)).status, 404, path);
      }
    } finally {
      await plane.stop();
    }
  });
});
