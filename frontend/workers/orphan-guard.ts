import { randomBytes } from 'node:crypto'
import { PassThrough, type Writable } from 'node:stream'
import { runProgram, startProgram } from '../../common/start-program.ts'
import { startTimer } from '../../common/timer.ts'

/**
 * The variable by which processes that left the group of a worker are found. A process without it, or of
 * another user, is not.
 */
export const MARK = 'TORCHSERVE_TS_WORKER'

/** Kills what has a mark, up to ten times: what is killed may have started more in the meantime. */
const REAP = `
reap() {
  for round in 1 2 3 4 5 6 7 8 9 10; do
    found=$(grep -lsF "${MARK}=$1" /proc/[0-9]*/environ)
    [ "$found" = '' ] && return
    for file in $found; do
      pid=\${file#/proc/}
      kill -s KILL "\${pid%/environ}"
    done
  done
}
`

/**
 * Reads `+ pid` and `- pid`. When its input ends, the server is gone. After a second, in which most processes
 * exit by themselves, it kills the remaining ones with their process groups, and whatever has the mark.
 */
const GUARD = `${REAP}
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
reap "$1"
`

/** Milliseconds for which a guard must have run to be started again at once. */
const STEADY_MS = 1000
/** Milliseconds for a scan of all processes, which takes a few. */
const REAP_LIMIT_MS = 2000

/**
 * Ends processes that would survive their worker, or a killed server: they have process groups or sessions of
 * their own, and not all of them exit when their connection ends. One small shell guards all workers and runs
 * while there are any. Without `sh` there is no guard; without `grep` or Linux it knows process groups only.
 */
class OrphanGuard {
  readonly #own = randomBytes(12).toString('base64url')
  readonly #pids = new Set<number>()
  #input: Writable | undefined
  #marks = 0
  /** Told why it cannot do its work, in one line, until it can again. */
  warn: (message: string) => void = () => undefined
  #fault: string | undefined

  /** A value of the variable MARK that no other process has. */
  newMark(): string {
    this.#marks += 1
    return `${this.#own}/${this.#marks}/`
  }

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

  /** Kills what has the mark. Resolves when that is done, and never rejects. */
  async reap(mark: string): Promise<void> {
    if (process.platform !== 'linux') return
    const { failure } = await runProgram('sh', ['-c', `${REAP} reap "$1"`, 'torchserve-ts-reaper', mark], {
      detached: true,
      timeoutMs: REAP_LIMIT_MS,
    })
    this.#judge(failure)
  }

  #start(): void {
    const from = performance.now()
    const { child, ended } = startProgram('sh', ['-c', GUARD, 'torchserve-ts-guard', `${this.#own}/`], {
      detached: true,
      stdio: ['pipe', 'ignore', 'ignore'],
    })
    const input = (this.#input = child?.stdin ?? new PassThrough())
    child?.unref()
    input.on('error', () => undefined)
    input.write([...this.#pids].map((pid) => `+ ${pid}\n`).join(''))
    if (child?.pid !== undefined) this.#judge(undefined)
    void ended.then(({ failure }) => {
      if (this.#input !== input) return
      this.#judge(failure)
      // Somebody has ended it, or it cannot be started.
      const pause = performance.now() - from < STEADY_MS ? STEADY_MS : 0
      startTimer(() => this.#again(input), pause).unref()
    })
  }

  #judge(failure: Error | undefined): void {
    const fault = failure?.message
    if (fault !== undefined && fault !== this.#fault)
      this.warn(`What a worker has started may outlive it: ${fault}`)
    this.#fault = fault
  }

  #again(ended: Writable): void {
    if (this.#input !== ended) return
    this.#input = undefined
    if (this.#pids.size > 0) this.#start()
  }
}

export const orphanGuard = new OrphanGuard()
