import { setTimeout as sleep } from 'node:timers/promises'
import type { Checks } from './checks.ts'
import type { Fault } from './faults.ts'
import { alertNames, panelQueries, WINDOW_S } from './files.ts'
import type { Alert, Prometheus } from './prometheus.ts'

/** Until alerts must fire, and until they must have cleared, after the faults begin and end. */
const FIRES_MS = 50_000
const CLEARS_MS = (WINDOW_S + 30) * 1000
const LOOK_MS = 500

/** Under plain load nothing is wrong. */
export async function checkQuiet(checks: Checks, prometheus: Prometheus): Promise<void> {
  const broken = await prometheus.brokenRules()
  checks.check('every rule can be evaluated', broken.length === 0 ? undefined : broken.join('; '))
  const alerts = await prometheus.alerts()
  const found = alerts.map(({ labels }) => JSON.stringify(labels))
  checks.check('no alert under plain load', found.length === 0 ? undefined : found.join())
}

/** Each alert fires under its fault, says something that can be read, and clears when the fault has ended. */
export async function checkAlerts(
  checks: Checks,
  prometheus: Prometheus,
  faults: readonly Fault[],
): Promise<void> {
  const unexplained = alertNames().filter(
    (name) => !faults.some(({ alerts }) => alerts.some((each) => name === `TorchServeTs${each}`)),
  )
  checks.check('every alert has a fault', unexplained.length === 0 ? undefined : unexplained.join())
  for (const fault of faults) await fault.begin()
  const fired = new Map<string, Alert>()
  const down = new Set<string | undefined>()
  await until(FIRES_MS, async () => {
    for (const alert of await firing(prometheus)) {
      const { alertname, model_name } = alert.labels
      fired.set(alertname!, alert)
      if (alertname === 'TorchServeTsModelDown') down.add(model_name)
    }
    return fired.size === alertNames().length
  })
  for (const name of alertNames()) checks.check(`${name} fires`, problemOf(fired.get(name)))
  // The fault of a full queue holds the only slot of `narrow` meanwhile.
  checks.check('a model with busy workers is not down', down.has('narrow') ? 'it is said to be' : undefined)
  for (const fault of faults) await fault.end()
  let left: readonly Alert[] = []
  await until(CLEARS_MS, async () => {
    left = await firing(prometheus)
    return left.length === 0
  })
  for (const name of alertNames()) {
    const alert = left.find(({ labels }) => labels['alertname'] === name)
    checks.check(`${name} clears`, alert === undefined ? undefined : JSON.stringify(alert))
  }
}

/** Each query of the dashboard has shown a value above 0 since `begin`, in seconds. */
export async function checkPanels(checks: Checks, prometheus: Prometheus, begin: number): Promise<void> {
  const end = Date.now() / 1000
  for (const { panel, expr } of panelQueries()) {
    const series = await prometheus.range(expr, begin, end).catch((error: unknown) => String(error))
    const name = `${panel}: ${expr}`
    if (typeof series === 'string') checks.check(name, series)
    else {
      const values = series.flatMap(({ values }) => values.map(([, value]) => Number(value)))
      const problem = values.length === 0 ? 'it has no data' : 'it shows nothing above 0'
      checks.check(name, values.some((value) => value > 0 && Number.isFinite(value)) ? undefined : problem)
    }
  }
}

async function firing(prometheus: Prometheus): Promise<readonly Alert[]> {
  return (await prometheus.alerts()).filter(({ state }) => state === 'firing')
}

function problemOf(alert: Alert | undefined): string | undefined {
  if (alert === undefined) return 'it did not'
  const texts = Object.values(alert.annotations)
  const bad = texts.find((text) => /<no value>|<error|NaN|\{\{/.test(text) || /\s{2}|\bon {2}| $/.test(text))
  return bad === undefined ? undefined : `it says ${JSON.stringify(bad)}`
}

async function until(limitMs: number, isSo: () => Promise<boolean>): Promise<void> {
  const end = performance.now() + limitMs
  while (!(await isSo()) && performance.now() < end) await sleep(LOOK_MS)
}
