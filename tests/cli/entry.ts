/** The command line with a fake server. The variable TRY selects how its start ends. */
import { createServer } from 'node:net'
import { runCli } from '../../frontend/cli/main.ts'
import type { StartServer } from '../../frontend/server-api.ts'
import { ServeError } from '../../common/errors.ts'
import { flood } from './flood.ts'

const startServer: StartServer = async (_settings, { log, signal }) => {
  switch (process.env['TRY']) {
    case 'fail':
      setImmediate(() => log.warn('a late line'))
      throw new ServeError('INVALID_ARCHIVE', 'The archive\nis broken', { detail: 'a stack' })
    case 'defect':
      throw ServeError.from(new TypeError('x is not a function'))
    case 'die':
      console.error('last words')
      return process.exit(3)
    case 'hang':
      console.error('hanging')
      await hang(signal)
  }
  if (process.env['TRY']?.startsWith('flood')) await flood(log)
  const socket = createServer().listen(0, '127.0.0.1')
  log.info('listening')
  if (process.env['TRY']?.includes('crash')) setTimeout(() => void Promise.reject(new Error('a defect')), 100)
  const close = (): Promise<void> =>
    process.env['TRY'] === 'never close' ? new Promise(() => undefined) : Promise.resolve(void socket.close())
  return {
    listening: [{ name: 'Test', address: 'nowhere' }],
    warnings: ['something odd'],
    openRequests: Number(process.env['OPEN_REQUESTS'] ?? 0),
    requests: () => [],
    status: () => Promise.resolve({ openRequests: 0, requests: [], models: [], failed: [] }),
    models: {
      replace: () => Promise.reject(new Error('It has no models')),
      giveUp: () => Promise.resolve(),
      retire: () => Promise.resolve(),
    },
    close,
    kill: () => {
      console.log('killed')
      return Promise.resolve()
    },
  }
}

/** As a server that waits for something: it keeps the process alive until it is called off. */
function hang(signal: AbortSignal | undefined): Promise<never> {
  return new Promise((_, reject) => {
    const timer = setInterval(() => undefined, 1000)
    signal?.addEventListener('abort', () => {
      clearInterval(timer)
      reject(new Error('called off'))
    })
  })
}

process.exit(await runCli(process.argv.slice(2), { loadServer: () => Promise.resolve(startServer) }))
