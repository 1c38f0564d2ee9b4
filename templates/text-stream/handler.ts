import { setTimeout as sleep } from 'node:timers/promises'
import { PredictionException, type Context, type HandlerRequest } from 'torchserve-ts'

/** Streams the words of a text. Each `yield` has one item for each request of the batch. */
export async function* handle(requests: HandlerRequest[], context: Context): AsyncGenerator<string[]> {
  const text = requests[0]?.['body'] ?? requests[0]?.['data']
  if (typeof text !== 'string') throw new PredictionException('Send a text as text/plain', 400)
  for (const word of text.split(/\s+/)) {
    yield [`${word}\n`]
    await sleep(200, undefined, { signal: context.signal })
  }
}
