import { execa } from 'execa'
import { autocannon } from './autocannon.ts'
import type { Generator } from './generator.ts'
import { h2load } from './h2load.ts'
import { http2Load } from './http2-load.ts'
import { wrk } from './wrk.ts'

/** The generators for REST and for gRPC: wrk and h2load where installed, else the ones that npm brought. */
export async function chooseGenerators(): Promise<{ rest: Generator; grpc: Generator }> {
  const [hasWrk, hasH2load] = await Promise.all([installed('wrk'), installed('h2load')])
  return { rest: hasWrk ? wrk : autocannon, grpc: hasH2load ? h2load : http2Load }
}

/** wrk ends with 1 when it is asked for its version: what counts is that it could be started. */
async function installed(command: string): Promise<boolean> {
  const { exitCode } = await execa(command, ['--version'], { reject: false })
  return exitCode !== undefined
}
