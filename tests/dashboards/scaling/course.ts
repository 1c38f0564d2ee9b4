import { setTimeout as sleep } from 'node:timers/promises'
import type { Checks } from '../checks.ts'
import { WINDOW_S } from '../files.ts'
import type { Prometheus } from '../prometheus.ts'
import type { Crowd } from './crowd.ts'
import { desiredPods, type Signal, valueOf } from './signals.ts'

export interface Course {
  readonly prometheus: Prometheus
  /** How many there are. */
  readonly pods: number
  /** Of the rendered chart, with thresholds that the crowd passes. */
  readonly chart: readonly Signal[]
  /** Of the examples in the documentation, with their own thresholds. */
  readonly documented: readonly Signal[]
  /** Single queries of the documentation. */
  readonly queries: readonly string[]
  readonly crowd: Crowd
}

const PHASE_MS = (WINDOW_S + 30) * 1000
const LOOK_MS = 500

/** Each signal is low at rest, rises with the load, and falls when it has ended. */
export async function checkScaling(checks: Checks, course: Course): Promise<void> {
  const { prometheus, crowd, pods } = course
  const before = Date.now() / 1000 - 60
  await until(async () => ((await prometheus.instant('up == 1')).length === pods ? undefined : 'no pods'))
  const up = await prometheus.instant('up')
  const labels = up.map(({ metric }) => `${metric['namespace']}/${metric['pod']}, job ${metric['job']}`)
  const isAll = up.length === pods && up.every(({ value }) => value[1] === '1')
  checks.check(
    `the ServiceMonitor selects each pod once: ${labels.join('; ')}`,
    isAll ? undefined : 'it does not',
  )
  await checkUnread(checks, course, before)
  await phase(checks, course, 'at rest', 'falls')
  crowd.begin()
  await phase(checks, course, 'under load', 'rises')
  await crowd.end()
  const { whole, lost } = crowd
  checks.check(
    `${whole} streams came whole, ${lost.length} did not`,
    lost.length === 0 && whole > pods ? undefined : (lost[0] ?? 'too few'),
  )
  await phase(checks, course, 'after the load', 'falls')
}

/** Where Prometheus has read no pod, there is no value, and the autoscaler leaves the number of pods. */
async function checkUnread(checks: Checks, { prometheus, chart }: Course, time: number): Promise<void> {
  for (const { name, query } of chart) {
    const { length } = await prometheus.instant(query, time)
    checks.check(`${name} has no value without pods`, length === 0 ? undefined : `it has ${length}`)
  }
}

/** Waits until each signal says what the phase expects, and shows the arithmetic of it. */
async function phase(checks: Checks, course: Course, name: string, way: 'rises' | 'falls'): Promise<void> {
  const { prometheus, pods, chart, documented, queries } = course
  const isRight = (wanted: number): boolean => (way === 'rises' ? wanted > pods : wanted < pods)
  for (const signal of [...chart, ...documented]) {
    const isOurs = chart.includes(signal)
    let text = ''
    const problem = await until(async () => {
      const value = valueOf(signal, await prometheus.instant(signal.query), pods)
      const wanted = desiredPods(signal, value, pods)
      text = `${value.toFixed(2)} against ${signal.threshold} (${signal.type}) of ${pods} pods makes ${wanted}`
      // The examples' thresholds are for real machines: there the value itself must move.
      const isSo = isOurs ? isRight(wanted) : way === 'rises' ? value > 0 : value === 0
      return isSo ? undefined : `${text}, and does not ${way.slice(0, -1)}`
    })
    checks.check(`${name}, ${signal.name}: ${text}`, problem)
  }
  for (const query of queries) {
    let value = NaN
    const problem = await until(async () => {
      const samples = await prometheus.instant(query)
      if (samples.length > 1) return `has ${samples.length} series`
      value = Number(samples[0]?.value[1] ?? NaN)
      const isSo = way === 'rises' ? value > 0 : !(value > 0)
      return isSo ? undefined : `is ${value}`
    })
    checks.check(`${name}, docs: ${query} is ${value}`, problem)
  }
}

/** @returns what was wrong last; undefined: nothing */
async function until(look: () => Promise<string | undefined>): Promise<string | undefined> {
  const end = performance.now() + PHASE_MS
  for (;;) {
    const problem = await look().catch((error: unknown) => String(error))
    if (problem === undefined || performance.now() > end) return problem
    await sleep(LOOK_MS)
  }
}
