import { createHash } from 'node:crypto'
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { BaseHandler, type Context, type HandlerRequest, type HandlerResponse } from 'torchserve-ts'

/** What a network answers to one input. */
interface Recorded {
  predict?: unknown
  explain?: unknown
}

/**
 * Stand-in for a neural network. It knows the network's responses to the inputs of TorchServe's own tests, by
 * the SHA-256 of the input (`answers.json` in the archive, made from the tests' data). It answers an unknown
 * input with its digest and length. So an expected response proves that exactly these bytes passed through
 * the server.
 */
export default class RecordedNetwork extends BaseHandler {
  #answers = new Map<string, Recorded>()

  override async initialize(context: Context): Promise<void> {
    const text = await readFile(join(context.properties.modelDir, 'answers.json'), 'utf8')
    this.#answers = new Map(Object.entries(JSON.parse(text) as Record<string, Recorded>))
  }

  override preprocess(requests: HandlerRequest[], _context?: Context): Buffer[] {
    return requests.map((request) => bytes(request['data'] ?? request['body']))
  }

  override inference(inputs: Buffer[], context: Context): HandlerResponse[] {
    return inputs.map((input) => this.#answer(input, context.explain))
  }

  #answer(input: Buffer, explain: boolean): HandlerResponse {
    const sha256 = createHash('sha256').update(input).digest('hex')
    const answer = this.#answers.get(sha256)?.[explain ? 'explain' : 'predict']
    return answer ?? { sha256, bytes: input.length }
  }
}

function bytes(value: unknown): Buffer {
  if (value instanceof Uint8Array) return Buffer.from(value)
  return Buffer.from(typeof value === 'string' ? value : JSON.stringify(value ?? ''))
}
