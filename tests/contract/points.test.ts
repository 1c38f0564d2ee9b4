import { once } from 'node:events'
import { createServer, type Server, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { afterEach, expect, test } from '@jest/globals'
import { FORMS } from './dialects/forms.ts'
import { HttpDialect } from './dialects/http.ts'
import { POINTS } from './points.ts'

let server: Server | undefined

afterEach(async () => {
  server?.closeAllConnections()
  if (server !== undefined) await once(server.close(), 'close')
})

interface Run {
  n: number
  fail?: number
}

/** The numbers of the points that a server of infer_stream lacks which answers like this. */
async function lacking(answer: (run: Run, res: ServerResponse) => void, names: string[]): Promise<string[]> {
  server = createServer((req, res) => {
    let body = ''
    req.setEncoding('utf8').on('data', (piece: string) => (body += piece))
    req.on('end', () => {
      const { inputs } = JSON.parse(body) as { inputs: { data: string[] }[] }
      answer(JSON.parse(inputs[0]!.data[0]!) as Run, res)
    })
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  const form = FORMS.find(({ name }) => name.includes('infer_stream'))!
  const dialect = new HttpDialect(`http://127.0.0.1:${port}`, form)
  const lacks: string[] = []
  for (const point of POINTS.filter(({ name }) => names.some((start) => name.startsWith(start)))) {
    const subject = { dialect, model: 'count', items: () => Promise.resolve(0) }
    await point.check(subject).catch(() => lacks.push(point.name.slice(0, 1)))
  }
  return lacks
}

const event = (item: number): string => `data: ${JSON.stringify({ outputs: [{ data: [String(item)] }] })}\n\n`

test('a server that sends all items at once, ends a failure normally, and compresses, lacks points 2, 3 and 7', async () => {
  const lacks = await lacking(
    ({ n, fail = n }, res) => {
      res.setHeader('content-type', 'text/event-stream')
      for (let item = 1; item <= fail; item += 1) res.write(event(item))
      res.end()
    },
    ['2', '3', '7'],
  )
  expect(lacks).toEqual(['2', '3', '7'])
})

test('a server that answers 200 before it knows of a failure lacks point 1', async () => {
  const lacks = await lacking(
    (_run, res) => {
      res.end('data: {"error":"no"}\n\n')
    },
    ['1'],
  )
  expect(lacks).toEqual(['1', '1'])
})

test('a server that sends each item as it is made, and an error event, lacks neither 2 nor 3', async () => {
  const lacks = await lacking(
    ({ n, fail }, res) => {
      let item = 0
      const next = (): void => {
        item += 1
        if (fail !== undefined && item > fail) res.end('data: {"error":"as asked"}\n\n')
        else if (item > n) res.end()
        else res.write(event(item), () => setTimeout(next, 60))
      }
      next()
    },
    ['2', '3'],
  )
  expect(lacks).toEqual([])
})
