import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { hostname, networkInterfaces } from 'node:os'
import { join } from 'node:path'
import { describe, expect, test } from '@jest/globals'
import { parse } from 'yaml'
import { buildSettings } from '../../frontend/config/build-settings.ts'
import { checkExposure } from '../../frontend/config/exposure.ts'
import { CLI, REPOSITORY, startServer } from '../support/server.ts'
import { tempDir } from '../support/temp.ts'
import { execa } from '../support/tools.ts'

/** What the start says of a configuration; undefined: it may go on. */
async function refusal(...lines: string[]): Promise<string | undefined> {
  const file = lines.map((line) => {
    const [name = '', text = ''] = line.split(/=(.*)/s)
    return { name, text, origin: 'test' }
  })
  const { settings } = buildSettings({ file, flags: [], env: {} })
  return checkExposure(settings).then(
    () => undefined,
    (error: unknown) => (error as Error).message,
  )
}

const OFF = 'disable_token_authorization=true'
const API = 'enable_model_api=true'
const ALLOWED = 'allow_insecure_exposure=true'
const LAN = Object.values(networkInterfaces())
  .flatMap((each) => each ?? [])
  .filter(({ internal, family }) => !internal && family === 'IPv4')
  .map(({ address }) => address)

const NONE = 'enable_metrics_api=true'
const HOSTS = ['0.0.0.0', '[::]', '[::ffff:0.0.0.0]', '0', '192.0.2.1', '[2001:db8::1]', ...LAN.slice(0, 1)]
const LOOPBACK = ['127.0.0.1', '127.8.9.10', '[::1]', 'localhost', '127.1']

describe('without tokens, a listener that other machines can reach', () => {
  test.each([
    ['inference_address', 'http://', ':0', NONE],
    ['management_address', 'http://', ':0', NONE],
    ['metrics_address', 'http://', ':0', NONE],
    ['grpc_inference_address', '', '', NONE],
    ['grpc_management_address', '', '', NONE],
    ['open_inference_grpc_address', '', '', 'open_inference_grpc_port=0'],
    ['open_inference_grpc_address', '', '', 'triton_grpc_port=0'],
  ])('is refused: %s', async (key, before, after, more) => {
    for (const host of HOSTS) {
      const line = `${key}=${before}${host}${after}`
      expect([host, await refusal(OFF, line, more)]).toEqual([host, expect.stringContaining(`${key}=`)])
      expect([host, await refusal(OFF, ALLOWED, line, more)]).toEqual([host, undefined])
      expect([host, await refusal(line, more)]).toEqual([host, undefined])
    }
    for (const host of LOOPBACK) {
      const line = `${key}=${before}${host}${after}`
      expect([host, await refusal(OFF, API, line, more)]).toEqual([host, undefined])
    }
  })

  test('is refused under a host name that stands for such an address', async () => {
    const own = await refusal(OFF, `inference_address=http://${hostname()}:0`)
    // Some machines know their own name as 127.0.1.1 only.
    const { lookup } = await import('node:dns/promises')
    const addresses = await lookup(hostname(), { all: true }).catch(() => [])
    const isOpen = addresses.some(({ address }) => !/^(127\.|::1$)/.test(address))
    expect(own !== undefined).toBe(isOpen)
  })

  test('is no matter if it is not opened, or if it is a Unix socket', async () => {
    const metrics = 'metrics_address=http://0.0.0.0:0'
    expect(await refusal(OFF, metrics, 'enable_metrics_api=false')).toBeUndefined()
    expect(await refusal(OFF, 'open_inference_grpc_address=0.0.0.0')).toBeUndefined()
    expect(await refusal(OFF, API, 'management_address=unix:/tmp/none.sock')).toBeUndefined()
  })
})

describe('another kind of identity counts as tokens do, where it protects', () => {
  const REST = 'inference_address=http://0.0.0.0:0'
  const JWT = ['jwt_issuer=https://a', 'jwt_audience=b', 'jwt_jwks_url=https://a/jwks']

  test('API keys and JWTs protect all listeners', async () => {
    for (const identity of [['api_keys_file=keys.json'], JWT]) {
      expect(await refusal(OFF, REST, 'grpc_management_address=0.0.0.0', ...identity)).toBeUndefined()
      expect(await refusal(OFF, API, REST, ...identity)).toContain('clients can register models')
    }
  })

  test('a certificate protects listeners with TLS that require it', async () => {
    const ca = ['tls_client_ca=ca.pem', 'tls_client_auth=require']
    const https = 'inference_address=https://0.0.0.0:0'
    const grpc = 'grpc_inference_address=0.0.0.0'
    expect(await refusal(OFF, https, ...ca)).toBeUndefined()
    expect(await refusal(OFF, https, ca[0]!)).toContain('clients need no token')
    expect(await refusal(OFF, REST, ...ca)).toContain('inference_address=http:')
    expect(await refusal(OFF, https, grpc, ...ca)).toContain('reach grpc_inference_address=0.0.0.0, and')
    expect(await refusal(OFF, https, grpc, 'enable_grpc_ssl=true', ...ca)).toBeUndefined()
  })
})

test('the model API is refused with tokens too, on the listeners that serve it', async () => {
  const every = ['inference_address', 'management_address', 'metrics_address']
    .map((key, i) => `${key}=http://0.0.0.0:${8080 + i}`)
    .concat('grpc_inference_address=0.0.0.0', 'grpc_management_address=0.0.0.0')
  expect(await refusal(API, ...every)).toBe(
    'Other machines can reach inference_address=http://0.0.0.0:8080, management_address=http://0.0.0.0:8081, ' +
      'grpc_management_address=0.0.0.0, and clients can register models, which are code (enable_model_api): ' +
      'use 127.0.0.1, disable the model API, or set allow_insecure_exposure=true',
  )
  expect(await refusal(...every)).toBeUndefined()
})

interface Ended {
  status: number | undefined
  out: string
  errors: string[]
}

async function cli(args: string[], env: Record<string, string> = {}): Promise<Ended> {
  const folder = tempDir()
  mkdirSync(join(folder, 'store'))
  const all = [CLI, ...args, '--ncs', '--model-store', join(folder, 'store')]
  const { exitCode, stdout, stderr } = await execa(process.execPath, all, {
    cwd: folder,
    env: { NODE_OPTIONS: '', TEMP: folder, ...env },
    timeout: 15_000,
    reject: false,
  })
  const errors = stderr.split('\n').filter((line) => line.startsWith('torchserve-ts: '))
  return { status: exitCode, out: stdout, errors }
}

function fileWith(...lines: string[]): string {
  const file = join(tempDir(), 'config.properties')
  writeFileSync(file, lines.join('\n'))
  return file
}

const ANY = ['inference_address=http://0.0.0.0:0', 'management_address=http://127.0.0.1:0']
const REFUSED =
  'torchserve-ts: Other machines can reach inference_address=http://0.0.0.0:0, and clients need no token ' +
  '(disable_token_authorization): use 127.0.0.1, require tokens, or set allow_insecure_exposure=true'

test('--start and --check-config refuse it with the same one line', async () => {
  const file = fileWith(...ANY)
  const [start, check] = await Promise.all([
    cli(['--start', '--foreground', '--ts-config', file, '--disable-token-auth']),
    cli(['--check-config', '--ts-config', file, '--disable-token-auth']),
  ])
  expect([start.status, start.errors, start.out]).toEqual([1, [REFUSED], ''])
  expect([check.status, check.errors]).toEqual([1, [REFUSED]])
  expect(check.out).toContain('The configuration cannot be used.')
})

test('with the key it starts', async () => {
  const { ports } = await startServer({
    config: { inference_address: 'http://0.0.0.0:0', allow_insecure_exposure: true },
  })
  expect((await fetch(`http://127.0.0.1:${ports.inference}/ping`)).status).toBe(200)
})

describe('what is shipped starts where it is meant to run', () => {
  test('the configuration of the image', async () => {
    const file = join(REPOSITORY, 'deploy', 'container', 'kserve.properties')
    const without = fileWith(readFileSync(file, 'utf8').replace(`${ALLOWED}\n`, ''))
    const [whole, less] = await Promise.all(
      [file, without].map((each) => cli(['--check-config', '--ts-config', each])),
    )
    expect([whole!.status, whole!.errors]).toEqual([0, []])
    expect([less!.status, less!.errors.length]).toEqual([1, 1])
  })

  test('the server of Seldon Core', async () => {
    const text = readFileSync(join(REPOSITORY, 'deploy', 'seldon', 'server.yaml'), 'utf8')
    const { spec } = parse(text) as {
      spec: { podSpec: { containers: { args: string[]; env: { name: string; value: string }[] }[] } }
    }
    const { args, env } = spec.podSpec.containers[0]!
    const given = Object.fromEntries(env.map(({ name, value }) => [name, value]))
    const seldon = { MLSERVER_MODELS_DIR: tempDir(), MLSERVER_HTTP_PORT: '9000' }
    const [whole, less] = await Promise.all([
      cli(['--check-config', ...args], { ...seldon, ...given }),
      cli(['--check-config', ...args], seldon),
    ])
    expect([whole.status, whole.errors]).toEqual([0, []])
    expect([less.status, less.errors.length]).toEqual([1, 1])
  })
})
