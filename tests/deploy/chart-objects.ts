import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { isDeepStrictEqual } from 'node:util'
import { parse } from 'yaml'
import { parseApiKeys } from '../../frontend/auth/api-keys-file.ts'
import { loadSettings } from '../../frontend/config/load-settings.ts'
import { REPOSITORY } from '../support/server-process.ts'

const RULES = join(REPOSITORY, 'deploy', 'prometheus', 'rules.yaml')

/** An object that the chart rendered, as far as these checks look into it. */
export interface Content {
  apiVersion: string
  kind: string
  metadata: { name: string }
  data?: Record<string, string>
  stringData?: Record<string, string>
  spec?: {
    selector?: { matchLabels?: Labels }
    scaleTargetRef?: { kind: string; name: string }
    triggers?: { metadata: { query: string } }[]
    volumeClaimTemplates?: { metadata: { name: string } }[]
    template?: { metadata: { labels: Labels }; spec: Pod }
  }
}

type Labels = Record<string, string>
interface Volume {
  name: string
  configMap?: { name: string }
  secret?: { secretName: string; items: { key: string }[] }
}
interface Container {
  volumeMounts: { name: string; mountPath: string }[]
  ports?: { name: string }[]
  lifecycle?: { preStop: { sleep: { seconds: number } } }
}
interface Pod {
  terminationGracePeriodSeconds: number
  containers: Container[]
  initContainers?: Container[]
  volumes: Volume[]
}

/** What is wrong between the objects of one release, and with what the server reads of them. */
export async function releaseProblems(objects: readonly Content[], folder: string): Promise<string[]> {
  const workload = objects.find(({ spec }) => spec?.template !== undefined)
  if (workload === undefined) return ['There is no workload']
  const { metadata, spec: pod } = workload.spec!.template!
  const selector = Object.entries(workload.spec!.selector?.matchLabels ?? {})
  const found: string[] = []
  if (selector.length === 0 || selector.some(([name, value]) => metadata.labels[name] !== value))
    found.push('The selector does not match the pods')
  for (const { kind, spec } of objects) {
    const target = spec?.scaleTargetRef
    if (target !== undefined && (target.name !== workload.metadata.name || target.kind !== workload.kind))
      found.push(`The ${kind} scales ${target.kind} ${target.name}`)
  }
  const rule = objects.find(({ kind }) => kind === 'PrometheusRule')
  if (rule !== undefined && !isDeepStrictEqual(rule.spec, parse(readFileSync(RULES, 'utf8'))))
    found.push('The PrometheusRule has other rules than deploy/prometheus')
  const settings = await settingsProblems(objects, pod, folder)
  return [...found, ...volumeProblems(objects, workload, pod), ...settings]
}

function volumeProblems(objects: readonly Content[], workload: Content, pod: Pod): string[] {
  const claims = workload.spec!.volumeClaimTemplates ?? []
  const volumes = new Set([...pod.volumes, ...claims.map(({ metadata }) => metadata)].map(({ name }) => name))
  const mounts = [...pod.containers, ...(pod.initContainers ?? [])].flatMap(
    ({ volumeMounts }) => volumeMounts,
  )
  const has = (kind: string, name: string): boolean =>
    objects.some((each) => each.kind === kind && each.metadata.name === name)
  return [
    ...mounts.filter(({ name }) => !volumes.has(name)).map(({ name }) => `No volume is called ${name}`),
    ...[...volumes]
      .filter((name) => !mounts.some((each) => each.name === name))
      .map((name) => `${name} is unused`),
    ...pod.volumes.flatMap(({ configMap }) =>
      configMap === undefined || has('ConfigMap', configMap.name) ? [] : [`No ConfigMap ${configMap.name}`],
    ),
  ]
}

/** Reads config.properties and the key file as the server does. */
async function settingsProblems(objects: readonly Content[], pod: Pod, folder: string): Promise<string[]> {
  const text = objects.map(({ data }) => data?.['config.properties']).find((each) => each !== undefined)
  const file = join(folder, 'config.properties')
  writeFileSync(file, text ?? '')
  const { settings, warnings } = await loadSettings({ configSnapshots: false }, { TS_CONFIG_FILE: file })
  const found = [...warnings]
  const keys = objects.find(({ kind }) => kind === 'Secret')?.stringData?.['keys.yaml']
  if (keys !== undefined && parseApiKeys('keys.yaml', keys).keys.length === 0) found.push('There are no keys')
  if (keys !== undefined && settings.apiKeysFile === undefined) found.push('The keys are not used')
  const [{ lifecycle, volumeMounts } = { volumeMounts: [] }] = pod.containers
  const mount = volumeMounts.find(({ mountPath }) => settings.apiKeysFile?.startsWith(`${mountPath}/`))
  if (settings.apiKeysFile !== undefined && mount === undefined) found.push('The key file is not mounted')
  // As the server bounds its own stop: 10 s for what is neither drain nor grace.
  const stop = settings.drainTimeout + settings.cancelGraceMs / 1000 + 10
  const needed = stop + (lifecycle?.preStop.sleep.seconds ?? 0)
  if (pod.terminationGracePeriodSeconds < needed)
    found.push(`A pod has ${pod.terminationGracePeriodSeconds} s to end, and its server takes ${needed}`)
  return found
}

/** The queries of the ScaledObject and of the dashboard, with Grafana's variables replaced. */
export function queriesOf(objects: readonly Content[]): string[] {
  const scaled = objects.flatMap(({ spec }) => spec?.triggers?.map(({ metadata }) => metadata.query) ?? [])
  const boards = objects.flatMap(({ data }) => data?.['torchserve-ts.json'] ?? [])
  const shown = boards.flatMap((board) => {
    // The title of a row is a panel without queries.
    const { panels } = JSON.parse(board) as { panels: { targets?: { expr: string }[] }[] }
    return panels.flatMap(({ targets = [] }) => targets.map(({ expr }) => expr))
  })
  return [...scaled, ...shown.map((expr) => expr.replaceAll('$__rate_interval', '1m'))]
}
