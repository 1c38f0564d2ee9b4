import { ServeError } from '../../../common/errors.ts'
import type { SandboxSettings } from '../../models/sandbox-settings.ts'
import type { CommandLine } from '../worker-process.ts'
import { reservedBytes } from '../memory.ts'
import { type Guest, placesOf } from './places.ts'
import { GUEST, type SandboxSupport } from './support.ts'

/** Numbers of resources for setrlimit on Linux. */
const RLIMIT = { memory: 2, processes: 6, openFiles: 7 }

/**
 * The command line that confines a worker, keeps what it starts from outliving it, and runs it as a child.
 * @throws ServeError WORKER_START_FAILED when the system cannot keep what the sandbox promises
 */
export function confined(commandLine: CommandLine, guest: Guest, support: SandboxSupport): CommandLine {
  const { sandbox } = guest
  refuse(sandbox, support)
  if (support.perl === undefined) return commandLine
  const rules = [
    ...(sandbox.mode === 'off' && !isLimited(sandbox) ? ['free'] : []),
    ...(sandbox.mode !== 'off' && support.landlock > 0 ? fileRules(guest) : []),
    ...limitRules(sandbox, commandLine.command === process.execPath ? reservedBytes() : 0),
    ...(sandbox.network ? [] : ['offline']),
    ...(sandbox.mode === 'strict' ? ['quiet'] : []),
  ]
  const args = [GUEST, ...rules, '--', commandLine.command, ...commandLine.args]
  return { ...commandLine, command: support.perl, args, kept: true }
}

/** The folder for temporary files that the worker is told of. */
export function scratchEnv({ mode }: SandboxSettings, folder: string): Record<string, string> {
  return mode === 'off' ? {} : { TMPDIR: folder, TMP: folder, TEMP: folder }
}

function fileRules(guest: Guest): string[] {
  const { read, write } = placesOf(guest)
  return ['files', ...read.flatMap((path) => ['read', path]), ...write.flatMap((path) => ['write', path])]
}

/** `reserved`: bytes that the runtime takes without using them. */
function limitRules({ memory, openFiles, processes }: SandboxSettings, reserved: number): string[] {
  const limits = [
    ...(memory === undefined ? [] : ['limit', `${RLIMIT.memory}=${memory + reserved}`]),
    ...(openFiles === undefined ? [] : ['limit', `${RLIMIT.openFiles}=${openFiles}`]),
  ]
  return processes === undefined
    ? limits
    : [...limits, 'counted', 'limit', `${RLIMIT.processes}=${processes}`]
}

function isLimited({ memory, processes, openFiles, network }: SandboxSettings): boolean {
  return !network || [memory, processes, openFiles].some((limit) => limit !== undefined)
}

/** What was asked for by name is never left out without a word. */
function refuse(sandbox: SandboxSettings, support: SandboxSupport): void {
  const { missing, perl, seccomp, userNamespaces } = support
  if (sandbox.mode === 'strict' && missing !== undefined)
    throw unsupported('sandbox=strict', missing, 'Set sandbox=default, which does not need it')
  if (!sandbox.network && !seccomp) throw unsupported('A worker without network', missing ?? 'seccomp')
  if (perl === undefined && isLimited(sandbox)) throw unsupported('A limit on workers', missing ?? 'Perl')
  if (sandbox.processes === undefined) return
  if (process.getuid?.() === 0)
    throw unsupported('worker_processes', 'a user other than root, whose processes the kernel does not limit')
  if (!userNamespaces) throw unsupported('worker_processes', 'user namespaces without privileges')
}

function unsupported(what: string, missing: string, advice?: string): ServeError {
  const text = `${what} is not supported here: this system lacks ${missing}`
  return new ServeError('WORKER_START_FAILED', advice === undefined ? text : `${text}. ${advice}`)
}
