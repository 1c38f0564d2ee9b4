import { setTimeout as sleep } from 'node:timers/promises'
import { BaseHandler, PredictionException, sendIntermediatePredictResponse } from 'torchserve-ts'
import type { Context, HandlerRequest } from 'torchserve-ts'

/** Streams the words of a text one by one. */
export default class Words extends BaseHandler {
  override async handle(requests: HandlerRequest[], context: Context): Promise<string[]> {
    const text = requests[0]?.['data']?.toString() ?? requests[0]?.['body']?.toString()
    if (text === undefined)
      throw new PredictionException('Send text/plain, or a form with the field data', 400)
    for (const word of text.split(/\s+/)) {
      await sendIntermediatePredictResponse([`${word}\n`], context.requestIds, 'Intermediate', 200, context)
      await sleep(200, undefined, { signal: context.signal })
    }
    return ['']
  }
}
