import { createHash } from 'node:crypto'
import { once } from 'node:events'
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { afterEach } from '@jest/globals'

const COMMIT = 'c0ffee'.padEnd(40, '0')

/** A request as it arrived. */
export interface Asked {
  path: string
  authorization: string | undefined
  status: number
}

/**
 * The hub of Hugging Face as its documentation describes it: the listing of a repository, files that redirect
 * to a store on another port, entity tags.
 */
export class Hub {
  /** Path in a repository -> content, by repository. */
  readonly repositories = new Map<string, Map<string, Buffer>>()
  readonly asked: Asked[] = []
  /** The token that is needed; undefined: none. */
  token: string | undefined
  /** The next answers with a file end after so many bytes of their body. */
  readonly cuts: number[] = []
  /** Called when so many bytes of a cut answer have left; the connection stays open then. */
  onCut: (() => void) | undefined
  /** What the hub says instead of the right SHA-256. */
  wrongSha256: string | undefined
  /** Whether its listing has the SHA-256 of files; the hub has none of small ones. */
  saysSha256 = true
  endpoint = ''
  #store = ''
  readonly #servers: Server[] = []

  static async start(): Promise<Hub> {
    const hub = new Hub()
    hub.endpoint = await hub.#listen((request, response) => hub.#answer(request, response))
    hub.#store = await hub.#listen((request, response) => hub.#send(request, response))
    hubs.push(hub)
    return hub
  }

  add(repository: string, files: Record<string, Buffer | string>): void {
    const entries = Object.entries(files).map(([path, text]) => [path, Buffer.from(text)] as const)
    this.repositories.set(repository, new Map(entries))
  }

  async stop(): Promise<void> {
    for (const server of this.#servers.splice(0)) {
      server.closeAllConnections()
      await new Promise((resolve) => server.close(resolve))
    }
  }

  async #listen(answer: (request: IncomingMessage, response: ServerResponse) => void): Promise<string> {
    const server = createServer(answer).listen(0, '127.0.0.1')
    this.#servers.push(server)
    await once(server, 'listening')
    return `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  }

  #answer(request: IncomingMessage, response: ServerResponse): void {
    const path = decodeURIComponent(request.url!.replace(/\?.*/, ''))
    const end = (status: number, headers: Record<string, string> = {}, body = ''): void => {
      this.#note(request, status)
      response.writeHead(status, headers).end(body)
    }
    if (this.token !== undefined && request.headers.authorization !== `Bearer ${this.token}`) {
      end(401)
      return
    }
    const [, listed] = /^\/api\/models\/([^/]+\/[^/]+)\/revision\/[^/]+$/.exec(path) ?? []
    const [, repository, file] = /^\/([^/]+\/[^/]+)\/resolve\/[^/]+\/(.+)$/.exec(path) ?? []
    const files = this.repositories.get(listed ?? repository ?? '')
    if (files === undefined) end(404)
    else if (listed !== undefined)
      end(200, {}, JSON.stringify({ sha: COMMIT, siblings: this.#siblings(files) }))
    else if (files.has(file!)) {
      const etag = `"${this.wrongSha256 ?? sha256(files.get(file!)!)}"`
      end(302, {
        location: `${this.#store}/${repository}/${file}`,
        'x-linked-etag': etag,
        'x-repo-commit': COMMIT,
      })
    } else end(404)
  }

  #siblings(files: Map<string, Buffer>): object[] {
    return [...files].map(([rfilename, content]) => ({
      rfilename,
      size: content.length,
      ...(this.saysSha256 && { lfs: { sha256: this.wrongSha256 ?? sha256(content), size: content.length } }),
    }))
  }

  #send(request: IncomingMessage, response: ServerResponse): void {
    const [, repository, file] = /^\/([^/]+\/[^/]+)\/(.+)$/.exec(decodeURIComponent(request.url!))!
    const body = this.repositories.get(repository!)!.get(file!)!
    const etag = `"${sha256(body).slice(0, 16)}"`
    this.#note(request, 200)
    response.writeHead(200, { etag, 'content-length': body.length })
    const cut = this.cuts.shift()
    if (cut === undefined) response.end(body)
    else
      response.write(body.subarray(0, cut), () => {
        if (this.onCut === undefined) response.destroy()
        else this.onCut()
      })
  }

  #note(request: IncomingMessage, status: number): void {
    this.asked.push({ path: request.url!, authorization: request.headers.authorization, status })
  }
}

export function sha256(content: Buffer): string {
  return createHash('sha256').update(content).digest('hex')
}

const hubs: Hub[] = []

afterEach(async () => {
  for (const hub of hubs.splice(0)) await hub.stop()
})
