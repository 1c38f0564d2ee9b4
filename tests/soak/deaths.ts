import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { makeItem } from '../../model-store/count/items.ts'
import type { Random } from '../support/random.ts'
import { RawRequest } from '../support/raw-http.ts'
import { launchServer, REPOSITORY, type Server, started } from '../support/server-process.ts'
import { isRunning } from '../support/processes.ts'
import type { Check } from './vitals.ts'

const WORKERS = 2
const STREAMS = 8
const ITEM_BYTES = 64
const BETWEEN_MS = { least: 3_000, most: 7_000 }
const LOOK_MS = 100
/** Milliseconds after which a request without an answer is lost. */
const ANSWER_MS = 30_000
/** Of the handler that ends its process on every tenth request: the longest part of the run, and its pace. */
const TENTH = { ms: 40_000, every: 50, answers: 250 }

/** What became of the streams. */
interface Streams {
  whole: number
  cut: number
  refused: number
  wrong: number
  unanswered: number
}

/**
 * A server whose workers die all the time: one of two is killed every few seconds, and another handler ends
 * its process on every tenth request. Returns what must hold.
 */
export async function deaths(folder: string, minutes: number, random: Random): Promise<Check[]> {
  const count = `count=${join(REPOSITORY, 'model-store', 'count')}`
  const tenth = `tenth=${join(import.meta.dirname, 'models', 'tenth')}`
  const server = launchServer({ folder, models: [count, tenth] })
  try {
    await started(server)
    for (const model of ['count', 'tenth']) await server.ready(model)
    await server.manage('PUT', `/models/count?min_worker=${WORKERS}&synchronous=true`)
    const stop = new AbortController()
    const streams: Streams = { whole: 0, cut: 0, refused: 0, wrong: 0, unanswered: 0 }
    const running = Promise.all([
      killAgain(server, random, stop.signal),
      look(server, stop.signal),
      ...Array.from({ length: STREAMS }, () => ask(server, streams, random.branch(), stop.signal)),
    ])
    const answered = await askTenth(server, Math.min(TENTH.ms, minutes * 60_000))
    await sleep(minutes * 60_000 - answered.ms)
    stop.abort()
    const [killed, ready] = await running
    await server.ready('count')
    const [version] = await server.describe('count')
    const there = version!.workers.filter(({ status }) => status === 'READY').length
    return [
      check(
        'a worker is ready',
        ready >= 0.98,
        `in ${(100 * ready).toFixed(2)} % of looks; ${killed} were killed`,
      ),
      check('both workers are there at the end', there === WORKERS, `${there}`),
      check('no stream is wrong', streams.whole > 0 && streams.wrong === 0, JSON.stringify(streams)),
      check('no request is without an answer', streams.unanswered === 0, `${streams.unanswered}`),
      check(
        'a handler that ends on every tenth request answers',
        answered.count >= (TENTH.answers * answered.ms) / TENTH.ms,
        `${answered.count} in ${answered.ms / 1000} s`,
      ),
      check('ends with status 0', (await server.stop()) === 0, ''),
    ]
  } finally {
    await server.stop('SIGKILL')
  }
}

function check(name: string, isPassed: boolean, detail: string): Check {
  return { name, isPassed, detail }
}

/** Kills a ready worker every few seconds. Returns how many it has killed. */
async function killAgain(server: Server, random: Random, signal: AbortSignal): Promise<number> {
  let killed = 0
  while (await pause(random.integer(BETWEEN_MS.least, BETWEEN_MS.most), signal)) {
    const [version] = await server.describe('count')
    const pids = version!.workers.filter(({ status }) => status === 'READY').map(({ pid }) => pid)
    const pid = pids.length === 0 ? undefined : random.pick(pids)
    if (pid === undefined || !isRunning(pid)) continue
    process.kill(pid, 'SIGKILL')
    killed += 1
  }
  return killed
}

/** The share of looks at which a worker was ready. */
async function look(server: Server, signal: AbortSignal): Promise<number> {
  let [looks, ready] = [0, 0]
  while (await pause(LOOK_MS, signal)) {
    const [version] = await server.describe('count')
    looks += 1
    if (version!.workers.some(({ status }) => status === 'READY')) ready += 1
  }
  return ready / looks
}

/** Streams one after the other, and compares every item. A cut stream must look like one. */
async function ask(server: Server, streams: Streams, random: Random, signal: AbortSignal): Promise<void> {
  for (let k = 0; !signal.aborted; k += 1) {
    const n = random.integer(1, 30)
    const run = { id: `${random.fraction()}`, n, size: ITEM_BYTES, delay: 5 }
    const body = JSON.stringify(run)
    const headers = { 'content-type': 'application/json' }
    const request = new RawRequest(server.ports.inference, '/predictions/count', { headers, body })
    const late = sleep(ANSWER_MS, undefined, { ref: false })
    const answer = await Promise.race([request.done, late])
    request.socket.destroy()
    if (answer === undefined) streams.unanswered += 1
    else if (answer.status !== 200 && answer.complete) streams.refused += 1
    else if (!isPrefix(answer.body, n) || (answer.complete && answer.chunks.length !== n)) streams.wrong += 1
    else if (answer.complete) streams.whole += 1
    else streams.cut += 1
  }
}

function isPrefix(body: string, n: number): boolean {
  const whole = Array.from({ length: n }, (_, k) => makeItem(k + 1, ITEM_BYTES).toString()).join('')
  return whole.startsWith(body)
}

/** Asks the handler in a fixed pace. Returns how many of the requests had an answer of the handler. */
async function askTenth(server: Server, ms: number): Promise<{ ms: number; count: number }> {
  const end = performance.now() + ms
  const asked: Promise<number>[] = []
  while (performance.now() < end) {
    const { done } = new RawRequest(server.ports.inference, '/predictions/tenth', { body: 'x' })
    asked.push(done.then(({ status }) => Number(status === 200)))
    await sleep(TENTH.every)
  }
  const counts = await Promise.all(asked)
  return { ms, count: counts.reduce((sum, one) => sum + one, 0) }
}

/** Resolves after the time with true, or with false when the signal aborts. */
async function pause(ms: number, signal: AbortSignal): Promise<boolean> {
  await sleep(ms, undefined, { signal }).catch(() => undefined)
  return !signal.aborted
}
