import { InvalidArgumentError } from 'commander'
import type { Output } from './output.ts'
import { askServers } from './shown-servers.ts'
import { newCommand, runCommand } from './subcommand.ts'
import { topPage } from './top-page.ts'
import { TopScreen } from './top-screen.ts'

const EXAMPLES = `
Examples:
    $ torchserve-ts top
    $ torchserve-ts top --once

Ends with q or Ctrl-C.`

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
    for (const line of topPage(servers)) output.out(line)
    return servers.length === 0 ? 1 : 0
  })
}

/** Shows it until the user ends it, or nobody reads. */
async function follow(output: Output, intervalMs: number): Promise<number> {
  const screen = new TopScreen(output)
  try {
    while (!screen.isOver) {
      await screen.show(topPage(await askServers(), screen.height))
      await screen.pause(intervalMs)
    }
    return 0
  } finally {
    screen.close()
  }
}

function secondsOf(text: string): number {
  const seconds = Number(text)
  if (!(seconds >= 0.1 && seconds <= 3600)) throw new InvalidArgumentError('It must be from 0.1 to 3600.')
  return seconds
}
