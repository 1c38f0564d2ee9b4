import {
  type Context,
  propagation,
  ROOT_CONTEXT,
  type SpanContext,
  type TextMapGetter,
  type TextMapPropagator,
  type TextMapSetter,
  trace,
  type TraceState,
} from '@opentelemetry/api'
import { headerLine } from '../../../common/headers.ts'
import type { HeaderCarrier } from './tracing.ts'

const CARRIER: TextMapGetter<HeaderCarrier> = {
  get: (carrier, name) => carrier.get(name),
  keys: () => [],
}
/** Takes note of what a propagator asks for. */
const ASKED: TextMapGetter<Set<string>> = {
  get: (asked, name) => void asked.add(name),
  keys: () => [],
}
const LINES: TextMapSetter<string[]> = {
  set: (lines, name, value) => void lines.push(headerLine(name, value)),
}

/** As `traceparent` of W3C Trace Context has it. */
const SAMPLE = `00-${'1'.repeat(32)}-${'2'.repeat(16)}-01`

/**
 * Contexts of traces in headers, in the formats of OTEL_PROPAGATORS. Most requests come without one, and what
 * goes to the handler is nearly always one `traceparent`: neither asks the propagators.
 */
export class TraceHeaders {
  readonly #propagator: TextMapPropagator
  /** The headers in which contexts come, in lower case. */
  readonly #names: readonly string[]
  /** Whether a context without state and baggage is `traceparent` and nothing else. */
  readonly #isPlain: boolean

  /** Asks the propagator once which headers it reads and writes. */
  constructor(propagator: TextMapPropagator) {
    this.#propagator = propagator
    const names = new Set(propagator.fields())
    propagator.extract(ROOT_CONTEXT, names, ASKED)
    this.#names = [...names]
    this.#isPlain = this.#inject(SAMPLE, ROOT_CONTEXT) === headerLine('traceparent', SAMPLE)
  }

  /** The context that the headers name; from then on they name none. */
  take(headers: HeaderCarrier): Context {
    if (!this.#names.some((name) => headers.get(name) !== undefined)) return ROOT_CONTEXT
    const context = this.#propagator.extract(ROOT_CONTEXT, headers, CARRIER)
    for (const name of this.#names) headers.delete(name)
    return context
  }

  /** Whether the headers of a span are its `traceparent` and nothing else. */
  isPlain(client: Context): boolean {
    return this.#isPlain && (client === ROOT_CONTEXT || isSpanOnly(client))
  }

  /**
   * The headers of a span, in the format of common/headers.ts.
   * @param client has what else goes on from the client, as baggage
   */
  lines(traceparent: string, client: Context): string {
    return this.isPlain(client) ? `traceparent\n${traceparent}\n` : this.#inject(traceparent, client)
  }

  #inject(traceparent: string, client: Context): string {
    const lines: string[] = []
    const span = contextOf(traceparent, stateOf(client))
    this.#propagator.inject(trace.setSpanContext(client, span), lines, LINES)
    return lines.join('')
  }
}

/** As `traceparent` of W3C Trace Context has it. */
export function traceparentOf(traceId: string, spanId: string, isSampled: boolean): string {
  return `00-${traceId}-${spanId}-${isSampled ? '01' : '00'}`
}

function contextOf(traceparent: string, traceState: TraceState | undefined): SpanContext {
  return {
    traceId: traceparent.slice(3, 35),
    spanId: traceparent.slice(36, 52),
    traceFlags: Number(traceparent.slice(53)),
    traceState,
  }
}

function isSpanOnly(context: Context): boolean {
  return stateOf(context) === undefined && propagation.getBaggage(context) === undefined
}

function stateOf(context: Context): TraceState | undefined {
  return trace.getSpanContext(context)?.traceState
}
