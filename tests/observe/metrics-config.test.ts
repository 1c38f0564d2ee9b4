import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from '@jest/globals'
import fc from 'fast-check'
import { readMetricsConfig } from '../../frontend/observe/metrics/metrics-config.ts'
import { checkMetricsFile } from '../../frontend/observe/metrics/metrics-schema.ts'
import { defaultMetricsConfig } from '../../frontend/package-info.ts'
import { tempDir } from '../support/temp.ts'

/** Reads a metrics.yaml with this text. */
function read(text: string): ReturnType<typeof readMetricsConfig> {
  const path = join(tempDir(), 'metrics.yaml')
  writeFileSync(path, text)
  return readMetricsConfig(path)
}

test('the file of the package is valid and declares what TorchServe declares', async () => {
  const { ts, model } = await readMetricsConfig()
  expect(await readMetricsConfig(defaultMetricsConfig)).toEqual({ ts, model })
  const described = (specs: typeof ts): string[] =>
    specs.map(({ name, kind, unit, dimensions }) => `${kind} ${name} ${unit} ${dimensions.join(',')}`)
  expect(described(ts)).toEqual([
    'counter Requests2XX Count Level,Hostname',
    'counter Requests4XX Count Level,Hostname',
    'counter Requests5XX Count Level,Hostname',
    'counter ts_inference_requests_total Count model_name,model_version,hostname',
    'counter ts_inference_latency_microseconds Microseconds model_name,model_version,hostname',
    'counter ts_queue_latency_microseconds Microseconds model_name,model_version,hostname',
    'gauge QueueTime Milliseconds Level,Hostname',
    'gauge WorkerThreadTime Milliseconds Level,Hostname',
    'gauge WorkerLoadTime Milliseconds WorkerName,Level,Hostname',
    'gauge CPUUtilization Percent Level,Hostname',
    'gauge MemoryUsed Megabytes Level,Hostname',
    'gauge MemoryAvailable Megabytes Level,Hostname',
    'gauge MemoryUtilization Percent Level,Hostname',
    'gauge DiskUsage Gigabytes Level,Hostname',
    'gauge DiskUtilization Percent Level,Hostname',
    'gauge DiskAvailable Gigabytes Level,Hostname',
    'gauge GPUMemoryUtilization Percent Level,DeviceId,Hostname',
    'gauge GPUMemoryUsed Megabytes Level,DeviceId,Hostname',
    'gauge GPUUtilization Percent Level,DeviceId,Hostname',
  ])
  expect(described(model)).toEqual([
    'gauge HandlerTime ms ModelName,Level',
    'gauge PredictionTime ms ModelName,Level',
  ])
})

test('anchors, as TorchServe writes its file, may be used any number of times', async () => {
  const metric = (n: number): string => `    - {name: m${n}, unit: ms, dimensions: [*level, *host]}\n`
  const lines = Array.from({ length: 300 }, (_, n) => metric(n)).join('')
  const text = `dimensions:\n  - &level Level\n  - &host Hostname\nts_metrics:\n  histogram:\n${lines}`
  const { ts, model } = await read(text)
  expect(ts).toHaveLength(300)
  expect(ts[299]).toEqual({ name: 'm299', kind: 'histogram', unit: 'ms', dimensions: ['Level', 'Hostname'] })
  expect(model).toEqual([])
})

describe('a file that cannot be used is one clear line', () => {
  test.each([
    ['- a', 'the file must be a map'],
    ['', 'the file must be a map'],
    ['metrics: {}', 'metrics is not supported'],
    ['ts_metrics: []', 'ts_metrics must be a map'],
    ['ts_metrics: {gauges: []}', 'ts_metrics.gauges is not supported'],
    ['ts_metrics: {gauge: {}}', 'ts_metrics.gauge must be a list'],
    ['model_metrics: {gauge: [a]}', 'model_metrics.gauge[0] must be a map'],
    ['model_metrics: {gauge: [{unit: ms}]}', 'model_metrics.gauge[0].name must be a non-empty string'],
    [
      'model_metrics: {gauge: [{name: a, unit: ""}]}',
      'model_metrics.gauge[0].unit must be a non-empty string',
    ],
    ['model_metrics: {gauge: [{name: a, unit: b, dimensions: c}]}', 'dimensions must be a list of names'],
    ['model_metrics: {gauge: [{name: a, unit: b, dimensions: [c, c]}]}', 'must not contain a name twice'],
    [
      'model_metrics: {gauge: [{name: a, unit: b, dimension: []}]}',
      'model_metrics.gauge[0].dimension is not supported',
    ],
    [
      'model_metrics: {gauge: [&a {name: a, unit: b}], counter: [*a]}',
      'model_metrics must not declare a twice',
    ],
    ['ts_metrics: {gauge: [{name: *no, unit: b}]}', 'Unresolved alias'],
    ['a: [', 'Flow sequence'],
  ])('%s', async (text, message) => {
    const error = await read(text).catch((thrown: unknown) => thrown)
    expect(error).toMatchObject({ code: 'CONFIG', message: expect.stringContaining(message) })
    expect((error as Error).message).toMatch(/^The metrics configuration .*metrics\.yaml cannot be used: .*$/)
  })

  test('a missing file', async () => {
    await expect(readMetricsConfig('/nowhere/metrics.yaml')).rejects.toMatchObject({ code: 'CONFIG' })
  })

  test('whatever it holds', () => {
    fc.assert(
      fc.property(fc.anything(), (content) => {
        try {
          checkMetricsFile({ ts_metrics: content })
        } catch (error) {
          expect(error).toBeInstanceOf(TypeError)
        }
      }),
    )
  })
})
