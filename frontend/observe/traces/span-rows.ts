import type { SpanAttribute } from './tracing.ts'

/** A span that has ended, in plain values. */
export interface EndedSpan {
  readonly name: string
  /** Whether it is that of a client's request, or one below it. */
  readonly isServer: boolean
  readonly traceId: string
  readonly spanId: string
  /** As the header `tracestate` has it; undefined: there is none. */
  readonly traceState: string | undefined
  /** Undefined: the trace begins with it. */
  readonly parentId: string | undefined
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
 * Writes a span behind others. A batch of them is one flat list, because cloning it for a thread costs a
 * fraction of what cloning an object for each span and attribute would.
 */
export function writeSpan(cells: Cell[], span: EndedSpan): void {
  const { attributes, events } = span
  cells.push(span.name, span.isServer, span.traceId, span.spanId, span.traceState, span.parentId)
  cells.push(span.isParentRemote, span.start, span.end, span.failed)
  cells.push(span.droppedAttributes, span.droppedEvents, attributes.length, events.length)
  for (let i = 0; i < attributes.length; i++) cells.push(attributes[i])
  for (let i = 0; i < events.length; i++) cells.push(events[i])
}

/** The cells of a span before its attributes and events. */
const HEAD = 14

/** Reads what writeSpan has written. */
export function* readSpans(cells: readonly Cell[]): Generator<EndedSpan> {
  for (let at = 0; at < cells.length;) {
    const [name, isServer, traceId, spanId, traceState, parentId, ...rest] = cells.slice(at, at + HEAD)
    const [isParentRemote, start, end, failed, droppedAttributes, droppedEvents, inList, inEvents] = rest
    const attributesAt = at + HEAD
    const eventsAt = attributesAt + (inList as number)
    at = eventsAt + (inEvents as number)
    yield {
      name: name as string,
      isServer: isServer as boolean,
      traceId: traceId as string,
      spanId: spanId as string,
      traceState: traceState as string | undefined,
      parentId: parentId as string | undefined,
      isParentRemote: isParentRemote as boolean,
      start: start as number,
      end: end as number,
      failed: failed as boolean,
      attributes: cells.slice(attributesAt, eventsAt) as SpanAttribute[],
      events: cells.slice(eventsAt, at) as (string | number)[],
      droppedAttributes: droppedAttributes as number,
      droppedEvents: droppedEvents as number,
    }
  }
}
