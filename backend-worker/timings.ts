import type { MetricSeries } from './metric-sender.ts'
import type { LoadedModel } from './model.ts'

/** When a batch came, and when its handler was called; performance.now() milliseconds. */
export interface BatchTimes {
  readonly begun: number
  readonly called: number
}

/**
 * TorchServe's two times of a batch (spec 8.2): HandlerTime, the call of the handler, and PredictionTime, all that is done until there
 * is an answer.
 */
export class Timings {
  readonly #handler: MetricSeries | undefined
  readonly #prediction: MetricSeries | undefined

  /** Undefined when nobody wants either: then no clock need be read. */
  static for(model: LoadedModel): Timings | undefined {
    const timings = new Timings(model)
    return timings.#handler === undefined && timings.#prediction === undefined ? undefined : timings
  }

  constructor({ name, metrics: { sender } }: LoadedModel) {
    const dimensions = { ModelName: name, Level: 'Model' }
    const series = (metric: string) =>
      sender.wantsTimes(metric) ? sender.series(metric, 'gauge', 'Milliseconds', dimensions) : undefined
    this.#handler = series('HandlerTime')
    this.#prediction = series('PredictionTime')
  }

  /** A batch was answered well. */
  record({ begun, called }: BatchTimes, requestIds: readonly string[]): void {
    const now = performance.now()
    const ids = requestIds.length === 1 ? requestIds[0]! : requestIds.join(',')
    this.#handler?.add(hundredths(now - called), ids)
    this.#prediction?.add(hundredths(now - begun), ids)
  }
}

function hundredths(value: number): number {
  return Math.round(value * 100) / 100
}
