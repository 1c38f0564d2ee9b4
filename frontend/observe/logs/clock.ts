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
