import assert from 'node:assert/strict'
import { test } from 'node:test'
import { runHandler } from 'torchserve-ts/testing'
import Onnx from './handler.ts'

test('runs the model', async () => {
  const input = { name: 'celsius', datatype: 'FP32', shape: [2, 1], data: [0, 100] }
  const { responses } = await runHandler(Onnx, [{ inputs: [input] }])
  const answer = JSON.parse(responses[0]?.items.join('') ?? '') as { outputs: unknown[] }
  assert.deepEqual(answer.outputs, [{ name: 'fahrenheit', datatype: 'FP32', shape: [2, 1], data: [32, 212] }])
})
