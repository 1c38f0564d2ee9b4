import { gzipSync } from 'node:zlib'
import { expect, test } from '@jest/globals'
import {
  createInferenceApp,
  createManagementApp,
  createMetricsApp,
} from '../../frontend/dialects/rest-apps.ts'
import { ask, startRig, Wire, type Rig } from '../support/http/rig.ts'
import { HOSTILE_WORDS } from './hostile-words.ts'

/** The status line of a request on its own connection; a request that stays open gives none. */
async function statusOf(
  rig: Rig,
  method: string,
  path: string,
  body = '',
  ...headers: string[]
): Promise<number> {
  const wire = new Wire(rig.listener.port).request(method, path, body, 'Connection: close', ...headers)
  return Number(/^HTTP\/1\.1 (\d{3}) /.exec(await wire.rest())?.[1])
}

async function answering(): Promise<Rig> {
  const rig = await startRig(createInferenceApp, { openInferenceProtocol: true })
  rig.models.onJob = (job) => job.respond({ status: 200, headers: {}, body: Buffer.from('{}') })
  return rig
}

const CHAT = JSON.stringify({ model: 'body', messages: [{ role: 'user', content: 'x' }] })
const JSON_TYPE = 'Content-Type: application/json'
const tensor = (fields: object): string =>
  JSON.stringify({ inputs: [{ name: 'x', shape: [1], datatype: 'INT32', data: [7], ...fields }] })

/** Places where a client's word is looked up, and the allowed responses. */
const PLACES: [place: string, status: number, ask: (rig: Rig, word: string) => Promise<number>][] = [
  [
    'the content encoding',
    415,
    (rig, word) => statusOf(rig, 'POST', '/v1/chat/completions', CHAT, `Content-Encoding: ${word}`),
  ],
  [
    'the content encoding of tensors',
    415,
    (rig, word) => statusOf(rig, 'POST', '/v2/models/m/infer', tensor({}), `Content-Encoding: ${word}`),
  ],
  [
    'the content type',
    200,
    (rig, word) => statusOf(rig, 'POST', '/predictions/m', 'x', `Content-Type: ${word}`),
  ],
  ['a path of the OpenAI API', 404, (rig, word) => statusOf(rig, 'POST', `/v1/${word}`, CHAT)],
  ['a path below a model', 404, (rig, word) => statusOf(rig, 'POST', `/v2/models/m/infer/${word}`, CHAT)],
  [
    'a path of the OpenAI API under KServe’s prefix',
    404,
    (rig, word) => statusOf(rig, 'POST', `/openai/v1/${word}`, CHAT),
  ],
  ['a path', 404, (rig, word) => statusOf(rig, 'POST', `/${word}`, 'x')],
  ['a model’s method', 404, (rig, word) => statusOf(rig, 'POST', `/v2/models/m/${word}`, 'x')],
  ['a query key', 200, (rig, word) => statusOf(rig, 'POST', `/predictions/m?${word}=1`, 'x')],
  [
    'a form field',
    200,
    (rig, word) =>
      statusOf(rig, 'POST', '/predictions/m', `${word}=1`, 'Content-Type: application/x-www-form-urlencoded'),
  ],
  [
    'a multipart field',
    200,
    (rig, word) =>
      statusOf(
        rig,
        'POST',
        '/predictions/m',
        `--b\r\nContent-Disposition: form-data; name="${word}"\r\n\r\n1\r\n--b--\r\n`,
        'Content-Type: multipart/form-data; boundary=b',
      ),
  ],
  [
    'a header of a part',
    200,
    (rig, word) =>
      statusOf(
        rig,
        'POST',
        '/predictions/m',
        `--b\r\n${word}: 1\r\nContent-Disposition: form-data; name="a"; ${word}="1"\r\n\r\n1\r\n--b--\r\n`,
        'Content-Type: multipart/form-data; boundary=b',
      ),
  ],
  ['a header', 200, (rig, word) => statusOf(rig, 'POST', '/predictions/m', 'x', `${word}: 1`)],
  ['a datatype', 422, (rig, word) => statusOf(rig, 'POST', '/v2/models/m/infer', tensor({ datatype: word }))],
  ['a tensor', 200, (rig, word) => statusOf(rig, 'POST', '/v2/models/body/infer', tensor({ name: word }))],
  [
    'a parameter of a tensor',
    200,
    (rig, word) =>
      statusOf(
        rig,
        'POST',
        '/v2/models/body/infer',
        tensor({}).replace('"shape"', `"parameters":{"${word}":1},"shape"`),
      ),
  ],
  [
    'a role',
    200,
    (rig, word) => statusOf(rig, 'POST', '/v1/chat/completions', CHAT.replace('user', word), JSON_TYPE),
  ],
  [
    'a field of a chat',
    200,
    (rig, word) =>
      statusOf(rig, 'POST', '/v1/chat/completions', CHAT.replace('{', `{"${word}":1,`), JSON_TYPE),
  ],
]

test.each(PLACES)(
  'a hostile word as %s is answered %i, and the server goes on',
  async (_place, status, send) => {
    const rig = await answering()
    for (const word of HOSTILE_WORDS) expect([word, await send(rig, word)]).toEqual([word, status])
    expect((await ask(rig, '/ping')).status).toBe(200)
    expect(rig.logged).toEqual([])
  },
)

test('fields and headers of such names reach the handler as what they are', async () => {
  const rig = await answering()
  for (const word of HOSTILE_WORDS) {
    await statusOf(
      rig,
      'POST',
      '/predictions/m',
      `${word}=1`,
      `${word}: 2`,
      'Content-Type: application/x-www-form-urlencoded',
    )
    const { parts, headers } = rig.models.jobs.at(-1)!.request
    expect([parts[0]!.name, headers.includes(`\n${word}\n2\n`)]).toEqual([word, true])
  }
})

test.each([
  ['a path', (rig: Rig, word: string) => statusOf(rig, 'GET', `/${word}`), 404],
  ['a kind of token', (rig: Rig, word: string) => statusOf(rig, 'GET', `/token?type=${word}`), 200],
  [
    'a field of a register call',
    (rig: Rig, word: string) => statusOf(rig, 'POST', '/models', `{"${word}":"1"}`, JSON_TYPE),
    400,
  ],
])('a hostile word as %s of the management API is answered', async (_place, send, status) => {
  const rig = await startRig(createManagementApp)
  for (const word of HOSTILE_WORDS) expect([word, await send(rig, word)]).toEqual([word, status])
  expect((await ask(rig, '/models')).status).toBe(200)
  expect(rig.logged).toEqual([])
})

test('a hostile word as the name of a metric shows none', async () => {
  const rig = await startRig(createMetricsApp)
  for (const word of HOSTILE_WORDS) expect(await statusOf(rig, 'GET', `/metrics?name[]=${word}`)).toBe(200)
})

test('a compressed chat still works', async () => {
  const rig = await answering()
  const body = new Uint8Array(gzipSync(CHAT))
  const init = { method: 'POST', body, headers: { 'Content-Encoding': 'gzip' } }
  expect((await ask(rig, '/v1/chat/completions', init)).status).toBe(200)
})
