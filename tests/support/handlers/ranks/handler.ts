import { appendFileSync } from 'node:fs'
import { join } from 'node:path'
import { sendIntermediatePredictResponse, type Context, type HandlerRequest } from 'torchserve-ts'
import { aborted } from '../aborted.ts'

/**
 * The handler of a rank group. Every rank writes what it sees to a file in the folder RANK_LOG, and sends as
 * if it alone had to answer.
 */
export async function handle(requests: HandlerRequest[], context: Context): Promise<string[]> {
  const { rank, worldSize } = context.properties
  const body = (requests[0]?.['body'] ?? {}) as { wait?: boolean }
  note(rank, `request ${context.requestIds[0]}`)
  await sendIntermediatePredictResponse(
    [`from rank ${rank}\n`],
    context.requestIds,
    'Intermediate',
    200,
    context,
  )
  note(rank, 'sent')
  if (body.wait) {
    await aborted(context.signal)
    note(rank, 'aborted')
  }
  return [`end of rank ${rank} of ${worldSize}, ${process.env['RANK']}/${process.env['WORLD_SIZE']}\n`]
}

function note(rank: number, line: string): void {
  appendFileSync(join(process.env['RANK_LOG'] ?? '.', `rank-${rank}.log`), `${line} pid=${process.pid}\n`)
}
