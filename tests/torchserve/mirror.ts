import { once } from 'node:events'
import { createReadStream } from 'node:fs'
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { StandIns } from './stand-ins.ts'
import { isWar } from './wars.ts'

/** The file with the weights of a network; undefined: nobody needs them. */
export type Weights = (name: string) => Promise<string | undefined>

/**
 * Replaces the hosts of TorchServe's public archives, which are not reachable: `/mar_files/NAME.mar` and
 * `/war_files/NAME.war` are stand-ins, `/models/NAME.pth` are weights, or a line that says there are none.
 * Everything else is 404, as on the real hosts.
 */
export class Mirror {
  readonly #server: Server
  readonly #standIns: StandIns
  readonly #weights: Weights

  private constructor(standIns: StandIns, weights: Weights) {
    this.#standIns = standIns
    this.#weights = weights
    this.#server = createServer((request, response) => {
      this.#answer(request, response).catch((error: unknown) => {
        response.destroy(error instanceof Error ? error : undefined)
      })
    })
  }

  static async start(standIns: StandIns, weights: Weights): Promise<Mirror> {
    const mirror = new Mirror(standIns, weights)
    mirror.#server.listen(0, '127.0.0.1')
    await once(mirror.#server, 'listening')
    return mirror
  }

  /** With a slash at its end. */
  get url(): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}/`
  }

  async stop(): Promise<void> {
    this.#server.closeAllConnections()
    this.#server.close()
    await once(this.#server, 'close')
  }

  async #answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const path = request.url ?? '/'
    const archive = /^\/mar_files\/([\w.-]+)\.mar$/.exec(path)?.[1]
    const war = /^\/war_files\/([\w.-]+)\.war$/.exec(path)?.[1]
    if (archive !== undefined && this.#standIns.has(archive)) {
      createReadStream(await this.#standIns.archive(archive)).pipe(response)
    } else if (war !== undefined && isWar(war)) {
      createReadStream(await this.#standIns.war(war)).pipe(response)
    } else if (/^\/models\/[\w.-]+\.pth$/.test(path)) {
      const file = await this.#weights(path.slice('/models/'.length))
      if (file === undefined) response.end('No weights: stand-ins have none.\n')
      else createReadStream(file).pipe(response)
    } else {
      response.writeHead(404).end()
    }
  }
}
