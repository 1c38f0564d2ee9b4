import { createHash } from 'node:crypto'
import type { HandlerRequest } from 'torchserve-ts'

/** For each part of a request its name, its bytes and their SHA-256, so that the client can compare them. */
export async function handle(requests: HandlerRequest[]): Promise<string[]> {
  return requests.map((request) =>
    Object.entries(request)
      .filter(([, value]) => value instanceof Uint8Array)
      .map(([name, value]) => describe(name, value as Uint8Array))
      .join('\n'),
  )
}

function describe(name: string, data: Uint8Array): string {
  return `${name} ${data.byteLength} ${createHash('sha256').update(data).digest('hex')}`
}
