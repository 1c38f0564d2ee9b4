import { setTimeout as sleep } from 'node:timers/promises'
import { BaseHandler, sendIntermediatePredictResponse } from 'torchserve-ts'
import type { Context, HandlerRequest } from 'torchserve-ts'

/** Streams the words of a text one by one. */
export default class Words extends BaseHandler {
  override async handle(requests: HandlerRequest[], context: Context): Promise<string[]> {
    const text = String(requests[0]?.['data'] ?? requests[0]?.['body'])
    for (const word of text.split(/\s+/)) {
      await sendIntermediatePredictResponse([`${word}\n`], context.requestIds, 'Intermediate', 200, context)
      await sleep(200, undefined, { signal: context.signal })
    }
    return ['']
  }
}
