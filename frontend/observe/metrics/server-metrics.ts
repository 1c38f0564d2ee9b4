import { hostname } from 'node:os'
import type { MetricFamily } from './family.ts'
import { Series } from './series.ts'

export const HOST = hostname()

/** TorchServe's three counters for one model and requested version. */
export interface VersionSeries {
  readonly requests: Series
  readonly latency: Series
  readonly queue: Series
}

/**
 * The server's own metrics under TorchServe's names, if metrics.yaml declares them. Recording an undeclared
 * metric has no effect.
 */
export class ServerMetrics {
  readonly queueTime: Series
  readonly workerThreadTime: Series
  readonly #requests2xx: Series
  readonly #requests4xx: Series
  readonly #requests5xx: Series
  readonly #families: ReadonlyMap<string, MetricFamily>
  readonly #warn: (message: string) => void

  constructor(families: ReadonlyMap<string, MetricFamily>, warn: (message: string) => void) {
    this.#families = families
    this.#warn = warn
    this.#requests2xx = this.#series('Requests2XX', 'Host')
    this.#requests4xx = this.#series('Requests4XX', 'Host')
    this.#requests5xx = this.#series('Requests5XX', 'Host')
    this.queueTime = this.#series('QueueTime', 'Host')
    this.workerThreadTime = this.#series('WorkerThreadTime', 'Host')
  }

  /** Counts one REST response; a status that is neither 2xx nor 4xx counts as 5XX, as in TorchServe. */
  response(status: number): void {
    if (status >= 200 && status < 300) this.#requests2xx.record(1)
    else if (status >= 400 && status < 500) this.#requests4xx.record(1)
    else this.#requests5xx.record(1)
  }

  /** @param owner see MetricFamily.series */
  version(model: string, version: string, owner: string): VersionSeries {
    const series = (name: string): Series => this.#ownedSeries(owner, name, model, version)
    return {
      requests: series('ts_inference_requests_total'),
      latency: series('ts_inference_latency_microseconds'),
      queue: series('ts_queue_latency_microseconds'),
    }
  }

  /** `worker` is `W-9000-echo_1.0`. */
  workerLoaded(worker: string, milliseconds: number): void {
    this.#ownedSeries(worker, 'WorkerLoadTime', worker, 'Host').record(Math.round(milliseconds))
  }

  /** Removes what nobody else owns. @param owner a model, a version, or a worker */
  release(owner: string): void {
    for (const family of this.#families.values()) family.release(owner)
  }

  /** Records a measurement of the machine, or of its `device`. */
  system(name: string, value: number, device?: string): void {
    const values = device === undefined ? ['Host'] : ['Host', device]
    this.#series(name, ...values).record(value)
  }

  #series(name: string, ...values: string[]): Series {
    return this.#ownedSeries(undefined, name, ...values)
  }

  #ownedSeries(owner: string | undefined, name: string, ...values: string[]): Series {
    const family = this.#families.get(name)
    if (family?.labelNames.length === values.length + 1) return family.series([...values, HOST], owner)
    if (family !== undefined) {
      this.#warn(
        `Metric ${name} must have ${values.length + 1} dimensions in metrics_config, the last of them the host; it is left out`,
      )
    }
    return new Series('gauge')
  }
}
