import { stat } from 'node:fs/promises'
import { resolve } from 'node:path'
import type { Command } from 'commander'
import { ServeError } from '../../../common/errors.ts'
import { checkExposure } from '../../config/exposure.ts'
import { KEYS } from '../../config/keys.ts'
import { loadSettings } from '../../config/load-settings.ts'
import type { Entry } from '../../config/properties.ts'
import type { Settings } from '../../config/settings.ts'
import { createLogger } from '../../observe/logs/logger.ts'
import type { RunningServer, StartServer } from '../../server-api.ts'
import type { Output } from '../output.ts'
import { tempDirOf } from '../pid-file.ts'
import { newCommand, portOf, runCommand } from '../subcommand.ts'
import { watchStopSignals } from '../stop-signals.ts'
import { DevLog } from './dev-log.ts'
import { Session } from './session.ts'
import { findModelFolders, isModelFolder } from './model-folders.ts'

interface DevFlags {
  port: number
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
Only this machine can reach the server, and it needs no tokens. It keeps no logs and no snapshots.`

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
    .option('--port <number>', 'port of the REST API, 0: any free one; gRPC takes free ports', portOf, 8080)
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
  const settings = await devSettings(folder, flags)
  let server: RunningServer | undefined
  const stop = watchStopSignals((status) => {
    server?.kill()
    process.exit(status)
  })
  const log = createLogger({ level: settings.logLevel, format: 'json', console: new DevLog(output) })
  try {
    const startServer = await loadServer()
    stop.signal.throwIfAborted()
    // A worker may not list the server's working folder, but often it is that of the handler.
    process.chdir(settings.tempDir)
    server = await startServer(settings, { log: log.log, signal: stop.signal })
    for (const warning of server.warnings) output.err(warning)
    await new Session(folder, server, output).run(stop.signal)
    await server.close()
  } catch (error) {
    if (!stop.signal.aborted) throw error // otherwise a signal ended the start
  } finally {
    log.end()
    stop.unwatch()
  }
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

async function devSettings(folder: string, { port, tsConfig }: DevFlags): Promise<Settings> {
  const temp = tempDirOf(process.env)
  const own: Record<string, string> = {
    // Nothing is written there; the places are hidden from workers.
    [KEYS.logLocation.name]: temp,
    [KEYS.metricsLocation.name]: temp,
    model_store: isModelFolder(folder) ? '' : folder,
    load_models: '',
    model_snapshot: '',
    // One listener: what a handler's author needs is at one address.
    inference_address: `http://127.0.0.1:${port}`,
    management_address: `http://127.0.0.1:${port}`,
    enable_metrics_api: 'false',
    grpc_inference_address: '127.0.0.1',
    grpc_inference_port: '0',
    grpc_management_address: '127.0.0.1',
    grpc_management_port: '0',
    disable_token_authorization: 'true',
    disable_system_metrics: 'true',
    default_workers_per_model: '1',
    unregister_model_timeout: String(OLD_CODE_S),
    drain_timeout: '0',
  }
  const entries = Object.entries(own).map(([name, text]): Entry => ({ name, text, origin: 'dev' }))
  const { settings } = await loadSettings({ tsConfig, configSnapshots: false, entries })
  await checkExposure(settings)
  return settings
}
