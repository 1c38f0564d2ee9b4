import { readFileSync } from 'node:fs'
import { connect } from 'node:net'
import type { Context, HandlerRequest } from 'torchserve-ts'

/** Does what `atLoad` of its model-config.yaml says, and for each request what the body says. */
export async function initialize({ modelConfig }: Context): Promise<void> {
  await attempt(String(modelConfig['atLoad']), String(modelConfig['path']))
}

export async function handle(requests: HandlerRequest[], { modelConfig }: Context): Promise<string[]> {
  for (const { body } of requests) await attempt(String(body), String(modelConfig['path']))
  return requests.map(() => 'done')
}

async function attempt(what: string, path: string): Promise<void> {
  if (what === 'read') readFileSync(path)
  if (what === 'variable') throw new Error('PLANTED_SECRET is not set')
  if (what === 'throw') throw new Error('of its own')
  if (what === 'look up') await fetch('http://host.invalid/')
  if (what !== 'connect') return
  await new Promise<void>((resolve, reject) => {
    connect(9, '127.0.0.1', resolve).on('error', reject)
  })
}
