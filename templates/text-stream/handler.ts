import { setTimeout as sleep } from 'node:timers/promises'
import { PredictionException, type Context, type HandlerRequest } from 'torchserve-ts'

/** Streams the words of a text. Each `yield` has one item for each request of the batch. */
export async function* handle(requests: HandlerRequest[], context: Context): AsyncGenerator<string[]> {
  const text = textOf(requests[0]?.['data'] ?? requests[0]?.['body'])
  for (const word of text.split(/\s+/)) {
    yield [`${word}\n`]
    await sleep(200, undefined, { signal: context.signal })
  }
}

/** A request as text/plain has a string; chats, gRPC and the other APIs bring the bytes of a text. */
function textOf(given: unknown): string {
  if (typeof given === 'string') return given
  if (given instanceof Uint8Array) return Buffer.from(given).toString()
  throw new PredictionException(
    'Send a text: text/plain over HTTP, or a chat, or a text input of another API',
    400,
  )
}
