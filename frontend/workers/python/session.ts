import { ServeError } from '../../../common/errors.ts'
import { byMethod } from '../../../common/handler-methods.ts'
import type { TakeItem } from '../../../protocol/channel.ts'
import type { PredictMessage, ResponseMessage } from '../../../protocol/messages.ts'
import type { OtfAnswer, OtfReplyEvents } from './otf/reply-decoder.ts'
import type { FirstRankMessage, RankMessage, WorkerGroupEvents } from '../worker-group.ts'
import { answerError } from './answer-error.ts'
import { BatchDelivery, type Delivery, type DeliveryLink } from './delivery.ts'
import { OpenRequest } from './open-request.ts'
import { Overdrafts } from './overdrafts.ts'
import { StepDelivery } from './steps.ts'

export interface PythonSessionOptions {
  continuousBatching: boolean
  /** Maximum body bytes: max_response_size. */
  maxResponseBytes: number
  /** Bytes beyond its window that a stream may have in flight while other requests of the worker continue. */
  maxUnsentBytes: number
  /** The same for all streams of the worker together. */
  maxUnsentBytesTogether: number
}

export type PythonSessionEvents = Pick<WorkerGroupEvents, 'onMessage' | 'itemsOf' | 'onBroken'>

/**
 * The requests of one TorchServe worker: translates messages to its frames, and its replies back to messages.
 * Replies are matched by request id.
 *
 * OTF has neither cancel nor credit. With continuous batching a cancelled request is absent from the next
 * step; otherwise its responses continue and are dropped (requests.ts). If all readers are too slow, the
 * worker has to wait. If only some are, their requests fail once too much has piled up, of one stream or of
 * all together, so that the others need not wait. What is beyond a window waits here, not in the reply: when
 * the request fails, it is gone at once.
 */
export class PythonSession implements OtfReplyEvents {
  readonly #options: PythonSessionOptions
  readonly #events: PythonSessionEvents
  readonly #delivery: Delivery
  readonly #byName = new Map<string, OpenRequest>()
  readonly #byId = new Map<number, OpenRequest>()
  /** The number of requests that are not cancelled, and of those the ones beyond their window. */
  #wanted = 0
  readonly #overdrafts = new Overdrafts()
  #held = false
  #onUnwanted: (() => void) | undefined
  #takeItem: TakeItem | undefined

  constructor(options: PythonSessionOptions, link: Omit<DeliveryLink, 'drop'>, events: PythonSessionEvents) {
    this.#options = options
    this.#events = events
    const own: DeliveryLink = {
      write: (frame) => {
        link.write(frame)
      },
      listen: (on) => {
        link.listen(on)
      },
      drop: (request) => {
        this.#fail(request, new ServeError('CANCELLED', 'The request was cancelled'))
      },
    }
    this.#delivery = options.continuousBatching ? new StepDelivery(own) : new BatchDelivery(own)
  }

  send(message: RankMessage | FirstRankMessage): void {
    switch (message.type) {
      case 'predict':
        this.#predict(message)
        break
      case 'cancel':
        this.#cancel(message.id)
        break
      case 'credit':
        this.#credit(message.id, message.bytes)
        break
      case 'ping': // OTF has neither.
      case 'sequenceEnd':
    }
  }

  /** Resolves when no request is open, except cancelled ones. */
  unwanted(): Promise<void> {
    return new Promise((resolve) => {
      if (this.#wanted === 0) resolve()
      else this.#onUnwanted = resolve
    })
  }

  onItem(requestId: string, chunk: Buffer, from: number, to: number): void {
    const request = this.#byName.get(requestId)
    if (request === undefined) return
    if (waits(request)) request.backlog.addItem(chunk, from, to)
    else this.#deliver(request.id, chunk, from, to)
    this.#took(request, to - from)
  }

  onAnswer(answer: OtfAnswer, chunk: Buffer, from: number, to: number): void {
    const request = this.#byName.get(answer.requestId)
    if (request === undefined) return
    const more = answer.streamNext === 'true'
    if (!more) this.#end(request)
    const body = chunk.subarray(from, to)
    if (more && waits(request))
      request.backlog.addMessage(responseMessage(request.id, answer, Buffer.from(body)))
    else this.#events.onMessage(0, responseMessage(request.id, answer, body))
    if (more) this.#took(request, to - from)
  }

  onTooLarge(answer: OtfAnswer, bytes: number): void {
    const request = this.#byName.get(answer.requestId)
    if (request === undefined) return
    const message = `A response of ${bytes} bytes is larger than max_response_size (${this.#options.maxResponseBytes})`
    const error = new ServeError('RESPONSE_TOO_LARGE', message)
    if (answer.streamNext === 'true') this.#events.onBroken(request.id, error)
    else this.#fail(request, error)
  }

  onFailed(requestId: string, code: number, message: string): void {
    const request = this.#byName.get(requestId)
    if (request !== undefined) this.#fail(request, answerError(code, message))
  }

  onEnd(): void {
    this.#delivery.replied()
  }

  #predict({ requests }: PredictMessage): void {
    const opened = requests.map((request) => {
      const open = new OpenRequest(request)
      this.#byName.set(open.requestId, open)
      this.#byId.set(open.id, open)
      return open
    })
    this.#wanted += opened.length
    this.#hold()
    for (const group of byMethod(opened)) this.#delivery.add(group)
  }

  #cancel(id: number): void {
    const request = this.#byId.get(id)
    if (request === undefined || request.cancelled) return
    request.cancelled = true
    this.#unwanted(request)
    this.#delivery.cancelled(request)
  }

  #credit(id: number, bytes: number): void {
    const request = this.#byId.get(id)
    if (request === undefined) return
    if (this.#overdrafts.paid(request, bytes)) this.#hold()
    this.#release(request, () => request.full)
  }

  #deliver(id: number, chunk: Buffer, from: number, to: number): void {
    this.#takeItem ??= this.#events.itemsOf(0)
    this.#takeItem(id, chunk, from, to)
  }

  /** What is given away can bring credit, and so call this again. */
  #release(request: OpenRequest, isEnough: () => boolean): void {
    if (request.releasing) return
    request.releasing = true
    while (request.backlog.cost > 0 && !isEnough())
      request.backlog.take({
        item: (chunk, from, to) => {
          this.#deliver(request.id, chunk, from, to)
        },
        message: (message) => {
          this.#events.onMessage(0, message)
        },
      })
    request.releasing = false
  }

  #took(request: OpenRequest, bytes: number): void {
    if (request.cancelled || !this.#overdrafts.took(request, bytes)) return
    this.#hold()
    if (this.#held) return
    if (request.overdraft > this.#options.maxUnsentBytes) this.#cut(request)
    else if (this.#overdrafts.bytes > this.#options.maxUnsentBytesTogether)
      this.#cut(this.#overdrafts.largest()!)
  }

  #cut({ id }: OpenRequest): void {
    const message = 'The client reads too slowly for a worker that it shares with other requests'
    this.#events.onBroken(id, new ServeError('SEND_OVERFLOW', message))
  }

  #fail(request: OpenRequest, error: ServeError): void {
    this.#end(request)
    this.#events.onMessage(0, { type: 'failure', id: request.id, error: error.toWire() })
  }

  #end(request: OpenRequest): void {
    this.#release(request, () => false)
    this.#byName.delete(request.requestId)
    this.#byId.delete(request.id)
    if (!request.cancelled) this.#unwanted(request)
    this.#delivery.ended(request)
  }

  #unwanted(request: OpenRequest): void {
    this.#wanted -= 1
    this.#overdrafts.forget(request)
    request.backlog.clear()
    this.#hold()
    if (this.#wanted === 0) this.#onUnwanted?.()
  }

  #hold(): void {
    const held = this.#wanted > 0 && this.#overdrafts.size === this.#wanted
    if (held === this.#held) return
    this.#held = held
    this.#delivery.hold(held)
  }
}

/** Whether a response has to wait for those before it, or for room. */
function waits({ cancelled, full, backlog }: OpenRequest): boolean {
  return !cancelled && (full || backlog.cost > 0)
}

function responseMessage(id: number, answer: OtfAnswer, body: Buffer): ResponseMessage {
  const { streamNext, contentType, status, reason, headers } = answer
  return {
    type: 'response',
    id,
    body,
    ts_stream_next: streamNext === 'true' || streamNext === 'false' ? streamNext : undefined,
    contentType: contentType === '' ? undefined : contentType,
    status,
    reason: reason === '' ? undefined : reason,
    headers,
  }
}
