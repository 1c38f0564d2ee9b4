import {
  sendIntermediatePredictResponse,
  type Context,
  type HandlerRequest,
  type HandlerResponse,
} from 'torchserve-ts'
import { opened } from '../gate.ts'

/**
 * Streams `begun`, then `opened` when the gate is open that the body names (tests/support/gate.ts), then
 * `end`.
 */
export async function handle([request]: HandlerRequest[], context: Context): Promise<HandlerResponse[]> {
  const { body, data } = request!
  const given = body ?? data
  const path = given instanceof Uint8Array ? new TextDecoder().decode(given) : String(given)
  const send = (item: string): Promise<void> =>
    sendIntermediatePredictResponse([item], context.requestIds, 'Intermediate', 200, context)
  await send('begun')
  await opened(path)
  await send('opened')
  return ['end']
}
