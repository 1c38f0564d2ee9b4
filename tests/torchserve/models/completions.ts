import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { Context, HandlerRequest } from 'torchserve-ts'

interface Recorded {
  predict: string
}

interface Item {
  text: string
  ids: number[]
}

/**
 * Stand-in for GPT-2 in TorchServe's test of continuous batching. It knows the completions that the test
 * expects (`answers.json`, by prompt) and streams one in as many steps as tokens were requested, the prompt
 * with the first.
 */
export default class RecordedCompletions {
  #completions = new Map<string, Recorded>()

  async initialize(context: Context): Promise<void> {
    const text = await readFile(join(context.properties.modelDir, 'answers.json'), 'utf8')
    this.#completions = new Map(Object.entries(JSON.parse(text) as Record<string, Recorded>))
  }

  handle(requests: HandlerRequest[], context: Context): Item[] {
    const left = requests.map((request, index) => this.#pieces(context.requestIds[index]!, request, context))
    context.stoppingCriteria = left.map((pieces) => () => pieces.length === 0)
    return left.map((pieces) => ({ text: pieces.shift() ?? '', ids: [pieces.length] }))
  }

  /** What of a request's answer has not been told. */
  #pieces(requestId: string, request: HandlerRequest, context: Context): string[] {
    const known = context.cache.get(requestId) as string[] | undefined
    if (known !== undefined) return known
    const { prompt, max_new_tokens: steps } = JSON.parse(String(request['body'])) as {
      prompt: string
      max_new_tokens: number
    }
    const rest = (this.#completions.get(prompt)?.predict ?? prompt).slice(prompt.length)
    const pieces = Array.from({ length: steps }, (_, n) =>
      rest.slice((n * rest.length) / steps, ((n + 1) * rest.length) / steps),
    )
    pieces[0] = prompt + pieces[0]!
    context.cache.set(requestId, pieces)
    return pieces
  }
}
