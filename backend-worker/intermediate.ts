import { ServeError } from '../common/errors.ts'
import { pushItem } from './batch.ts'
import type { Context, HandlerResponse, RequestIds } from './handler.ts'
import { markOwn } from './own-errors.ts'
import type { RequestGroup } from './request-group.ts'
import type { ResponseStream } from './response-stream.ts'

/** Where a context keeps its batch; a registered symbol, so that any copy of this package finds it. */
export const SEND = Symbol.for('torchserve-ts.send')

type Send = (ret: readonly HandlerResponse[], ids: RequestIds, message: string, code: number) => Promise<void>

const DONE = Promise.resolve()

/**
 * Sends one intermediate response to each addressed request of the batch, at once; the client sees it as one chunk, message or
 * event. Resolves when there is room for more, so a handler that awaits each call goes no faster than its slowest reader.
 * Without `await` the order is kept, but a request that piles up too much fails with SEND_OVERFLOW.
 *
 * @param ret One item per entry of `requestIds`, in the same places. `undefined`: nothing for that request this time. An Error
 * (or what cannot be encoded, or is larger than max_response_size) fails that request only.
 * @param requestIds `context.requestIds`, or a part of it: `ret[i]` goes to the request with the id `requestIds[i]`.
 * @param message Counts with a code that is an error: the client sees it.
 * @param code 200: all is well. Another 2xx: the status of answers that have not begun. Anything else fails the addressed requests
 * with this status, as in TorchServe.
 *
 * On ranks other than 0 it sends nothing and does not wait for readers. Items for requests that were cancelled are dropped in
 * silence: the neighbours in the batch go on.
 * @throws (rejects) with the reason of the abort when nobody waits for any request of the batch any more, so that a loop that
 * awaits its sends stops by itself; with an Error when `ret` is not a list, an id is not of this batch, or the request has had its
 * final response.
 */
export function sendIntermediatePredictResponse(
  ret: readonly HandlerResponse[],
  requestIds: RequestIds,
  message: string,
  code: number,
  context: Context,
): Promise<void> {
  const send = (context as Context & { [SEND]?: Send })[SEND]
  if (send === undefined) return refuse('context must be the one that handle was called with')
  return send.call(context, ret, requestIds, message, code)
}

/** The work behind {@link sendIntermediatePredictResponse}. */
export function sendToBatch(
  batch: RequestGroup,
  ret: readonly HandlerResponse[],
  requestIds: RequestIds,
  message: string,
  code: number,
): Promise<void> {
  if (batch.rank !== 0) return next(batch)
  if (!Array.isArray(ret)) return refuse('ret must be a list with one item per request')
  let full = false
  for (let i = 0; i < ret.length; i++) {
    const item: unknown = ret[i]
    const requestId = requestIds[i]
    if (item === undefined || requestId === undefined) continue
    const stream = find(batch, requestId, i)
    if (stream === undefined) return refuse(`no request "${requestId}" in this batch`)
    if (stream.complete) return refuse(`request ${requestId} has had its final response already`)
    if (code === 200) pushItem(stream, item)
    else pushWithCode(stream, item, message, code)
    full ||= isFull(stream)
  }
  if (!isSuccess(code)) return DONE
  if (full && !batch.gone) return quiet(roomForAll(batch, addressed(batch, ret, requestIds)))
  return next(batch)
}

/** When the handler may go on; rejects when it need not. */
function next(batch: RequestGroup): Promise<void> {
  return batch.gone ? quiet(Promise.reject(reasonOf(batch))) : (batch.outlet.breather() ?? DONE)
}

function reasonOf(batch: RequestGroup): Error {
  return batch.streams[0]!.gone!
}

function isFull(stream: ResponseStream): boolean {
  return stream.gone === undefined && !stream.hasRoom
}

function pushWithCode(stream: ResponseStream, item: unknown, message: string, code: number): void {
  if (isSuccess(code)) {
    stream.head.status ??= code
    pushItem(stream, item)
    return
  }
  const status = Number.isInteger(code) && code >= 300 && code < 600 ? code : 500
  stream.drop(markOwn(new ServeError('HANDLER_REJECTED', message.slice(0, 4096), { status })))
}

function isSuccess(code: number): boolean {
  return code >= 200 && code < 300
}

/** Mostly `requestIds` is the batch's own list, so the place tells the request. */
function find(batch: RequestGroup, requestId: string, place: number): ResponseStream | undefined {
  const guess = batch.streams[place]
  if (guess?.requestId === requestId) return guess
  return batch.streams.find((stream) => stream.requestId === requestId)
}

function addressed(batch: RequestGroup, ret: readonly unknown[], requestIds: RequestIds): ResponseStream[] {
  const streams: ResponseStream[] = []
  ret.forEach((item, i) => {
    const requestId = requestIds[i]
    if (item !== undefined && requestId !== undefined) streams.push(find(batch, requestId, i)!)
  })
  return streams
}

async function roomForAll(batch: RequestGroup, streams: readonly ResponseStream[]): Promise<void> {
  for (const stream of streams) {
    if (isFull(stream)) await stream.room()
  }
  if (batch.gone) throw reasonOf(batch)
}

function refuse(why: string): Promise<never> {
  return quiet(Promise.reject(markOwn(new Error(`sendIntermediatePredictResponse: ${why}`))))
}

/** A promise that may be left alone: that it rejects is no unhandled rejection. */
function quiet<T>(promise: Promise<T>): Promise<T> {
  promise.catch(() => undefined)
  return promise
}
