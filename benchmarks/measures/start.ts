import { spawn, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { performance } from 'node:perf_hooks'
import { ECHO, ECHO_BODY } from '../ceilings/workload.ts'
import type { Options } from '../options.ts'
import { cpuMilliseconds, processTree, Service } from '../processes.ts'
import { scratch } from '../scratch.ts'
import { median } from '../statistics.ts'
import { archiveOf, oursCommand, type OursCommand, ROOT } from '../targets/ours.ts'
import { postAndRead } from '../wire.ts'
import { type Figure, pause } from './figure.ts'
import { measureIdle } from './idle.ts'

const POLL_MS = 5
const WORKER_MAIN = join(ROOT, 'dist/backend-worker/main.js')

/** How long starts take, and the memory of a server that has nothing to do. */
export async function measureStart(options: Options): Promise<Figure[]> {
  const times = options.repeats + 2
  const figure = (name: string, value: number, atMost?: number): Figure => ({
    ...{ measure: 'start', name, value, unit: 'ms', atMost },
  })
  const bare = await several(times, bareNode)
  const worker = await several(times, workerStart)
  const archive = await archiveOf(ECHO)
  const archives = await several(times, () => firstAnswer([`${ECHO}=${archive}`]))
  const folders = await several(times, () => firstAnswer([ECHO]))
  const of = (name: string) => `${name}, median of ${times}`
  return [
    figure(of('node with an empty program'), median(bare)),
    figure(of('a worker alone, until it listens'), median(worker), 150),
    figure(of('exec to the first answer, archive'), median(archives.map(({ answered }) => answered)), 600),
    figure(of('the same, until a listener is there'), median(archives.map(({ listened }) => listened))),
    figure(of('the same, processor time of all processes'), median(archives.map(({ cpu }) => cpu))),
    figure(of('exec to the first answer, folder'), median(folders.map(({ answered }) => answered)), 1500),
    ...(await measureIdle(archive)),
  ]
}

async function several<T>(times: number, once: () => Promise<T>): Promise<T[]> {
  const results: T[] = []
  for (let i = 0; i < times; i++) results.push(await once())
  return results
}

async function bareNode(): Promise<number> {
  const begin = performance.now()
  await once(spawn(process.execPath, ['-e', '0'], { stdio: 'ignore' }), 'exit')
  return performance.now() - begin
}

/** From its exec. */
async function workerStart(): Promise<number> {
  const begin = performance.now()
  const folder = scratch(`worker-${performance.now()}`)
  mkdirSync(folder)
  const socket = join(folder, 's')
  const child = spawn(process.execPath, [WORKER_MAIN, '--sock-type', 'unix', '--sock-name', socket])
  await outputOf(child, 'Torch worker started.')
  const taken = performance.now() - begin
  child.kill('SIGKILL')
  await once(child, 'exit')
  return taken
}

async function outputOf(child: ChildProcess, line: string): Promise<void> {
  let text = ''
  for await (const chunk of child.stdout!) {
    text += String(chunk)
    if (text.includes(line)) return
  }
  throw new Error(`The worker ended and wrote:\n${text}`)
}

interface Start {
  /** Milliseconds from exec to the first answer of any kind. */
  listened: number
  /** Milliseconds from exec to the first answer of the model. */
  answered: number
  /** Milliseconds of processor time by then. */
  cpu: number
}

async function firstAnswer(models: string[]): Promise<Start> {
  const command = await oursCommand({ models })
  const begin = performance.now()
  const starting = Service.start(command.args, /Model server started\./, command)
  const [times, [service]] = await Promise.all([poll(command, begin), starting])
  const cpu = cpuMilliseconds(processTree(service.pid))
  await service.stop()
  return { ...times, cpu }
}

async function poll(command: OursCommand, begin: number): Promise<Omit<Start, 'cpu'>> {
  let listened: number | undefined
  for (;;) {
    const status = await postAndRead(`${command.restOrigin}/predictions/${ECHO}`, ECHO_BODY).then(
      (answer) => answer.status,
      () => 0, // nothing listens yet
    )
    const now = performance.now() - begin
    if (status > 0) listened ??= now
    if (status === 200) return { listened: listened!, answered: now }
    if (now > 30_000) throw new Error(`No answer of echo in 30 s, last status ${status}`)
    await pause(POLL_MS)
  }
}
