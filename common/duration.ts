/** A span of time as people read it: `3.2 ms`, `12 ms`, `3.4 s`, `5 min 12 s`, `2 h 5 min`. */
export function durationText(ms: number): string {
  if (ms < 1_000) return `${Number(ms.toFixed(ms < 10 ? 1 : 0))} ms`
  const seconds = ms / 1000
  if (seconds < 60) return `${seconds.toFixed(1)} s`
  if (seconds < 3_600) return `${Math.floor(seconds / 60)} min ${Math.floor(seconds % 60)} s`
  return `${Math.floor(seconds / 3_600)} h ${Math.floor((seconds % 3_600) / 60)} min`
}
