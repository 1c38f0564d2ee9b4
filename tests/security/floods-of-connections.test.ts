import { once } from 'node:events'
import { readdirSync, readFileSync } from 'node:fs'
import { connect, type Socket } from 'node:net'
import { afterEach, describe, expect, test } from '@jest/globals'
import { connectionPlan } from '../../frontend/edge/admission/admission.ts'
import { inferenceClient } from '../support/grpc-clients.ts'
import { rawRequest } from '../support/raw-http.ts'
import { startServer, type Server } from '../support/server.ts'

const DESCRIPTORS = 512
const sockets: Socket[] = []

afterEach(() => {
  for (const socket of sockets.splice(0)) socket.destroy()
})

/** Opens connections from `addresses` addresses, and resolves when the server has refused or kept each. */
async function flood(port: number, count: number, addresses: number): Promise<void> {
  for (let k = 0; k < count; k += 1) {
    const socket = connect({ port, host: '127.0.0.1', localAddress: `127.0.0.${2 + (k % addresses)}` })
    sockets.push(socket.on('error', () => undefined).resume())
  }
  const waiting = sockets.filter((socket) => socket.connecting)
  await Promise.all(
    waiting.map((socket) => new Promise((resolve) => socket.once('connect', resolve).once('close', resolve))),
  )
}

function open(): number {
  return sockets.filter((socket) => socket.readyState !== 'closed').length
}

function descriptorsOf({ pid }: Server): number {
  return readdirSync(`/proc/${pid}/fd`).length
}

/** Seconds of processor time that the server has used. */
function cpuSeconds({ pid }: Server): number {
  const [user, system] = readFileSync(`/proc/${pid}/stat`, 'latin1').split(') ')[1]!.split(' ').slice(11, 13)
  return (Number(user) + Number(system)) / 100
}

async function othersAnswer({ ports }: Server): Promise<void> {
  for (const [port, path] of [
    [ports.management, '/models'],
    [ports.metrics, '/metrics'],
  ] as const) {
    expect([path, (await rawRequest(port, path, { method: 'GET' })).status]).toEqual([path, 200])
  }
  const grpc = connect(ports.grpcManagement, '127.0.0.1')
  grpc.write('PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0')
  const [settings] = (await once(grpc, 'data')) as [Buffer]
  expect(settings[3]).toBe(4)
  grpc.destroy()
}

async function isBack(server: Server): Promise<void> {
  for (const socket of sockets.splice(0)) socket.destroy()
  const ping = () => rawRequest(server.ports.inference, '/ping', { method: 'GET' })
  await server.until(ping, ({ status }) => status === 200)
  const grpc = inferenceClient(server.ports.grpcInference)
  const health = await new Promise((resolve) => {
    grpc.Ping({}, (error: unknown, answer: unknown) => resolve(error ?? answer))
  })
  grpc.close()
  expect(health).toMatchObject({ health: expect.any(String) as unknown as string })
}

test.each(['inference', 'grpcInference'] as const)(
  'a flood of %s from many addresses leaves management and metrics alone, and ends with its end',
  async (listener) => {
    const server = await startServer({ descriptors: DESCRIPTORS })
    await flood(server.ports[listener], 800, 8)
    await server.until(
      () => Promise.resolve(open()),
      (count) => count <= 288,
    )
    expect(descriptorsOf(server)).toBeLessThan(DESCRIPTORS - 128)
    await othersAnswer(server)
    if (listener === 'inference') {
      const { status, headers, body } = await rawRequest(server.ports.inference, '/ping', { method: 'GET' })
      expect([status, headers['connection']]).toEqual([503, 'close'])
      expect(JSON.parse(body)).toMatchObject({ code: 503, type: 'ServiceUnavailableException' })
    }
    expect(await server.lines('Connections for inference are refused')).toHaveLength(1)
    await isBack(server)
  },
)

test('a flood of management takes only its own connections, and one address has at most half', async () => {
  const server = await startServer({ descriptors: DESCRIPTORS })
  await flood(server.ports.management, 200, 1)
  await server.until(
    () => Promise.resolve(open()),
    (count) => count <= 16,
  )
  await othersAnswer(server)
  await flood(server.ports.inference, 400, 1)
  await server.until(
    () => Promise.resolve(open()),
    (count) => count <= 16 + 144,
  )
  // Somebody else still has the other half.
  expect((await rawRequest(server.ports.inference, '/ping', { method: 'GET' })).status).toBe(200)
})

test('without descriptors the server neither ends nor spins, and comes back by itself', async () => {
  const server = await startServer({ descriptors: 256, config: { max_connections: 100_000 } })
  await flood(server.ports.inference, 600, 8)
  await server.until(
    () => Promise.resolve(descriptorsOf(server)),
    (count) => count >= 250,
  )
  const before = cpuSeconds(server)
  await new Promise((resolve) => setTimeout(resolve, 1000))
  expect(cpuSeconds(server) - before).toBeLessThan(0.5)
  await isBack(server)
})

describe('the limits follow the descriptors of the process', () => {
  test.each([
    [256, 144, 16],
    [512, 288, 32],
    [1024, 576, 64],
    [65_536, 2048, 256],
    [Infinity, 2048, 256],
  ])('%d', (descriptors, inference, reserved) => {
    expect(connectionPlan({ maxConnections: undefined }, descriptors)).toEqual({ inference, reserved })
  })

  test('or the key', () => {
    expect(connectionPlan({ maxConnections: 1000 }, 512)).toEqual({ inference: 1000, reserved: 32 })
  })
})
