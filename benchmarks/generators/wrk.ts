import { writeFileSync } from 'node:fs'
import { execa } from 'execa'
import { CONTENT_TYPE } from '../ceilings/workload.ts'
import { scratch } from '../scratch.ts'
import type { Generator, Load, LoadResult } from './generator.ts'

/** wrk: REST load for the least CPU time. Its Lua script posts the body and prints the figures as JSON. */
export const wrk: Generator = { name: 'wrk', run }

/** Of one answer: a slow server's long queue is no error. */
const TIMEOUT = '20s'

async function run(load: Load): Promise<LoadResult> {
  const script = scratch('wrk.lua')
  writeFileSync(script, lua(load))
  const { clients, seconds, url } = load
  // It takes whole seconds only, but on INT it ends as if its time were over.
  const duration = `${Math.ceil(seconds)}s`
  const args = ['-t', '1', '-c', String(clients), '-d', duration, '--timeout', TIMEOUT, '-s', script, url]
  const wrk = execa('wrk', args, {
    timeout: (seconds + 20) * 1000,
  })
  const early = setTimeout(() => wrk.kill('SIGINT'), seconds * 1000)
  const { stdout } = await wrk.finally(() => {
    clearTimeout(early)
  })
  return JSON.parse(stdout.split('\n').at(-1)!) as LoadResult
}

function lua({ body, headers }: Load): string {
  const escaped = [...body].map((byte) => `\\${String(byte).padStart(3, '0')}`).join('')
  const lines = Object.entries({ 'content-type': CONTENT_TYPE, ...headers }).map(
    ([name, value]) => `wrk.headers[${JSON.stringify(name)}] = ${JSON.stringify(value)}\n`,
  )
  return `wrk.method = "POST"
wrk.body = "${escaped}"
${lines.join('')}done = function(summary, latency)
  local e = summary.errors
  io.write(string.format('{"requests":%d,"errors":%d,"seconds":%f,"bytes":%d,"p50":%f,"p99":%f}',
    summary.requests, e.connect + e.read + e.write + e.status + e.timeout, summary.duration / 1e6, summary.bytes,
    latency:percentile(50) / 1e3, latency:percentile(99) / 1e3))
end
`
}
