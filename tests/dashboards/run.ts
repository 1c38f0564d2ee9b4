/**
 * Every query of the dashboard and every alert, evaluated by a real Prometheus that reads a server under
 * load and faults: `npm run test:dashboards` (docs/dashboards.md). Needs `prometheus` and `promtool` in PATH.
 * One line per check; ends with `N passed, N failed`.
 */
import { setTimeout as sleep } from 'node:timers/promises'
import { checkAlerts, checkPanels, checkQuiet } from './course.ts'
import { type Checks, runChecks } from './checks.ts'
import { checkFiles, WINDOW_S } from './files.ts'
import { Scene } from './scene.ts'

async function main(folder: string, checks: Checks): Promise<void> {
  await checkFiles(checks, folder)
  const scene = await Scene.start(folder)
  const { prometheus, load, faults, began } = scene
  try {
    await load.begin()
    await sleep(WINDOW_S * 1000)
    await checkQuiet(checks, prometheus)
    await checkAlerts(checks, prometheus, faults)
    await load.end()
    await checkPanels(checks, prometheus, began)
  } finally {
    await scene.stop()
  }
}

await runChecks('dashboards', main)
