import { describe, expect, test } from '@jest/globals'
import { createInferenceApp, createManagementApp, createSharedApp } from '../../frontend/http/app.ts'
import { version } from '../../frontend/package-info.ts'
import { ask, startRig, type Answer } from './support/rig.ts'

const ON = { openInferenceProtocol: true }

function said({ status, text }: Answer): [number, unknown] {
  return [status, JSON.parse(text)]
}

describe.each([
  ['the inference listener', createInferenceApp],
  ['the shared listener', createSharedApp],
])('with the Open Inference Protocol on, %s', (_name, create) => {
  test.each(['GET', 'POST'])('is live, and says what it is: %s', async (method) => {
    const rig = await startRig(create, ON)
    expect(said(await ask(rig, '/v2/health/live', { method }))).toEqual([200, { live: true }])
    const extensions = ['kserve', 'kubeflow']
    expect(said(await ask(rig, '/v2/', { method }))).toEqual([
      200,
      { name: 'Torchserve', version, extenstion: extensions, extensions },
    ])
  })

  test('is ready when the models of its start have workers that loaded them', async () => {
    const rig = await startRig(create, ON)
    expect(said(await ask(rig, '/v2/health/ready'))).toEqual([200, { ready: true }])
    rig.models.startup = ['m', 'loading']
    expect(said(await ask(rig, '/v2/health/ready'))).toEqual([503, { ready: false }])
    rig.models.startup = []
    rig.models.healthy = false
    expect(said(await ask(rig, '/v2/health/ready'))).toEqual([503, { ready: false }])
  })

  test.each(['/v2/models/m/versions/1', '/v2/models/m/versions/1/infer', '/v2/models/m/versions/1/ready'])(
    'has no versions: %s',
    async (path) => {
      const rig = await startRig(create, ON)
      expect(said(await ask(rig, path))).toEqual([501, { error: 'Model versioning is not yet supported.' }])
    },
  )

  test('asks for the inference token', async () => {
    const rig = await startRig(create, { ...ON, tokens: true })
    for (const path of ['/v2', '/v2/health/live', '/v2/health/ready', '/v2/models/m/versions/1']) {
      const bearer = (kind: string) => ({ headers: { authorization: `Bearer ${kind}` } })
      expect((await ask(rig, path)).status).toBe(400)
      expect((await ask(rig, path, bearer('management'))).status).toBe(400)
      expect([200, 501]).toContain((await ask(rig, path, bearer('inference'))).status)
    }
  })
})

test.each([
  ['off', createInferenceApp, {}],
  ['on, the management listener', createManagementApp, ON],
])('with the protocol %s there are no such routes', async (_what, create, options) => {
  const rig = await startRig(create, options)
  for (const path of ['/v2', '/v2/health/live', '/v2/models/m/versions/1']) {
    expect((await ask(rig, path)).status).toBe(404)
  }
})
