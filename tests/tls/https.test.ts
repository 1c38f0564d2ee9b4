import { once } from 'node:events'
import { connect, createSecureContext } from 'node:tls'
import { describe, expect, test } from '@jest/globals'
import { ServeError } from '../../common/errors.ts'
import { createInferenceApp, createManagementApp } from '../../frontend/dialects/rest-apps.ts'
import { startRig, TLS, Wire, type Rig } from '../support/http/rig.ts'
import { CERT } from '../support/tls/files.ts'

const HEAD = { status: 200, headers: {} }
const item = (text: string, more: boolean) => ({ ...HEAD, body: Buffer.from(text), more })

function wireTo(rig: Rig): Wire {
  return new Wire(rig.listener.port, { tls: true })
}

describe('a REST listener with an https address', () => {
  test('answers over TLS, and keeps the connection for the next request', async () => {
    const rig = await startRig(createInferenceApp, { address: TLS })
    expect(rig.listener.address).toBe(`https://127.0.0.1:${rig.listener.port}`)
    const wire = wireTo(rig)
    await wire.request('GET', '/ping').until('Healthy')
    wire.received = ''
    expect(await wire.request('GET', '/ping').until('Healthy')).toMatch(/^HTTP\/1\.1 200 /)
  })

  test.each(['TLSv1.2', 'TLSv1.3'] as const)('speaks %s', async (version) => {
    const rig = await startRig(createManagementApp, { address: TLS })
    const limits = { minVersion: version, maxVersion: version }
    const socket = connect({ port: rig.listener.port, host: '127.0.0.1', ca: CERT, ...limits })
    await once(socket, 'secureConnect')
    expect(socket.getProtocol()).toBe(version)
    socket.destroy()
  })

  test('does not speak TLS 1.1', async () => {
    const rig = await startRig(createManagementApp, { address: TLS })
    const secureContext = createSecureContext({
      ca: CERT,
      minVersion: 'TLSv1.1',
      maxVersion: 'TLSv1.1',
      ciphers: 'DEFAULT@SECLEVEL=0',
    })
    const socket = connect({ port: rig.listener.port, host: '127.0.0.1', secureContext })
    const [error] = (await once(socket, 'error').catch((thrown: unknown) => [thrown])) as [Error]
    expect(error.message).toMatch(/alert|version/i)
  })

  test('streams item by item, and breaks a failed stream so that it cannot be taken for a whole', async () => {
    const rig = await startRig(createInferenceApp, { address: TLS })
    const wire = wireTo(rig).request('POST', '/predictions/m', 'x')
    const job = await rig.models.nextJob()
    rig.models.start(job)
    job.respond(item('one', true))
    await wire.until('3\r\none\r\n')
    job.respond(item('two', true))
    await wire.until('3\r\ntwo\r\n')
    job.abort(new ServeError('WORKER_LOST', 'Worker died.'), 'failed')
    expect(await wire.rest()).not.toContain('0\r\n\r\n')
  })

  test('hears that a client has left', async () => {
    const rig = await startRig(createInferenceApp, { address: TLS })
    const wire = wireTo(rig).request('POST', '/predictions/m', 'x')
    const job = await rig.models.nextJob()
    rig.models.start(job)
    wire.socket.destroy()
    await rig.models.until(() => rig.models.abandoned.length === 1)
    expect(rig.models.abandoned[0]!.reason).toBe('client left')
  })

  test('lets a running stream finish when it closes', async () => {
    const rig = await startRig(createInferenceApp, { address: TLS })
    const wire = wireTo(rig).request('POST', '/predictions/m', 'x')
    const job = await rig.models.nextJob()
    rig.models.start(job)
    job.respond(item('one', true))
    await wire.until('one')
    const closed = rig.listener.close()
    job.respond(item('two', false))
    expect(await wire.rest()).toContain('3\r\ntwo\r\n0\r\n\r\n')
    await closed
  })
})

describe('what is no TLS', () => {
  const REFUSAL = '{\n  "status": "This TorchServe instance only accepts HTTPS requests"\n}\n'

  test('plain HTTP gets 403 and the reason', async () => {
    const rig = await startRig(createManagementApp, { address: TLS })
    const answer = await new Wire(rig.listener.port).request('GET', '/models').rest()
    expect(answer).toMatch(/^HTTP\/1\.1 403 Forbidden\r\n/)
    expect(answer).toContain('\r\ncontent-type: application/json\r\n')
    expect(answer.slice(answer.indexOf('\r\n\r\n') + 4)).toBe(REFUSAL)
    expect(rig.statuses).toEqual([403])
  })

  test('a plain upload gets to see the answer before its connection is closed', async () => {
    const rig = await startRig(createManagementApp, { address: TLS })
    const wire = new Wire(rig.listener.port).request('POST', '/models', 'x'.repeat(1_000_000))
    await wire.until(REFUSAL)
    wire.socket.end()
    await wire.closed
  })

  test('a handshake that fails, and a client that says nothing, harm nobody', async () => {
    const rig = await startRig(createInferenceApp, { address: TLS })
    const broken = new Wire(rig.listener.port).send(Buffer.from([0x16, 3, 1, 0xff, 0xff, 9, 9]))
    const silent = new Wire(rig.listener.port)
    await broken.closed
    await wireTo(rig).request('GET', '/ping').until('Healthy')
    silent.socket.destroy()
  })

  test('a connection that said nothing does not hold up the end', async () => {
    const rig = await startRig(createInferenceApp, { address: TLS })
    const silent = new Wire(rig.listener.port)
    await once(silent.socket, 'connect')
    await wireTo(rig).request('GET', '/ping').until('Healthy')
    await rig.listener.close()
    await silent.closed
  })
})
