import { describe, expect, test } from '@jest/globals'
import { createInferenceApp } from '../../../frontend/dialects/rest-apps.ts'
import { InputCheck, inputCheck } from '../../../frontend/dialects/open-inference/declared-inputs.ts'
import { decodeRequest, encodeResponse, TENSORS_TYPE } from '../../../common/tensors/message.ts'
import { ask, startRig, type Answer, type Rig } from '../../support/http/rig.ts'

const X = { name: 'x', datatype: 'FP32', shape: [-1, 3] }
const Y = { name: 'y', datatype: 'BYTES', shape: [1], optional: true }
const ONE_ROW = { name: 'x', datatype: 'FP32', shape: [1, 3], data: [1, 2, 3] }
const WORD = { name: 'y', datatype: 'BYTES', shape: [1], data: ['w'] }

/** A listener whose model declares these inputs, and returns what it gets. */
async function declaring(config: object = { openInference: { inputs: [X, Y] } }): Promise<Rig> {
  const rig = await startRig(createInferenceApp, { maxRequestSize: 1_000_000 })
  const { models } = rig
  models.methods = ['predict']
  models.onJob = (job) => {
    const { inputs } = decodeRequest(job.request.parts[0]!.data)
    const body = encodeResponse({ outputs: inputs })
    job.respond({ status: 200, headers: {}, contentType: TENSORS_TYPE, body })
  }
  const status = models.status.bind(models)
  models.status = (name, version) => ({ ...status(name, version), config: config as Record<string, unknown> })
  return rig
}

function infer(rig: Rig, inputs: object[], headers: Record<string, string> = {}): Promise<Answer> {
  return ask(rig, '/v2/models/m/infer', { method: 'POST', body: JSON.stringify({ inputs }), headers })
}

describe('a request to a model that declares its inputs', () => {
  test.each([
    [[ONE_ROW]],
    [
      [
        {
          ...ONE_ROW,
          shape: [2, 3],
          data: [
            [1, 2, 3],
            [4, 5, 6],
          ],
        },
        WORD,
      ],
    ],
    [[WORD, ONE_ROW]],
    [[{ ...ONE_ROW, shape: [0, 3], data: [] }]],
  ])('is answered if it matches: %j', async (inputs) => {
    expect((await infer(await declaring(), inputs)).status).toBe(200)
  })

  test.each([
    [
      'another datatype',
      [{ ...ONE_ROW, datatype: 'INT64' }],
      'Input "x" must be FP32 [-1,3], but the request has INT64 [1,3]',
    ],
    [
      'another rank',
      [{ ...ONE_ROW, shape: [3] }],
      'Input "x" must be FP32 [-1,3], but the request has FP32 [3]',
    ],
    [
      'another fixed dimension',
      [{ ...ONE_ROW, shape: [1, 2], data: [1, 2] }],
      'Input "x" must be FP32 [-1,3], but the request has FP32 [1,2]',
    ],
    [
      'an unknown name',
      [ONE_ROW, { ...WORD, name: 'z' }],
      'The model has no input "z"; it declares "x" (FP32 [-1,3]), "y" (BYTES [1])',
    ],
    ['a missing input', [WORD], 'Input "x" (FP32 [-1,3]) is missing: the request has "y"'],
    ['no input', [], 'Input "x" (FP32 [-1,3]) is missing: the request has none'],
    [
      'one twice',
      [ONE_ROW, WORD, ONE_ROW],
      'Input "x" must occur once, but the request has it several times',
    ],
    [
      'ragged data',
      [
        {
          ...ONE_ROW,
          shape: [2, 3],
          data: [
            [1, 2, 3, 4],
            [5, 6],
          ],
        },
      ],
      'The data of input "x" must be flat, or lists of one length, but on level 2 one has 4 and another 2 elements',
    ],
    [
      'values beside lists',
      [{ ...ONE_ROW, data: [1, [2, 3]] }],
      'The data of input "x" must be flat, or lists of one length, but on level 2 there are lists beside values',
    ],
  ])('is 400 and names both with %s', async (_what, inputs, error) => {
    const rig = await declaring()
    const answer = await infer(rig, inputs)
    expect([answer.status, answer.json()]).toEqual([400, { error }])
    expect(rig.models.jobs).toEqual([])
  })

  test('is 400 when it has as many inputs as the model needs, but not all of them', async () => {
    const rig = await declaring({
      openInference: { inputs: [X, { ...Y, optional: false }, { ...Y, name: 'z' }] },
    })
    const { json, status } = await infer(rig, [WORD, { ...WORD, name: 'z' }])
    expect([status, json()]).toEqual([
      400,
      { error: 'Input "x" (FP32 [-1,3]) is missing: the request has "y", "z"' },
    ])
  })

  test('is 422 through Seldon, whose proxy would load the model again after a 400', async () => {
    const rig = await declaring()
    const answer = await infer(rig, [], { 'seldon-internal-model': 'm_1' })
    expect(answer.status).toBe(422)
  })

  test('is checked for a handler without tensors too, and in a thread if it is large', async () => {
    const rig = await declaring()
    rig.models.methods = []
    rig.models.onJob = (job) => job.respond({ status: 200, headers: {}, body: Buffer.from('ok') })
    const large = { ...ONE_ROW, shape: [50_000], data: new Array(50_000).fill(0.5) }
    const path = '/v2/models/m/versions/1/infer'
    for (const inputs of [[{ ...ONE_ROW, shape: [3] }], [large]]) {
      const answer = await ask(rig, path, { method: 'POST', body: JSON.stringify({ inputs }) })
      expect([answer.status, answer.text]).toEqual([400, expect.stringContaining('must be FP32 [-1,3]')])
    }
    const answer = await ask(rig, path, { method: 'POST', body: JSON.stringify({ inputs: [ONE_ROW] }) })
    expect(answer.status).toBe(200)
  })

  test.each([
    ['declares none', {}],
    ['says validateInputs: false', { validateInputs: false, openInference: { inputs: [X] } }],
  ])('is not checked if the model %s', async (_what, config) => {
    const rig = await declaring(config)
    const answer = await infer(rig, [{ ...ONE_ROW, shape: [3] }, ONE_ROW])
    expect(answer.status).toBe(200)
    expect(inputCheck({ config })).toBeUndefined()
  })

  test('with the generate extension gets its tensors from the server, which knows the metadata', async () => {
    const inputs = [{ name: 'text_input', datatype: 'BYTES', shape: [-1, 1] }, X]
    const rig = await declaring({ openInference: { inputs } })
    const body = JSON.stringify({ text_input: 'a' })
    expect((await ask(rig, '/v2/models/m/generate', { method: 'POST', body })).status).toBe(200)
  })
})

test('a shape or datatype that the metadata lack is not checked', () => {
  const tensor = { name: 'x', datatype: 'FP32', shape: [2, 2], data: Buffer.alloc(16) } as const
  const check = (declared: { datatype: string; shape: number[] | undefined }): void =>
    new InputCheck([{ name: 'x', optional: false, ...declared }]).check({ inputs: [tensor] })
  check({ datatype: 'FP32', shape: undefined })
  check({ datatype: 'String', shape: [-1, -1] })
  expect(() => check({ datatype: 'FP64', shape: undefined })).toThrow(
    'Input "x" must be FP64 of any shape, but the request has FP32 [2,2]',
  )
})
