import { setTimeout as wait } from 'node:timers/promises'
import { sendIntermediatePredictResponse, type Context, type HandlerRequest } from 'torchserve-ts'

/** Items `gap` milliseconds apart; each says how many milliseconds the handler had run when it made it. */
export async function handle([request]: HandlerRequest[], context: Context): Promise<string[]> {
  const start = performance.now()
  const { n, gap } = asked(request!)
  for (let number = 1; number <= n; number++) {
    if (number > 1) await wait(gap)
    const item = `${number} ${(performance.now() - start).toFixed(3)}`.padEnd(99)
    await sendIntermediatePredictResponse([`${item}\n`], context.requestIds, 'Intermediate', 200, context)
  }
  return ['']
}

function asked({ body, data }: HandlerRequest): { n: number; gap: number } {
  return JSON.parse(Buffer.from((body ?? data) as Uint8Array).toString()) as { n: number; gap: number }
}
