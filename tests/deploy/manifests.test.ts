import { join } from 'node:path'
import { describe, expect, test } from '@jest/globals'
import { loadSettings } from '../../frontend/config/load-settings.ts'
import { manifests, schemasOf } from './resources.ts'
import { problems } from './schema.ts'

/**
 * Seldon's definitions, reduced by hand to the used fields (docs/kubernetes.md). For KServe's:
 * `npm run test:manifests`.
 */
const schemas = schemasOf(join(import.meta.dirname, 'schemas'))

describe('the manifests for Seldon Core 2', () => {
  test.each(manifests('seldon').map((each) => [each.kind, each] as const))(
    '%s is what its schema says',
    (_kind, resource) => {
      const schema = schemas.get(`${resource.apiVersion}/${resource.kind}`)
      expect(schema).toBeDefined()
      expect(problems(resource, schema!)).toEqual([])
    },
  )

  test('there is a server and a model, and the model asks for what the server can', () => {
    const [model, server] = ['Model', 'Server'].map((kind) =>
      manifests('seldon').find((each) => each.kind === kind)!,
    )
    expect(server!.spec['capabilities']).toEqual(
      expect.arrayContaining(model!.spec['requirements'] as string[]),
    )
  })
})

test('the keys for the server of Seldon Core are keys, and need no other file', async () => {
  const folder = join(import.meta.dirname, '..', '..', 'deploy', 'seldon')
  const env = { MLSERVER_MODELS_DIR: folder, TS_CONFIG_FILE: join(folder, 'seldon.properties') }
  const { settings, warnings } = await loadSettings({ configSnapshots: false }, env)
  expect(settings).toMatchObject({ openInferenceProtocol: true, defaultStartupTimeout: 3300 })
  expect(warnings).toEqual([])
})

test('a field that a schema does not know, a wrong type and a missing field are found', () => {
  const model = manifests('seldon').find(({ kind }) => kind === 'Model')!
  const schema = schemas.get(`${model.apiVersion}/Model`)!
  const { storageUri: _uri, ...rest } = model.spec
  const wrong = { ...model, spec: { ...rest, requirements: [1], memory: 'much', replica: 2 } }
  expect(problems(wrong, schema)).toEqual([
    'spec has no storageUri',
    'spec.requirements[0] is no string',
    'spec.memory does not match ^[0-9]+([KMGT]i?)?$',
    'spec.replica is not in the schema',
  ])
})

describe('the manifests for KServe', () => {
  test('the container is the one that KServe looks for, and does not run as root', () => {
    const runtimes = manifests('kserve').filter(({ kind }) => kind.endsWith('ServingRuntime'))
    expect(runtimes.map(({ kind, metadata }) => [kind, metadata.name])).toEqual([
      ['ClusterServingRuntime', 'torchserve-ts'],
      ['ServingRuntime', 'torchserve-ts-grpc'],
      ['ClusterServingRuntime', 'kserve-torchserve'],
    ])
    for (const { spec } of runtimes) {
      const [container] = spec['containers'] as { name: string; securityContext: object }[]
      expect(container).toMatchObject({ name: 'kserve-container', securityContext: { runAsNonRoot: true } })
    }
  })

  test('the service asks for a format and a runtime that there are', () => {
    const service = manifests('kserve').find(({ kind }) => kind === 'InferenceService')!
    const { model } = service.spec['predictor'] as {
      model: { runtime: string; modelFormat: { name: string }; protocolVersion: string }
    }
    const runtime = manifests('kserve').find(({ metadata }) => metadata.name === model.runtime)!
    expect(runtime.spec['supportedModelFormats']).toEqual([
      expect.objectContaining({ name: model.modelFormat.name }),
    ])
    expect(runtime.spec['protocolVersions']).toContain(model.protocolVersion)
  })
})
