import type { HandlerRequest } from 'torchserve-ts'

type Plan = Record<string, unknown>

/** Passes on what the client sent. */
export function receive(requests: HandlerRequest[]): string[] {
  return [JSON.stringify(read(requests[0]!['body'] ?? requests[0]!['data']))]
}

/** One half of a plan. */
export function size(requests: HandlerRequest[]): string[] {
  const { id, n, pad } = read(requests[0]!['body'])
  return [JSON.stringify({ id, n, pad })]
}

/** The other half. */
export function manner(requests: HandlerRequest[]): string[] {
  const { n: _n, pad: _pad, ...rest } = read(requests[0]!['body'])
  return [JSON.stringify(rest)]
}

/** The plan from its halves. @throws Error when they are of two requests */
export function join(requests: HandlerRequest[]): string[] {
  const size = read(requests[0]!['size'])
  const manner = read(requests[0]!['manner'])
  if (size['id'] !== manner['id']) throw new TypeError('Halves of two requests')
  return [JSON.stringify({ ...size, ...manner })]
}

/** Bytes with JSON, or an object that the server parsed. */
function read(value: unknown): Plan {
  return (value instanceof Uint8Array ? JSON.parse(Buffer.from(value).toString()) : value) as Plan
}
