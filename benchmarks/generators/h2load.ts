import { readFileSync, rmSync, writeFileSync } from 'node:fs'
import { execa } from 'execa'
import { scratch } from '../scratch.ts'
import { quantile } from '../statistics.ts'
import type { Generator, Load, LoadResult } from './generator.ts'

/** h2load: gRPC load, one call at a time per connection, for the least CPU time. */
export const h2load: Generator = { name: 'h2load', run }

async function run(load: Load): Promise<LoadResult> {
  const body = scratch('h2load.body')
  const log = scratch('h2load.log')
  writeFileSync(body, load.body)
  rmSync(log, { force: true })
  const numbers = ['-c', String(load.clients), '-m', '1', '-D', `${load.seconds * 1000}ms`]
  const sent = Object.entries({ 'content-type': 'application/grpc', te: 'trailers', ...load.headers })
  const headers = sent.flatMap(([name, value]) => ['-H', `${name}: ${value}`])
  const { stdout } = await execa(
    'h2load',
    [...numbers, ...headers, '-d', body, `--log-file=${log}`, load.url],
    {
      timeout: (load.seconds + 20) * 1000,
    },
  )
  return { ...counts(stdout), bytes: dataBytes(stdout), seconds: load.seconds, ...latencies(log) }
}

function counts(stdout: string): { requests: number; errors: number } {
  const line = /(\d+) succeeded, (\d+) failed, (\d+) errored, (\d+) timeout/.exec(stdout)
  if (line === null) throw new Error(`h2load said: ${stdout}`)
  const [succeeded, failed, errored, timeout] = line.slice(1).map(Number) as [number, number, number, number]
  return { requests: succeeded, errors: failed + errored + timeout }
}

function dataBytes(stdout: string): number | undefined {
  const bytes = /\((\d+)\) data$/m.exec(stdout)?.[1]
  return bytes === undefined ? undefined : Number(bytes)
}

/** Fields of a log line: start (microseconds since the epoch), HTTP status, duration (microseconds). */
function latencies(log: string): { p50: number; p99: number } {
  const lines = readFileSync(log, 'latin1').trimEnd().split('\n')
  const milliseconds = lines.map((line) => Number(line.split('\t')[2]) / 1000)
  return { p50: quantile(milliseconds, 0.5), p99: quantile(milliseconds, 0.99) }
}
