import { readFileSync } from 'node:fs'
import { connect, type ClientHttp2Session } from 'node:http2'
import { performance } from 'node:perf_hooks'
import { quantile } from '../statistics.ts'

/**
 * The program behind http2-load.ts. Arguments: URL of the call, file with the message, clients, seconds,
 * headers as JSON.
 */

const [url, bodyFile, clients, seconds, more] = process.argv.slice(2) as [
  string,
  string,
  string,
  string,
  string,
]
const { origin, pathname } = new URL(url)
const body = readFileSync(bodyFile)
const headers = {
  ':method': 'POST',
  ':path': pathname,
  'content-type': 'application/grpc',
  te: 'trailers',
  ...(JSON.parse(more) as Record<string, string>),
}
const durations: number[] = []
let errors = 0
let over = false

function call(session: ClientHttp2Session): void {
  const start = performance.now()
  const stream = session.request(headers)
  let ok = false
  stream.on('trailers', (trailers: Record<string, unknown>) => {
    ok = trailers['grpc-status'] === '0'
  })
  stream.on('error', () => undefined) // `close` follows
  stream.on('close', () => {
    if (over) return
    if (ok) durations.push(performance.now() - start)
    else errors++
    if (session.destroyed) return
    call(session)
  })
  stream.resume()
  stream.end(body)
}

const sessions = Array.from({ length: Number(clients) }, () => connect(origin, { rejectUnauthorized: false }))
for (const session of sessions) {
  session.on('error', () => errors++)
  call(session)
}
setTimeout(
  () => {
    over = true
    for (const session of sessions) session.destroy()
    const result = {
      requests: durations.length,
      errors,
      seconds: Number(seconds),
      p50: quantile(durations, 0.5),
      p99: quantile(durations, 0.99),
    }
    process.stdout.write(JSON.stringify(result))
  },
  Number(seconds) * 1000,
)
