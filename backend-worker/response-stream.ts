import { ServeError } from '../common/errors.ts'
import type { HandlerMethod } from '../common/handler-methods.ts'
import { headerValue, splitHeaders } from '../common/headers.ts'
import { CreditStream, itemCost } from '../protocol/credit-stream.ts'
import type { CancelReason, PredictRequest, ResponseMessage, StreamNext } from '../protocol/messages.ts'
import { InputQueue } from './input.ts'
import { markOwn, RequestCancelledError } from './handler-error.ts'
import type { Outlet } from './outlet.ts'
import type { ResponseHead } from './response-head.ts'

/** Milliseconds between two signs of life. */
const SIGN_INTERVAL_MS = 200

export interface StreamLimits {
  /** Maximum bytes of one response body. */
  readonly maxResponseBytes: number
  /** Maximum bytes that may wait here when the handler does not await its sends. */
  readonly maxUnsentBytes: number
}

/** The batch of the stream, which gets these events. */
export interface StreamOwner {
  /** The stream was cancelled or has failed. */
  streamGone(stream: ResponseStream): void
  /** The final response or failure was sent. */
  streamEnded(stream: ResponseStream): void
}

/**
 * The response to one request on its way to the frontend: in order, within the window, and with exactly one
 * end. An item may exceed the window; further items then wait here for credit. Every open request has such an
 * object, so rarely used parts are created on demand.
 */
export class ResponseStream {
  readonly id: number
  readonly requestId: string
  /** The method that the request asks for. */
  readonly method: HandlerMethod
  readonly deadline: number | undefined
  /** Further inputs; undefined if the client sends only one. */
  readonly inputs: InputQueue | undefined
  /** Half a character at the end of the last text, which waits for the next one; '' usually. */
  half = ''
  readonly #headerLines: string
  readonly #outlet: Outlet
  readonly #limits: StreamLimits
  readonly #owner: StreamOwner
  readonly #credit: CreditStream
  #requestHeaders: Readonly<Record<string, string>> | undefined
  #head: ResponseHead | undefined
  #streamed = false
  #waiting: Uint8Array[] | undefined
  #waitingBytes = 0
  /** The last body or the failure; sent after the waiting items. */
  #end: Uint8Array | ServeError | undefined
  #ended = false
  /** performance.now() of the last sign of life. */
  #signAt = -Infinity
  #gone: Error | undefined
  #controller: AbortController | undefined

  constructor(request: PredictRequest, outlet: Outlet, limits: StreamLimits, owner: StreamOwner) {
    this.id = request.id
    this.requestId = request.requestId
    this.method = request.method
    this.#headerLines = request.headers
    this.deadline = request.deadline
    this.#credit = new CreditStream(request.window)
    this.#outlet = outlet
    this.#limits = limits
    this.#owner = owner
    this.inputs =
      request.moreInputs === true
        ? new InputQueue(() => outlet.send({ type: 'taken', id: request.id, inputs: 1 }))
        : undefined
  }

  /** The last header of this name, in whatever case; undefined: there is none. */
  requestHeader(name: string): string | undefined {
    return headerValue(this.#headerLines, name)
  }

  get requestHeaders(): Readonly<Record<string, string>> {
    return (this.#requestHeaders ??= splitHeaders(this.#headerLines))
  }

  /** Status and headers of the response; they count until its first item. */
  get head(): ResponseHead {
    return (this.#head ??= {})
  }

  get signal(): AbortSignal {
    if (this.#controller === undefined) {
      this.#controller = new AbortController()
      if (this.#gone !== undefined) this.#controller.abort(this.#gone)
    }
    return this.#controller.signal
  }

  /** Why the stream was cancelled or failed; undefined while it is active. */
  get gone(): Error | undefined {
    return this.#gone
  }

  /** Whether the final response was given, so that no item may follow. */
  get complete(): boolean {
    return this.#end !== undefined
  }

  get hasRoom(): boolean {
    return this.#credit.open
  }

  /** Resolves when the window has room or the stream is gone. */
  room(): Promise<void> {
    return this.#credit.ready()
  }

  /** Tells the frontend that the handler works on the request, though there is nothing to send. */
  alive(): void {
    const now = performance.now()
    if (this.#ended || this.#gone !== undefined || now - this.#signAt < SIGN_INTERVAL_MS) return
    this.#signAt = now
    this.#outlet.send({ type: 'alive', id: this.id })
  }

  /** Sends one intermediate response, at once or as soon as the window has room. */
  push(body: Uint8Array): void {
    if (this.#gone !== undefined || !this.#fits(body)) return
    if (this.#credit.consume(body.length)) this.#sendItem(body)
    else this.#keep(body)
  }

  /** Sends the last response. */
  finish(body: Uint8Array): void {
    if (this.#fits(body)) this.#finishWith(body)
    else this.#finishWith(EMPTY) // the oversized item has already failed the stream
  }

  /** Ends the stream with an error, after the waiting items. */
  fail(error: ServeError): void {
    this.#finishWith(error)
  }

  cancel(reason: CancelReason): void {
    if (this.#gone === undefined) this.drop(new RequestCancelledError(reason))
  }

  /**
   * Cancels the stream: drops waiting items and aborts the signal. The end is still sent when the handler has
   * returned.
   */
  drop(reason: Error): void {
    if (this.#gone !== undefined || this.#ended) return
    this.#gone = reason
    this.#waiting = undefined
    this.#controller?.abort(reason)
    this.inputs?.fail(reason)
    this.#credit.close()
    this.#owner.streamGone(this)
    if (this.#end !== undefined) this.#sendEnd()
  }

  /** Credit: the reader took this many bytes. */
  credit(bytes: number): void {
    this.#credit.grant(bytes)
    if (this.#waiting !== undefined) this.#flush(this.#waiting)
    if (this.#waiting === undefined && this.#end !== undefined && !this.#ended) this.#sendEnd()
  }

  #fits(body: Uint8Array): boolean {
    const limit = this.#limits.maxResponseBytes
    if (body.length <= limit) return true
    const message = `A response of ${body.length} bytes is larger than max_response_size (${limit})`
    this.drop(markOwn(new ServeError('RESPONSE_TOO_LARGE', message)))
    return false
  }

  #keep(body: Uint8Array): void {
    this.#waitingBytes += itemCost(body.length)
    if (this.#waitingBytes > this.#limits.maxUnsentBytes) {
      const message = `The handler sent ${this.#waitingBytes} bytes beyond the window; await each send`
      this.drop(markOwn(new ServeError('SEND_OVERFLOW', message)))
      return
    }
    // A copy, because the caller may reuse its buffer.
    ;(this.#waiting ??= []).push(Uint8Array.from(body))
  }

  #flush(waiting: Uint8Array[]): void {
    let sent = 0
    while (sent < waiting.length && this.#credit.consume(waiting[sent]!.length)) {
      const body = waiting[sent++]!
      this.#waitingBytes -= itemCost(body.length)
      this.#sendItem(body)
    }
    if (sent === waiting.length) this.#waiting = undefined
    else waiting.splice(0, sent)
  }

  #sendItem(body: Uint8Array): void {
    if (this.#streamed || this.#head === undefined) this.#outlet.sendItem(this.id, body)
    else this.#outlet.send(this.#response(body, 'true'))
    if (this.#streamed) return
    this.#streamed = true
    this.#head = undefined
  }

  #finishWith(end: Uint8Array | ServeError): void {
    if (this.#end !== undefined) return
    this.#end = end
    if (this.#waiting === undefined) this.#sendEnd()
  }

  #sendEnd(): void {
    this.#ended = true
    const end = this.#gone === undefined ? this.#end! : failureOf(this.#gone)
    if (end instanceof ServeError) {
      this.#outlet.send({ type: 'failure', id: this.id, error: end.toWire() })
    } else {
      this.#outlet.send(this.#response(end, this.#streamed ? 'false' : undefined))
    }
    this.#owner.streamEnded(this)
  }

  #response(body: Uint8Array, next: StreamNext | undefined): ResponseMessage {
    const message: ResponseMessage =
      next === undefined
        ? { type: 'response', id: this.id, body }
        : { type: 'response', id: this.id, body, ts_stream_next: next }
    const head = this.#head
    if (head === undefined) return message
    if (!this.#streamed) return { ...message, ...head }
    // Headers that were set after the first item can still go out with the last one: those that end
    // sequences.
    if (next === 'false' && head.headers !== undefined) message.headers = head.headers
    return message
  }
}

const EMPTY = new Uint8Array(0)

function failureOf(gone: Error): ServeError {
  return gone instanceof ServeError ? gone : new ServeError('CANCELLED', gone.message)
}
