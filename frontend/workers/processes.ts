import { readFileSync } from 'node:fs'

/**
 * Kills the rest of the process group that a process leads or led. @param pid ignored unless it is above 1
 */
export function killGroup(pid: number | undefined): void {
  if (pid !== undefined && pid > 1) kill(-pid)
}

/** The same for a child process, and the process itself. */
export function killSession(pid: number): void {
  if (pid <= 1) return
  killGroup(pid)
  kill(pid)
}

function kill(target: number): void {
  try {
    process.kill(target, 'SIGKILL')
  } catch {
    // It has already ended.
  }
}

/**
 * The processes that run a worker, from the kernel's tables (Linux): the started process, or those of its
 * descendants that a wrapper or torchrun has started for it. Each has the program, options of the program,
 * and then exactly `args`. Nothing below a process that was found is searched. Empty: there is none yet.
 */
export function workersBelow(pid: number, args: readonly string[]): number[] {
  const found: number[] = []
  let generation = [pid]
  while (generation.length > 0) {
    const others = generation.filter((each) => !runs(each, args))
    found.push(...generation.filter((each) => !others.includes(each)))
    generation = others.flatMap(childrenOf)
  }
  return found
}

function runs(pid: number, args: readonly string[]): boolean {
  const [, ...words] = read(`/proc/${pid}/cmdline`).split('\0').slice(0, -1)
  const options = words.length - args.length
  return (
    options >= 0 &&
    words.every((word, at) => (at < options ? word.startsWith('-') : word === args[at - options]))
  )
}

function childrenOf(pid: number): number[] {
  return read(`/proc/${pid}/task/${pid}/children`)
    .split(' ')
    .flatMap((text) => Number(text) || [])
}

function read(path: string): string {
  try {
    return readFileSync(path, 'utf8')
  } catch {
    return ''
  }
}

/** Resident memory of the processes in bytes, from the kernel (Linux); 0 on other systems. */
export function residentBytes(pids: readonly number[]): number {
  return pids.reduce((sum, pid) => sum + residentBytesOf(pid), 0)
}

function residentBytesOf(pid: number): number {
  try {
    const status = readFileSync(`/proc/${pid}/status`, 'latin1')
    return Number(/^VmRSS:\s+(\d+) kB$/m.exec(status)?.[1] ?? 0) * 1024
  } catch {
    return 0
  }
}
