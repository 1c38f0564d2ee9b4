import type { IncomingMessage, ServerResponse } from 'node:http'
import { ServeError } from '../../../common/errors.ts'
import { parseObject } from '../../../common/tensors/message.ts'
import { readDecoded } from '../../edge/http/decoded-body.ts'
import type { RestState } from '../../edge/http/rest-state.ts'
import type { SseReply } from '../../edge/http/sse.ts'
import { tell, type Told } from './rest-reply.ts'

/** `{"ready": true}` wants only what can answer; tritonclient sends no body at all. */
export function index(state: RestState, res: ServerResponse, reply: SseReply): void {
  readDecoded(state, res, (error, body) => {
    const list = async (): Promise<Told> => {
      if (error !== undefined) throw error
      const onlyReady = body.byteLength > 0 && parseObject(body)['ready'] === true
      return [200, await state.models.repository.index(onlyReady)]
    }
    tell(reply, list())
  })
}

export async function load(state: RestState, req: IncomingMessage, model: string): Promise<Told> {
  checkAllowed(state, req)
  await state.models.repository.load(model)
  return [200, { name: model, load: true }]
}

export async function unload(state: RestState, req: IncomingMessage, model: string): Promise<Told> {
  checkAllowed(state, req)
  await state.models.repository.unload(model)
  return [200, { name: model, unload: true }]
}

/** @throws ServeError METHOD_NOT_ALLOWED, API_DISABLED */
function checkAllowed({ settings }: RestState, { method }: IncomingMessage): void {
  if (method !== 'POST') throw new ServeError('METHOD_NOT_ALLOWED', 'Method Not Allowed')
  if (!settings.enableModelApi)
    throw new ServeError('API_DISABLED', 'Loading and unloading is off: enable_model_api')
}
