import type {
  EventTopic,
  LogEntry,
  OverviewEvent,
  RequestsEvent,
  ServerEvents,
} from '../common/server-events.ts'
import { type Api, ApiError, reasonOf } from './api.ts'
import { History } from './history.ts'

/** Log lines that the page keeps. */
const MAX_LINES = 2_000
/** Open requests that the page asks for. */
const MAX_REQUESTS = 5_000
/** Milliseconds before the next try to connect: the first, and at most. */
const FIRST_DELAY = 500
const LONGEST_DELAY = 10_000

/** How the page and the server stand. `refused`: it wants a token, or another one. */
type Link = { state: 'connecting' | 'live' } | { state: 'lost' | 'refused'; reason: string }

/** What is known of the server; views show it and are notified of changes. */
export class ServerState {
  link: Link = { state: 'connecting' }
  overview: OverviewEvent | undefined
  requests: RequestsEvent | undefined
  readonly log: LogEntry[] = []
  /** Log lines that the server left out. */
  dropped = 0
  readonly history = new History()
  readonly #changed: () => void
  readonly #stop = new AbortController()

  constructor(changed: () => void) {
    this.#changed = changed
  }

  /** Follows the server until `close`, over lost connections. */
  async follow(api: Api): Promise<void> {
    let delay = FIRST_DELAY
    while (!this.#stop.signal.aborted) {
      try {
        const response = await api.open('GET', `/events?requests=${MAX_REQUESTS}`, this.#stop.signal)
        this.#show({ state: 'live' })
        this.log.length = 0
        this.dropped = 0
        delay = FIRST_DELAY
        await readEvents(response.body!, (event) => this.#take(event))
        this.#show({ state: 'lost', reason: 'the events ended' })
      } catch (thrown) {
        if (this.#stop.signal.aborted) return
        const reason = reasonOf(thrown)
        if (thrown instanceof ApiError && thrown.asksForToken) return this.#show({ state: 'refused', reason })
        this.#show({ state: 'lost', reason })
      }
      await new Promise((resolve) => setTimeout(resolve, delay))
      delay = Math.min(delay * 2, LONGEST_DELAY)
    }
  }

  close(): void {
    this.#stop.abort()
  }

  #take(event: ServerEvent): void {
    if (event.topic === 'overview') {
      this.overview = event.data
      this.history.add(event.data)
    } else if (event.topic === 'requests') this.requests = event.data
    else {
      this.dropped += event.data.dropped
      this.log.push(...event.data.lines)
      this.log.splice(0, this.log.length - MAX_LINES)
    }
    this.#changed()
  }

  #show(link: Link): void {
    this.link = link
    this.#changed()
  }
}

type ServerEvent = { [Topic in EventTopic]: { topic: Topic; data: ServerEvents[Topic] } }[EventTopic]

/** Milliseconds without a byte after which the connection counts as lost; events come every second. */
const SILENCE_MS = 10_000

/**
 * Reads Server-Sent Events (https://html.spec.whatwg.org/multipage/server-sent-events.html) until they end or
 * fall silent. EventSource cannot send the header with the token.
 */
async function readEvents(
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
      const data = eventData(block)
      if (data !== undefined)
        onEvent({ topic: fieldOf(block, 'event'), data: JSON.parse(data) as unknown } as ServerEvent)
    }
  }
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
