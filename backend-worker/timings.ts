import type { MetricSeries } from './metric-sender.ts'
import type { LoadedModel } from './model.ts'

/** When a batch arrived and when its handler was called, in milliseconds of performance.now(). */
export interface BatchTimes {
  readonly begun: number
  readonly called: number
}

/**
 * TorchServe's two metrics of a batch: HandlerTime is the time of the handler's call, PredictionTime the time
 * until the response is ready (ts/service.py in pytorch/serve).
 */
export class Timings {
  readonly #handler: MetricSeries | undefined
  readonly #prediction: MetricSeries | undefined

  /** Undefined if the frontend needs neither, to avoid reading the clock. */
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

  /** A batch was answered successfully. */
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
