import { connect } from 'node:net'
import { connect as connectTls } from 'node:tls'
import { credentials } from '@grpc/grpc-js'
import { beforeAll, expect, test } from '@jest/globals'
import { call, inferenceClient } from '../support/grpc-clients.ts'
import { startServer, type Server } from '../support/server.ts'
import { CERT, CERT_FILE, KEY_FILE } from '../support/tls/files.ts'

/** Connections per second. */
const RATE = 20
const COUNT = 70

const servers = new Map<'plain' | 'TLS', Server>()

beforeAll(async () => {
  const config = { max_new_connections_per_address: RATE }
  const addresses = { inference_address: 'https://127.0.0.1:0', management_address: 'https://127.0.0.1:0' }
  const tls = { certificate_file: CERT_FILE, private_key_file: KEY_FILE, enable_grpc_ssl: true }
  servers.set('plain', await startServer({ config }))
  servers.set('TLS', await startServer({ config: { ...config, ...addresses, ...tls } }))
})

/** The request leaves with the connection, so it waits in the server, and must not get lost there. */
function restPing(port: number, tls: boolean): Promise<string> {
  return new Promise((resolve, reject) => {
    const at = { port, host: '127.0.0.1' }
    const socket = tls ? connectTls({ ...at, ca: CERT, servername: 'localhost' }) : connect(at)
    let text = ''
    socket.on('data', (chunk: Buffer) => (text += chunk.toString()))
    socket.on('error', reject).on('close', () => resolve(text.slice(0, text.indexOf('\r\n'))))
    socket.write('GET /ping HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n')
  })
}

async function grpcPing(port: number, tls: boolean): Promise<string> {
  const client = inferenceClient(port, tls ? credentials.createSsl(CERT) : undefined)
  const { health } = await call(client, client.Ping, {}, { deadline: Date.now() + 60_000 })
  client.close()
  return (JSON.parse(health) as { status: string }).status
}

test.each([
  ['inference', 'plain', restPing, 'HTTP/1.1 200 OK'],
  ['inference', 'TLS', restPing, 'HTTP/1.1 200 OK'],
  ['grpcInference', 'plain', grpcPing, 'Healthy'],
  ['grpcInference', 'TLS', grpcPing, 'Healthy'],
] as const)(
  '%s, %s: what one address opens too fast is answered later, and all of it',
  async (port, kind, ping, good) => {
    const server = servers.get(kind)!
    const from = performance.now()
    const answers = await Promise.all(
      Array.from({ length: COUNT }, async () => {
        const said = await ping(server.ports[port], kind === 'TLS')
        return { said, ms: performance.now() - from }
      }),
    )
    expect(answers.map(({ said }) => said)).toEqual(new Array(COUNT).fill(good))
    const times = answers.map(({ ms }) => ms).sort((a, b) => a - b)
    const tooEarly = times.filter((ms, k) => ms < ((k + 1 - RATE) * 1_000) / RATE - 5)
    expect(tooEarly).toEqual([])
    const warned = server.output.filter((line) => line.includes('max_new_connections_per_address'))
    expect(warned.length).toBe(1)
  },
)

test('a server with connections that wait ends as fast as without', async () => {
  const server = await startServer({ config: { max_new_connections_per_address: 1 } })
  const socket = connect({ port: server.ports.inference, host: '127.0.0.1' })
  const waiting = Array.from({ length: 300 }, () => connect(server.ports.inference, '127.0.0.1'))
  const gone = Promise.all(
    [socket, ...waiting].map(
      (each) => new Promise((resolve) => each.on('error', () => undefined).on('close', resolve)),
    ),
  )
  await server.until(
    () => Promise.resolve(server.output.filter((line) => line.includes('max_new_connections_per_address'))),
    ({ length }) => length === 1,
  )
  const from = performance.now()
  await server.stop('SIGTERM')
  await gone
  // At one per second they would take five minutes.
  expect(performance.now() - from).toBeLessThan(60_000)
})
