import { readFileSync, writeFileSync } from 'node:fs'
import { request } from 'node:https'
import { join } from 'node:path'
import { Client, credentials, type StatusObject } from '@grpc/grpc-js'
import { beforeAll, expect, test } from '@jest/globals'
import { COUNT, ECHO } from '../support/count.ts'
import { startServer, type Server } from '../support/server.ts'
import { tempDir } from '../support/temp.ts'
import { execFileSync } from '../support/tools.ts'
import { CERT, CERT_FILE, KEY_FILE } from '../support/tls/files.ts'

const folder = tempDir()
const file = (name: string): string => join(folder, name)

interface Identity {
  readonly key: Buffer
  readonly cert: Buffer
}

function openssl(...args: string[]): void {
  execFileSync('openssl', args, { stdio: 'pipe' })
}

/** A certificate that a CA has signed. */
function issue(name: string, ca: string, altName: string): Identity {
  const [key, csr, cert, extra] = [`${name}.key`, `${name}.csr`, `${name}.pem`, `${name}.ext`].map(file)
  const made = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:P-256', '-nodes', '-keyout', key!]
  openssl('req', ...made, '-out', csr!, '-subj', `/CN=${name}`)
  writeFileSync(extra!, `subjectAltName=${altName}\n`)
  const signer = ['-CA', file(`${ca}.pem`), '-CAkey', file(`${ca}.key`), '-CAcreateserial']
  openssl('x509', '-req', '-in', csr!, ...signer, '-days', '30', '-extfile', extra!, '-out', cert!)
  return { key: readFileSync(key!), cert: readFileSync(cert!) }
}

function makeCa(name: string): void {
  const made = [
    '-newkey',
    'ec',
    '-pkeyopt',
    'ec_paramgen_curve:P-256',
    '-nodes',
    '-keyout',
    file(`${name}.key`),
  ]
  openssl('req', '-x509', ...made, '-out', file(`${name}.pem`), '-subj', `/CN=${name}`, '-days', '30')
}

const identities = new Map<string, Identity>()
let server: Server

beforeAll(async () => {
  makeCa('ca')
  makeCa('foreign')
  identities.set('batch', issue('batch', 'ca', 'URI:spiffe://example.org/batch'))
  identities.set('operator', issue('operator', 'ca', 'DNS:operator.example.org'))
  identities.set('stranger', issue('stranger', 'ca', 'DNS:stranger.example.org'))
  identities.set('forger', issue('operator2', 'foreign', 'URI:spiffe://example.org/batch'))
  writeFileSync(
    file('keys.yaml'),
    [
      'client_certificates:',
      '  - {name: batch, subject_alt_name: "URI:spiffe://example.org/batch", scopes: [inference], models: [echo]}',
      '  - {name: operator, common_name: operator, scopes: [management]}',
    ].join('\n'),
  )
  server = await startServer({
    models: [ECHO, COUNT],
    flags: ['--disable-token-auth'],
    config: {
      inference_address: 'https://127.0.0.1:0',
      management_address: 'https://127.0.0.1:0',
      certificate_file: CERT_FILE,
      private_key_file: KEY_FILE,
      enable_grpc_ssl: true,
      api_keys_file: file('keys.yaml'),
      tls_client_ca: file('ca.pem'),
    },
  })
})

function rest(port: number, path: string, who: string | undefined, authorization?: string): Promise<number> {
  const identity = who === undefined ? {} : identities.get(who)
  const headers = authorization === undefined ? {} : { authorization }
  return new Promise((resolve, reject) => {
    const options = { host: '127.0.0.1', port, path, ca: CERT, agent: false, headers, ...identity }
    const sent = request(options, (response) => {
      response.resume().on('end', () => resolve(response.statusCode!))
    })
    sent.on('error', reject).end()
  })
}

function grpc(port: number, rpc: string, who: string | undefined): Promise<number> {
  const { key = null, cert = null } = (who === undefined ? undefined : identities.get(who)) ?? {}
  const client = new Client(`127.0.0.1:${port}`, credentials.createSsl(CERT, key, cert), {
    'grpc.use_local_subchannel_pool': 1,
  })
  const asItIs = (bytes: Buffer): Buffer => bytes
  return new Promise((resolve) => {
    const call = client.makeBidiStreamRequest(rpc, asItIs, asItIs, { deadline: Date.now() + 15_000 })
    call.on('error', () => undefined).on('data', () => undefined)
    call.on('status', ({ code }: StatusObject) => {
      client.close()
      resolve(code)
    })
    call.write(Buffer.alloc(0))
    call.end()
  })
}

const PING = '/org.pytorch.serve.grpc.inference.InferenceAPIsService/Ping'
const LIST = '/org.pytorch.serve.grpc.management.ManagementAPIsService/ListModels'

test('REST: a certificate has the rights of its entry, and only if the CA has signed it', async () => {
  const { inference, management } = server.ports
  const answers = async (who: string | undefined): Promise<number[]> => [
    await rest(inference, '/ping', who),
    await rest(inference, '/v2/models/echo', who),
    await rest(inference, '/v2/models/count', who),
    await rest(management, '/models/count', who),
  ]
  expect(await answers('batch')).toEqual([200, 200, 404, 400])
  expect(await answers('operator')).toEqual([400, 401, 401, 200])
  for (const who of ['stranger', 'forger', undefined])
    expect(await answers(who)).toEqual([400, 401, 401, 400])
})

test('a client with a wrong token is not let in by its certificate', async () => {
  expect(await rest(server.ports.inference, '/ping', 'batch', 'Bearer wrong')).toBe(400)
  expect(await rest(server.ports.inference, '/ping', 'batch')).toBe(200)
})

test('gRPC: the same', async () => {
  const { grpcInference, grpcManagement } = server.ports
  const answers = async (who: string | undefined): Promise<number[]> => [
    await grpc(grpcInference, PING, who),
    await grpc(grpcManagement, LIST, who),
  ]
  expect(await answers('batch')).toEqual([0, 7])
  expect(await answers('operator')).toEqual([7, 0])
  for (const who of ['stranger', 'forger', undefined]) expect(await answers(who)).toEqual([7, 7])
})
