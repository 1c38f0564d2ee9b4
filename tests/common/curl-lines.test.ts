import { expect, test } from '@jest/globals'
import { curlLines, type DeclaredTensor } from '../../common/curl-lines.ts'

function lineFor(...inputs: DeclaredTensor[]): string {
  const lines = curlLines({ name: 'm', methods: ['predict'], inputs }, 'http://h')
  expect(lines).toHaveLength(1)
  return lines[0]!.line
}

test('a small tensor is written out whole', () => {
  const line = lineFor({ name: 'x', datatype: 'FP32', shape: [-1, 2, 2] })
  expect(line).toContain('"shape":[1,2,2],"data":[1,1,1,1]}')
})

test.each([[[3, 640, 640]], [[200_000_000]], [[2 ** 40, 2 ** 40]], [new Array<number>(100_000).fill(2)]])(
  'what a model declares does not decide how long the line is',
  (shape) => {
    const line = lineFor({ name: 'x', datatype: 'FP32', shape })
    expect(line).toContain(',1,1,"..."]}')
    expect(line.length).toBeLessThan(500)
  },
)

test('a handler with handle beside predict is asked by TorchServe too', () => {
  const lines = curlLines({ name: 'm', methods: ['handle', 'predict'], inputs: [] }, 'http://h')
  expect(lines.map(({ api }) => api)).toEqual(['TorchServe', 'Open Inference'])
})

test('a handler that streams tensors is asked for a stream', () => {
  const [line] = curlLines({ name: 'm', methods: ['predict', 'predictStream'], inputs: [] }, 'http://h')
  expect(line!.line).toMatch(/ http:\/\/h\/v2\/models\/m\/infer_stream$/)
  expect(lineFor()).toMatch(/\/infer$/)
})

test('of many inputs only some are written out', () => {
  const inputs = Array.from({ length: 10_000 }, (_, i) => ({ name: `x${i}`, datatype: 'BOOL', shape: [1] }))
  expect(lineFor(...inputs).match(/"name"/g)).toHaveLength(16)
})
