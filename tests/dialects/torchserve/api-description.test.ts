import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from '@jest/globals'
import {
  createInferenceApp,
  createManagementApp,
  createMetricsApp,
  createSharedApp,
} from '../../../frontend/dialects/rest-apps.ts'
import type { OpenApi, Operation } from '../../../common/openapi.ts'
import { version } from '../../../frontend/package-info.ts'
import { outline } from './api-outline.ts'
import { ask, startRig, type Answer, type Rig } from '../../support/http/rig.ts'

const APPS = {
  inference: createInferenceApp,
  management: createManagementApp,
  shared: createSharedApp,
  metrics: createMetricsApp,
}
type Kind = keyof typeof APPS
const KINDS = Object.keys(APPS) as Kind[]

/** With tokens on: a description needs none. */
function start(kind: Kind): Promise<Rig> {
  return startRig(APPS[kind], { tokens: true })
}

function api(answer: Answer): OpenApi {
  expect(answer.status).toBe(200)
  expect(answer.headers.get('content-type')).toBe('application/json')
  expect(answer.text).toMatch(/^\{\n {2}"openapi": "3\.0\.1",[^]*\n\}\n$/)
  return answer.json() as OpenApi
}

async function described(kind: Kind): Promise<OpenApi> {
  return api(await ask(await start(kind), '/', { method: 'OPTIONS' }))
}

/** `GET /path operationId`, one for each operation. */
function operations({ paths }: OpenApi): string[] {
  return Object.entries(paths).flatMap(([path, item]) =>
    Object.entries(item).map(([method, { operationId }]) => `${method} ${path} ${operationId}`),
  )
}

const INFERENCE = [
  'options / apiDescription',
  'get /ping ping',
  'post /v1/models/{model_name}:predict predictions',
  'post /v2/models/{model_name}/infer predictions',
  'post /predictions/{model_name} predictions',
  'post /predictions/{model_name}/{model_version} version_predictions',
  'get /api-description api-description',
]
/** Our descriptions. */
const OPENAI = [
  'get /v1/models openaiModels',
  'get /v1/models/{model_name} openaiModel',
  'post /v1/chat/completions chatCompletions',
  'post /v1/completions completions',
  'post /v1/embeddings embeddings',
]
const TRAFFIC = [
  'get /models/{model_name}/traffic describeTraffic',
  'put /models/{model_name}/traffic setTraffic',
  'delete /models/{model_name}/traffic endTraffic',
]
const MODEL = [
  'get /models/{model_name} describeModel',
  'put /models/{model_name} setAutoScale',
  'delete /models/{model_name} unregisterModel',
  'get /models/{model_name}/{model_version} version_describeModel',
  'put /models/{model_name}/{model_version} version_setAutoScale',
  'delete /models/{model_name}/{model_version} version_unregisterModel',
  'put /models/{model_name}/{model_version}/set-default setDefault',
  ...TRAFFIC,
]
/** Ours; TorchServe has no such routes. */
const OURS = [
  'delete /requests/{request_id} cancelRequest',
  'get /events events',
  'get /configuration configuration',
]
const MANAGEMENT = [
  'options / apiDescription',
  'get /models listModels',
  'post /models registerModel',
  ...MODEL,
  ...OURS,
  'get /api-description api-description',
]
const METRICS = ['get /metrics metrics']

describe('the API description, without a token', () => {
  test.each(KINDS)('is the answer to OPTIONS / and to any method on /api-description: %s', async (kind) => {
    const rig = await start(kind)
    const { info } = api(await ask(rig, '/', { method: 'OPTIONS' }))
    expect(info).toEqual({
      title: 'TorchServe APIs',
      description: 'TorchServe is a flexible and easy to use tool for serving deep learning models',
      version,
    })
    for (const method of ['GET', 'POST', 'OPTIONS', 'DELETE']) {
      expect(api(await ask(rig, '/api-description', { method })).info).toEqual(info)
    }
  })

  test.each(KINDS)('a browser that opens / gets a page that links to it: %s', async (kind) => {
    const rig = await start(kind)
    const accept = 'text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8'
    const page = await ask(rig, '/', { headers: { accept } })
    expect([page.status, page.headers.get('content-type')]).toEqual([200, 'text/html; charset=utf-8'])
    expect(page.headers.get('content-security-policy')).toContain("default-src 'none'")
    const links = [...page.text.matchAll(/(?<=href=")\/[^"]*/g)].map(([link]) => link)
    const isManaging = kind === 'management' || kind === 'shared'
    const own = isManaging ? ['/console'] : kind === 'metrics' ? ['/metrics'] : []
    expect(links).toEqual([...own, '/api-description'])
    expect(api(await ask(rig, '/api-description')).info.version).toBe(version)
    expect((await ask(rig, '/', { method: 'POST', headers: { accept } })).status).toBe(405)
  })

  test.each(KINDS)('any other method on / is not allowed: %s', async (kind) => {
    const answer = await ask(await start(kind), '/')
    expect(answer.json()).toEqual({
      code: 405,
      type: 'MethodNotAllowedException',
      message: 'Requested method is not allowed, please refer to API document.',
    })
  })

  test('names the operations that the listener serves', async () => {
    expect(operations(await described('inference'))).toEqual([...INFERENCE, ...OPENAI, ...METRICS])
    expect(operations(await described('management'))).toEqual([...MANAGEMENT, ...METRICS])
    expect(operations(await described('metrics'))).toEqual(METRICS)
    expect(new Set(operations(await described('shared')))).toEqual(
      new Set([...INFERENCE, ...OPENAI, ...MANAGEMENT, ...METRICS]),
    )
  })

  test('puts each operation into one group', async () => {
    for (const kind of KINDS) {
      const { paths } = await described(kind)
      const tags = Object.values(paths).flatMap((item) => Object.values(item).map((each) => each.tags))
      expect(tags.filter((each) => each?.length !== 1)).toEqual([])
    }
    const { paths } = await described('shared')
    const tagOf = (path: string): string => Object.values(paths[path]!)[0]!.tags![0]!
    expect(['/predictions/{model_name}', '/v1/completions', '/models', '/', '/metrics'].map(tagOf)).toEqual([
      'Inference',
      'OpenAI',
      'Management',
      'Server',
      'Server',
    ])
  })

  test('names parameters and answers', async () => {
    const { paths } = await described('management')
    const { post } = paths['/models'] as { post: Operation }
    expect(Object.keys(post.responses)).toEqual(['200', '202', '210', '400', '404', '409', '500'])
    const { put, delete: remove } = paths['/models/{model_name}'] as { put: Operation; delete: Operation }
    expect(put.parameters.map(({ name }) => name)).toEqual([
      'model_name',
      'min_worker',
      'max_worker',
      'number_gpu',
      'synchronous',
      'timeout',
    ])
    expect(Object.keys(remove.responses)).toEqual(['200', '202', '404', '408', '500'])
  })
})

test('the OpenAI API says what its requests need, and that answers may be events', async () => {
  const { post } = (await described('inference')).paths['/v1/chat/completions'] as { post: Operation }
  const { schema } = post.requestBody!.content!['application/json']!
  expect(schema.required).toEqual(['model', 'messages'])
  expect(Object.keys(post.responses['200']!.content!)).toEqual(['application/json', 'text/event-stream'])
  expect(post.responses['404']!.content!['application/json']!.schema.required).toEqual(['error'])
})

describe('the description of one model', () => {
  const token = (kind: string): RequestInit => ({
    method: 'OPTIONS',
    headers: { authorization: `Bearer ${kind}` },
  })

  test.each([
    '/predictions/m',
    '/predictions/m/1.0',
    '/explanations/m',
    '/v1/models/m:predict',
    '/v2/models/m/infer',
    '/models/m/invoke',
    '/invocations',
    '/m/predict',
  ])('OPTIONS %s says how it is asked', async (path) => {
    const rig = await start('inference')
    const document = api(await ask(rig, path, token('inference')))
    expect(document.info).toEqual({ title: 'RESTful API for: m', version: '1.0.0' })
    expect(operations(document)).toEqual([
      'post /prediction/m m',
      'post /v1/models/{model_name}:predict m',
      'post /v2/models/{model_name}/infer m',
    ])
    expect(rig.models.jobs).toEqual([])
  })

  test.each(['/models/m', '/models/m/1.0', '/models/m/1.0/set-default'])(
    'OPTIONS %s says how it is managed',
    async (path) => {
      const document = api(await ask(await start('management'), path, token('management')))
      expect(document.info).toEqual({ title: 'RESTful Management API for: m', version })
      expect(operations(document)).toEqual(MODEL)
    },
  )

  test('needs the token of its listener, and a model', async () => {
    const inference = await start('inference')
    expect((await ask(inference, '/predictions/m', { method: 'OPTIONS' })).status).toBe(400)
    expect((await ask(inference, '/predictions/none', token('inference'))).status).toBe(404)
    const management = await start('management')
    expect((await ask(management, '/models/m', { method: 'OPTIONS' })).status).toBe(400)
    expect((await ask(management, '/models/none', token('management'))).status).toBe(404)
    expect((await ask(management, '/models', token('management'))).status).toBe(405)
  })
})

/**
 * What TorchServe 0.12 describes, in the notation of api-outline.ts: a paragraph for each document of its
 * own tests.
 */
const TORCHSERVE = new Map(
  readFileSync(join(import.meta.dirname, 'torchserve-apis.txt'), 'utf8')
    .trimEnd()
    .split('\n\n')
    .map((paragraph) => paragraph.split('\n'))
    .map(([name, ...lines]) => [name!.replace('# ', ''), lines]),
)

describe('the documents say what TorchServe’s say, apart from their words', () => {
  test.each([
    ['inference_open_api', 'inference'],
    ['management_open_api', 'management'],
    ['metrics_open_api', 'metrics'],
  ] as const)('%s', async (name, kind) => {
    expect(comparable(await described(kind))).toEqual(torchServes(name))
  })

  test('describe_api', async () => {
    const rig = await startRig(createInferenceApp)
    const document = api(await ask(rig, '/predictions/noop', { method: 'OPTIONS' }))
    expect(comparable(document)).toEqual(torchServes('describe_api'))
  })

  test('model_management_api', async () => {
    const rig = await startRig(createManagementApp)
    const document = api(await ask(rig, '/models/noop', { method: 'OPTIONS' }))
    expect(comparable(document)).toEqual(torchServes('model_management_api'))
  })

  /** Without what TorchServe does not have: the OpenAI API, weights of versions, and pins of archives. */
  function comparable(document: OpenApi): string[] {
    const paths = [...OPENAI, ...TRAFFIC, ...OURS].map((operation) => operation.split(' ')[1]!)
    const own = Object.entries(document.paths).filter(([path]) => !paths.includes(path))
    const lines = outline({ ...document, paths: Object.fromEntries(own) })
    return withoutErrors(lines.filter((line) => line !== '  query sha256: string'))
  }

  function torchServes(name: string): string[] {
    return withoutErrors(TORCHSERVE.get(name)!)
  }

  /** Without what we say differently because TorchServe's is wrong. */
  function withoutErrors(lines: string[]): string[] {
    let operation = ''
    return lines.map((line) => {
      if (!line.startsWith(' ')) operation = line.split(' ').at(-1)!
      if (operation.endsWith('describeModel') && line.startsWith('  200 ')) return '  200'
      const isWrong = /^ {2}query (response_timeout|synchronous):/.test(line)
      return operation === 'registerModel' && isWrong ? line.split(' = ')[0]! : line
    })
  }
})
