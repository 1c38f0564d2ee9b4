import type { RequestListener } from 'node:http'
import type { ServeError } from '../../../common/errors.ts'
import type { ClientAdmission } from '../admission/admission.ts'
import { connectionOf } from './connection.ts'
import { HttpCall } from './http-call.ts'
import type { Refusal } from './http-reply.ts'
import { hasUnknownCoding } from './request-headers.ts'
import type { RestState } from './rest-state.ts'
import type { SafeResponse } from './safe-response.ts'
import { MAX_HEAD_BYTES, type ServerRequest } from './server-request.ts'
import { skipBody } from './unwanted-body.ts'

/** Handles a request of a REST listener. */
export type Listening = RequestListener<typeof ServerRequest, typeof SafeResponse>

/** An API over HTTP. What it throws, and what fails later, is answered by `refusal`. */
export interface HttpApi<Route = unknown> {
  /** What jobs call it. */
  readonly name: string
  /** Where the path leads, by path, method and listener alone; undefined: the path is not its own. */
  route(call: HttpCall): Route | undefined
  /**
   * Answers the call, now or later. False: the path is not its own after all, and nothing was done.
   * @throws ServeError
   */
  answer(call: HttpCall, route: Route): unknown
  /** A failure in its format: the one table from error code to status. Absent: the listener's format. */
  refusal?(call: HttpCall, error: ServeError): Refusal
}

/** What one listener serves. */
export interface RestApp {
  readonly listener: Listening
  /** For requests with an Expect header that is not known. */
  readonly expectation: Listening
  readonly state: RestState
  /** From now on new requests get 503, and connections are closed after their response. */
  beginDrain(): void
}

/** Offers a call to APIs in order. Returns false if no API has the path. @throws ServeError */
export function offer(call: HttpCall, apis: readonly HttpApi[]): boolean {
  for (const api of apis) {
    const route = api.route(call)
    if (route === undefined) continue
    const before = call.api
    call.api = api
    if (api.answer(call, route) !== false) return true
    call.api = before
  }
  return false
}

/** Offers each request to the APIs in order, and last to `otherwise`. */
export function createApp(
  state: RestState,
  apis: readonly HttpApi[],
  otherwise: (call: HttpCall) => void,
): RestApp {
  const arrive = (req: ServerRequest, res: SafeResponse): HttpCall | undefined => {
    const call = new HttpCall(state, req, res)
    if (mayGoOnSending(req)) res.once('prefinish', () => req.complete || skipBody(req))
    try {
      call.arrive()
      return call
    } catch (thrown) {
      call.api = apis.find((api) => api.route(call) !== undefined)
      call.fail(thrown)
      return undefined
    }
  }
  const answer = (call: HttpCall): void => {
    try {
      if (call.target.error !== undefined) {
        call.admit(state.listener === 'metrics' ? undefined : 'any')
        throw call.target.error
      }
      if (state.cors.answered(call)) return
      if (!offer(call, apis)) otherwise(call)
    } catch (thrown) {
      call.fail(thrown)
    }
  }
  const take = (req: ServerRequest, res: SafeResponse): void => {
    const call = arrive(req, res)
    if (call === undefined) return
    if (hasUnknownCoding(req)) {
      call.answered(501)
      res.writeHead(501, { connection: 'close' }).end()
      return
    }
    const work = state.authorizer.prepare?.(req.headers.authorization, req.socket)
    if (work === undefined) answer(call)
    // Nothing of the body is read meanwhile.
    else void work.then(() => answer(call))
  }
  const refuse = (req: ServerRequest, res: SafeResponse): void => {
    if (arrive(req, res) === undefined) return
    res.writeHead(417, { connection: 'close' }).end()
  }
  return {
    listener: inTurn(take, state.admission),
    expectation: inTurn(refuse, state.admission),
    state,
    beginDrain: () => {
      state.draining = true
    },
  }
}

/**
 * Whether much of the body may come after the answer. Node itself would read the rest, whatever its pieces,
 * and tell nobody: its bytes would seem to belong to no request.
 */
function mayGoOnSending({ headers }: ServerRequest): boolean {
  return headers['transfer-encoding'] !== undefined || Number(headers['content-length']) > MAX_HEAD_BYTES
}

/** Handles a request at once, or when those before it on its connection have their answers. */
export function inTurn(handle: Listening, admission: ClientAdmission): Listening {
  return (req, res) => {
    // It has the socket from the start, unless others come first.
    if (res.socket !== null) handle(req, res)
    else
      connectionOf(req.socket)
        .pipeline(admission)
        .take(res, () => handle(req, res))
  }
}
