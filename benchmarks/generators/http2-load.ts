import { writeFileSync } from 'node:fs'
import { execa } from 'execa'
import { programPath } from '../programs.ts'
import { scratch } from '../scratch.ts'
import type { Generator, Load, LoadResult } from './generator.ts'

/** gRPC load without h2load: node:http2 with prepared bytes, much cheaper than a grpc-js client. */
export const http2Load: Generator = { name: 'node:http2', run }

async function run(load: Load): Promise<LoadResult> {
  const body = scratch('http2.body')
  writeFileSync(body, load.body)
  const args = [load.url, body, String(load.clients), String(load.seconds), JSON.stringify(load.headers)]
  const { stdout } = await execa(process.execPath, [programPath('http2-client'), ...args], {
    timeout: (load.seconds + 20) * 1000,
  })
  return JSON.parse(stdout) as LoadResult
}
