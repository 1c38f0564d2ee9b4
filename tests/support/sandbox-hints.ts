import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { rawRequest } from './raw-http.ts'
import type { Server, ServerOptions } from './server.ts'
import { tempDir } from './temp.ts'

/** A file and a variable that no worker gets, and the options of a server that has them. */
export function refusing(): { path: string; options: Pick<ServerOptions, 'env'> } {
  const path = join(tempDir(), 'data')
  writeFileSync(path, 'data')
  return { path, options: { env: { PLANTED_SECRET: 'planted' } } }
}

/** The log of a model's workers themselves, without what they printed. Details are part of their record. */
export function workerLog({ output }: Server, model: string): string[] {
  const source = new RegExp(`W-\\d+-${model}_1\\.0 torchserve - `)
  const records: string[] = []
  for (const line of output) {
    if (line.startsWith(' ')) records.push(`${records.pop() ?? ''}\n${line}`)
    else records.push(line)
  }
  return records.filter((record) => source.test(record))
}

/** The line after the first one of a model's workers that has this text. */
export async function lineAfter(server: Server, model: string, text: string): Promise<string> {
  const found = await server.until(
    () => {
      const lines = workerLog(server, model)
      const at = lines.findIndex((line) => line.includes(text))
      return Promise.resolve(at < 0 ? undefined : lines[at + 1])
    },
    (line) => line !== undefined,
  )
  return found!
}

/** How many hints the workers of a model got. */
export function hintsOf(server: Server, model: string): number {
  return workerLog(server, model).filter((line) => line.includes('Hint: ')).length
}

export async function attempt(server: Server, model: string, what: string): Promise<number> {
  const { status } = await rawRequest(server.ports.inference, `/predictions/${model}`, {
    headers: { 'content-type': 'text/plain' },
    body: what,
  })
  return status
}
