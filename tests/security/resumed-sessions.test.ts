import { connect, type SecureVersion, type TLSSocket } from 'node:tls'
import { expect, test } from '@jest/globals'
import { ECHO } from '../support/count.ts'
import { startServer, type Server } from '../support/server.ts'
import { CERT, CERT_FILE, KEY, KEY_FILE } from '../support/tls/files.ts'

const https = 'https://127.0.0.1:0'

function serverThat(tlsClientAuth: string): Promise<Server> {
  return startServer({
    models: [ECHO],
    flags: ['--disable-token-auth'],
    config: {
      ...{ inference_address: https, management_address: https, metrics_address: https },
      ...{ certificate_file: CERT_FILE, private_key_file: KEY_FILE, enable_grpc_ssl: true },
      ...{ tls_client_ca: CERT_FILE, tls_client_auth: tlsClientAuth },
    },
  })
}

interface Visit {
  readonly session: Buffer | undefined
  readonly reused: boolean
}

/** Shows the certificate, waits until the listener has answered, and keeps the session for the next visit. */
function visit(port: number, protocol: string, version: SecureVersion, before?: Buffer): Promise<Visit> {
  return new Promise((resolve, reject) => {
    let session: Buffer | undefined
    const versions = { minVersion: version, maxVersion: version }
    const socket: TLSSocket = connect({
      ...{ port, host: '127.0.0.1', ca: CERT, key: KEY, cert: CERT, session: before, ...versions },
      ALPNProtocols: [protocol],
    })
    socket.on('session', (given) => (session = given)).on('error', reject)
    // HTTP/2 begins with settings of the server.
    if (protocol !== 'h2') socket.write('GET /ping HTTP/1.1\r\nHost: localhost\r\n\r\n')
    socket.once('data', () => {
      resolve({ session, reused: socket.isSessionReused() })
      socket.destroy()
    })
  })
}

/** Whether each listener resumes a session. */
async function resumed({ ports }: Server): Promise<boolean[]> {
  const found: boolean[] = []
  for (const version of ['TLSv1.2', 'TLSv1.3'] as const) {
    for (const port of [ports.inference, ports.management, ports.metrics]) {
      const { session } = await visit(port, 'http/1.1', version)
      found.push((await visit(port, 'http/1.1', version, session)).reused)
    }
    for (const port of [ports.grpcInference, ports.grpcManagement]) {
      const { session } = await visit(port, 'h2', version)
      found.push((await visit(port, 'h2', version, session)).reused)
    }
  }
  return found
}

test('where a certificate is required, no session is resumed without it, on any listener', async () => {
  expect(await resumed(await serverThat('require'))).toEqual(Array<boolean>(10).fill(false))
})

test('elsewhere sessions are resumed', async () => {
  expect(await resumed(await serverThat('request'))).toEqual(Array<boolean>(10).fill(true))
})
