import { describe, expect, test } from '@jest/globals'
import { existsSync } from 'node:fs'
import { request } from 'node:http'
import { connect, createServer, type AddressInfo } from 'node:net'
import { join } from 'node:path'
import { once } from 'node:events'
import { ServeError } from '../../../common/errors.ts'
import { createInferenceApp } from '../../../frontend/dialects/rest-apps.ts'
import { listen } from '../../../frontend/edge/http/server.ts'
import { tempDir } from '../../support/temp.ts'
import { bytes, startRig, TCP, Wire } from '../../support/http/rig.ts'
import { spawnSync } from '../../support/tools.ts'

function unixGet(path: string, url: string): Promise<number | undefined> {
  return new Promise((resolve, reject) => {
    request({ socketPath: path, path: url }, (res) => resolve(res.resume().statusCode))
      .on('error', reject)
      .end()
  })
}

describe('a listener', () => {
  test('says in one line that its port is taken', async () => {
    const other = createServer().listen(0, '127.0.0.1')
    await once(other, 'listening')
    const { port } = other.address() as AddressInfo
    const rig = await startRig(createInferenceApp)
    const options = { setting: 'inference_address' }
    await expect(listen('inference', { ...TCP, port }, rig.app, options)).rejects.toMatchObject({
      code: 'CONFIG',
      message: `The inference listener cannot use http://127.0.0.1:${port} (inference_address): the address is already in use`,
    })
    other.close()
  })

  test('says that the machine does not have its address', async () => {
    const rig = await startRig(createInferenceApp)
    const address = { ...TCP, host: '192.0.2.1' }
    await expect(listen('metrics', address, rig.app)).rejects.toMatchObject({
      code: 'CONFIG',
      message: 'The metrics listener cannot use http://192.0.2.1:0: this machine does not have that address',
    })
  })

  test('answers on a Unix socket, takes over a stale file, and leaves a live one alone', async () => {
    const path = join(tempDir(), 'rest.sock')
    const crash = `require('net').createServer().listen(${JSON.stringify(path)}, () => process.kill(process.pid, 'SIGKILL'))`
    spawnSync(process.execPath, ['-e', crash])
    expect(existsSync(path)).toBe(true)
    const rig = await startRig(createInferenceApp, { address: { kind: 'unix', path } })
    expect(rig.listener.address).toBe(`unix:${path}`)
    expect(await unixGet(path, '/ping')).toBe(200)
    await expect(listen('inference', { kind: 'unix', path }, rig.app)).rejects.toMatchObject({
      code: 'CONFIG',
    })
    expect(await unixGet(path, '/ping')).toBe(200)
    rig.listener.destroyAll()
    await rig.listener.close()
    expect(existsSync(path)).toBe(false)
  })

  test('ends a stream without framing on a Unix socket, which cannot be reset, and goes on', async () => {
    const path = join(tempDir(), 'rest.sock')
    const rig = await startRig(createInferenceApp, { address: { kind: 'unix', path } })
    const socket = connect(path)
    socket.write('POST /predictions/m HTTP/1.0\r\n\r\n')
    const job = await rig.models.nextJob()
    rig.models.start(job)
    job.respond({ status: 200, headers: {}, body: bytes('one'), more: true })
    await once(socket, 'data')
    job.abort(new ServeError('WORKER_LOST', 'Worker died.'), 'failed')
    await once(socket, 'close')
    expect(await unixGet(path, '/ping')).toBe(200)
  })

  test.each([
    ['garbage', 'garbage\r\n\r\n'],
    ['a head that is too long', `GET / HTTP/1.1\r\nHost: a\r\nX: ${'x'.repeat(13_000)}\r\n\r\n`],
    ['a length that is no number', 'POST /ping HTTP/1.1\r\nHost: a\r\nContent-Length: x\r\n\r\n'],
  ])('answers %s with 400 and closes', async (_what, text) => {
    const rig = await startRig(createInferenceApp)
    const received = await new Wire(rig.listener.port).send(text).rest()
    expect(received).toMatch(/^HTTP\/1.1 400 Bad Request\r\n/)
    expect(received).toMatch(/connection: close/)
    expect(received).toMatch(/"type": "BadRequestException",\n {2}"message": "Invalid HTTP message."\n}\n$/)
    expect(rig.statuses).toEqual([400])
  })

  test('breaks off a stream whose client sends garbage, rather than writing into it', async () => {
    const rig = await startRig(createInferenceApp)
    const wire = new Wire(rig.listener.port).request('GET', '/predictions/m')
    const job = await rig.models.nextJob()
    rig.models.start(job)
    job.respond({ status: 200, headers: {}, body: bytes('item'), more: true })
    await wire.until('4\r\nitem\r\n')
    wire.send('garbage\r\n\r\n')
    expect(await wire.rest()).toMatch(/4\r\nitem\r\n$/)
    await rig.models.until(() => rig.models.abandoned.length === 1)
  })

  test('closes with idle connections and ones that never spoke, and takes no new ones', async () => {
    const rig = await startRig(createInferenceApp)
    const idle = new Wire(rig.listener.port).request('GET', '/ping')
    await idle.until('Healthy')
    const silent = new Wire(rig.listener.port)
    await once(silent.socket, 'connect')
    const probe = new Wire(rig.listener.port).request('GET', '/ping')
    await probe.until('Healthy')
    await rig.listener.close()
    await Promise.all([idle.closed, silent.closed, probe.closed])
    await expect(fetch(`${rig.listener.address}/ping`)).rejects.toThrow()
  })

  test('destroyAll alone frees the address', async () => {
    const rig = await startRig(createInferenceApp)
    rig.listener.destroyAll()
    const again = await listen('inference', { ...TCP, port: rig.listener.port }, rig.app)
    again.destroyAll()
  })

  test('destroyAll ends streams that do not finish', async () => {
    const rig = await startRig(createInferenceApp)
    const wire = new Wire(rig.listener.port).request('GET', '/predictions/m')
    const job = await rig.models.nextJob()
    rig.models.start(job)
    job.respond({ status: 200, headers: {}, body: bytes('item'), more: true })
    await wire.until('item')
    const closed = rig.listener.close()
    rig.listener.destroyAll()
    await closed
    expect(await wire.rest()).not.toContain('0\r\n\r\n')
    expect(job.outcome).toBe('cancelled')
  })
})
