import { SpanId, TraceId } from './span-ids.ts'
import type { SpanAttribute } from './tracing.ts'

/** A span that has ended, in plain values. */
export interface EndedSpan {
  readonly name: string
  /** Whether it is that of a client's request, or one below it. */
  readonly isServer: boolean
  readonly traceId: TraceId
  readonly spanId: SpanId
  /** As the header `tracestate` has it; undefined: there is none. */
  readonly traceState: string | undefined
  /** Undefined: the trace begins with it. */
  readonly parentId: SpanId | undefined
  /** Whether the parent is a span of the client. */
  readonly isParentRemote: boolean
  /** Milliseconds since the epoch, as all times here. */
  readonly start: number
  readonly end: number
  readonly failed: boolean
  /** Names and values in turns. */
  readonly attributes: readonly SpanAttribute[]
  /** Names and times in turns. */
  readonly events: readonly (string | number)[]
  readonly droppedAttributes: number
  readonly droppedEvents: number
}

export type Cell = SpanAttribute | undefined

/**
 * Spans for exporters that need their values. A batch is one flat list, because cloning it for a thread costs
 * a fraction of what cloning an object for each span and attribute would.
 */
export class SpanRows {
  #cells: Cell[] = []

  add(span: EndedSpan): void {
    const cells = this.#cells
    const { attributes, events } = span
    cells.push(span.name, span.isServer, span.traceId.text, span.spanId.text)
    cells.push(span.traceState, span.parentId?.text)
    cells.push(span.isParentRemote, span.start, span.end, span.failed)
    cells.push(span.droppedAttributes, span.droppedEvents, attributes.length, events.length)
    for (let i = 0; i < attributes.length; i++) cells.push(attributes[i])
    for (let i = 0; i < events.length; i++) cells.push(events[i])
  }

  /** What was added, for readSpans; nothing is then. */
  take(): Cell[] {
    const cells = this.#cells
    this.#cells = []
    return cells
  }
}

/** The cells of a span before its attributes and events. */
const HEAD = 14

/** Reads what SpanRows has written. */
export function* readSpans(cells: readonly Cell[]): Generator<EndedSpan> {
  for (let at = 0; at < cells.length;) {
    const attributesAt = at + HEAD
    const eventsAt = attributesAt + (cells[at + 12] as number)
    const next = eventsAt + (cells[at + 13] as number)
    yield {
      name: cells[at + 0] as string,
      isServer: cells[at + 1] as boolean,
      traceId: TraceId.of(cells[at + 2] as string),
      spanId: SpanId.of(cells[at + 3] as string),
      traceState: cells[at + 4] as string | undefined,
      parentId: cells[at + 5] === undefined ? undefined : SpanId.of(cells[at + 5] as string),
      isParentRemote: cells[at + 6] as boolean,
      start: cells[at + 7] as number,
      end: cells[at + 8] as number,
      failed: cells[at + 9] as boolean,
      attributes: cells.slice(attributesAt, eventsAt) as SpanAttribute[],
      events: cells.slice(eventsAt, next) as (string | number)[],
      droppedAttributes: cells[at + 10] as number,
      droppedEvents: cells[at + 11] as number,
    }
    at = next
  }
}
