import { writeFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { execa } from 'execa'
import { CONTENT_TYPE } from '../ceilings/workload.ts'
import { scratch } from '../scratch.ts'
import type { Generator, Load, LoadResult } from './generator.ts'

interface Printed {
  '2xx': number
  non2xx: number
  errors: number
  timeouts: number
  start: string
  finish: string
  throughput: { total: number }
  latency: { p50: number; p99: number }
}

/** autocannon: REST load without wrk. Uses more CPU time than the server it measures. */
export const autocannon: Generator = { name: 'autocannon', run }

const program = createRequire(import.meta.url).resolve('autocannon/autocannon.js')

async function run(load: Load): Promise<LoadResult> {
  const body = scratch('autocannon.body')
  writeFileSync(body, load.body)
  const sent = Object.entries({ 'content-type': CONTENT_TYPE, ...load.headers })
  const headers = sent.flatMap(([name, value]) => ['-H', `${name}: ${value}`])
  const args = ['-j', '-m', 'POST', '-i', body, ...headers]
  // It looks at the clock once per sample.
  const sample = String(Math.round(Math.min(1000, load.seconds * 100)))
  const numbers = ['-c', String(load.clients), '-d', String(load.seconds), '-L', sample]
  const { stdout } = await execa(process.execPath, [program, ...args, ...numbers, load.url], {
    timeout: (load.seconds + 20) * 1000,
  })
  const printed = JSON.parse(stdout) as Printed
  return {
    requests: printed['2xx'],
    errors: printed.non2xx + printed.errors + printed.timeouts,
    seconds: (Date.parse(printed.finish) - Date.parse(printed.start)) / 1000,
    bytes: printed.throughput.total,
    p50: printed.latency.p50,
    p99: printed.latency.p99,
  }
}
