import { sendIntermediatePredictResponse, type Context, type HandlerRequest } from 'torchserve-ts'

/**
 * The stream of the throughput benchmark: a hundred items of a hundred bytes, one awaited call each, like the
 * ceilings' worker. Does nothing else, so that the benchmark measures the server.
 */
const ITEMS = Array.from({ length: 100 }, (_, index) => [Buffer.from(`${String(index + 1).padEnd(99)}\n`)])
const LAST = ['']

export async function handle(_requests: HandlerRequest[], context: Context): Promise<string[]> {
  for (const item of ITEMS) {
    await sendIntermediatePredictResponse(item, context.requestIds, 'Intermediate', 200, context)
  }
  return LAST
}
