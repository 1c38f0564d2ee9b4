import type { TrafficSettings } from '../../frontend/config/traffic-settings.ts'
import type { TrafficDescription, TrafficOperations } from '../../frontend/models/operations.ts'

/** Writes down what it was asked. */
export class FakeTraffic implements TrafficOperations {
  readonly asked: unknown[][] = []
  settings: TrafficSettings = { weights: {} }

  set(modelName: string, settings: TrafficSettings): Promise<TrafficDescription> {
    this.asked.push(['set', modelName, settings])
    this.settings = settings
    return Promise.resolve(this.describe(modelName))
  }

  describe(modelName: string): TrafficDescription {
    return { modelName, defaultVersion: '1.0', ...this.settings, versions: [] }
  }

  clear(modelName: string): Promise<TrafficDescription> {
    this.asked.push(['clear', modelName])
    this.settings = { weights: {} }
    return Promise.resolve(this.describe(modelName))
  }
}
