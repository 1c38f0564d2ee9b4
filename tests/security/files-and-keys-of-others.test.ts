import {
  chmodSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { join } from 'node:path'
import { connect } from 'node:tls'
import { once } from 'node:events'
import { credentials } from '@grpc/grpc-js'
import { expect, test } from '@jest/globals'
import { claimPidFile, removePidFile, findRunning, pidFilePath } from '../../frontend/cli/pid-file.ts'
import { LogFile } from '../../frontend/observe/logs/log-file.ts'
import { call, inferenceClient } from '../support/grpc-clients.ts'
import { startServer } from '../support/server.ts'
import { tempDir } from '../support/temp.ts'
import { CERT, KEY, RSA_CERT_FILE, RSA_KEY_FILE } from '../support/tls/files.ts'

const mode = (path: string): number => statSync(path).mode & 0o777

test('the pid file writes through no planted link, and reads none', () => {
  const folder = tempDir()
  const victim = join(tempDir(), 'victim')
  writeFileSync(victim, 'mine')
  const path = pidFilePath(folder)
  symlinkSync(victim, path)
  symlinkSync(victim, `${path}.${process.pid}`)
  expect(claimPidFile(path, { pid: process.pid, stopMs: 1000, folder: '' })).toBe(true)
  expect(readFileSync(victim, 'utf8')).toBe('mine')
  expect(readFileSync(path, 'utf8')).toMatch(`${process.pid}\n1000\n`)
  expect(mode(path)).toBe(0o600)
  removePidFile(path, process.pid)
  expect(readdirSync(folder)).toEqual([`.model_server.pid.${process.pid}`])
})

test('a link to a pid file names no server', () => {
  const folder = tempDir()
  const other = join(folder, 'other')
  writeFileSync(other, '1\n1000\n')
  symlinkSync(other, pidFilePath(folder))
  expect(findRunning(pidFilePath(folder))).toBeUndefined()
  expect(readdirSync(folder)).toEqual(['other'])
})

test('logs are for owner and group, old ones too', async () => {
  const folder = tempDir()
  const path = join(folder, 'ts_log.log')
  writeFileSync(path, 'old\n')
  chmodSync(path, 0o644)
  const log = new LogFile(path, { warn: () => undefined })
  log.write('new\n')
  await log.end()
  expect([mode(path), readFileSync(path, 'utf8')]).toEqual([0o640, 'old\nnew\n'])
})

test('what a server writes is closed to other users, tokens have 128 bits, a readable private key is warned of', async () => {
  const folder = tempDir()
  mkdirSync(join(folder, 'tls'))
  const key = join(folder, 'tls', 'key.pem')
  writeFileSync(key, KEY)
  chmodSync(key, 0o644)
  writeFileSync(join(folder, 'tls', 'cert.pem'), CERT)
  const server = await startServer({
    folder,
    snapshots: true,
    flags: [],
    config: {
      inference_address: 'https://127.0.0.1:0',
      management_address: 'https://127.0.0.1:0',
      enable_grpc_ssl: true,
      private_key_file: key,
      certificate_file: join(folder, 'tls', 'cert.pem'),
    },
  })
  const keyFile = join(folder, 'key_file.json')
  const logs = join(folder, 'logs')
  const files = [
    keyFile,
    ...readdirSync(logs)
      .filter((name) => name.endsWith('.log'))
      .map((name) => join(logs, name)),
  ]
  expect(files.length).toBeGreaterThan(2)
  expect(files.filter((path) => (mode(path) & 0o007) !== 0)).toEqual([])
  const { management, API } = JSON.parse(readFileSync(keyFile, 'utf8')) as Record<string, { key: string }>
  expect([management!.key.length, API!.key.length]).toEqual([22, 22])
  const warnings = server.output.filter((line) => line.includes('can be read by every user'))
  expect(warnings).toEqual([expect.stringContaining(`private_key_file ${key} can be read by every user`)])
  for (const port of [server.ports.inference, server.ports.grpcInference]) {
    const [weak, sound] = [
      await suiteOf(port, 'AES128-SHA:AES256-GCM-SHA384:ECDHE-RSA-AES128-SHA'),
      await suiteOf(port),
    ]
    expect(weak).toMatch(/alert|ECONNRESET/)
    expect(sound).toMatch(/^ECDHE-(RSA|ECDSA)-(AES|CHACHA)/)
  }
  await server.stop()
})

test('with an RSA key, REST and gRPC serve over suites with forward secrecy alone', async () => {
  const server = await startServer({
    config: {
      inference_address: 'https://127.0.0.1:0',
      enable_grpc_ssl: true,
      private_key_file: RSA_KEY_FILE,
      certificate_file: RSA_CERT_FILE,
    },
  })
  const { inference, grpcInference } = server.ports
  for (const port of [inference, grpcInference]) {
    for (const weak of ['AES256-GCM-SHA384', 'AES128-SHA', 'ECDHE-RSA-AES128-SHA256', 'DHE-RSA-AES128-SHA'])
      expect([port, weak, await suiteOf(port, `${weak}:@SECLEVEL=0`)]).toEqual([
        port,
        weak,
        expect.stringMatching(/alert|ECONNRESET/),
      ])
    expect(await suiteOf(port)).toMatch(/^ECDHE-RSA-(AES\d+-GCM|CHACHA20)/)
  }
  const trusting = inferenceClient(grpcInference, credentials.createSsl(readFileSync(RSA_CERT_FILE)))
  const doubting = inferenceClient(grpcInference, credentials.createSsl(CERT))
  try {
    expect(JSON.parse((await call(trusting, trusting.Ping, {})).health)).toEqual({ status: 'Healthy' })
    const deadline = { deadline: Date.now() + 60_000 }
    await expect(call(doubting, doubting.Ping, {}, deadline)).rejects.toMatchObject({ code: 14 })
  } finally {
    trusting.close()
    doubting.close()
  }
  await server.stop()
})

/** What a client of TLS 1.2 that offers these suites gets: a suite, or the error. */
async function suiteOf(port: number, ciphers?: string): Promise<string> {
  const options = {
    port,
    host: '127.0.0.1',
    maxVersion: 'TLSv1.2',
    rejectUnauthorized: false,
    ciphers,
  } as const
  const socket = connect({ ...options, ALPNProtocols: ['h2', 'http/1.1'] })
  try {
    await once(socket, 'secureConnect')
    return socket.getCipher().name
  } catch (error) {
    return String(error)
  } finally {
    socket.destroy()
  }
}
