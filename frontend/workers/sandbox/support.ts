import { existsSync } from 'node:fs'
import { delimiter, isAbsolute, join } from 'node:path'
import { execa } from 'execa'
import { packageRoot } from '../../../model-archiver/package-root.ts'

/** The program that confines itself and then becomes the worker. */
export const GUEST = join(packageRoot(), 'libexec', 'guest.pl')

/** Milliseconds for the probe, which takes about three. */
const PROBE_LIMIT_MS = 10_000

/** What this system offers to confine workers. */
export interface SandboxSupport {
  /** Absolute path of Perl, which runs the launcher; undefined: workers start without one. */
  readonly perl: string | undefined
  /** Version of Landlock's interface; 0: the kernel has none. */
  readonly landlock: number
  /** Whether system calls can be filtered. */
  readonly seccomp: boolean
  /** Whether a worker can be given a count of its own of processes. */
  readonly userNamespaces: boolean
  /** What is missing, for messages; undefined: nothing. */
  readonly missing: string | undefined
}

/** Asks the system once, at the start of the server. Never rejects. */
export async function findSandbox(): Promise<SandboxSupport> {
  if (process.platform !== 'linux') return nothing(`Linux (this is ${process.platform})`)
  const perl = findPerl()
  if (perl === undefined) return nothing('Perl: install the package perl-base or perl')
  const { failed, stdout, stderr } = await execa(perl, [GUEST, 'probe'], {
    ...{ reject: false, timeout: PROBE_LIMIT_MS, stdin: 'ignore', cwd: '/' },
  })
  if (failed) return nothing(`a working launcher (${stderr.trim().split('\n').at(-1) ?? 'no reason given'})`)
  const found = new Map(stdout.split('\n').map((line) => line.split(' ') as [string, string]))
  const landlock = Number(found.get('landlock'))
  const seccomp = found.get('seccomp') === '1'
  const missing = [landlock === 0 ? 'Landlock in the kernel' : '', seccomp ? '' : 'seccomp']
  return {
    perl,
    landlock,
    seccomp,
    userNamespaces: found.get('namespaces') === '1',
    missing: missing.filter((part) => part !== '').join(' and ') || undefined,
  }
}

/** One line for the log. */
export function describeSupport({ perl, landlock, missing }: SandboxSupport): string {
  if (missing === undefined) return `with Landlock ${landlock} and seccomp, started by ${perl ?? ''}`
  return `this system lacks ${missing}: handlers have the rights of the server’s user (docs/security.md)`
}

function nothing(missing: string): SandboxSupport {
  return { perl: undefined, landlock: 0, seccomp: false, userNamespaces: false, missing }
}

/** The system's own Perl comes first: another one may live where workers must not read. */
function findPerl(): string | undefined {
  const folders = ['/usr/bin', '/bin', '/usr/local/bin', ...(process.env['PATH'] ?? '').split(delimiter)]
  return folders
    .filter((folder) => isAbsolute(folder))
    .map((folder) => join(folder, 'perl'))
    .find((path) => existsSync(path))
}
