import { ServeError } from '../common/errors.ts'
import type { HandlerMethod } from '../common/handler-methods.ts'
import { splitHeaders } from '../common/header-lines.ts'
import {
  type CancelReason,
  itemCost,
  type PredictRequest,
  type ResponseMessage,
  type StreamNext,
} from '../protocol/messages.ts'
import { InputQueue } from './input-queue.ts'
import { markOwn } from './own-errors.ts'
import type { Outlet } from './outlet.ts'
import { RequestCancelledError } from './request-cancelled-error.ts'
import type { ResponseHead } from './response-head.ts'

export interface StreamLimits {
  /** Bytes of one response body. */
  readonly maxResponseBytes: number
  /** Bytes that may wait here for the reader when the handler does not await its sends. */
  readonly maxUnsentBytes: number
}

/** Who hears about the turns of a stream: its batch. */
export interface StreamOwner {
  /** Nobody wants more of this stream: it was cancelled or has failed. */
  streamGone(stream: ResponseStream): void
  /** Its one final response or failure was sent. */
  streamEnded(stream: ResponseStream): void
}

/**
 * The answers to one request on their way to the frontend: in order, within the window of bytes that the reader has granted, and
 * with exactly one end. An item may overdraw the window; then further items wait here until credit comes back. There is one
 * of these for every open request, so what is rarely needed is made when it is asked for.
 */
export class ResponseStream {
  readonly id: number
  readonly requestId: string
  /** The method that the request wants. */
  readonly method: HandlerMethod
  readonly deadline: number | undefined
  /** Further inputs; undefined: the client sent all at once. */
  readonly inputs: InputQueue | undefined
  readonly #headerLines: string
  readonly #outlet: Outlet
  readonly #limits: StreamLimits
  readonly #owner: StreamOwner
  #window: number
  #requestHeaders: Readonly<Record<string, string>> | undefined
  #head: ResponseHead | undefined
  #streamed = false
  #waiting: Uint8Array[] | undefined
  #waitingBytes = 0
  /** The last body or the failure; it leaves after what waits. */
  #end: Uint8Array | ServeError | undefined
  #ended = false
  #gone: Error | undefined
  #controller: AbortController | undefined
  #room: Promise<void> | undefined
  #wake: (() => void) | undefined

  constructor(request: PredictRequest, outlet: Outlet, limits: StreamLimits, owner: StreamOwner) {
    this.id = request.id
    this.requestId = request.requestId
    this.method = request.method
    this.#headerLines = request.headers
    this.deadline = request.deadline
    this.#window = request.window
    this.#outlet = outlet
    this.#limits = limits
    this.#owner = owner
    this.inputs =
      request.moreInputs === true
        ? new InputQueue(() => outlet.send({ type: 'taken', id: request.id, inputs: 1 }))
        : undefined
  }

  get requestHeaders(): Readonly<Record<string, string>> {
    return (this.#requestHeaders ??= splitHeaders(this.#headerLines))
  }

  /** Status and headers of the answer; they count until its first response. */
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

  /** Why nobody wants more of this stream; undefined while somebody does. */
  get gone(): Error | undefined {
    return this.#gone
  }

  /** Whether the final response was handed over: no item may follow. */
  get complete(): boolean {
    return this.#end !== undefined
  }

  get hasRoom(): boolean {
    return this.#window > 0
  }

  /** Resolves when there is room, or the stream is gone. */
  room(): Promise<void> {
    return (this.#room ??= new Promise((resolve) => {
      this.#wake = resolve
    }))
  }

  /** One intermediate response: sent now when there is room, else it waits its turn. */
  push(body: Uint8Array): void {
    if (this.#gone !== undefined || !this.#fits(body)) return
    if (this.#window > 0) this.#sendItem(body)
    else this.#keep(body)
  }

  /** The last response. */
  finish(body: Uint8Array): void {
    if (this.#fits(body)) this.#finishWith(body)
    else this.#finishWith(EMPTY) // what was too large has failed the stream already
  }

  /** The stream ends with an error, after the items that wait. */
  fail(error: ServeError): void {
    this.#finishWith(error)
  }

  cancel(reason: CancelReason): void {
    if (this.#gone === undefined) this.drop(new RequestCancelledError(reason))
  }

  /** Nobody wants more: what waits is dropped, the signal aborts. The end is still sent, once the handler has returned. */
  drop(reason: Error): void {
    if (this.#gone !== undefined || this.#ended) return
    this.#gone = reason
    this.#waiting = undefined
    this.#waitingBytes = 0
    this.#controller?.abort(reason)
    this.inputs?.fail(reason)
    this.#wakeUp()
    this.#owner.streamGone(this)
    if (this.#end !== undefined) this.#sendEnd()
  }

  /** The reader took this many bytes. */
  credit(bytes: number): void {
    this.#window += bytes
    if (this.#waiting !== undefined) this.#flush(this.#waiting)
    if (this.#waiting !== undefined) return
    if (this.#end !== undefined && !this.#ended) this.#sendEnd()
    else if (this.#window > 0) this.#wakeUp()
  }

  #fits(body: Uint8Array): boolean {
    const limit = this.#limits.maxResponseBytes
    if (body.byteLength <= limit) return true
    const message = `A response of ${body.byteLength} bytes is larger than max_response_size (${limit})`
    this.drop(markOwn(new ServeError('RESPONSE_TOO_LARGE', message)))
    return false
  }

  #keep(body: Uint8Array): void {
    this.#waitingBytes += itemCost(body.byteLength)
    if (this.#waitingBytes > this.#limits.maxUnsentBytes) {
      const message = `The handler sent ${this.#waitingBytes} bytes more than the reader took; await each send`
      this.drop(markOwn(new ServeError('SEND_OVERFLOW', message)))
      return
    }
    // A copy, because the caller may use its buffer again.
    ;(this.#waiting ??= []).push(Uint8Array.from(body))
  }

  #flush(waiting: Uint8Array[]): void {
    let sent = 0
    while (sent < waiting.length && this.#window > 0) {
      const body = waiting[sent++]!
      this.#waitingBytes -= itemCost(body.byteLength)
      this.#sendItem(body)
    }
    if (sent === waiting.length) this.#waiting = undefined
    else waiting.splice(0, sent)
  }

  #sendItem(body: Uint8Array): void {
    this.#window -= itemCost(body.byteLength)
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
    // What was set after the first response: only a last one can still tell it (which sequences have ended).
    if (next === 'false' && head.headers !== undefined) message.headers = head.headers
    return message
  }

  #wakeUp(): void {
    this.#wake?.()
    this.#wake = undefined
    this.#room = undefined
  }
}

const EMPTY = new Uint8Array(0)

function failureOf(gone: Error): ServeError {
  return gone instanceof ServeError ? gone : new ServeError('CANCELLED', gone.message)
}
