import { writeFileSync } from 'node:fs'
import { execa } from 'execa'
import { CONTENT_TYPE } from '../ceilings/workload.ts'
import { scratch } from '../scratch.ts'
import type { Generator, Load, LoadResult } from './generator.ts'

/** wrk: REST load for the least CPU time. Its Lua script posts the body and prints the figures as JSON. */
export const wrk: Generator = { name: 'wrk', run }

async function run(load: Load): Promise<LoadResult> {
  const script = scratch('wrk.lua')
  writeFileSync(script, lua(load.body))
  const { clients, seconds, url } = load
  const result = await execa(
    'wrk',
    ['-t', '1', '-c', String(clients), '-d', `${seconds}s`, '-s', script, url],
    {
      timeout: (seconds + 20) * 1000,
    },
  )
  const json = result.stdout.split('\n').at(-1)!
  return JSON.parse(json) as LoadResult
}

function lua(body: Buffer): string {
  const escaped = [...body].map((byte) => `\\${String(byte).padStart(3, '0')}`).join('')
  return `wrk.method = "POST"
wrk.body = "${escaped}"
wrk.headers["Content-Type"] = "${CONTENT_TYPE}"
done = function(summary, latency)
  local e = summary.errors
  io.write(string.format('{"requests":%d,"errors":%d,"seconds":%f,"p50":%f,"p99":%f}',
    summary.requests, e.connect + e.read + e.write + e.status + e.timeout, summary.duration / 1e6,
    latency:percentile(50) / 1e3, latency:percentile(99) / 1e3))
end
`
}
