import { appendFileSync } from 'node:fs'
import type { Context, HandlerRequest } from 'torchserve-ts'

/** Adds up the numbers of each sequence, under its id in the cache. */
export function handle(requests: HandlerRequest[], context: Context): string[] {
  return requests.map(({ body, data }, i) => {
    const id = context.sequenceId(i)!
    const sum = ((context.cache.get(id) as number | undefined) ?? 0) + Number(body ?? data)
    context.cache.set(id, sum)
    return String(sum)
  })
}

/** Writes the id and the sum into the file `handler.ends` of model-config.yaml. */
export function onSequenceEnd(id: string, { cache, modelConfig }: Context): void {
  const { ends } = modelConfig['handler'] as { ends: string }
  appendFileSync(ends, `${id}=${cache.get(id) as number}\n`)
}

/** The number of sequences whose sum the worker has. */
export function describe({ cache }: Context): Record<string, unknown> {
  return { entries: cache.size }
}
