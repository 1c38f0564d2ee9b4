import { existsSync } from 'node:fs'
import type { Context, HandlerRequest } from 'torchserve-ts'
import { opened } from '../gate.ts'

/**
 * Loads when the gate of its model-config.yaml is open: well if there is a file of the gate's name with
 * `.works`, else it fails as `fails` says.
 */
export async function initialize({ modelConfig }: Context): Promise<void> {
  const gate = String(modelConfig['gate'])
  console.log('gated-load waits')
  await opened(gate)
  if (!existsSync(`${gate}.works`)) await fail(String(modelConfig['fails']))
}

export function handle(requests: HandlerRequest[]): string[] {
  return requests.map(() => 'served')
}

async function fail(how: string): Promise<void> {
  if (how === 'exit') process.exit(3)
  if (how === 'memory') throw new RangeError('Array buffer allocation failed')
  if (how === 'hang') await new Promise(() => undefined)
  throw new Error('planted words at /planted/path')
}
