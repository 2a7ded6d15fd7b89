/** npm run proto [-- FOLDER]: makes src/pb from the proto files; protoc comes with the Python side's gRPC tools. */
import { execFileSync } from "node:child_process";
import { mkdirSync } from "node:fs";
import { resolve } from "node:path";
import { BIN, PACKAGE, PROTOS } from "./fixtures/places.js";

const folder = resolve(process.argv[2] ?? `${PACKAGE}/src/pb`);
mkdirSync(folder, { recursive: true });
execFileSync(`${BIN}/python-grpc-tools-protoc`, [
  `-I${PROTOS}`,
  `--plugin=protoc-gen-es=${PACKAGE}/node_modules/.bin/protoc-gen-es`,
  `--es_out=${folder}`,
  "--es_opt=target=ts,import_extension=js",
  ...["statements", "attestation", "join", "gateway"].map((name) => `bc/identity/v1/${name}.proto`),
], { stdio: "inherit" });
