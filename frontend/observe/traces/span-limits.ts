import { ownValue } from '../../../common/own-keys.ts'
import type { Environment } from './start.ts'
import type { SpanAttribute } from './tracing.ts'
import { numberFrom, positive } from './variables.ts'

/** Characters of one attribute, because clients choose some of them. */
const MAX_TEXT = 256
/** Entries of an attribute that is a list. */
const MAX_ENTRIES = 128
/** OpenTelemetry's default for attributes and events of a span. */
const MAX_COUNT = 128

/** The limits of a span: those of its variables, and our own. */
export class SpanLimits {
  readonly attributes: number
  readonly events: number
  readonly #text: number

  constructor(env: Environment) {
    this.attributes =
      numberFrom(ownValue(env, 'OTEL_SPAN_ATTRIBUTE_COUNT_LIMIT')) ??
      numberFrom(ownValue(env, 'OTEL_ATTRIBUTE_COUNT_LIMIT')) ??
      MAX_COUNT
    this.events = numberFrom(ownValue(env, 'OTEL_SPAN_EVENT_COUNT_LIMIT')) ?? MAX_COUNT
    const text =
      positive(env['OTEL_SPAN_ATTRIBUTE_VALUE_LENGTH_LIMIT']) ??
      positive(env['OTEL_ATTRIBUTE_VALUE_LENGTH_LIMIT']) ??
      MAX_TEXT
    this.#text = Math.min(text, MAX_TEXT)
  }

  /** With texts and lists cut. */
  cut(value: SpanAttribute): SpanAttribute {
    if (typeof value === 'string') return this.#cut(value)
    return Array.isArray(value) ? value.slice(0, MAX_ENTRIES).map((text) => this.#cut(text)) : value
  }

  #cut(text: string): string {
    return text.length <= this.#text ? text : text.slice(0, this.#text)
  }
}
