import { existsSync, readdirSync, readFileSync, renameSync } from 'node:fs'
import { connect } from 'node:net'
import { join } from 'node:path'
import { once } from 'node:events'
import { describe, expect, test } from '@jest/globals'
import { COUNT, countBody, countInput, ECHO } from '../support/count.ts'
import { call, inferenceClient, managementClient, readAll } from '../support/grpc-clients.ts'
import { RawRequest, rawRequest } from '../support/raw-http.ts'
import { REPOSITORY, startServer, type Server } from '../support/server.ts'

const METER = `meter=${join(REPOSITORY, 'tests', 'support', 'handlers', 'meter')}`
const TIME = String.raw`\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d,\d{3}`
const PEER = String.raw`/127\.0\.0\.1:\d+`

/** The lines of a log file so far. */
function lines(server: Server, name: string, folder = 'logs'): string[] {
  return readFileSync(join(server.folder, folder, `${name}.log`), 'utf8')
    .split('\n')
    .slice(0, -1)
}

/** Waits for a line; all lines so far. */
async function withLine(server: Server, name: string, pattern: RegExp, folder = 'logs'): Promise<string[]> {
  return server.until(
    () => Promise.resolve(lines(server, name, folder)),
    (all) => all.some((line) => pattern.test(line)),
  )
}

const access = (request: string, code: number): RegExp =>
  new RegExp(`^${TIME} - ${PEER} "${request.replace(/[/?]/g, '\\$&')}" ${code} \\d+$`)

test('access_log.log has one line for every answer of REST and of gRPC', async () => {
  const server = await startServer({ models: [ECHO, COUNT], config: { max_request_size: 1000 } })
  await server.ready('echo')
  await server.ready('count')
  const { inference } = server.ports
  await rawRequest(inference, '/predictions/echo?a=b', { body: 'x' })
  await rawRequest(inference, '/predictions/nobody', { body: 'x' })
  await rawRequest(inference, '/ping', { method: 'GET' })
  const sentAt = performance.now()
  const items = new RawRequest(inference, '/predictions/count', countBody({ id: 'a', n: 3, delay: 1000 }))
  await items.gotChunks(1)
  const firstMs = performance.now() - sentAt
  await items.done
  await rawRequest(server.ports.metrics, '/metrics', { method: 'GET' })
  await rawRequest(inference, '/predictions/echo', { body: 'x'.repeat(2000) })
  connect(inference, '127.0.0.1')
    .on('error', () => undefined)
    .resume()
    .end('garbage\r\n\r\n')

  const grpc = inferenceClient(server.ports.grpcInference)
  await readAll(grpc.StreamPredictions(countInput({ id: 'b', n: 2, stream: true })))
  await call(grpc, grpc.Predictions, { model_name: 'nobody', input: {} }).catch(() => undefined)
  const cancelled = grpc.StreamPredictions(countInput({ id: 'c', n: 1000, delay: 20, stream: true }))
  for await (const _ of cancelled) {
    cancelled.cancel()
    break
  }
  const management = managementClient(server.ports.grpcManagement)
  await call(management, management.ListModels, {})
  await call(management, grpc.Ping.bind(management), {}).catch(() => undefined)
  grpc.close()
  management.close()

  const service = 'org.pytorch.serve.grpc'
  const expected = [
    access('POST /predictions/echo?a=b HTTP/1.1', 200),
    access('POST /predictions/nobody HTTP/1.1', 404),
    access('GET /ping HTTP/1.1', 200),
    access('POST /predictions/count HTTP/1.1', 200),
    access('GET /metrics HTTP/1.1', 200),
    access('POST /predictions/echo HTTP/1.1', 413),
    access('GET /bad-request HTTP/1.1', 400),
    access(`gRPC ${service}.inference.InferenceAPIsService/StreamPredictions HTTP/2.0`, 0),
    access(`gRPC ${service}.inference.InferenceAPIsService/Predictions HTTP/2.0`, 13),
    access(`gRPC ${service}.inference.InferenceAPIsService/StreamPredictions HTTP/2.0`, 1),
    access(`gRPC ${service}.management.ManagementAPIsService/ListModels HTTP/2.0`, 0),
    access(`gRPC ${service}.inference.InferenceAPIsService/Ping HTTP/2.0`, 12),
  ]
  for (const pattern of expected) await withLine(server, 'access_log', pattern)
  const all = lines(server, 'access_log').filter((line) => !line.includes('GET /models'))
  expect(all).toHaveLength(expected.length)
  // The line of a stream tells the time to its first item, as in TorchServe.
  const stream = all.find((line) => line.includes('/predictions/count'))!
  expect(Number(stream.split(' ').at(-1))).toBeLessThanOrEqual(Math.ceil(firstMs))
})

test('a client that leaves before its answer is in the access log', async () => {
  const server = await startServer({ models: [COUNT] })
  await server.ready('count')
  const socket = connect(server.ports.inference, '127.0.0.1')
  const { body } = countBody({ id: 'a', n: 100, delay: 1000, stream: false })
  socket.write(
    `POST /predictions/count HTTP/1.1\r\nhost: a\r\ncontent-type: application/json\r\ncontent-length: ${body.length}\r\n\r\n${body}`,
  )
  await server.until(
    () => server.worker('count'),
    ({ inFlight }) => inFlight === 1,
  )
  socket.destroy()
  await once(socket, 'close')
  await withLine(server, 'access_log', access('POST /predictions/count HTTP/1.1', 499))
})

test('model_log.log has what handlers write, ts_log.log has everything, each with thread and logger', async () => {
  const server = await startServer({ models: [METER], config: { log_level: 'debug' } })
  await server.ready('meter')
  await rawRequest(server.ports.inference, '/predictions/meter', { body: 'x' })
  const out = new RegExp(`^${TIME} \\[INFO \\] W-9000-meter_1.0-stdout MODEL_LOG - a line of the handler$`)
  const err = new RegExp(`^${TIME} \\[WARN \\] W-9000-meter_1.0-stderr MODEL_LOG - a line on stderr$`)
  const state = new RegExp(
    `^${TIME} \\[DEBUG\\] W-9000-meter_1.0 torchserve - State change loading -> ready$`,
  )
  for (const pattern of [out, err]) {
    await withLine(server, 'model_log', pattern)
    await withLine(server, 'ts_log', pattern)
  }
  await withLine(server, 'ts_log', state)
  expect(lines(server, 'model_log').filter((line) => !line.includes(' MODEL_LOG - '))).toEqual([])
  await server.lines(out)
})

test('ts_metrics.log and model_metrics.log have TorchServe’s lines, right after the answer', async () => {
  const server = await startServer({ models: [METER], config: { model_metrics_auto_detect: true } })
  await server.ready('meter')
  const { headers } = await rawRequest(server.ports.inference, '/predictions/meter', { body: 'x' })
  const stamp = (line: string): RegExp => new RegExp(`^${TIME} - ${line},timestamp:\\d{10}$`)
  const host = String.raw`\|#hostname:[^,]+`
  const level = String.raw`\|#Level:Host`
  for (const line of [
    String.raw`Requests2XX\.Count:1\.0${level}${host}`,
    String.raw`ts_inference_requests_total\.Count:1\.0\|#model_name:meter,model_version:default${host}`,
    String.raw`ts_inference_latency_microseconds\.Microseconds:\d+\.\d+\|#model_name:meter,model_version:default${host}`,
    String.raw`QueueTime\.Milliseconds:\d+\.\d+${level}${host}`,
    String.raw`WorkerThreadTime\.Milliseconds:\d+\.\d+${level}${host}`,
    String.raw`WorkerLoadTime\.Milliseconds:\d+\.\d+\|#WorkerName:W-9000-meter_1\.0,Level:Host${host}`,
    String.raw`MemoryUtilization\.Percent:\d+\.\d+${level}${host}`,
  ]) {
    await withLine(server, 'ts_metrics', stamp(line))
  }
  const id = `,requestID:${headers['x-request-id']}`
  for (const line of [
    String.raw`HandlerTime\.ms:\d+\.\d+\|#ModelName:meter,Level:Model${host}${id}`,
    String.raw`PredictionTime\.ms:\d+\.\d+\|#ModelName:meter,Level:Model${host}${id}`,
    String.raw`HandlerMethodTime\.Milliseconds:3\.0\|#MethodName:preprocess,ModelName:meter,Level:Model${host}${id}`,
    String.raw`Mistakes\.unit:1\.0\|#Level:Error${host},requestID:null`,
  ]) {
    await withLine(server, 'model_metrics', stamp(line))
  }
})

test('LOG_LOCATION and METRICS_LOCATION choose the folders, log_files the files', async () => {
  const server = await startServer({
    models: [ECHO],
    config: { log_files: 'access_log,model_metrics' },
    env: { LOG_LOCATION: 'here/logs', METRICS_LOCATION: 'there' },
  })
  await server.ready('echo')
  await rawRequest(server.ports.inference, '/predictions/echo', { body: 'x' })
  await withLine(server, 'access_log', /predictions/, 'here/logs')
  await withLine(server, 'model_metrics', /HandlerTime/, 'there')
  expect(readdirSync(join(server.folder, 'here/logs'))).toEqual(['access_log.log'])
  expect(readdirSync(join(server.folder, 'there'))).toEqual(['model_metrics.log'])
  expect(existsSync(join(server.folder, 'logs'))).toBe(false)
})

test('in the mode prometheus the metric files are there and stay empty', async () => {
  const server = await startServer({ models: [ECHO], config: { metrics_mode: 'prometheus' } })
  await server.ready('echo')
  await rawRequest(server.ports.inference, '/predictions/echo', { body: 'x' })
  expect(await server.stop()).toBe(0)
  expect([lines(server, 'ts_metrics'), lines(server, 'model_metrics')]).toEqual([[], []])
  expect(lines(server, 'access_log').filter((line) => line.includes('/predictions/echo'))).toHaveLength(1)
})

test('a log folder that cannot be made is a warning, and the server serves', async () => {
  const server = await startServer({ models: [ECHO], env: { LOG_LOCATION: 'config.properties/logs' } })
  await server.ready('echo')
  expect((await rawRequest(server.ports.inference, '/predictions/echo', { body: 'x' })).status).toBe(200)
  expect(await server.lines('access_log.log is not written: ENOTDIR')).toHaveLength(1)
  expect(readdirSync(join(server.folder, 'logs')).sort()).toEqual(['model_metrics.log', 'ts_metrics.log'])
})

test('SIGUSR1 opens the log files again and no inspector, SIGUSR2 does nothing', async () => {
  const server = await startServer({ models: [ECHO] })
  await server.ready('echo')
  const ask = () => rawRequest(server.ports.inference, '/predictions/echo', { body: 'x' })
  await ask()
  const folder = join(server.folder, 'logs')
  const names = readdirSync(folder).filter((name) => name.endsWith('.log'))
  for (const name of names) renameSync(join(folder, name), join(folder, `${name}.1`))
  server.process.kill('SIGUSR2')
  server.process.kill('SIGUSR1')
  await server.lines('The log files are opened again (SIGUSR1)')
  expect(readdirSync(folder).filter((name) => name.endsWith('.log'))).toEqual(names)
  expect(server.output.filter((line) => line.includes('Debugger'))).toEqual([])
  await ask()
  await withLine(server, 'access_log', /predictions/)
  expect(readFileSync(join(folder, 'access_log.log.1'), 'utf8').split('/predictions/')).toHaveLength(2)
  expect(await server.metric('torchserve_ts_log_lines_lost_total')).toBe(0)
  expect(await server.stop()).toBe(0)
})

test('with the last line in a file the server has ended: nothing is lost by a stop', async () => {
  const server = await startServer({ models: [ECHO] })
  await server.ready('echo')
  for (let n = 0; n < 50; n += 1) await rawRequest(server.ports.inference, '/predictions/echo', { body: 'x' })
  expect(await server.stop()).toBe(0)
  const requests = lines(server, 'ts_metrics').filter((line) => line.includes('ts_inference_requests_total'))
  expect(requests).toHaveLength(50)
  expect(lines(server, 'access_log').filter((line) => line.includes('/predictions/'))).toHaveLength(50)
  expect(lines(server, 'ts_log').at(-1)).toMatch(/Stopped$/)
})

describe('stdout has', () => {
  async function asked(config: Record<string, string>): Promise<Server> {
    const server = await startServer({ models: [METER], config })
    await server.ready('meter')
    await rawRequest(server.ports.inference, '/predictions/meter', { body: 'x' })
    return server
  }

  test('all logs of TorchServe by default, in the format of its console', async () => {
    const server = await asked({ log_console: '' })
    for (const [logger, message] of [
      ['ACCESS_LOG', `${PEER} "POST /predictions/meter HTTP/1\\.1" 200 \\d+`],
      ['TS_METRICS', 'QueueTime\\.Milliseconds:.*\\|#.*'],
      ['MODEL_METRICS', 'PredictionTime\\.\\w+:.*\\|#.*'],
    ] as const)
      await server.lines(new RegExp(`^${TIME} \\[INFO \\] main ${logger} - ${message}$`))
  })

  test('as JSON with log_format=json, of a log without a file too', async () => {
    const server = await asked({ log_format: 'json', log_files: 'none', log_console: 'access_log' })
    const [line] = await server.lines('POST /predictions/meter ')
    expect(JSON.parse(line!)).toEqual({
      level: 30,
      time: expect.any(String),
      thread: 'main',
      logger: 'ACCESS_LOG',
      msg: expect.stringMatching(/^\/127\.0\.0\.1:\d+ "POST \/predictions\/meter HTTP\/1\.1" 200 \d+$/),
    })
  })

  test('only the logs of log_console, whatever came before the end', async () => {
    const server = await asked({ log_console: 'ts_log' })
    expect(await server.stop()).toBe(0)
    expect(lines(server, 'access_log')).not.toEqual([])
    expect(server.output.filter((line) => /ACCESS_LOG|TS_METRICS|MODEL_LOG/.test(line))).toEqual([])
  })
})
