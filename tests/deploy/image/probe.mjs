/**
 * Asks the server in the box (box.sh), ends it, and writes what it found to standard output, as JSON lines.
 * Gets the process id of the `unshare` whose child is the first process of the box.
 */
import { readFileSync, readdirSync } from 'node:fs'
import { connect } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'

const [unshare] = process.argv.slice(2)
const URL = 'http://127.0.0.1:8080'
const READY_LIMIT_MS = 60_000

function say(found) {
  process.stdout.write(`${JSON.stringify(found)}\n`)
}

async function ready() {
  const end = performance.now() + READY_LIMIT_MS
  while (performance.now() < end) {
    const answer = await fetch(`${URL}/v2/health/ready`).catch(() => undefined)
    if (answer?.status === 200) return
    await sleep(100)
  }
  throw new Error('The server is not ready')
}

function opens(port) {
  return new Promise((resolve) => {
    const socket = connect(port, '127.0.0.1')
      .once('connect', () => resolve(true))
      .once('error', () => resolve(false))
    socket.once('connect', () => socket.destroy())
  })
}

function count(body) {
  const headers = { 'content-type': 'application/json' }
  return fetch(`${URL}/predictions/count`, { method: 'POST', headers, body: JSON.stringify(body) })
}

/** Files below a folder, and empty folders, which end with a slash. */
function written(folder) {
  return readdirSync(folder, { withFileTypes: true }).flatMap((entry) => {
    const path = `${folder}/${entry.name}`
    if (!entry.isDirectory()) return [path]
    const inside = written(path)
    return inside.length === 0 ? [`${path}/`] : inside
  })
}

async function main() {
  const [first] = readFileSync(`/proc/${unshare}/task/${unshare}/children`, 'utf8').trim().split(' ')
  await ready()
  const status = readFileSync(`/proc/${first}/status`, 'utf8')
  say({ firstProcess: /^NSpid:.*\s(\d+)$/m.exec(status)[1] })
  const unary = await count({ n: 3, stream: false })
  say({ unary: unary.status, body: await unary.text() })
  const ports = [8080, 9000, 8082, 8081]
  say({ ports: Object.fromEntries(await Promise.all(ports.map(async (port) => [port, await opens(port)]))) })
  const stream = await count({ n: 10, size: 64, delay: 100, stream: true })
  const reader = stream.body.getReader()
  const read = async () => (await reader.read()).value?.byteLength ?? 0
  let bytes = await read()
  say({ written: written('/tmp') })
  process.kill(Number(first), 'SIGTERM')
  for (let more = await read(); more > 0; more = await read()) bytes += more
  say({ streamed: stream.status, bytes })
}

main().catch((error) => {
  say({ problem: error.stack })
  process.exitCode = 1
})
