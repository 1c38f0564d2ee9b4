import { setTimeout as wait } from 'node:timers/promises'
import type { CliFlags } from './flags.ts'
import type { Output } from './output.ts'
import { removePidFile, tempDirOf, POLL_MS, isServerProcess } from './pid-file.ts'
import { type FoundServer, listServers, namedConfig, serverLine, workingFolder } from './servers.ts'

/** Milliseconds for the end of a killed process. */
const KILLED_MS = 5_000

/**
 * Stops one server: SIGTERM, so that running requests finish, then SIGKILL after the time that its pid file
 * names.
 * @returns the exit status: 0 also when no server runs, as in TorchServe
 */
export async function stopServer(flags: CliFlags, output: Output, env: NodeJS.ProcessEnv): Promise<number> {
  const servers = listServers(tempDirOf(env))
  if (servers.length === 0) {
    output.out('TorchServe-TS is not currently running.')
    return 0
  }
  const meant = meantServers(servers, namedConfig(flags.tsConfig, env))
  const [running, ...others] = meant
  if (running === undefined || others.length > 0) {
    tellServers(running === undefined ? servers : meant, flags, output)
    return 1
  }
  if (running.folder !== workingFolder()) output.out(`Stopping the server with ${serverLine(running)}`)
  return stop(running, output)
}

/**
 * Those with the configuration that the user named, else those of this working folder, else all but those of
 * `torchserve-ts serve`, which Ctrl-C ends. A start that named no file may be stopped by its folder's file.
 */
function meantServers(servers: readonly FoundServer[], config: string | undefined): readonly FoundServer[] {
  const here = servers.filter(({ folder }) => folder === workingFolder())
  if (config !== undefined) {
    const named = servers.filter((server) => server.config === config)
    return named.length > 0 ? named : here.filter((server) => server.config === undefined)
  }
  return here.length > 0 ? here : servers.filter(({ inTerminal }) => inTerminal !== true)
}

function tellServers(servers: readonly FoundServer[], { tsConfig }: CliFlags, output: Output): void {
  output.err(`torchserve-ts: ${whyNone(servers, tsConfig)}`)
  for (const server of servers) output.err(`  ${serverLine(server)}`)
}

function whyNone(servers: readonly FoundServer[], tsConfig: string | undefined): string {
  if (tsConfig !== undefined) return `not one server runs with ${tsConfig}. These run:`
  if (servers.every(({ inTerminal }) => inTerminal === true))
    return 'no server of this folder runs. End these with Ctrl-C, or with --stop in their folder:'
  return 'more than one server runs. Stop one with --stop in its folder, with --stop --ts-config and its file, or with kill and its pid:'
}

async function stop(running: FoundServer, output: Output): Promise<number> {
  if (!signal(running.pid, 'SIGTERM')) {
    output.err(`torchserve-ts: no permission to stop process ${running.pid}`)
    return 1
  }
  const ended = await hasEnded(running.pid, running.stopMs)
  if (!ended) {
    signal(running.pid, 'SIGKILL')
    // A busy machine needs a moment to end it, and the next start needs its ports.
    await hasEnded(running.pid, KILLED_MS)
  }
  removePidFile(running.path, running.pid)
  if (ended) output.out('TorchServe-TS has stopped.')
  else output.err(`torchserve-ts: did not stop within ${running.stopMs / 1000} s and was killed`)
  return ended ? 0 : 1
}

async function hasEnded(pid: number, limitMs: number): Promise<boolean> {
  const limit = performance.now() + limitMs
  while (isServerProcess(pid)) {
    if (performance.now() > limit) return false
    await wait(POLL_MS)
  }
  return true
}

function signal(pid: number, name: 'SIGTERM' | 'SIGKILL'): boolean {
  try {
    process.kill(pid, name)
    return true
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'ESRCH'
  }
}
