import type { Context, Handler, HandlerRequest, HandlerResponse } from 'torchserve-ts'
import { faults } from './faults.ts'

/**
 * Fails on request: JSON {"fault": name, ...} as body or as part `data`; faults.ts has the names. It also
 * fails to load when `handler.initialize` in its model-config.yaml is throw, exit, hang or busy.
 */
export default class Faulty implements Handler {
  async initialize(context: Context): Promise<void> {
    const config = (context.modelConfig['handler'] ?? {}) as Record<string, unknown>
    const how = config['initialize']
    if (how === undefined) return
    if (how === 'throw') throw new Error('faulty: initialize failed as it was told')
    if (how === 'exit') {
      process.stderr.write('faulty: leaving in initialize\n')
      process.exit(7)
    }
    if (how === 'hang') await new Promise(() => undefined)
    if (how === 'busy') for (;;);
  }

  async handle(requests: HandlerRequest[], context: Context): Promise<HandlerResponse[]> {
    return (await Promise.all(requests.map((request, index) => this.#one(request, index, context)))).flat()
  }

  /** Usually one answer; faults about the number of answers give another number. */
  async #one(request: HandlerRequest, index: number, context: Context): Promise<HandlerResponse[]> {
    const options = read(request)
    const fault = faults[options['fault'] as string]
    if (fault === undefined) return [new Error(`faulty: no fault ${String(options['fault'])}`)]
    const answer = await fault({ options, index, context })
    return options['fault'] === 'extra_answers' ? (answer as HandlerResponse[]) : [answer]
  }
}

function read(request: HandlerRequest): Record<string, unknown> {
  const given = request['data'] ?? request['body']
  const value: unknown =
    given instanceof Uint8Array || typeof given === 'string'
      ? JSON.parse(Buffer.from(given as Uint8Array).toString())
      : given
  return (value ?? {}) as Record<string, unknown>
}
