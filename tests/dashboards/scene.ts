import { mkdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { freePorts } from '../support/ports.ts'
import { REPOSITORY } from '../support/server-process.ts'
import { type Fault, faultsOf } from './faults.ts'
import { shortRules } from './files.ts'
import { Load } from './load.ts'
import { gateOf, makeStore, MODELS } from './models.ts'
import { Prometheus } from './prometheus.ts'
import { Subject } from './subject.ts'

/** Two servers with models to load and to break, and a Prometheus that reads them. */
export class Scene {
  readonly prometheus: Prometheus
  readonly load: Load
  readonly faults: readonly Fault[]
  /** When Prometheus had started, in Unix seconds. */
  readonly began: number
  readonly #subjects: readonly Subject[]

  private constructor(prometheus: Prometheus, subjects: readonly Subject[], faults: readonly Fault[]) {
    this.prometheus = prometheus
    this.load = new Load(subjects[0]!)
    this.faults = faults
    this.began = Date.now() / 1000
    this.#subjects = subjects
  }

  /** Resolves when all models are ready. @param folder is its own */
  static async start(folder: string): Promise<Scene> {
    const rules = join(folder, 'short-rules.yaml')
    await writeFile(rules, shortRules())
    const gate = gateOf(folder)
    await writeFile(gate, '')
    await writeFile(`${gate}.works`, '')
    const fullDisk = join(folder, 'full-disk')
    const modelStore = await makeStore(folder)
    const ports = await freePorts(2)
    const subjects: Subject[] = []
    let prometheus: Prometheus | undefined
    try {
      for (const [index, models] of [MODELS, ['count']].entries()) {
        const place = join(folder, `server-${index}`)
        await mkdir(place)
        const metrics_address = `http://127.0.0.1:${ports[index]!}`
        const subject = await Subject.start({
          folder: place,
          modelStore,
          models,
          flags: ['--enable-model-api'],
          config: { metrics_address, metric_time_interval: 1, max_connections: 128 },
          env: { FULL_DISK: fullDisk },
          nodeArgs: ['--import', join(REPOSITORY, 'tests', 'dashboards', 'full-disk.mjs')],
        })
        subjects.push(subject)
      }
      const [subject, spare] = subjects as [Subject, Subject]
      const targets = ports.map((port) => `127.0.0.1:${port}`)
      const scrapes = [{ job_name: 'torchserve-ts', static_configs: [{ targets }] }]
      prometheus = await Prometheus.start({ folder, rules, scrapes })
      const scene = new Scene(prometheus, subjects, faultsOf({ subject, spare, gate, fullDisk }))
      for (const model of MODELS) await subject.server.ready(model)
      await spare.server.ready('count')
      return scene
    } catch (error) {
      await prometheus?.stop()
      for (const { server } of subjects) await server.stop('SIGKILL')
      throw error
    }
  }

  async stop(): Promise<void> {
    await this.prometheus.stop()
    for (const { server } of this.#subjects) await server.stop('SIGKILL')
  }
}
