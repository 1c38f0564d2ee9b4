/**
 * Every query of the dashboard and every alert, evaluated by a real Prometheus that reads a server under
 * load and faults: `npm run test:dashboards` (docs/dashboards.md). Needs `prometheus` and `promtool` in PATH.
 * One line per check; ends with `N passed, N failed`.
 */
import { mkdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { freePorts } from '../support/ports.ts'
import { REPOSITORY } from '../support/server-process.ts'
import { checkAlerts, checkPanels, checkQuiet } from './course.ts'
import { type Checks, runChecks } from './checks.ts'
import { faultsOf } from './faults.ts'
import { checkFiles, shortRules, WINDOW_S } from './files.ts'
import { Load } from './load.ts'
import { gateOf, makeStore, MODELS } from './models.ts'
import { Prometheus } from './prometheus.ts'
import { Subject } from './subject.ts'

async function main(folder: string, checks: Checks): Promise<void> {
  await checkFiles(checks, folder)
  const rules = join(folder, 'short-rules.yaml')
  await writeFile(rules, shortRules())
  const gate = gateOf(folder)
  await writeFile(gate, '')
  await writeFile(`${gate}.works`, '')
  const fullDisk = join(folder, 'full-disk')
  const modelStore = await makeStore(folder)
  const ports = await freePorts(2)
  const start = async (name: string, port: number, models: string[]): Promise<Subject> => {
    const place = join(folder, name)
    await mkdir(place)
    return Subject.start({
      folder: place,
      modelStore,
      models,
      flags: ['--enable-model-api'],
      config: {
        metrics_address: `http://127.0.0.1:${port}`,
        metric_time_interval: 1,
        max_connections_per_address: 64,
      },
      env: { FULL_DISK: fullDisk },
      nodeArgs: ['--import', join(REPOSITORY, 'tests', 'dashboards', 'full-disk.mjs')],
    })
  }
  const subjects: Subject[] = []
  let prometheus: Prometheus | undefined
  try {
    const subject = await start('subject', ports[0]!, MODELS)
    subjects.push(subject)
    const spare = await start('spare', ports[1]!, ['count'])
    subjects.push(spare)
    const targets = ports.map((port) => `127.0.0.1:${port}`)
    const scrapes = [{ job_name: 'torchserve-ts', static_configs: [{ targets }] }]
    prometheus = await Prometheus.start({ folder, rules, scrapes })
    const begin = Date.now() / 1000
    for (const model of MODELS) await subject.server.ready(model)
    await spare.server.ready('count')
    const load = new Load(subject)
    await load.begin()
    await sleep(WINDOW_S * 1000)
    await checkQuiet(checks, prometheus)
    await checkAlerts(checks, prometheus, faultsOf({ subject, spare, gate, fullDisk }))
    await load.end()
    await checkPanels(checks, prometheus, begin)
  } finally {
    await prometheus?.stop()
    for (const { server } of subjects) await server.stop('SIGKILL')
  }
}

await runChecks('dashboards', main)
