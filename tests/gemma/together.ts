import assert from 'node:assert/strict'
import { median } from '../../benchmarks/statistics.ts'
import { ChatStream, type ChatOptions } from './chat-stream.ts'

/** Pieces per stream with all eight, and then with four, in each round. */
const PIECES = 30
const ROUNDS = 3
/** Pieces skipped after others joined or left, until the runtime has processed their prompt or end. */
const SETTLING = 4
/** Tokens for the streams that stay; the context has room for them and their prompt. */
const MAX_TOKENS = 480
const MAX_RATIO = 0.8

/**
 * Eight concurrent chats on one model get tokens together; when four of them leave, the others get theirs
 * faster. Speed varies on shared machines, so both are measured in turns on the same streams: eight, four,
 * eight, four, ...
 */
export async function chatsTogether(where: Omit<ChatOptions, 'question' | 'maxTokens'>): Promise<void> {
  const open = (count: number): ChatStream[] =>
    Array.from(
      { length: count },
      (_, i) =>
        new ChatStream({
          ...where,
          question: `Tell a long story about ${i + 2} cats.`,
          maxTokens: MAX_TOKENS,
        }),
    )
  const staying = open(4)
  let leaving = open(4)
  const eight: number[] = []
  const four: number[] = []
  try {
    for (let round = 0; round < ROUNDS; round += 1) {
      if (round > 0) leaving = open(4)
      await all(leaving, 1)
      await all(staying, 1)
      eight.push(...(await gaps(staying)))
      assert.ok(
        [...staying, ...leaving].every(({ end }) => end === undefined),
        'a stream ended too early',
      )
      const besides = Math.min(...leaving.map(({ times }) => times.length))
      assert.ok(besides >= PIECES / 2, `a stream got only ${besides} tokens while others got ${PIECES}`)
      for (const stream of leaving) stream.leave()
      four.push(...(await gaps(staying)))
    }
  } finally {
    for (const stream of [...staying, ...leaving]) stream.leave()
  }
  report(eight, four)
}

/** Milliseconds between the next pieces of each stream, once they have settled. */
async function gaps(streams: readonly ChatStream[]): Promise<number[]> {
  const from = streams.map(({ times }) => times.length + SETTLING)
  await Promise.all(streams.map((stream, i) => stream.reaches(from[i]! + PIECES)))
  return streams.flatMap(({ times }, i) =>
    Array.from({ length: PIECES - 1 }, (_, k) => times[from[i]! + k + 1]! - times[from[i]! + k]!),
  )
}

async function all(streams: readonly ChatStream[], pieces: number): Promise<void> {
  await Promise.all(streams.map((stream) => stream.reaches(pieces)))
}

function report(eight: readonly number[], four: readonly number[]): void {
  const [before, after] = [median(eight), median(four)]
  const ratio = after / before
  console.log(
    `        gap of a stream: median ${before.toFixed(1)} ms of eight (${eight.length} gaps), ` +
      `${after.toFixed(1)} ms of four (${four.length} gaps): ${ratio.toFixed(2)}`,
  )
  assert.ok(ratio <= MAX_RATIO, `the gaps of four are ${ratio.toFixed(2)} of those of eight`)
}
