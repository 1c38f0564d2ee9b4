import { existsSync, readFileSync, realpathSync } from 'node:fs'
import { copyFile } from 'node:fs/promises'
import { join } from 'node:path'
import { parse } from 'yaml'
import { REPOSITORY } from '../support/server-process.ts'
import { execa } from '../support/tools.ts'
import type { Checks } from './checks.ts'
import type { Panel } from './panel.ts'

const DEPLOY = join(REPOSITORY, 'deploy')
const RULES = join(DEPLOY, 'prometheus', 'rules.yaml')
const OBSERVABILITY = join(DEPLOY, 'observability')
const BOARD = join(DEPLOY, 'grafana', 'torchserve-ts.json')
const CHART_BOARD = join(DEPLOY, 'helm', 'torchserve-ts', 'files', 'dashboard.json')
const PAGE = join(REPOSITORY, 'docs', 'dashboards.md')
const PAGE_URL = 'https://github.com/torchserve-ts/torchserve-ts/blob/main/docs/dashboards.md#'

/** Seconds that rates look back, instead of minutes. */
export const WINDOW_S = 20

/** One query of a panel, as Prometheus gets it. */
export interface PanelQuery {
  readonly panel: string
  readonly expr: string
}

interface Rule {
  readonly alert?: string
  readonly labels?: Readonly<Record<string, string>>
  readonly annotations?: Readonly<Record<string, string>>
}

/** Names of all alerts. */
export function alertNames(): string[] {
  return rules().flatMap(({ alert }) => alert ?? [])
}

/** The rules with times that pass during the test; what they ask and their limits stay. */
export function shortRules(): string {
  const text = readFileSync(RULES, 'utf8')
  return text.replaceAll(/\[\d+[mh]\]/g, `[${WINDOW_S}s]`).replaceAll(/\bfor: \d+m$/gm, 'for: 1s')
}

/** The panels, with Grafana's variables in their queries replaced as Grafana does for "All". */
export function panels(): Panel[] {
  const board = JSON.parse(readFileSync(BOARD, 'utf8')) as { panels: Panel[] }
  return board.panels.map((panel) => ({
    ...panel,
    targets: panel.targets?.map((target) => ({ ...target, expr: withoutVariables(target.expr) })),
  }))
}

/** Every query of the dashboard. */
export function panelQueries(): PanelQuery[] {
  return panels().flatMap(({ title, targets = [] }) => targets.map(({ expr }) => ({ panel: title, expr })))
}

function withoutVariables(expr: string): string {
  return expr.replaceAll('$__rate_interval', `${WINDOW_S}s`).replaceAll(/\$(?:namespace|job|model)\b/g, '.*')
}

/** What can be said of the files without a server. */
export async function checkFiles(checks: Checks, folder: string): Promise<void> {
  checks.check('the rules are valid', await promtool('check', 'rules', RULES))
  for (const [source, name] of [
    [RULES, 'rules.yaml'],
    [join(OBSERVABILITY, 'prometheus.yml'), 'example.yml'],
  ] as const)
    await copyFile(source, join(folder, name))
  checks.check(
    'the configuration beside the compose file is valid',
    await promtool('check', 'config', join(folder, 'example.yml')),
  )
  checks.check(
    'the dashboard is the file of the chart',
    realpathSync(BOARD) === realpathSync(CHART_BOARD) ? undefined : 'it is another file',
  )
  const painted = panels().filter(
    ({ type, fieldConfig }) => type === 'stat' && !fieldConfig?.defaults.thresholds,
  )
  checks.check(
    'each large number has colours of its own: by default, Grafana paints 80 and more red',
    painted.length === 0 ? undefined : painted.map(({ title }) => title).join(),
  )
  const missing = mounted().filter((path) => !existsSync(path))
  checks.check('the compose file mounts what is there', problemOf(missing))
  const headings = new Set(
    [...readFileSync(PAGE, 'utf8').matchAll(/^### (\S+)$/gm)].map(([, heading]) => heading!.toLowerCase()),
  )
  for (const { alert, labels = {}, annotations = {} } of rules()) {
    if (alert === undefined) continue
    const { summary, description, runbook_url: link = '' } = annotations
    const isLinked = link === `${PAGE_URL}${alert.toLowerCase()}` && headings.has(alert.toLowerCase())
    const lacks = [
      ...(summary && description ? [] : ['a summary or a description']),
      ...(isLinked ? [] : ['a link to its part of docs/dashboards.md']),
      ...(/^(critical|warning)$/.test(labels['severity'] ?? '') ? [] : ['a severity']),
    ]
    checks.check(`${alert} says what to do`, lacks.length === 0 ? undefined : `it lacks ${lacks.join(', ')}`)
  }
}

function rules(): Rule[] {
  const { groups } = parse(readFileSync(RULES, 'utf8')) as { groups: { rules: Rule[] }[] }
  return groups.flatMap((group) => group.rules)
}

/** Files and folders of this repository that containers get. */
function mounted(): string[] {
  const file = readFileSync(join(OBSERVABILITY, 'compose.yaml'), 'utf8')
  const { services } = parse(file) as { services: Record<string, { volumes: string[] }> }
  const sources = Object.values(services).flatMap(({ volumes }) => volumes.map((each) => each.split(':')[0]!))
  return sources.filter((source) => source.startsWith('.')).map((source) => join(OBSERVABILITY, source))
}

async function promtool(...args: string[]): Promise<string | undefined> {
  const { exitCode, all } = await execa('promtool', args, { all: true, reject: false })
  return exitCode === 0 ? undefined : all
}

function problemOf(missing: readonly string[]): string | undefined {
  return missing.length === 0 ? undefined : `there is no ${missing.join(', ')}`
}
