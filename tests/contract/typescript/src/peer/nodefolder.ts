import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { makeRecipientJwk } from "../pki/jwk.js";
import type { Authority } from "./authority.js";
import { pem } from "./pem.js";

export interface NodeFolder {
  readonly config: string;
  readonly data: string;
}

export interface Ends {
  readonly join: number;
  readonly gateway?: number;
}

/** What an operator puts on a machine before it joins; `servingCa` leaves out the optional file. */
export function writeNodeFolder(folder: string, authority: Authority, ends: Ends, servingCa = false): NodeFolder {
  const etc = join(folder, "etc");
  const data = join(folder, "data");
  mkdirSync(etc, { recursive: true });
  const lines = [
    `data_dir = "${data}"`,
    `join = "127.0.0.1:${ends.join}"`,
    ...(ends.gateway === undefined ? [] : [`gateway = "127.0.0.1:${ends.gateway}"`]),
    `serving_ca_spki_pin = "${authority.serving.ca.pin}"`,
    `join_encryption_key_pin = "${authority.encryption.pin}"`,
    `join_signing_key_pin = ["${authority.encryption.pin}", "${authority.signing.pin}"]`,
  ];
  const config = join(etc, "config.toml");
  writeFileSync(config, `${lines.join("\n")}\n`);
  writeFileSync(join(etc, "join-encryption.jwk"), makeRecipientJwk(authority.encryption));
  if (servingCa) writeFileSync(join(etc, "serving-ca.pem"), pem("CERTIFICATE", authority.serving.caDer));
  return { config, data };
}
