import { setTimeout as sleep } from 'node:timers/promises'
import type { Context, HandlerRequest } from 'torchserve-ts'

/** Streams the words of a text one by one. */
export async function* handle([request]: HandlerRequest[], context: Context): AsyncGenerator<string[]> {
  const text = String(request?.['data'] ?? request?.['body'])
  for (const word of text.split(/\s+/)) {
    yield [`${word}\n`]
    await sleep(200, undefined, { signal: context.signal })
  }
}
