import type { MetricKind } from '../protocol/messages.ts'
import type { HandlerMetrics } from './handler.ts'
import { type Outlet, sendLog, sendMetric } from './outlet.ts'

/** TorchServe's words for units (spec 8.4). */
const UNITS = {
  ms: 'Milliseconds',
  s: 'Seconds',
  B: 'Bytes',
  kB: 'Kilobytes',
  MB: 'Megabytes',
  GB: 'Gigabytes',
} as const

const MAX_CHARACTERS = 256
const MAX_DIMENSIONS = 16

/** `context.metrics`: values go to the frontend, with the dimensions that TorchServe adds (spec 8.7). */
export class ContextMetrics implements HandlerMetrics {
  readonly #outlet: Outlet
  readonly #modelName: string
  readonly #requestIds: readonly string[]

  constructor(outlet: Outlet, modelName: string, requestIds: readonly string[]) {
    this.#outlet = outlet
    this.#modelName = modelName
    this.#requestIds = requestIds
  }

  addCounter(name: string, value: number, dimensions?: Record<string, string>): void {
    if (value < 0) this.#refuse(name, value)
    else this.#add(name, 'counter', 'Count', value, dimensions)
  }

  addTime(name: string, value: number, unit: 'ms' | 's' = 'ms', dimensions?: Record<string, string>): void {
    this.#add(name, 'gauge', UNITS[unit], value, dimensions)
  }

  addSize(
    name: string,
    value: number,
    unit: 'B' | 'kB' | 'MB' | 'GB' = 'MB',
    dimensions?: Record<string, string>,
  ): void {
    this.#add(name, 'gauge', UNITS[unit], value, dimensions)
  }

  addPercent(name: string, value: number, dimensions?: Record<string, string>): void {
    this.#add(name, 'gauge', 'Percent', value, dimensions)
  }

  /** A metric that cannot be is logged and left out: it must not fail a prediction. */
  #add(
    name: string,
    kind: MetricKind,
    unit: string | undefined,
    value: number,
    own: Record<string, string> = {},
  ): void {
    if (!Number.isFinite(value) || unit === undefined) {
      this.#refuse(name, value)
      return
    }
    const dimensions: Record<string, string> = { ModelName: this.#modelName, Level: 'Model' }
    for (const [key, text] of Object.entries(own).slice(0, MAX_DIMENSIONS)) dimensions[clip(key)] = clip(text)
    const requestId = this.#requestIds.join(',')
    sendMetric(this.#outlet, {
      type: 'metric',
      name: clip(name),
      kind,
      unit,
      value,
      dimensions,
      ...(requestId === '' ? undefined : { requestId }),
    })
  }

  #refuse(name: string, value: unknown): void {
    sendLog(this.#outlet, 'warn', `Metric ${clip(name)} left out: ${clip(value)} is no value for it`)
  }
}

function clip(text: unknown): string {
  return String(text).slice(0, MAX_CHARACTERS)
}
