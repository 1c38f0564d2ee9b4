import { readFileSync } from 'node:fs'

/** Fields of `/proc/PID/stat` after the name, which may contain anything (man 5 proc). */
const USER_TICKS = 11
const SYSTEM_TICKS = 12
/** Linux reports 100 ticks a second to programs on every machine. */
const MS_PER_TICK = 10

/** Milliseconds of processor time of a process; undefined: unknown, as on other systems than Linux. */
export function processorMs(pid: number): number | undefined {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'latin1')
    const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
    const ms = (Number(fields[USER_TICKS]) + Number(fields[SYSTEM_TICKS])) * MS_PER_TICK
    return Number.isFinite(ms) ? ms : undefined
  } catch {
    return undefined
  }
}
