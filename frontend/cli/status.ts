import { plainJson } from '../observe/logs/log-line.ts'
import type { ServedModel } from '../server-api.ts'
import type { Output } from './output.ts'
import { tempDirOf } from './pid-file.ts'
import { type FoundServer, listServers } from './servers.ts'
import { askStatus, type ToldStatus } from './status-socket.ts'
import { newCommand, runCommand } from './run-command.ts'

/** A server of this user, as far as it tells of itself. */
interface ShownServer extends Partial<ToldStatus> {
  readonly pid: number
  readonly folder: string
  readonly config?: string
  /** `silent`: it starts, or its process does not answer. */
  readonly state: 'running' | 'stopping' | 'silent'
}

const EXAMPLES = `
Examples:
    $ torchserve-ts status
    $ torchserve-ts status --json | jq '.[].models[].workers[].pid'

Shows the servers of this user, those of the working folder first. Status 0: at least one runs; 1: none.`

/**
 * The command `torchserve-ts status`.
 * @returns the exit status
 */
export function runStatus(argv: readonly string[], output: Output): Promise<number> {
  const program = newCommand('torchserve-ts status', output)
    .description('Show the running servers with their models, workers and queues')
    .option('--json', 'print one JSON array')
    .addHelpText('after', EXAMPLES)
  return runCommand(program, argv, output, async () => {
    const servers = await askServers()
    if (program.opts<{ json?: boolean }>().json === true)
      output.out(plainJson(JSON.stringify(servers, undefined, 2)))
    else if (servers.length === 0) output.out('TorchServe-TS is not currently running.')
    else for (const line of servers.flatMap(linesOf)) output.out(line)
    return servers.length === 0 ? 1 : 0
  })
}

/** Asks every server of this user; those of the working folder come first. */
function askServers(): Promise<ShownServer[]> {
  return Promise.all(listServers(tempDirOf(process.env)).map(shown))
}

/** `Server PID in FOLDER: ` and what it does. */
function headOf({ pid, folder, state, started }: ShownServer): string {
  const since = started === undefined ? '' : ` since ${started}`
  const word = state === 'silent' ? 'does not answer: it is starting, or busy' : `${state}${since}`
  return `Server ${pid} in ${folder}: ${word}`
}

async function shown({ pid, folder, config, socket, stopping }: FoundServer): Promise<ShownServer> {
  const told = socket === undefined ? undefined : await askStatus(socket)
  const state = stopping === true ? 'stopping' : told === undefined ? 'silent' : 'running'
  return { pid, folder, ...(config !== undefined && { config }), state, ...told }
}

/** What the command prints of a server. */
export function linesOf(server: ShownServer): string[] {
  const { config, listening, openRequests, models, failed = [] } = server
  const lines = [headOf(server)]
  if (config !== undefined) lines.push(`  Configuration: ${config}`)
  for (const { name, address } of listening ?? []) lines.push(`  ${name}: ${address}`)
  if (openRequests !== undefined) lines.push(`  Running requests: ${openRequests}`)
  if (models?.length === 0 && failed.length === 0) lines.push('  No models')
  for (const { name, failure } of failed)
    lines.push(
      `  Model ${name}: not loaded since ${String(failure.at)} (id ${failure.id}): ${failure.reason}`,
    )
  return [...lines, ...(models ?? []).flatMap(modelLines)]
}

function modelLines({ modelName, modelVersion, jobQueueStatus, workers, failure }: ServedModel): string[] {
  const { pendingRequests, remainingCapacity } = jobQueueStatus
  const lines = [
    `  Model ${modelName}, version ${modelVersion}: ${count(workers.length, 'worker')}, ` +
      `${pendingRequests} waiting in the queue (room for ${remainingCapacity} more)`,
  ]
  if (failure !== undefined)
    lines.push(`    cannot serve since ${failure.at} (id ${failure.id}): ${failure.reason}`)
  for (const { id, pid, state, inFlight, restarts, lastExit } of workers) {
    const restarted = restarts === 0 ? '' : `, ${count(restarts, 'restart')}`
    lines.push(
      `    Worker ${id}: ${state}${pid > 0 ? `, pid ${pid}` : ''}, ${count(inFlight, 'request')}${restarted}`,
    )
    if (lastExit !== undefined) lines.push(`      last exit at ${lastExit.at}: ${lastExit.reason}`)
  }
  return lines
}

function count(number: number, what: string): string {
  return `${number} ${what}${number === 1 ? '' : 's'}`
}
