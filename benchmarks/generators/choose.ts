import { execa } from 'execa'
import { autocannon } from './autocannon.ts'
import type { Generator } from './generator.ts'
import { h2load } from './h2load.ts'
import { http2Load } from './http2-load.ts'
import { wrk } from './wrk.ts'

export interface Generators {
  readonly rest: Generator
  readonly grpc: Generator
}

/** wrk and h2load if installed, else the npm packages. */
export async function chooseGenerators(): Promise<Generators> {
  const [hasWrk, hasH2load] = await Promise.all([installed('wrk'), installed('h2load')])
  return { rest: hasWrk ? wrk : autocannon, grpc: hasH2load ? h2load : http2Load }
}

/** wrk's version flag exits with 1, so only a failed start counts as missing. */
async function installed(command: string): Promise<boolean> {
  const { exitCode } = await execa(command, ['--version'], { reject: false })
  return exitCode !== undefined
}
