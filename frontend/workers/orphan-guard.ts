import type { Writable } from 'node:stream'
import { execa } from 'execa'

/**
 * Reads `+ pid` and `- pid`. When its input ends, the server is gone. After a second, in which most processes
 * exit by themselves, it kills the remaining ones with their process groups.
 */
const SCRIPT = `
pids=' '
while read -r sign pid; do
  case $sign in
    +) pids="$pids$pid " ;;
    -) case $pids in *" $pid "*) pids="\${pids%% $pid *} \${pids#* $pid }" ;; esac ;;
  esac
done
[ "$pids" = ' ' ] && exit
sleep 1
for pid in $pids; do
  kill -s KILL -- "-$pid"
  kill -s KILL -- "$pid"
done
`

/**
 * Ends processes that would survive a killed server: they have sessions of their own, and not all of them
 * exit when their connection ends. One small shell guards all of them and runs while there are any. Without
 * `sh` there is no guard.
 */
class OrphanGuard {
  readonly #pids = new Set<number>()
  #input: Writable | undefined

  /** @param pid ignored unless it is above 1 */
  add(pid: number): void {
    if (pid <= 1 || this.#pids.has(pid)) return
    this.#pids.add(pid)
    if (this.#input === undefined) this.#start()
    else this.#input.write(`+ ${pid}\n`)
  }

  /** The process has ended. */
  remove(pid: number): void {
    if (!this.#pids.delete(pid)) return
    this.#input?.write(`- ${pid}\n`)
    if (this.#pids.size > 0) return
    this.#input?.end()
    this.#input = undefined
  }

  #start(): void {
    const shell = execa('sh', ['-c', SCRIPT, 'torchserve-ts-guard'], {
      ...{ detached: true, cleanup: false, reject: false, buffer: false },
      ...{ stdin: 'pipe', stdout: 'ignore', stderr: 'ignore' },
    })
    const input = (this.#input = shell.stdin)
    shell.unref()
    input.on('error', () => undefined)
    input.write([...this.#pids].map((pid) => `+ ${pid}\n`).join(''))
    void shell.then(() => {
      if (this.#input === input) this.#input = undefined
    })
  }
}

/** The pid of the guard itself. */
export const orphanGuard = new OrphanGuard()
