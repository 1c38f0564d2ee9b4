import { ServeError } from '../../common/errors.ts'
import type { TrafficSettings } from '../config/traffic-settings.ts'
import type { ManagerOptions } from './build-model.ts'
import type { Model } from './model.ts'
import { told } from './model-errors.ts'
import type { TrafficDescription, TrafficOperations } from './operations.ts'
import type { Registry } from './registry.ts'
import { Traffic } from './traffic.ts'

/** What it needs of the server. */
export type TrafficOptions = Pick<ManagerOptions, 'warn' | 'inform' | 'onChange'>

/** Sets the weights between versions, and tells what became of them. */
export class TrafficControl implements TrafficOperations {
  readonly #registry: Registry
  readonly #options: TrafficOptions

  constructor(registry: Registry, options: TrafficOptions) {
    this.#registry = registry
    this.#options = options
  }

  async set(modelName: string, settings: TrafficSettings): Promise<TrafficDescription> {
    const models = new Map(this.#registry.versions(modelName).map((model) => [model.version, model]))
    for (const [version, weight] of Object.entries(settings.weights)) {
      const model = models.get(version)
      if (model === undefined) throw unknownVersion(modelName, version)
      if (weight > 0) checkServes(model)
    }
    this.#registry.setTraffic(modelName, new Traffic(modelName, settings))
    this.#options.inform?.(`Model ${modelName}: requests without a version go by weight, ${listed(settings)}`)
    return this.#changed(modelName)
  }

  describe(modelName: string): TrafficDescription {
    const { name, version: defaultVersion } = this.#registry.get(modelName)
    const traffic = this.#registry.traffic(modelName)
    const settings = traffic?.snapshot() ?? { weights: {} }
    const versions = traffic?.versions.map((each) => each.describe()) ?? []
    return { modelName: name, defaultVersion, ...settings, versions }
  }

  async clear(modelName: string): Promise<TrafficDescription> {
    this.#registry.setTraffic(modelName, undefined)
    return this.#changed(modelName)
  }

  /** Weights of a snapshot, for those of its versions that are registered again. */
  restore(modelName: string, snapshot: TrafficSettings): void {
    const { warn } = this.#options
    const known = new Set(this.#registryVersions(modelName))
    const lost = Object.entries(snapshot.weights).filter(([version]) => !known.has(version))
    if (lost.length > 0)
      warn(
        `Model ${modelName}: the weights ${pairs(lost)} of the snapshot are ignored, because these versions do not exist`,
      )
    const weights = Object.fromEntries(
      Object.entries(snapshot.weights).filter(([version]) => known.has(version)),
    )
    if (Object.keys(weights).length === 0) return
    this.#registry.setTraffic(modelName, new Traffic(modelName, { ...snapshot, weights }))
  }

  /** Of every model that has weights, by name. */
  snapshot(): Record<string, TrafficSettings> {
    const all = [...this.#registry.allTraffic()]
    return Object.fromEntries(all.map(([name, traffic]) => [name, traffic.snapshot()]))
  }

  /** A version is gone that had a weight. */
  weightLost({ name, version }: Model, weight: number): void {
    this.#options.warn(
      `Model ${name}: version ${version} was removed and loses its weight ${weight}; the other versions share its requests`,
    )
  }

  /** What holds now, before the snapshot is written: another call may set something else meanwhile. */
  async #changed(modelName: string): Promise<TrafficDescription> {
    const described = this.describe(modelName)
    await this.#options.onChange?.()
    return described
  }

  #registryVersions(modelName: string): string[] {
    try {
      return this.#registry.versions(modelName).map(({ version }) => version)
    } catch {
      return []
    }
  }
}

/** Otherwise its share of the requests would fail, or wait for a worker that may never come. */
function checkServes({ name, version, workers, wakes, methods }: Model): void {
  if (workers.failure === undefined && methods !== undefined && (workers.ready > 0 || wakes)) return
  throw new ServeError(
    'CONFLICT',
    `Version ${version} of model ${name} has no worker that has loaded it: add workers with PUT ` +
      `/models/${name}/${version}?min_worker=1&synchronous=true, then set its weight`,
  )
}

function unknownVersion(name: string, version: string): ServeError {
  return new ServeError(
    'VERSION_NOT_FOUND',
    `Model version: ${told(version)} does not exist for model: ${name}. Register it first, or leave it out of the weights`,
  )
}

function listed({ weights }: TrafficSettings): string {
  return pairs(Object.entries(weights))
}

function pairs(weights: readonly (readonly [string, number])[]): string {
  return weights.map(([version, weight]) => `${version}: ${weight}`).join(', ')
}
