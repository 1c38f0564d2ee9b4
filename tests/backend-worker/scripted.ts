import type { PredictRequest } from '../../protocol/messages.ts'
import { request, type RequestOptions } from '../support/worker-process.ts'

/**
 * A handler whose body comes with the request, in the header `code`, URL-encoded: async JavaScript with
 * `requests`, `context`, `api` (the package), `shared` (an object that lives as long as the worker) and
 * `send(ret, ids?, code?, message?)`.
 */
export const SCRIPTED = `
import * as api from 'torchserve-ts'
const AsyncFunction = (async () => {}).constructor
const shared = {}
export async function handle(requests, context) {
  const send = (ret, ids = context.requestIds, code = 200, message = 'Intermediate') =>
    api.sendIntermediatePredictResponse(ret, ids, message, code, context)
  const body = new AsyncFunction('requests', 'context', 'api', 'shared', 'send', decodeURIComponent(context.requestHeader(0, 'code')))
  return body(requests, context, api, shared, send)
}
export function describe(context) {
  return { model: context.modelName, explain: context.explain }
}
`

/** A request that runs this code. */
export function run(id: number, code: string, body: unknown = {}, more: RequestOptions = {}): PredictRequest {
  return request(id, body, { ...more, headers: { ...more.headers, code: encodeURIComponent(code) } })
}
