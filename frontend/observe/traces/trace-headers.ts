import {
  type Context,
  propagation,
  ROOT_CONTEXT,
  type SpanContext,
  type TextMapGetter,
  trace,
} from '@opentelemetry/api'
import { headerLine } from '../../../common/header-lines.ts'
import type { HeaderCarrier } from './tracing.ts'

const CARRIER: TextMapGetter<HeaderCarrier> = {
  get: (carrier, name) => carrier.get(name),
  keys: () => [],
}

const SAMPLE: SpanContext = { traceId: '1'.repeat(32), spanId: '2'.repeat(16), traceFlags: 1 }

/**
 * Contexts of traces in headers, in the formats of OTEL_PROPAGATORS. Most requests come without one, and what
 * goes to the handler is nearly always one `traceparent`: neither asks the propagators.
 */
export class TraceHeaders {
  /** The headers in which contexts come, in lower case. */
  readonly #names: readonly string[]
  /** Whether a context without baggage is `traceparent` and nothing else. */
  readonly #isPlain: boolean

  /** Asks the registered propagators once which headers they read and write. */
  constructor() {
    const names = new Set(propagation.fields())
    propagation.extract(ROOT_CONTEXT, names, { get: (asked, name) => void asked.add(name), keys: () => [] })
    this.#names = [...names]
    const inFormats = inject(trace.setSpanContext(ROOT_CONTEXT, SAMPLE))
    this.#isPlain = inFormats === headerLine('traceparent', traceparentOf(SAMPLE))
  }

  /** The context that the headers name; from then on they name none. */
  take(headers: HeaderCarrier): Context {
    if (!this.#names.some((name) => headers.get(name) !== undefined)) return ROOT_CONTEXT
    const context = propagation.extract(ROOT_CONTEXT, headers, CARRIER)
    for (const name of this.#names) headers.delete(name)
    return context
  }

  /**
   * The headers of a span, in the format of common/header-lines.ts.
   * @param traceparent of the span
   * @param parent has what else goes on from the client, as baggage
   */
  lines(span: SpanContext, traceparent: string, parent: Context): string {
    const isPlain = this.#isPlain && (parent === ROOT_CONTEXT || isSpanOnly(parent))
    return isPlain ? `traceparent\n${traceparent}\n` : inject(trace.setSpanContext(parent, span))
  }
}

/** As `traceparent` of W3C Trace Context has it. */
export function traceparentOf({ traceId, spanId, traceFlags }: SpanContext): string {
  return `00-${traceId}-${spanId}-${traceFlags === 1 ? '01' : '00'}`
}

function isSpanOnly(context: Context): boolean {
  const state = trace.getSpanContext(context)?.traceState
  return state === undefined && propagation.getBaggage(context) === undefined
}

function inject(context: Context): string {
  const lines: string[] = []
  propagation.inject(context, lines, { set: (list, name, value) => list.push(headerLine(name, value)) })
  return lines.join('')
}
