import { InvalidArgumentError } from 'commander'
import { escapeControls } from '../../common/escape-controls.ts'
import type { ServedModel } from '../server-api.ts'
import type { Output } from './output.ts'
import { askServers, headOf, type ShownServer } from './shown-servers.ts'
import { newCommand, runCommand } from './subcommand.ts'
import { type Row, tableLines } from './table.ts'
import { TopScreen } from './top-screen.ts'

const EXAMPLES = `
Examples:
    $ torchserve-ts top
    $ torchserve-ts top --once

Ends with q or Ctrl-C.`

const HEAD: Row = ['MODEL', 'VERSION', 'WORKER', 'STATE', 'PID', 'REQUESTS', 'QUEUE', 'RESTARTS', 'MEMORY']

/**
 * The command `torchserve-ts top`.
 * @returns the exit status
 */
export function runTop(argv: readonly string[], output: Output): Promise<number> {
  const program = newCommand('torchserve-ts top', output)
    .description('Show models, workers, queues and open requests of the running servers, again and again')
    .option('--once', 'show it once; status 1: no server runs')
    .option('--interval <seconds>', 'time between two looks', secondsOf, 1)
    .addHelpText('after', EXAMPLES)
  return runCommand(program, argv, output, async () => {
    const { once, interval } = program.opts<{ once?: boolean; interval: number }>()
    if (once !== true) return follow(output, interval * 1000)
    const servers = await askServers()
    for (const line of pageOf(servers)) output.out(line)
    return servers.length === 0 ? 1 : 0
  })
}

/** Shows it until the user ends it, or nobody reads. */
async function follow(output: Output, intervalMs: number): Promise<number> {
  const screen = new TopScreen(output)
  try {
    while (!screen.isOver) {
      await screen.show(pageOf(await askServers()))
      await screen.pause(intervalMs)
    }
    return 0
  } finally {
    screen.close()
  }
}

function pageOf(servers: readonly ShownServer[]): string[] {
  if (servers.length === 0) return ['TorchServe-TS is not currently running.']
  return servers.flatMap(serverLines)
}

function serverLines(server: ShownServer): string[] {
  const { openRequests, models = [] } = server
  const lines = [escapeControls(headOf(server))]
  if (openRequests === undefined) return lines
  const queued = models.reduce((sum, { jobQueueStatus }) => sum + jobQueueStatus.pendingRequests, 0)
  lines.push(`  ${openRequests} open ${openRequests === 1 ? 'request' : 'requests'}, ${queued} in the queue`)
  if (models.length === 0) return [...lines, '  No models']
  return [...lines, ...tableLines([HEAD, ...models.flatMap(modelRows)]).map((line) => `  ${line}`)]
}

function modelRows({ modelName, modelVersion, jobQueueStatus, workers, failure }: ServedModel): Row[] {
  const { pendingRequests, remainingCapacity } = jobQueueStatus
  const queue = `${pendingRequests}/${pendingRequests + remainingCapacity}`
  const state = failure === undefined ? '' : 'cannot serve'
  return [
    [modelName, modelVersion, '', state, '', '', queue],
    ...workers.map(({ id, state, pid, inFlight, restarts, memoryUsage }): Row => [
      '',
      '',
      id,
      state,
      pid > 0 ? pid : '',
      inFlight,
      '',
      restarts,
      memoryUsage > 0 ? `${Math.round(memoryUsage / 1e6)} MB` : '',
    ]),
  ]
}

function secondsOf(text: string): number {
  const seconds = Number(text)
  if (!(seconds >= 0.1 && seconds <= 3600)) throw new InvalidArgumentError('It must be from 0.1 to 3600.')
  return seconds
}
