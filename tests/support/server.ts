import { launchServer, type Server, type ServerOptions, started } from './server-process.ts'
import { beforeRemoval, tempDir } from './temp.ts'

export * from './server-process.ts'

const servers: Server[] = []

/**
 * Starts a server and waits for `Model server started.`; it is stopped at the end of the test file at the
 * latest.
 */
export function startServer(options: ServerOptions = {}): Promise<Server> {
  const server = launchServer({ ...options, folder: options.folder ?? tempDir() })
  servers.push(server)
  return started(server)
}

beforeRemoval(() => Promise.all(servers.splice(0).map((server) => server.stop('SIGKILL'))))
