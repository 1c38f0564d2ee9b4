import type { EventTopic, ServerEvents } from '../common/server-events.ts'

export type ServerEvent = { [Topic in EventTopic]: { topic: Topic; data: ServerEvents[Topic] } }[EventTopic]

const TOPICS: ReadonlySet<string> = new Set<EventTopic>(['overview', 'requests', 'log'])

/** Milliseconds without a byte after which the connection counts as lost; events come every second. */
const SILENCE_MS = 10_000

/**
 * Reads Server-Sent Events (https://html.spec.whatwg.org/multipage/server-sent-events.html) until they end or
 * fall silent. EventSource cannot send the header with the token.
 */
export async function readEvents(
  body: ReadableStream<Uint8Array>,
  onEvent: (event: ServerEvent) => void,
): Promise<void> {
  const reader = body.getReader()
  const decoder = new TextDecoder()
  let rest = ''
  for (;;) {
    const watchdog = setTimeout(() => void reader.cancel(), SILENCE_MS)
    const { done, value } = await reader.read().finally(() => clearTimeout(watchdog))
    if (done) return
    const blocks = (rest + decoder.decode(value, { stream: true })).split('\n\n')
    rest = blocks.pop()!
    for (const block of blocks) {
      const event = parseEvent(block)
      if (event !== undefined) onEvent(event)
    }
  }
}

/** One event; undefined: a comment, or a topic that this page does not know. */
export function parseEvent(block: string): ServerEvent | undefined {
  let topic = ''
  const data: string[] = []
  for (const line of block.split('\n')) {
    if (line.startsWith('event:')) topic = line.slice(6).trim()
    else if (line.startsWith('data:')) data.push(line.slice(5))
  }
  if (!TOPICS.has(topic) || data.length === 0) return undefined
  return { topic, data: JSON.parse(data.join('\n')) as unknown } as ServerEvent
}
