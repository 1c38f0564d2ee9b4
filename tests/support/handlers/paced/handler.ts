import {
  sendIntermediatePredictResponse,
  type Context,
  type HandlerRequest,
  type HandlerResponse,
} from 'torchserve-ts'
import { pace, planIn } from './pace.ts'

/** Sends items when told to (pace.ts): a handler with `handle`. */
export class Paced {
  async handle([request]: HandlerRequest[], context: Context): Promise<HandlerResponse[]> {
    const plan = planIn(textOf(request!))
    const items: string[] = []
    for await (const item of pace(plan, context.signal)) {
      if (plan.stream === false) items.push(item)
      else await sendIntermediatePredictResponse([item], context.requestIds, 'Intermediate', 200, context)
    }
    return [items.join('')]
  }
}

function textOf({ data, body }: HandlerRequest): string {
  const value = data ?? body
  if (value instanceof Uint8Array) return Buffer.from(value).toString()
  return typeof value === 'string' ? value : textIn(value as { inputs?: { data: string[] }[] })
}

/** A JSON object: the plan itself, or the tensor request that TorchServe's own V2 over gRPC passes on. */
function textIn(value: { inputs?: { data: string[] }[] }): string {
  const element = value.inputs?.[0]?.data[0]
  return element === undefined ? JSON.stringify(value) : Buffer.from(element, 'base64').toString()
}
