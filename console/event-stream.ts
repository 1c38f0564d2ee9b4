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
  const topic = fieldOf(block, 'event')
  const data = eventData(block)
  if (topic === undefined || !TOPICS.has(topic) || data === undefined) return undefined
  return { topic, data: JSON.parse(data) as unknown } as ServerEvent
}

/** The data of an event; undefined: it has none, as a comment that keeps a connection alive. */
export function eventData(block: string): string | undefined {
  return fieldOf(block, 'data')
}

/** The lines of a field, joined. */
function fieldOf(block: string, name: string): string | undefined {
  const lines = block.split('\n').filter((line) => line.startsWith(`${name}:`))
  if (lines.length === 0) return undefined
  return lines.map((line) => line.slice(name.length + 1).replace(/^ /, '')).join('\n')
}
