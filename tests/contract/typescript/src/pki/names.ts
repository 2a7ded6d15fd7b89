import { require } from "./refused.js";

export const ROLES = ["node", "site", "ramdisk"] as const;
export type Role = (typeof ROLES)[number];

const TRUST_DOMAIN = /^[a-z0-9._-]{1,255}$/;
const ID = /^[a-zA-Z0-9._-]{1,63}$/;

export interface SpiffeId {
  readonly trustDomain: string;
  readonly siteId: string;
  readonly nodeId: string;
}

export function isTrustDomain(text: string): boolean {
  return TRUST_DOMAIN.test(text);
}

/** A site id or a node id: `.` and `..` are path segments with a meaning, so they are no names. */
export function isId(text: string): boolean {
  return ID.test(text) && text !== "." && text !== "..";
}

export function isRole(text: string): text is Role {
  return ROLES.some((role) => role === text);
}

export function spiffeUri(id: SpiffeId): string {
  return `spiffe://${id.trustDomain}/site/${id.siteId}/node/${id.nodeId}`;
}

/** Taken apart by hand: a URL parser would normalise what must be refused. */
export function readSpiffeId(uri: string): SpiffeId {
  const match = /^spiffe:\/\/([^/]*)\/site\/([^/]*)\/node\/([^/]*)$/.exec(uri);
  require(match !== null, "SPIFFE ID", "not spiffe://<trust domain>/site/<site id>/node/<node id>");
  const [, trustDomain = "", siteId = "", nodeId = ""] = match;
  require(isTrustDomain(trustDomain), "Trust domain", "not [a-z0-9._-]{1,255}");
  require(isId(siteId), "Site id, node id", "the site id is none");
  require(isId(nodeId), "Site id, node id", "the node id is none");
  return { trustDomain, siteId, nodeId };
}
