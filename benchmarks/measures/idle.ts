import { readFileSync } from 'node:fs'
import { ECHO } from '../ceilings/workload.ts'
import { oursCommand, startWith } from '../targets/ours.ts'
import { type Figure, pause } from './figure.ts'

/** Further models, and further workers of one model. */
const FURTHER = 8
/** Milliseconds after the first answers. */
const REST_MS = 2000

/** Megabytes of an idle server. */
interface Idle {
  frontend: Memory
  /** Mean of the workers. */
  worker: Memory
}

interface Memory {
  resident: number
  /** What no other process shares and no file has. */
  own: number
}

/** What an idle server takes with two models, and what each further model and worker adds. */
export async function measureIdle(archive: string): Promise<Figure[]> {
  const two = await idle(archive, 2, 1)
  const models = await idle(archive, 2 + FURTHER, 1)
  const workers = await idle(archive, 2, 1 + FURTHER / 2)
  const figure = (name: string, value: number, atMost?: number): Figure => ({
    ...{ measure: 'start', name, value, unit: 'MB', atMost },
  })
  const each = (more: Idle): number => (more.frontend.own - two.frontend.own) / FURTHER
  return [
    figure('idle frontend with two models, RSS', two.frontend.resident, 90),
    figure('idle frontend with two models, memory of its own', two.frontend.own),
    figure('idle worker, RSS', two.worker.resident),
    figure('idle worker, memory of its own', two.worker.own),
    figure('each further model with a worker, in the frontend', each(models)),
    figure('each further worker of a model, in the frontend', each(workers)),
  ]
}

async function idle(archive: string, models: number, workersOfEach: number): Promise<Idle> {
  const names = Array.from({ length: models }, (_, i) => `${ECHO}${i}`)
  const config = `default_workers_per_model=${workersOfEach}\n`
  const flags = names.map((name) => `${name}=${archive}`)
  const command = await oursCommand({ models: flags, config })
  const target = await startWith(command, names)
  try {
    await pause(REST_MS)
    const [frontend, ...workers] = target.pids().map(memoryOf)
    const mean = (of: (memory: Memory) => number): number =>
      workers.reduce((total, memory) => total + of(memory), 0) / workers.length
    return {
      frontend: frontend!,
      worker: { resident: mean(({ resident }) => resident), own: mean(({ own }) => own) },
    }
  } finally {
    await target.stop()
  }
}

function memoryOf(pid: number): Memory {
  const text = readFileSync(`/proc/${pid}/smaps_rollup`, 'latin1')
  const megabytes = (key: string): number =>
    Number(new RegExp(`^${key}:\\s+(\\d+)`, 'm').exec(text)![1]) / 1024
  return { resident: megabytes('Rss'), own: megabytes('Private_Dirty') }
}
