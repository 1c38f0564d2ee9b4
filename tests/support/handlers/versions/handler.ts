import {
  PredictionException,
  sendIntermediatePredictResponse,
  StringCodec,
  type Context,
  type HandlerRequest,
  type HandlerResponse,
  type InferenceResponse,
} from 'torchserve-ts'
import { opened } from '../gate.ts'

/**
 * Answers with the version that it is of. The text of a request may be `fail VERSION`, `refuse VERSION` (as
 * the client's mistake) or `status VERSION` (an answer with the status 503), which only that version does;
 * `gate PATH` streams the version, and `end` when the gate is open.
 */
export async function handle(requests: HandlerRequest[], context: Context): Promise<HandlerResponse[]> {
  const { modelVersion: version } = context
  const [word, what] = textOf(requests[0]!).split(' ')
  if (what === version && word === 'fail') throw new Error('on purpose')
  if (what === version && word === 'refuse') throw new PredictionException('not you', 400)
  if (what === version && word === 'status') context.setResponseStatus(0, 503, 'on purpose')
  if (word !== 'gate') return requests.map(() => version)
  await sendIntermediatePredictResponse([version], context.requestIds, 'Intermediate', 200, context)
  await opened(what!)
  return ['end']
}

/** For versions whose answers every API has a form for. */
export function vector(requests: HandlerRequest[]): HandlerResponse[] {
  return requests.map(() => [1, 2])
}

/** For versions whose answers are no inference response of V2, and no vector. */
export function odd(requests: HandlerRequest[]): HandlerResponse[] {
  return requests.map(() => ({ outputs: [1] }))
}

/** For versions whose handler takes tensors, and nothing else. */
export class Tensors {
  predict(_request: unknown, context: Context): InferenceResponse {
    return { outputs: [StringCodec.encodeOutput('output', [context.modelVersion])] }
  }
}

function textOf(request: HandlerRequest): string {
  const given = request['data'] ?? request['body']
  return given instanceof Uint8Array ? new TextDecoder().decode(given) : String(given)
}
