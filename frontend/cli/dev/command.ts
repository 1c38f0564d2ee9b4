import { existsSync } from 'node:fs'
import { stat } from 'node:fs/promises'
import { join, resolve } from 'node:path'
import type { Command } from 'commander'
import { ServeError } from '../../../common/errors.ts'
import { checkExposure } from '../../config/exposure.ts'
import { type LoadedSettings, shownSettings } from '../../config/build-settings.ts'
import { loadSettings } from '../../config/load-settings.ts'
import { createLogger } from '../../observe/logs/logger.ts'
import type { RunningServer, StartServer } from '../../server-api.ts'
import { freePort, localEntries } from '../local-serving.ts'
import type { Output } from '../output.ts'
import { newCommand, portOf, runCommand } from '../run-command.ts'
import { watchStopSignals } from '../stop-signals.ts'
import { DevLog } from './dev-log.ts'
import { Session } from './session.ts'
import { findModelFolders, isModelFolder } from './file-stamps.ts'

interface DevFlags {
  port?: number
  tsConfig?: string
}

const EXAMPLES = `
Examples:
  Serve the handler of this folder:
    $ torchserve-ts dev
  Serve every folder below handlers/ that has a handler, on another port:
    $ torchserve-ts dev handlers --port 9000

After a save, new requests get the new code as soon as it has loaded; streams that began before
end on the old code. If the new code does not load, the old code goes on serving.
Variables of a file .env in the folder are set. Only this machine can reach the server, and it
needs no tokens. It keeps no logs and no snapshots.`

const DEFAULT_PORT = 8080
/** Seconds that requests on old code have. */
const OLD_CODE_S = 3600

/**
 * The command `torchserve-ts dev`: serves handlers in this terminal while they are written.
 * @returns the exit status
 */
export function runDev(
  argv: readonly string[],
  output: Output,
  { loadServer }: { loadServer: () => Promise<StartServer> },
): Promise<number> {
  const program = definition(output)
  return runCommand(program, argv, output, async () => {
    await serveFolder(resolve(program.args[0] ?? '.'), program.opts<DevFlags>(), output, loadServer)
    return 0
  })
}

function definition(output: Output): Command {
  return newCommand('torchserve-ts dev', output)
    .description('Serves a folder with a handler, or a folder of such folders, and loads each change')
    .argument('[folder]', 'the folder (default: this one)')
    .option(
      '--port <number>',
      'port of the REST APIs, or the next free one; 0: any free one (default: that of inference_address, else 8080)',
      portOf,
    )
    .option('--ts-config <file>', 'configuration file (default: config.properties, if there is one)')
    .addHelpText('after', EXAMPLES)
}

/** Resolves when a signal has ended the server. @throws errors of the start */
async function serveFolder(
  folder: string,
  flags: DevFlags,
  output: Output,
  loadServer: () => Promise<StartServer>,
): Promise<void> {
  await checkFolder(folder)
  readVariables(folder, output)
  const loaded = await devSettings(folder, flags, output)
  const { settings } = loaded
  let server: RunningServer | undefined
  const stop = watchStopSignals((status) => {
    void server?.kill()
    process.exit(status)
  })
  const log = createLogger({ level: settings.logLevel, format: 'json', console: new DevLog(output) })
  try {
    const startServer = await loadServer()
    stop.signal.throwIfAborted()
    server = await startServer(settings, {
      log: log.log,
      configuration: () => shownSettings(loaded),
      logTail: log.tail,
      signal: stop.signal,
      tellsThrown: true,
      portFlag: '--port',
    })
    for (const warning of server.warnings) output.err(warning)
    await new Session(folder, server, output).run(stop.signal)
    output.out(stoppingLine(server.openRequests, settings.cancelGraceMs))
    await server.close()
  } catch (error) {
    if (!stop.signal.aborted) throw error // otherwise a signal ended the start
  } finally {
    log.end()
    stop.unwatch()
  }
}

/** Sets the variables of the folder's `.env` that are not set, also for its handlers. */
function readVariables(folder: string, output: Output): void {
  const file = join(folder, '.env')
  if (!existsSync(file)) return
  // Node has it since 20.12.
  const load = (process as { loadEnvFile?: (path: string) => void }).loadEnvFile
  if (load === undefined) output.err(`${file} is not read: that needs Node.js 20.12`)
  else {
    load(file)
    output.out(`Variables of ${file} are set`)
  }
}

/** What takes time after Ctrl-C: requests end at once, but handlers may go on. */
function stoppingLine(requests: number, graceMs: number): string {
  const all = `${requests} running requests end now, `
  const what = requests === 0 ? '' : requests === 1 ? '1 running request ends now, ' : all
  return `Stopping: ${what}handlers have ${graceMs / 1000} s to return (cancel_grace_ms); Ctrl-C again stops at once`
}

/** @throws ServeError CONFIG when there is nothing to serve */
async function checkFolder(folder: string): Promise<void> {
  const stats = await stat(folder).catch(() => undefined)
  if (stats?.isDirectory() !== true) throw new ServeError('CONFIG', `${folder} must be a folder`)
  if ((await findModelFolders(folder)).length > 0) return
  throw new ServeError(
    'CONFIG',
    `${folder} must contain a handler.ts, handler.js, handler.py or a .gguf file, or folders that do; torchserve-ts init makes one`,
  )
}

/** Addresses of a configuration that do not count here. */
const FIXED = [
  'inference_address',
  'management_address',
  'metrics_address',
  'grpc_inference_address',
  'grpc_management_address',
]

async function devSettings(folder: string, flags: DevFlags, output: Output): Promise<LoadedSettings> {
  const from = { tsConfig: flags.tsConfig, configSnapshots: false }
  const { settings: configured, entries: given } = await loadSettings(from)
  const { inferenceAddress } = configured
  const wanted = flags.port ?? (inferenceAddress.kind === 'tcp' ? inferenceAddress.port : DEFAULT_PORT)
  const port = await freePort(wanted)
  if (port !== wanted) output.err(`Port ${wanted} is taken; serving on ${port}`)
  const grpcPort = (key: string): Record<string, string> => {
    const entry = given.get(key)
    return entry === undefined ? {} : { [key]: entry.text }
  }
  const entries = localEntries(
    'dev',
    { port },
    {
      ...grpcPort('grpc_inference_port'),
      ...grpcPort('grpc_management_port'),
      model_store: isModelFolder(folder) ? '' : folder,
      load_models: '',
      model_snapshot: '',
      disable_system_metrics: 'true',
      unregister_model_timeout: String(OLD_CODE_S),
      drain_timeout: '0',
    },
  )
  const loaded = await loadSettings({ ...from, entries })
  for (const warning of loaded.warnings) output.err(warning)
  for (const key of FIXED) {
    const entry = given.get(key)
    const used = key === 'metrics_address' ? undefined : loaded.entries.get(key)?.text
    if (entry === undefined || entry.text === used) continue
    const instead = used === undefined ? 'has no metrics' : `uses ${used}`
    output.err(`${entry.origin}: ${key} does not count for dev, which ${instead}`)
  }
  await checkExposure(loaded.settings)
  return loaded
}
