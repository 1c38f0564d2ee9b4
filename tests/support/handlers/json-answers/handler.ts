import type { HandlerRequest } from 'torchserve-ts'

const BYTES = 6_500_000
const many = (element: string): string =>
  `${`${element},`.repeat(Math.floor(BYTES / (element.length + 1)) - 1)}${element}`

/** JSON answers that take long to read, as large as one may be: the name of the input says which. */
const ANSWERS = new Map<string, () => string>([
  ['numbers', () => `{"outputs":[{"name":"y","datatype":"FP32","shape":[3250000],"data":[${many('1')}]}]}`],
  ['texts', () => `{"outputs":[{"name":"y","datatype":"BYTES","shape":[1625000],"data":[${many('"a"')}]}]}`],
  ['lists', () => `{"outputs":[{"name":"y","datatype":"FP32","shape":[1625000,1],"data":[${many('[1]')}]}]}`],
  ['outputs', () => `{"outputs":[${many('{"name":"y","datatype":"FP32","shape":[1],"data":[1]}')}]}`],
  ['parameters', () => `{"outputs":[],"parameters":{"p":[${many('1')}]}}`],
  ['text', () => `{${many('"')}`],
])

export function handle(requests: HandlerRequest[]): string[] {
  return requests.map((request) => {
    const asked = JSON.stringify(request)
    const [, answer] = [...ANSWERS].find(([name]) => asked.includes(`"${name}"`))!
    return answer()
  })
}
