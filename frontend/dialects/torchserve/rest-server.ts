import { Router } from '@koa/router'
import type { RestState } from '../../edge/http/app.ts'
import { answerJson, callOf, managing } from './rest-koa.ts'
import { queryParams } from './rest-management-params.ts'
import type { Context } from 'koa'
import { ServeError } from '../../../common/errors.ts'
import type { EventTopic } from '../../../common/server-events.ts'
import type { ChunkWriter } from '../../edge/http/chunk-writer.ts'
import type { HttpCall } from '../../edge/http/http-call.ts'
import { EVENT_STREAM_TYPE, eventStreamHead } from '../../edge/http/sse.ts'
import type { EventOutlet, EventQuery } from '../../watch/viewers.ts'

/** Open requests and the effective configuration of the server; TorchServe has no such routes. */
export function serverRouter(state: RestState): Router {
  const router = new Router()
  router.delete(
    '/requests/:request',
    managing('cancel request', (ctx, subject) => {
      queryParams(ctx).checkNames()
      const id = (subject.request = ctx.params['request']!)
      subject.model = state.requests.cancel(id)
      answerJson(ctx, 200, { status: `Request ${id} was cancelled` })
    }),
  )
  router.get('/configuration', (ctx) => {
    queryParams(ctx).checkNames()
    answerJson(ctx, 200, { settings: state.configuration() })
  })
  return router
}

const TOPICS: readonly EventTopic[] = ['overview', 'requests', 'log']
const DEFAULT_REQUESTS = 200
const MAX_REQUESTS = 5_000

/** What the server does, as Server-Sent Events; TorchServe has no such route. */
export function eventRouter(state: RestState): Router {
  const router = new Router()
  router.get('/events', (ctx) => {
    const call = callOf(ctx)
    const query = eventQuery(ctx)
    if (ctx.method === 'HEAD') {
      ctx.status = 200
      ctx.set('content-type', EVENT_STREAM_TYPE)
      return
    }
    ctx.respond = false
    const leave = state.events.watch(call.principal, query, new Outlet(call))
    if (!call.reply.follow({ cancel: leave, drained: () => undefined })) leave()
  })
  return router
}

/** @throws ServeError INVALID_ARGUMENT */
function eventQuery(ctx: Context): EventQuery {
  const params = queryParams(ctx)
  const topics = topicsOf(params.text('topics'))
  const requests = requestsOf(params.text('requests'))
  params.checkNames()
  return { topics, requests }
}

function topicsOf(text: string | undefined): Set<EventTopic> {
  if (text === undefined) return new Set(TOPICS)
  const topics = new Set<EventTopic>()
  for (const name of text.split(',')) {
    const topic = TOPICS.find((each) => each === name)
    if (topic === undefined)
      throw new ServeError(
        'INVALID_ARGUMENT',
        `Parameter topics must be a list of ${TOPICS.join(', ')} with commas between them, found ${text.slice(0, 80)}`,
      )
    topics.add(topic)
  }
  return topics
}

function requestsOf(text: string | undefined): number {
  if (text === undefined) return DEFAULT_REQUESTS
  const count = /^\d{1,5}$/.test(text) ? Number(text) : NaN
  if (count >= 0 && count <= MAX_REQUESTS) return count
  throw new ServeError(
    'INVALID_ARGUMENT',
    `Parameter requests must be a whole number from 0 to ${MAX_REQUESTS}, found ${text.slice(0, 80)}`,
  )
}

/** The connection of a viewer. Its head leaves with the first event, so that a refusal has its own status. */
class Outlet implements EventOutlet {
  readonly #call: HttpCall
  #writer: ChunkWriter | undefined

  constructor(call: HttpCall) {
    this.#call = call
  }

  get isFull(): boolean {
    return this.#call.res.writableLength > 0
  }

  send(bytes: Buffer): void {
    const { reply } = this.#call
    if (reply.ended) return
    this.#writer ??= reply.open(200, eventStreamHead(this.#call))
    this.#writer.write(bytes, 0, bytes.byteLength)
  }

  end(): void {
    this.#call.reply.end()
  }

  cut(why: ServeError): void {
    this.#call.reply.break(why)
  }
}
