import { PredictionException, type Context, type HandlerRequest } from 'torchserve-ts'
import { opened } from '../gate.ts'

/**
 * Does what the request tells it: `{"status": n}` rejects the request with that status, `{"die": true}` ends
 * the worker, `{"bytes": n}` answers with as many, `{"gate": path}` waits until the gate is open. Anything
 * else is answered with `done`.
 */
export default class Told {
  async handle(requests: HandlerRequest[], context: Context): Promise<unknown[]> {
    return Promise.all(requests.map((request) => one(request['data'] ?? request['body'], context)))
  }
}

async function one(given: unknown, { signal }: Context): Promise<string> {
  const { status, die, bytes, gate } = JSON.parse(Buffer.from(given as string).toString()) as {
    status?: number
    die?: boolean
    bytes?: number
    gate?: string
  }
  if (status !== undefined) throw new PredictionException(`told ${status}`, status)
  if (die === true) process.exit(9)
  if (gate !== undefined) await opened(gate, signal)
  return bytes === undefined ? 'done' : 'x'.repeat(bytes)
}
