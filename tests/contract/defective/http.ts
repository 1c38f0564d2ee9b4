import { once } from 'node:events'
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { FORMS } from '../dialects/forms.ts'
import { HttpDialect } from '../dialects/http.ts'
import { Runs, type Defect, type Reply, type Run } from './runs.ts'

/** V2's infer_stream, or infer. */
export class DefectiveHttp {
  readonly dialect: HttpDialect
  readonly #server: Server

  private constructor(server: Server, formName: string) {
    this.#server = server
    const { port } = server.address() as AddressInfo
    const form = FORMS.find(({ name }) => name === formName)!
    this.dialect = new HttpDialect(`http://127.0.0.1:${port}`, form)
  }

  static async start(defect?: Defect, formName = 'V2 infer_stream'): Promise<DefectiveHttp> {
    const runs = new Runs(defect)
    const toReply = formName === 'V2 infer' ? wholeReply : streamReply
    const server = createServer((req, res) => {
      readRun(req).then(
        (run) => runs.answer(req.url!.split('/')[3]!, run, toReply(res, defect)),
        () => res.destroy(),
      )
    }).listen(0, '127.0.0.1')
    await once(server, 'listening')
    return new DefectiveHttp(server, formName)
  }

  async close(): Promise<void> {
    this.#server.closeAllConnections()
    await once(this.#server.close(), 'close')
  }
}

async function readRun(req: IncomingMessage): Promise<Run> {
  let body = ''
  for await (const piece of req.setEncoding('utf8')) body += String(piece)
  const { inputs } = JSON.parse(body) as { inputs: { data: string[] }[] }
  return JSON.parse(inputs[0]!.data[0]!) as Run
}

function streamReply(res: ServerResponse, defect: Defect | undefined): Reply {
  const left = new AbortController()
  res.on('close', () => left.abort())
  const open = (): void => {
    if (res.headersSent) return
    res.setHeader('content-type', 'text/event-stream')
    res.setHeader('cache-control', 'no-cache')
    res.setHeader('x-accel-buffering', 'no')
    if (defect === 'compresses') res.setHeader('content-encoding', 'gzip')
  }
  const event = (value: object): boolean => {
    open()
    return res.write(`data: ${JSON.stringify(value)}\n\n`)
  }
  return {
    refuse: (status) => res.writeHead(status === 'not found' ? 404 : 500).end('{"error":"as asked"}'),
    item: (text) => event({ outputs: [{ data: [text] }] }),
    fail: () => {
      event({ error: 'as asked' })
      res.end()
    },
    end: () => {
      open()
      res.end()
    },
    drains: res,
    left: left.signal,
  }
}

/** Keeps the items for one answer. */
function wholeReply(res: ServerResponse): Reply {
  const left = new AbortController()
  res.on('close', () => left.abort())
  const items: string[] = []
  const refuse: Reply['refuse'] = (status) => res.writeHead(status === 'not found' ? 404 : 500).end('{}')
  return {
    refuse,
    item: (text) => items.push(text) > 0,
    fail: () => refuse('failed'),
    end: () => res.end(JSON.stringify({ outputs: [{ data: [items.join(' ')] }] })),
    drains: res,
    left: left.signal,
  }
}
