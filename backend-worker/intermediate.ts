import { ServeError } from '../common/errors.ts'
import { isObject } from '../common/json.ts'
import { type Batch, pushItem, type RequestGroup } from './batch.ts'
import type { Context, HandlerResponse, RequestIds } from './handler.ts'
import { describeThrown, markOwn } from './handler-error.ts'
import type { ResponseStream } from './response-stream.ts'
import { sendLog } from './outlet.ts'
import { notAList } from './output.ts'

/** The key under which a context keeps its batch. A registered symbol works across copies of this package. */
export const SEND = Symbol.for('torchserve-ts.send')

type Send = (ret: readonly HandlerResponse[], ids: RequestIds, message: string, code: number) => Promise<void>

const DONE = Promise.resolve()

const ARGUMENTS = "; call it as sendIntermediatePredictResponse([item], context.requestIds, '', 200, context)"

/**
 * Sends one intermediate response at once to each addressed request of the batch. The client gets it as one
 * HTTP chunk, gRPC message or Server-Sent Event.
 *
 * The promise resolves when the window has room again, so a handler that awaits each call is never faster
 * than its slowest client. Without `await` the order is kept, but a request fails with SEND_OVERFLOW if too
 * many bytes wait.
 *
 * A handler that computes between two calls need not do anything for its items to leave. Only after more than
 * four calls in a row the last items wait until the handler calls again or yields to the event loop, as
 * `await setImmediate()` of node:timers/promises does.
 *
 * On ranks other than 0 the call sends nothing and resolves without waiting for clients. Items for cancelled
 * requests are dropped, and the other requests of the batch continue.
 *
 * @param ret One item per entry of `requestIds`, at the same index. `undefined` sends nothing to that
 * request, but its time limits begin anew. An Error fails that request only, and so does an item that cannot
 * be encoded or exceeds max_response_size.
 * @param requestIds `context.requestIds`, or a part of it: `ret[i]` goes to the request with the id
 * `requestIds[i]`.
 * @param message The error message for the client; used only if `code` is an error.
 * @param code 200 for success. Another 2xx sets the status of responses that have not begun. Any other code
 * fails the addressed requests with that status, as in TorchServe.
 * @param context The context of the current call.
 * @throws (rejects with) the reason of `context.signal` when every request of the batch is cancelled, so that
 * a loop of awaited sends ends by itself
 * @throws (rejects with) Error when `ret` is not a list, an id is not in the batch, or a request has already
 * ended
 */
export function sendIntermediatePredictResponse(
  ret: readonly HandlerResponse[],
  requestIds: RequestIds,
  message: string,
  code: number,
  context: Context,
): Promise<void> {
  const send = (context as (Context & { [SEND]?: Send }) | undefined)?.[SEND]
  if (send === undefined)
    return refuse(`context must be the context of the current call of handle${ARGUMENTS}`)
  return send.call(context, ret, requestIds, message, code)
}

/** Implements {@link sendIntermediatePredictResponse}. */
export function sendToBatch(
  batch: RequestGroup,
  ret: readonly HandlerResponse[],
  requestIds: RequestIds,
  message: string,
  code: number,
): Promise<void> {
  if (batch.rank !== 0) return next(batch)
  if (!Array.isArray(ret)) return refuse(`ret must be a list with one item per request${ARGUMENTS}`)
  // Callers in JavaScript may pass anything.
  if (!isObject(requestIds) && !Array.isArray(requestIds))
    return refuse(`requestIds must be context.requestIds${ARGUMENTS}`)
  let full = false
  for (let i = 0; i < ret.length; i++) {
    const item: unknown = ret[i]
    const requestId = requestIds[i]
    if (requestId === undefined) continue
    const stream = find(batch, requestId, i)
    if (item === undefined) {
      stream?.alive()
      continue
    }
    if (stream === undefined) return refuse(`the batch has no request "${requestId}"`)
    if (stream.complete) return refuse(`request ${requestId} has already ended`)
    if (code === 200) pushItem(stream, item)
    else pushWithCode(stream, item, message, code)
    full ||= isFull(stream)
  }
  if (!isSuccess(code)) return DONE
  if (full && !batch.gone) return quiet(roomForAll(batch, addressed(batch, ret, requestIds)))
  return next(batch)
}

/** Resolves when the handler may continue; rejects when all its requests are cancelled. */
function next(batch: RequestGroup): Promise<void> {
  return batch.gone ? quiet(Promise.reject(reasonOf(batch))) : (batch.outlet.flushEarly() ?? DONE)
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

/** Usually `requestIds` is the list of the batch, so the index finds the request. */
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

/** Handlers need not await the promise, so its rejection must not count as unhandled. */
function quiet<T>(promise: Promise<T>): Promise<T> {
  promise.catch(() => undefined)
  return promise
}

export function isAsyncIterable(answer: unknown): answer is AsyncIterable<unknown> {
  return typeof answer === 'object' && answer !== null && Symbol.asyncIterator in answer
}

/**
 * Runs an `async *handle`. Each yield is an intermediate response; the next value is requested when the
 * window has room. Returns the generator's return value as the last items (default: all undefined). When all
 * requests are cancelled it calls the iterator's `return`, so that `finally` blocks run.
 */
export async function iterate(answer: AsyncIterable<unknown>, batch: Batch): Promise<unknown> {
  const iterator = answer[Symbol.asyncIterator]()
  let done = false
  const stop = (): void => {
    if (!done) void stopIterator(iterator, batch)
  }
  batch.onGone = stop
  try {
    for (;;) {
      const next = await iterator.next()
      if (next.done === true) {
        done = true
        return next.value ?? batch.streams.map(() => undefined)
      }
      if (!Array.isArray(next.value)) throw notAList('yield', next.value)
      await sendToBatch(batch, next.value, batch.requestIds, 'Intermediate', 200)
    }
  } catch (thrown) {
    await stopIterator(iterator, batch)
    throw thrown
  } finally {
    done = true
    batch.onGone = undefined
  }
}

async function stopIterator(iterator: AsyncIterator<unknown>, batch: Batch): Promise<void> {
  try {
    await iterator.return?.()
  } catch (thrown) {
    sendLog(batch.outlet, 'warn', `The handler threw while it stopped: ${describeThrown(thrown)}`)
  }
}
