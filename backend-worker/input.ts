import { isUtf8 } from 'node:buffer'
import type { InputPart } from '../common/handler-methods.ts'
import { exactJson, parseJsonBytes } from '../common/exact-json.ts'
import { isObject, setOwn } from '../common/json.ts'
import type { HandlerRequest } from './handler.ts'
import { checkTensorBody } from '../common/json-bounds.ts'

/**
 * The parts of a request as the handler gets them: part name -> value. JSON is parsed and text becomes a
 * string. A part that cannot be decoded stays a Buffer, and `warn` gets the reason. The last part of a
 * repeated name wins.
 */
export function decodeRequest(
  parts: InputPart[],
  decode: boolean,
  warn: (message: string) => void,
): HandlerRequest {
  const request: HandlerRequest = {}
  for (const part of parts) {
    setOwn<unknown>(request, part.name, decode ? decodePart(part, warn) : asBuffer(part.data))
  }
  return request
}

function decodePart(part: InputPart, warn: (message: string) => void): unknown {
  const data = asBuffer(part.data)
  const contentType = part.contentType?.toLowerCase()
  if (contentType === 'application/json') return parseJson(part.name, data, warn)
  if (contentType?.startsWith('text/') !== true) return data
  if (isUtf8(data)) return data.toString()
  warn(`Part "${part.name}" is not valid UTF-8; the handler gets its bytes`)
  return data
}

function parseJson(name: string, data: Buffer, warn: (message: string) => void): unknown {
  try {
    return legible(parseClientJson(data))
  } catch (thrown) {
    const why = thrown instanceof Error ? thrown.message.slice(0, 200) : ''
    warn(`Part "${name}" cannot be read as JSON; the handler gets its bytes: ${why}`)
    return data
  }
}

/** `String(body)` of a JSON object is its JSON: a handler of texts must not answer with `[object Object]`. */
function legible(value: unknown): unknown {
  if (!isObject(value) || Object.hasOwn(value, 'toString')) return value
  const toString = (): string => exactJson(value)
  return Object.defineProperty(value, 'toString', { value: toString, configurable: true, writable: true })
}

function asBuffer(data: Uint8Array): Buffer {
  return Buffer.isBuffer(data) ? data : Buffer.from(data.buffer, data.byteOffset, data.byteLength)
}

/** The default of max_request_elements. */
const DEFAULT_ELEMENTS = 250_000

/** A worker serves one model, so all its requests have the same bounds. */
let maxElements = DEFAULT_ELEMENTS

/** Sets the most elements of a request's JSON, as checkTensorBody counts them. */
export function limitJson(elements = DEFAULT_ELEMENTS): void {
  maxElements = elements
}

/**
 * Parses JSON of a client. Its elements are counted before they are built, because they take far more time
 * and memory than their bytes.
 * @throws ServeError INVALID_ARGUMENT with too many elements or levels
 * @throws SyntaxError
 */
export function parseClientJson(json: Uint8Array): unknown {
  const bytes = Buffer.from(json.buffer, json.byteOffset, json.byteLength)
  checkTensorBody(bytes, maxElements)
  return parseJsonBytes(bytes)
}

/**
 * The further inputs of a request whose client sends several. Inputs wait here until the handler asks for
 * them.
 */
export class InputQueue implements AsyncIterable<Uint8Array> {
  readonly #onTaken: () => void
  readonly #waiting: Uint8Array[] = []
  #ended = false
  #error: Error | undefined
  #wake: (() => void) | undefined

  /** `onTaken` is called for each input that the handler asks for, before it is there. */
  constructor(onTaken: () => void) {
    this.#onTaken = onTaken
  }

  push(data: Uint8Array): void {
    // A copy, because the message shares its memory with others.
    this.#waiting.push(Uint8Array.from(data))
    this.#wakeUp()
  }

  /** No further input follows. */
  end(): void {
    this.#ended = true
    this.#wakeUp()
  }

  /** The request was cancelled: the next read throws the reason. */
  fail(error: Error): void {
    this.#error ??= error
    this.#waiting.length = 0
    this.#wakeUp()
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<Uint8Array, void, undefined> {
    for (;;) {
      if (!this.#isOver) this.#onTaken()
      while (this.#waiting.length === 0 && !this.#isOver)
        await new Promise<void>((resolve) => {
          this.#wake = resolve
        })
      if (this.#error !== undefined) throw this.#error
      const next = this.#waiting.shift()
      if (next === undefined) return
      yield next
    }
  }

  /** Whether no input is left, and none will come. */
  get #isOver(): boolean {
    return this.#waiting.length === 0 && (this.#ended || this.#error !== undefined)
  }

  #wakeUp(): void {
    this.#wake?.()
    this.#wake = undefined
  }
}
