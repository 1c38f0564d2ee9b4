import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { stringify } from 'yaml'
import { rawRequest } from './raw-http.ts'
import { REPOSITORY, startServer, type Server, type ServerOptions } from './server.ts'
import { tempDir } from './temp.ts'

export interface VersionOptions {
  /** Folder below tests/support/handlers. Default: `versions`. */
  handler?: string
  /** What of the handler's module is the handler. Default: `handle`. */
  exports?: string
  config?: Record<string, unknown>
}

/** Writes a version of a model into a store, as a folder of this name. */
export function writeVersion(
  store: string,
  folder: string,
  version: string,
  options: VersionOptions = {},
): void {
  const { handler = 'versions', exports = 'handle', config = {} } = options
  const source = join(REPOSITORY, 'tests', 'support', 'handlers', handler, 'handler.ts')
  const place = join(store, folder)
  mkdirSync(join(place, 'MAR-INF'), { recursive: true })
  const manifest = {
    runtime: 'node',
    model: { modelName: 'm', modelVersion: version, handler: 'handler.ts' },
  }
  writeFileSync(join(place, 'MAR-INF', 'MANIFEST.json'), JSON.stringify(manifest))
  writeFileSync(join(place, 'handler.ts'), `export { ${exports} } from ${JSON.stringify(source)}\n`)
  writeFileSync(join(place, 'model-config.yaml'), stringify(config))
}

/** A server with versions 1.0 and 2.0 of the model `m`, each with a worker that has loaded it. */
export async function startVersions(
  options: Record<'1.0' | '2.0', VersionOptions>,
  server: ServerOptions = {},
): Promise<Server> {
  const store = tempDir()
  const started = await startServer({ modelStore: store, ...server })
  for (const version of ['1.0', '2.0'] as const) {
    writeVersion(store, `m-${version}`, version, options[version])
    await register(started, `m-${version}`)
  }
  return started
}

/** Registers a folder of the store as the model `m`, with one worker. */
export async function register(server: Server, folder: string, more = ''): Promise<void> {
  const path = `/models?url=${folder}&model_name=m&initial_workers=1${more}`
  const { status, json } = await server.manage('POST', path)
  if (status !== 200) throw new Error(JSON.stringify(json))
}

/** A call of the weights of `m`; the parsed JSON answer. */
export async function traffic(
  server: Server,
  method: string,
  body?: object | string,
): Promise<{ status: number; json: Record<string, unknown> }> {
  const text = typeof body === 'string' ? body : body && JSON.stringify(body)
  const { headers, ports } = server
  const { status, body: answer } = await rawRequest(ports.management, '/models/m/traffic', {
    method,
    headers,
    body: text,
  })
  return { status, json: JSON.parse(answer) as Record<string, unknown> }
}
