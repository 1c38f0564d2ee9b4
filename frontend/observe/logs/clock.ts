/** A time as log lines write it. Shared by all lines of a millisecond. */
export interface Stamp {
  /** Local time: `2026-11-21T12:00:00,123`. */
  readonly text: string
  /** Seconds since the epoch. */
  readonly seconds: number
}

let lastMs = -1
let last: Stamp = { text: '', seconds: -1 }

/** The current time. Builds its text once per millisecond, date and time once per second. */
export function stamp(now = Date.now()): Stamp {
  if (now === lastMs) return last
  lastMs = now
  const seconds = Math.floor(now / 1000)
  const text = seconds === last.seconds ? withMilliseconds(last.text, now % 1000) : localTime(now)
  last = { text, seconds }
  return last
}

function withMilliseconds(text: string, milliseconds: number): string {
  return text.slice(0, -3) + String(milliseconds).padStart(3, '0')
}

/** ISO 8601 in local time, with log4j's comma. */
export function localTime(time: number): string {
  const offset = new Date(time).getTimezoneOffset() * 60_000
  return new Date(time - offset).toISOString().slice(0, -1).replace('.', ',')
}

const MONTHS = ['Jan', 'Feb', 'Mar', 'Apr', 'May', 'Jun', 'Jul', 'Aug', 'Sep', 'Oct', 'Nov', 'Dec']

/** The local day in TorchServe's names of rolled files: `21-Nov`. */
export function dayName(time: number): string {
  const date = new Date(time)
  return `${String(date.getDate()).padStart(2, '0')}-${MONTHS[date.getMonth()]!}`
}

/** End of the local day of `time`, in milliseconds since the epoch. */
export function endOfDay(time: number): number {
  return new Date(time).setHours(24, 0, 0, 0)
}
