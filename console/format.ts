/** `1,234` or `56.7`: three digits at least, where there are some. */
export function number(value: number): string {
  return value.toLocaleString('en', {
    maximumFractionDigits: value < 100 && !Number.isInteger(value) ? 1 : 0,
  })
}

/** `1 model`, `2 models`. */
export function count(value: number, noun: string): string {
  return `${number(value)} ${noun}${value === 1 ? '' : 's'}`
}

export function bytes(value: number | undefined): string {
  if (value === undefined) return '–'
  const units = ['B', 'KB', 'MB', 'GB', 'TB']
  let unit = 0
  while (value >= 1024 && unit < units.length - 1) {
    value /= 1024
    unit += 1
  }
  return `${number(unit === 0 ? value : Number(value.toFixed(value < 10 ? 1 : 0)))} ${units[unit]!}`
}

/** A span of time: `3.2 ms`, `12 ms`, `3.4 s`, `5 min 12 s`, `2 h 5 min`; nothing is a dash. */
export function duration(ms: number | null | undefined): string {
  if (ms === null || ms === undefined) return '–'
  if (ms < 1_000) return `${Number(ms.toFixed(ms < 10 ? 1 : 0))} ms`
  const seconds = ms / 1000
  if (seconds < 60) return `${seconds.toFixed(1)} s`
  if (seconds < 3_600) return `${Math.floor(seconds / 60)} min ${Math.floor(seconds % 60)} s`
  return `${Math.floor(seconds / 3_600)} h ${Math.floor((seconds % 3_600) / 60)} min`
}

/** The local time of day, `14:05:09`, of an ISO time or of milliseconds since the epoch. */
export function timeOfDay(time: string | number): string {
  const date = new Date(time)
  return Number.isNaN(date.getTime()) ? String(time) : date.toLocaleTimeString('en-GB')
}
