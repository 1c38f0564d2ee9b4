import { request } from 'node:https'
import { credentials } from '@grpc/grpc-js'
import { beforeAll, describe, expect, test } from '@jest/globals'
import { COUNT, ECHO } from '../support/count.ts'
import { call, inferenceClient, managementClient, readAll } from '../support/grpc-clients.ts'
import { rawRequest } from '../support/raw-http.ts'
import { startServer, type Server } from '../support/server.ts'
import { CERT, CERT_FILE, KEY_FILE } from '../support/tls/files.ts'

let server: Server

beforeAll(async () => {
  server = await startServer({
    models: [ECHO, COUNT],
    config: {
      inference_address: 'https://127.0.0.1:0',
      management_address: 'https://127.0.0.1:0',
      metrics_address: 'https://127.0.0.1:0',
      certificate_file: CERT_FILE,
      private_key_file: KEY_FILE,
      enable_grpc_ssl: true,
    },
  })
})

function ask(
  port: number,
  path: string,
  method = 'GET',
  body = '',
): Promise<{ status: number; text: string }> {
  return new Promise((resolve, reject) => {
    const sent = request({ host: 'localhost', port, path, method, ca: CERT, agent: false }, (response) => {
      let text = ''
      response.on('data', (chunk: Buffer) => (text += chunk.toString()))
      response.on('end', () => resolve({ status: response.statusCode!, text }))
    })
    sent.on('error', reject).end(body)
  })
}

describe('a server with TLS on every listener', () => {
  test('answers on each REST listener', async () => {
    const { inference, management, metrics } = server.ports
    expect(await ask(inference, '/predictions/echo', 'POST', 'hello')).toEqual({ status: 200, text: 'hello' })
    expect((await ask(management, '/models/echo')).status).toBe(200)
    expect((await ask(metrics, '/metrics')).text).toContain('# HELP')
  })

  test('tells plain HTTP clients what is wrong', async () => {
    for (const port of [server.ports.inference, server.ports.management, server.ports.metrics]) {
      const { status, body } = await rawRequest(port, '/ping', { method: 'GET' })
      expect([status, JSON.parse(body)]).toEqual([
        403,
        { status: 'This TorchServe instance only accepts HTTPS requests' },
      ])
    }
  })

  test('serves unary and streaming gRPC to clients that trust it', async () => {
    const channel = credentials.createSsl(CERT)
    const inference = inferenceClient(server.ports.grpcInference, channel)
    const management = managementClient(server.ports.grpcManagement, channel)
    const { health } = await call(inference, inference.Ping, {})
    expect(JSON.parse(health)).toEqual({ status: 'Healthy' })
    const input = { data: Buffer.from(JSON.stringify({ id: 'tls', n: 3, stream: true })) }
    const { messages, error } = await readAll(inference.StreamPredictions({ model_name: 'count', input }))
    expect([messages.length > 2, error]).toEqual([true, undefined])
    expect((await call(management, management.ListModels, { limit: 10 })).msg).toContain('echo')
    inference.close()
    management.close()
  })

  test('does not serve plain gRPC', async () => {
    const plain = inferenceClient(server.ports.grpcInference)
    await expect(call(plain, plain.Ping, {}, { deadline: Date.now() + 60_000 })).rejects.toMatchObject({
      code: 14,
    })
    plain.close()
  })
})

test('a key that does not fit its certificate is one line at the start', async () => {
  const config = {
    inference_address: 'https://127.0.0.1:0',
    certificate_file: KEY_FILE,
    private_key_file: KEY_FILE,
  }
  await expect(startServer({ config })).rejects.toThrow(
    /torchserve-ts: certificate_file .* cannot be used for TLS/,
  )
})
