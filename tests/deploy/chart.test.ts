import { readFileSync, realpathSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from '@jest/globals'
import { parse } from 'yaml'
import { KEYS } from '../../frontend/config/keys.ts'
import { Exposition } from '../support/exposition.ts'
import { rawRequest } from '../support/raw-http.ts'
import { REPOSITORY, startServer } from '../support/server.ts'
import { configProperties } from './chart-config.ts'
import { valueTable } from './chart-values.ts'

const CHART = join(REPOSITORY, 'deploy', 'helm', 'torchserve-ts')
const SCHEMA = join(CHART, 'values.schema.json')
const README = join(CHART, 'README.md')

interface Node {
  description?: string
  type?: string
  properties?: Record<string, Node>
  additionalProperties?: boolean | object
  items?: Node
}
const schema = JSON.parse(readFileSync(SCHEMA, 'utf8')) as Node
const values = parse(readFileSync(join(CHART, 'values.yaml'), 'utf8')) as Record<string, unknown>
const text = (...path: string[]): string => readFileSync(join(CHART, ...path), 'utf8')

describe('the values of the chart', () => {
  test('config takes the keys of the server, besides those that the chart sets (UPDATE_DOCS=1 writes them)', () => {
    const config = schema.properties!['config']!
    if (process.env['UPDATE_DOCS'] === '1') {
      config.properties = configProperties()
      writeFileSync(SCHEMA, `${JSON.stringify(schema, null, 2)}\n`)
    }
    expect(config.properties).toEqual(configProperties())
  })

  test('every key that the chart sets is one of the server, and no value of config sets it again', () => {
    const set = [...text('templates', 'configmap.yaml').matchAll(/^ {4}(\w+)=/gm)].map(([, name]) => name!)
    expect(set.length).toBeGreaterThan(10)
    const known = Object.values(KEYS).map(({ name }) => name)
    expect(set.filter((name) => !known.includes(name))).toEqual([])
    expect(set.filter((name) => name in configProperties())).toEqual([])
  })

  test('each is described, has a default, and no object takes unknown fields unless it is passed on', () => {
    const problems: string[] = []
    const look = (node: Node, path: string, value: unknown): void => {
      if (node.description === undefined && path !== '') problems.push(`${path} has no description`)
      if (node.type === 'object' && node.properties !== undefined && node.additionalProperties !== false)
        problems.push(`${path} takes unknown fields`)
      if (node.items?.properties !== undefined) look(node.items, `${path}[]`, undefined)
      for (const [name, inner] of Object.entries(node.properties ?? {})) {
        const given = (value as Record<string, unknown> | undefined)?.[name]
        const isOptional = /^config\.|^probes\.|^global$|\[\]/.test(`${path}.${name}`.replace(/^\./, ''))
        if (given === undefined && !isOptional) problems.push(`${path}.${name} has no default`)
        look(inner, path === '' ? name : `${path}.${name}`, given)
      }
    }
    look(schema, '', values)
    expect(problems).toEqual([])
  })

  test('the README has a table of them (UPDATE_DOCS=1 writes it)', () => {
    const table = valueTable(schema, values)
    const readme = readFileSync(README, 'utf8')
    const updated = readme.replace(/(?<=^## Values\n\n(?:[^|\n].*\n|\n)*)(?:^\|.*\n)+/m, () => `${table}\n`)
    if (process.env['UPDATE_DOCS'] === '1') writeFileSync(README, updated)
    expect(readFileSync(README, 'utf8')).toBe(updated)
    expect(updated).toContain(table)
  })
})

test.each([
  ['prometheus/rules.yaml', 'rules.yaml', 'prometheusrule.yaml'],
  ['grafana/torchserve-ts.json', 'dashboard.json', 'dashboard.yaml'],
])('deploy/%s is the file of the chart that its template takes', (path, file, template) => {
  expect(realpathSync(join(REPOSITORY, 'deploy', path))).toBe(realpathSync(join(CHART, 'files', file)))
  expect(text('templates', template)).toContain(`$.Files.Get "files/${file}"`)
})

test('a pod has shared memory beyond the 64 MiB of a container', () => {
  const pod = text('templates', '_pod.tpl')
  expect(pod).toMatch(/- name: shm\n +mountPath: \/dev\/shm\n/)
  expect(pod).toMatch(/- name: shm\n +emptyDir: \{ medium: Memory, sizeLimit: \{\{ \.Values\.shm\.sizeLimit/)
})

test('every metric and label in the queries of the chart is on the page of a server', async () => {
  const server = await startServer({
    models: ['count'],
    modelStore: join(REPOSITORY, 'model-store'),
  })
  const body = JSON.stringify({ n: 3, stream: true })
  for (const request of [body, JSON.stringify({ n: 1, stream: false })]) {
    const init = { method: 'POST', headers: { 'content-type': 'application/json' }, body: request }
    expect((await rawRequest(server.ports.inference, '/predictions/count', init)).status).toBe(200)
  }
  const { body: page } = await rawRequest(server.ports.metrics, '/metrics', { method: 'GET' })
  const { samples } = new Exposition(page)
  const queries = ['files/dashboard.json', 'files/rules.yaml', 'templates/scaledobject.yaml']
    .map((path) => text(path))
    .join('\n')
  const names = new Set(
    queries
      .match(/\b(torchserve_ts_[a-z_]+|Requests[245]XX)\b/g)!
      .filter((name) => !/_(?:traffic|wake)_/.test(name)),
  )
  expect(names.size).toBeGreaterThan(9)
  const pageNames = new Set(samples.map(({ name }) => name))
  expect([...names].filter((name) => !pageNames.has(name))).toEqual([])
  const ofPrometheus = ['namespace', 'job', 'instance', 'alertname']
  const labels = new Set([...ofPrometheus, ...samples.flatMap(({ labels }) => Object.keys(labels))])
  const used = [...queries.matchAll(/sum by \(([\w, ]+)\)/g)].flatMap(([, list]) => list!.split(', '))
  expect(used).toContain('model_name')
  expect(used.filter((label) => !labels.has(label))).toEqual([])
  expect(samples).toContainEqual(
    expect.objectContaining({
      name: 'torchserve_ts_first_response_seconds_bucket',
      labels: expect.objectContaining({ kind: 'stream' }) as object,
    }),
  )
})
