import { residentBytes } from '../processes.ts'
import type { Target } from '../targets/target.ts'
import type { Figure } from './figure.ts'
import { pause } from './figure.ts'
import { produced } from './produced.ts'
import { steadyResidentBytes } from './resident.ts'
import { openGrpc, openHttp, type Opener } from './streams.ts'

const ITEM = 16 * 1024
const TOTAL = 200 * 1024 * 1024
const MEGABYTE = 1024 * 1024

/**
 * A reader that stops after the first bytes of 200 MB: how many bytes the handler produces, and the memory.
 */
export async function measureStalled(target: Target): Promise<Figure[]> {
  return [...(await stalled(target, openHttp, 'HTTP')), ...(await stalled(target, openGrpc, 'gRPC'))]
}

async function stalled(target: Target, open: Opener, protocol: string): Promise<Figure[]> {
  const id = `stalled ${protocol}`
  const before = await steadyResidentBytes(target)
  const stream = await open(target, JSON.stringify({ id, n: TOTAL / ITEM, size: ITEM, delay: 0 }))
  try {
    const { bytes, peak } = await standstill(target, id)
    const figure = (name: string, value: number, atMost: number): Figure => ({
      measure: 'stalled',
      name: `${protocol} stalled reader of 200 MB, ${name}`,
      value: value / MEGABYTE,
      unit: 'MB',
      atMost,
    })
    return [figure('produced', bytes, 16), figure('RSS growth', peak - before, 32)]
  } finally {
    stream.leave()
  }
}

/** Waits until nothing was produced for a second. */
async function standstill(target: Target, id: string): Promise<{ bytes: number; peak: number }> {
  let bytes = -1
  let peak = 0
  for (let still = 0; still < 10;) {
    await pause(100)
    const run = await produced(target, id)
    peak = Math.max(peak, residentBytes(target.pids()))
    still = run.bytes === bytes ? still + 1 : 0
    bytes = run.bytes
    if (run.state !== 'running') break
  }
  return { bytes, peak }
}
