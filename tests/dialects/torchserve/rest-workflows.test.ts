import { describe, expect, test } from '@jest/globals'
import {
  createInferenceApp,
  createManagementApp,
  createSharedApp,
} from '../../../frontend/dialects/rest-apps.ts'
import { ask, startRig } from '../../support/http/rig.ts'

describe('POST /workflows', () => {
  test('takes its parameters from the query, or from a JSON body alone', async () => {
    const rig = await startRig(createManagementApp)
    const query = 'url=a.war&workflow_name=n&response_timeout=7&startup_timeout=8&s3_sse_kms=true'
    expect((await ask(rig, `/workflows?${query}`, { method: 'POST' })).text).toBe(
      '{\n  "status": "registered"\n}\n',
    )
    await ask(rig, '/workflows?url=query.war', {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ url: 'body.war', workflow_name: '' }),
    })
    expect(rig.workflows.calls).toEqual([
      [
        'register',
        { url: 'a.war', workflowName: 'n', responseTimeout: 7, startupTimeout: 8, s3SseKms: true },
      ],
      ['register', { url: 'body.war' }],
    ])
  })

  test('is refused while the model API is off; the other routes are not', async () => {
    const rig = await startRig(createManagementApp, { enableModelApi: false })
    const refused = await ask(rig, '/workflows?url=a.war', { method: 'POST' })
    expect(JSON.parse(refused.text)).toEqual({
      code: 400,
      type: 'BadRequestException',
      message: 'Registering new workflows is disabled.',
    })
    expect(rig.workflows.calls).toEqual([])
    expect((await ask(rig, '/workflows/story')).status).toBe(200)
    expect((await ask(rig, '/workflows/story', { method: 'DELETE' })).status).toBe(200)
  })
})

test('the list is asked for page by page', async () => {
  const rig = await startRig(createManagementApp)
  const { text } = await ask(rig, '/workflows?limit=2&next_page_token=4')
  expect(JSON.parse(text)).toEqual({ workflows: [{ workflowName: 'story', workflowUrl: 'story.war' }] })
  expect(rig.workflows.calls).toEqual([['list', [2, 4]]])
})

test('each route asks for its kind of token, on its own port and on a shared one', async () => {
  for (const [create, path, kind] of [
    [createManagementApp, '/workflows', 'management'],
    [createSharedApp, '/workflows', 'management'],
    [createManagementApp, '/workflows/story', 'management'],
    [createInferenceApp, '/wfpredict/none', 'inference'],
    [createSharedApp, '/wfpredict/none', 'inference'],
  ] as const) {
    const rig = await startRig(create, { tokens: true })
    const other = kind === 'inference' ? 'management' : 'inference'
    const statuses = []
    for (const token of [undefined, other, kind]) {
      const headers: Record<string, string> = token === undefined ? {} : { authorization: `Bearer ${token}` }
      statuses.push((await ask(rig, path, { headers })).status)
    }
    expect([path, ...statuses]).toEqual([path, 400, 400, path.endsWith('none') ? 404 : 200])
  }
})

describe('/wfpredict', () => {
  test('gives the workflow the whole request, whatever the method, without headers of ours', async () => {
    const rig = await startRig(createInferenceApp)
    const requests: unknown[] = []
    rig.workflows.onJob = (job) => {
      const { modelName, modelVersion, method, parts } = job.request
      requests.push([modelName, modelVersion, method, parts.map(({ name }) => name)])
      job.respond({ status: 200, headers: {}, body: Buffer.from('ok') })
    }
    for (const path of ['/wfpredict/story', '/wfpredict/story/', '/wfpredict/story/more'])
      expect((await ask(rig, path, { method: 'PUT', body: 'x' })).text).toBe('ok')
    expect(requests).toEqual(Array(3).fill(['story', undefined, 'handle', ['body']]))
  })

  test('without a name is no route', async () => {
    const rig = await startRig(createInferenceApp)
    for (const path of ['/wfpredict', '/wfpredict/']) {
      const { status, text } = await ask(rig, path)
      expect([status, (JSON.parse(text) as { type: string }).type]).toEqual([
        404,
        'ResourceNotFoundException',
      ])
    }
  })

  test('of an unknown workflow is 404, also if a model has that name', async () => {
    const rig = await startRig(createInferenceApp)
    const { status, text } = await ask(rig, '/wfpredict/m')
    expect(status).toBe(404)
    expect(JSON.parse(text)).toEqual({
      code: 404,
      type: 'WorkflowNotFoundException',
      message: 'Workflow not found: m',
    })
  })
})
